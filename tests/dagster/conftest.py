"""Fixtures: a Dagster instance on a temporary folder, and a deployment of one dataset on it."""

from __future__ import annotations

import shutil
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from datetime import timedelta
from functools import cache, lru_cache
from pathlib import Path
from typing import Any

import dagster as dg
import pytest
from alembic.script import ScriptDirectory
from dagster._core.storage.event_log.sqlite import consolidated_sqlite_event_log
from dagster._core.storage.runs.sqlite import sqlite_run_storage
from dagster._core.storage.schedules.sqlite import sqlite_schedule_storage
from sqlalchemy import Engine, NullPool, Pool, create_engine

from lance_ops.dagster.declaration import DatasetConfig
from lance_ops.dagster.definitions import build_definitions
from lance_ops.dagster.in_process import CodeLocation
from lance_ops.dagster.runners.runner import RUNNER_KEY, ThreadRunner
from lance_ops.dagster.runs import retry_waits
from tests.dagster.alert_receiver import Receiver, receiving
from tests.dagster.deployment import Deploy, Deployment
from tests.dagster.dg_project import Project

# One database holds the events of all runs: Dagster's default makes one for each run, which costs as much as the run.
# Nobody looks at what the steps print: Dagster would start four processes for each run to copy it. The daemon's tests
# run on the shipped files, and on the default.
SETTINGS = """
telemetry: {{enabled: false}}
event_log_storage:
  module: dagster._core.storage.event_log
  class: ConsolidatedSqliteEventLogStorage
  config: {{base_dir: {home}/events}}
compute_logs:
  module: dagster._core.storage.noop_compute_log_manager
  class: NoOpComputeLogManager
"""


@lru_cache(maxsize=8)
def _engine(database: str, connection: tuple[tuple[str, int], ...]) -> Engine:
    return create_engine(database, poolclass=NullPool, connect_args=dict(connection))


def _kept_engine(database: str, *, poolclass: type[Pool], connect_args: Mapping[str, int] | None = None) -> Engine:
    assert poolclass is NullPool
    return _engine(database, tuple((connect_args or {}).items()))


@pytest.fixture(scope="session", autouse=True)
def _databases_are_known() -> Iterator[None]:
    """Keep the engines of SQLite databases, and the list of Dagster's migrations.

    Dagster makes an engine, which compiles every statement, for each access. It reads all migrations for each instance.
    """
    with pytest.MonkeyPatch.context() as patch:
        for storage in (consolidated_sqlite_event_log, sqlite_run_storage, sqlite_schedule_storage):
            patch.setattr(storage, "create_engine", _kept_engine)
        patch.setattr(ScriptDirectory, "from_config", cache(ScriptDirectory.from_config))
        yield
    _engine.cache_clear()


@contextmanager
def instance_in(home: Path) -> Iterator[dg.DagsterInstance]:
    (home / "dagster.yaml").write_text(SETTINGS.format(home=home))
    with dg.DagsterInstance.from_config(str(home)) as made:
        yield made


@pytest.fixture(scope="session")
def new_instance(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Make the databases of an instance once; copying them takes a sixth of the time."""
    home = tmp_path_factory.mktemp("new_instance")
    with instance_in(home) as made:
        made.get_runs_count()
        made.all_instigator_state()
    return home


@pytest.fixture
def instance(tmp_path: Path, new_instance: Path) -> Iterator[dg.DagsterInstance]:
    home = tmp_path / "dagster"
    shutil.copytree(new_instance, home)
    with instance_in(home) as made:
        yield made


@pytest.fixture
def deploy(tmp_path: Path, instance: dg.DagsterInstance) -> Deploy:
    """Make a deployment; keys of the declaration can be given."""
    landing = tmp_path / "landing"
    landing.mkdir()

    def make(raw: dict[str, Any] | None = None, **declared: Any) -> Deployment:
        config = DatasetConfig.model_validate(
            {
                "name": "trips",
                "uri": str(tmp_path / "lake" / "trips.lance"),
                # A process that decodes files is slow to start. The tests of the daemon and of Spark have it.
                "raw": {"uri": str(landing), "glob": "*.parquet", "isolated": False, **(raw or {})},
                "indices": [{"column": "id"}],
                **declared,
            }
        )
        resources = dg.Definitions(resources={RUNNER_KEY: ThreadRunner()})
        definitions = dg.Definitions.merge(build_definitions(config), resources)
        return Deployment(config, CodeLocation(definitions, instance), landing)

    return make


@pytest.fixture
def without_pauses() -> Iterator[None]:
    """Have sensors ask again at once after a failed run."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(retry_waits, "_FIRST_WAIT", timedelta(0))
        yield


@pytest.fixture
def without_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    """Have ticks add partitions and record events, and start no run."""
    monkeypatch.setattr(CodeLocation, "run", lambda *_, **options: None)


@pytest.fixture
def deployment(deploy: Deploy) -> Deployment:
    return deploy()


@pytest.fixture
def receiver(monkeypatch: pytest.MonkeyPatch) -> Iterator[Receiver]:
    with receiving() as received:
        monkeypatch.setenv("ALERT_URL", received.url)
        monkeypatch.setenv("ALERT_TOKEN", "a-token")
        monkeypatch.setenv("DAGSTER_WEBSERVER_URL", "https://dagster.example")
        yield received


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Project:
    made = Project(tmp_path / "project", tmp_path.name)  # a name of its own: Python keeps packages that it imported
    monkeypatch.syspath_prepend(made.home)
    return made
