"""A real daemon on a shipped instance file: it evaluates sensors, launches each run in a process, and watches them."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import tempfile
import time
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import dagster as dg
import pytest
from dagster._core.execution.backfill import PartitionBackfill
from dagster._core.scheduler.instigation import SensorInstigatorData
from dagster._core.storage.tags import AUTO_RETRY_RUN_ID_TAG, WILL_RETRY_TAG

from lance_ops.dagster.declaration import DatasetNames
from lance_ops.dagster.instances import instance_file
from tests.manifest_servers import postgres_server

__all__ = [
    "are_retried",
    "home_with",
    "launch_backfill",
    "running_daemon",
    "sensors_with_a_cursor",
    "team_instance",
    "wait_for",
]

_CURSOR_OF_FAILURES = f"EVENT_LOG_CONSUMER_CURSOR-{dg.DagsterEventType.RUN_FAILURE.value}"
"""Where the daemon that starts runs again stores which failures it has looked at."""


def home_with(folder: Path, settings: str) -> dict[str, str]:
    """Make an instance with these settings in `folder`; return its environment."""
    home = folder / "home"
    home.mkdir()
    (home / "dagster.yaml").write_text(settings)
    return {"DAGSTER_HOME": str(home)}


@contextmanager
def team_instance(folder: Path) -> Iterator[dict[str, str]]:
    """Make an instance of the shipped `team.yaml` on a PostgreSQL of its own; yield its environment."""
    with tempfile.TemporaryDirectory() as of_server, postgres_server(Path(of_server)) as server:
        socket = server.url.rpartition("host=")[2]
        yield home_with(folder, instance_file("team")) | {
            "DAGSTER_POSTGRES_HOST": "",  # libpq then reads PGHOST, the folder of the server's socket
            "PGHOST": socket,
            "DAGSTER_POSTGRES_PORT": "5432",
            "DAGSTER_POSTGRES_DB": "postgres",
            "DAGSTER_POSTGRES_USER": "postgres",
            "DAGSTER_POSTGRES_PASSWORD": "",
            "DAGSTER_EVENT_BATCH_SIZE": "500",
        }


@contextmanager
def running_daemon(
    location: Path, environment: dict[str, str], monkeypatch: pytest.MonkeyPatch, *, kill: bool = False
) -> Iterator[dg.DagsterInstance]:
    """Run the daemon on a code location's file; yield its instance. With `kill` the daemon gets no time to end.

    The daemon starts a server of the code location, and that starts the runs. They outlive a daemon that ends, so the
    daemon gets a process group of its own, which is killed as a whole.
    """
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    repository = str(Path(__file__).parents[2])
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join([repository, os.environ.get("PYTHONPATH", "")]))
    command = [sys.executable, "-m", "dagster._daemon", "run", "-f", str(location)]
    with dg.DagsterInstance.get() as instance:
        instance.get_run_records(limit=1)  # the instance is initialised before a second process opens it
        with location.with_suffix(".log").open("wb") as log:
            process = subprocess.Popen(command, stdout=log, stderr=subprocess.STDOUT, start_new_session=True)
        try:
            yield instance
        finally:
            if not kill:
                process.terminate()
                with suppress(subprocess.TimeoutExpired):
                    process.wait(timeout=30)
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()


def launch_backfill(
    instance: dg.DagsterInstance, definitions: dg.Definitions, names: DatasetNames, keys: list[str]
) -> None:
    """Store a backfill `by-hand` of a dataset's batches, as the UI does; the daemon launches its run."""
    instance.add_dynamic_partitions(names.of("batches"), keys)
    with warnings.catch_warnings(action="ignore"):  # Dagster calls what it deprecates itself
        backfill = PartitionBackfill.from_asset_partitions(
            backfill_id="by-hand",
            asset_graph=definitions.resolve_asset_graph(),
            partition_names=keys,
            asset_selection=[names.batches],
            backfill_timestamp=time.time(),
            tags={},
            dynamic_partitions_store=instance,
            all_partitions=False,
            title=None,
            description=None,
            run_config=None,
        )
    instance.add_backfill(backfill)


def wait_for(
    condition: Callable[[], bool], seconds: float = 240, what: str = "the daemon did not get there", every: float = 0.5
) -> None:
    """Wait until a condition holds; look `every` so many seconds."""
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, what
        time.sleep(every)


def are_retried(instance: dg.DagsterInstance, num_killed: int) -> bool:
    """Return whether Dagster has found the processes of `num_killed` runs dead, and has started these runs again.

    The daemon looks at each failure once. Dagster stores the failure's event before the run's status and the tag that
    promises a retry. If the daemon looks in between, it takes the run for one that has not failed, and never starts it
    again. So this function lets the daemon look at all failures again while a promise is not kept.
    """
    runs = instance.get_runs()
    if any(run.tags.get(WILL_RETRY_TAG) == "true" and AUTO_RETRY_RUN_ID_TAG not in run.tags for run in runs):
        instance.daemon_cursor_storage.set_cursor_values({_CURSOR_OF_FAILURES: "0"})  # it starts no run twice
    return sum(run.parent_run_id is not None for run in runs) >= num_killed


def sensors_with_a_cursor(instance: dg.DagsterInstance) -> set[str]:
    """Return the sensors that have ticked. One of run statuses begins with the runs that end after its first tick."""
    states = instance.all_instigator_state()
    return {
        state.name
        for state in states
        if isinstance(state.instigator_data, SensorInstigatorData) and state.instigator_data.cursor
    }
