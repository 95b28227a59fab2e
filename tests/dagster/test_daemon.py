"""The sensors and the runs under a real daemon, with the instance file that is shipped: each in its own process."""

from __future__ import annotations

import os
import re
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import dagster as dg
import pytest

from tests.dagster.deployment import Deployment

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

SHIPPED = Path(__file__).parents[2] / "jobs" / "dagster.yaml"


@pytest.fixture
def hold(tmp_path: Path) -> Path:
    """Return a file: while it exists, ingestion waits before its tasks begin."""
    return tmp_path / "hold"


@pytest.fixture
def daemon(deployment: Deployment, tmp_path: Path) -> Iterator[dg.DagsterInstance]:
    """Run the daemon on the deployment until the test ends; yield its instance."""
    for day in range(8):
        deployment.land(f"d{day}", range(day * 10, day * 10 + 10))
    location = tmp_path / "location.py"
    declared = deployment.config.model_dump_json()
    location.write_text(DEFINITIONS.format(declared=declared, hold=str(tmp_path / "hold")))
    home = tmp_path / "home"
    home.mkdir()
    shutil.copyfile(SHIPPED, home / "dagster.yaml")
    command = [sys.executable, "-m", "dagster._daemon", "run", "-f", str(location)]
    environment = {**os.environ, "DAGSTER_HOME": str(home), "PYTHONPATH": str(Path(__file__).parents[2])}
    with dg.DagsterInstance.from_config(str(home)) as instance:
        instance.get_run_records(limit=1)  # the instance is initialised before a second process opens it
        with (tmp_path / "daemon.log").open("wb") as log:
            process = subprocess.Popen(command, env=environment, stdout=log, stderr=subprocess.STDOUT)
        try:
            yield instance
        finally:
            process.terminate()
            process.wait(timeout=60)


def wait_for(condition: Callable[[], bool], seconds: float = 120) -> None:
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, "the daemon did not get there"
        time.sleep(0.5)


def test_the_daemon_ingests_a_backlog_in_one_run_and_one_commit(
    daemon: dg.DagsterInstance, deployment: Deployment
) -> None:
    wait_for(lambda: daemon.get_runs_count(dg.RunsFilter(statuses=[dg.DagsterRunStatus.SUCCESS])) == 1)
    (record,) = daemon.get_run_records()
    assert record.dagster_run.tags["dagster/asset_partition_range_start"] == "d0"
    assert record.dagster_run.tags["dagster/asset_partition_range_end"] == "d7"
    assert len(daemon.get_materialized_partitions(deployment.names.batches)) == 8
    assert (deployment.data.version, deployment.data.count_rows()) == (1, 80)


def test_a_killed_run_gives_its_slot_back_and_is_asked_for_again(
    deployment: Deployment, hold: Path, request: pytest.FixtureRequest
) -> None:
    hold.touch()
    daemon: dg.DagsterInstance = request.getfixturevalue("daemon")
    pool = deployment.names.pool
    wait_for(lambda: daemon.event_log_storage.get_concurrency_info(pool).claimed_slots != [])
    (killed,) = daemon.get_run_records()
    os.kill(process_of(daemon, killed.dagster_run.run_id), signal.SIGKILL)
    hold.unlink()
    wait_for(lambda: daemon.get_runs_count(dg.RunsFilter(statuses=[dg.DagsterRunStatus.SUCCESS])) == 1)
    newest, first = daemon.get_run_records()
    assert first.dagster_run.status is dg.DagsterRunStatus.FAILURE
    assert newest.dagster_run.tags["dagster/parent_run_id"] == killed.dagster_run.run_id == first.dagster_run.run_id
    assert (deployment.data.version, deployment.data.count_rows()) == (1, 80)
    wait_for(lambda: daemon.event_log_storage.get_concurrency_info(pool).claimed_slots == [])


def process_of(daemon: dg.DagsterInstance, run_id: str) -> int:
    """Return the id of the process that executes a run."""
    events = (record.event_log_entry.dagster_event for record in daemon.get_records_for_run(run_id).records)
    ids = [int(match[1]) for event in events if event and (match := PROCESS.search(event.message or ""))]
    return ids[-1]
