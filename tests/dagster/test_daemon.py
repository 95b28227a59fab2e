"""The sensors and the runs under a real daemon, with the instance files that are shipped: each in its own process."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import dagster as dg
import pytest

from lance_ops.dagster.instances import instance_file
from tests.dagster.deployment import Deployment
from tests.manifest_servers import postgres_server

pytestmark = [pytest.mark.dagster, pytest.mark.server]

DEFINITIONS = """
import time
from pathlib import Path

import dagster as dg
from lance_ops.dagster.declaration import DatasetConfig
from lance_ops.dagster.definitions import build_definitions
from lance_ops.dagster.runners.runner import RUNNER_KEY, ThreadRunner

config = DatasetConfig.model_validate_json({declared!r})


class Held(ThreadRunner):
    def runner(self, on_progress=None):
        while Path({hold!r}).exists():
            time.sleep(0.1)
        return super().runner(on_progress)


defs = dg.Definitions.merge(build_definitions(config), dg.Definitions(resources={{RUNNER_KEY: Held()}}))
"""

PROCESS = re.compile(r"\(pid: (\d+)\)")


@pytest.fixture
def hold(tmp_path: Path) -> Path:
    """Return a file: while it exists, ingestion waits before its tasks begin."""
    return tmp_path / "hold"


@pytest.fixture
def laptop(tmp_path: Path) -> dict[str, str]:
    """Make an instance of the shipped `laptop.yaml`; return its environment."""
    return home_with(tmp_path, instance_file("laptop"))


@pytest.fixture
def team(tmp_path: Path) -> Iterator[dict[str, str]]:
    """Make an instance of the shipped `team.yaml` on a PostgreSQL of its own; yield its environment."""
    pytest.importorskip("dagster_postgres")
    with tempfile.TemporaryDirectory() as folder, postgres_server(Path(folder)) as server:
        socket = server.url.rpartition("host=")[2]
        yield home_with(tmp_path, instance_file("team")) | {
            "DAGSTER_POSTGRES_HOST": "",  # libpq then reads PGHOST, the folder of the server's socket
            "PGHOST": socket,
            "DAGSTER_POSTGRES_PORT": "5432",
            "DAGSTER_POSTGRES_DB": "postgres",
            "DAGSTER_POSTGRES_USER": "postgres",
            "DAGSTER_POSTGRES_PASSWORD": "",
            "DAGSTER_EVENT_BATCH_SIZE": "500",
        }


def home_with(tmp_path: Path, settings: str) -> dict[str, str]:
    home = tmp_path / "home"
    home.mkdir()
    (home / "dagster.yaml").write_text(settings)
    return {"DAGSTER_HOME": str(home)}


@contextmanager
def daemon(
    deployment: Deployment, environment: dict[str, str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[dg.DagsterInstance]:
    """Run the daemon on the deployment, with eight landed days; yield its instance."""
    for day in range(8):
        deployment.land(f"d{day}", range(day * 10, day * 10 + 10))
    location = tmp_path / "location.py"
    declared = deployment.config.model_dump_json()
    location.write_text(DEFINITIONS.format(declared=declared, hold=str(tmp_path / "hold")))
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setenv(
        "PYTHONPATH", os.pathsep.join([str(Path(__file__).parents[2]), os.environ.get("PYTHONPATH", "")])
    )
    command = [sys.executable, "-m", "dagster._daemon", "run", "-f", str(location)]
    with dg.DagsterInstance.get() as instance:
        instance.get_run_records(limit=1)  # the instance is initialised before a second process opens it
        with (tmp_path / "daemon.log").open("wb") as log:
            process = subprocess.Popen(command, stdout=log, stderr=subprocess.STDOUT)
        try:
            yield instance
        finally:
            process.terminate()
            process.wait(timeout=60)


def wait_for(condition: Callable[[], bool], seconds: float = 240) -> None:
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, "the daemon did not get there"
        time.sleep(0.5)


def num_succeeded(instance: dg.DagsterInstance) -> int:
    return instance.get_runs_count(dg.RunsFilter(statuses=[dg.DagsterRunStatus.SUCCESS]))


def test_the_daemon_ingests_a_backlog_in_one_run_and_one_commit(
    deployment: Deployment, laptop: dict[str, str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with daemon(deployment, laptop, tmp_path, monkeypatch) as instance:
        wait_for(lambda: num_succeeded(instance) == 1)
        (record,) = instance.get_run_records()
        assert record.dagster_run.tags["dagster/asset_partition_range_start"] == "d0"
        assert record.dagster_run.tags["dagster/asset_partition_range_end"] == "d7"
        assert len(instance.get_materialized_partitions(deployment.names.batches)) == 8
        assert (deployment.data.version, deployment.data.count_rows()) == (1, 80)


def test_a_killed_run_of_a_team_gives_its_slot_back_and_is_asked_for_again(
    deployment: Deployment, team: dict[str, str], hold: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    hold.touch()
    pool = deployment.names.pool
    with daemon(deployment, team, tmp_path, monkeypatch) as instance:
        assert type(instance.run_storage).__name__ == "PostgresRunStorage"
        slots = instance.event_log_storage.get_concurrency_info
        wait_for(lambda: slots(pool).claimed_slots != [])
        (killed,) = instance.get_run_records()
        os.kill(process_of(instance, killed.dagster_run.run_id), signal.SIGKILL)
        hold.unlink()
        wait_for(lambda: num_succeeded(instance) == 1)
        newest, first = instance.get_run_records()
        assert first.dagster_run.status is dg.DagsterRunStatus.FAILURE
        assert newest.dagster_run.tags["dagster/parent_run_id"] == killed.dagster_run.run_id == first.dagster_run.run_id
        assert len(instance.get_materialized_partitions(deployment.names.batches)) == 8
        assert (deployment.data.version, deployment.data.count_rows()) == (1, 80)
        wait_for(lambda: slots(pool).claimed_slots == [])


def process_of(instance: dg.DagsterInstance, run_id: str) -> int:
    """Return the id of the process that executes a run."""
    events = (record.event_log_entry.dagster_event for record in instance.get_records_for_run(run_id).records)
    ids = [int(match[1]) for event in events if event and (match := PROCESS.search(event.message or ""))]
    return ids[-1]
