"""The sensors and the range run under a real daemon: in separate processes, with runs launched from tags."""

from __future__ import annotations

import os
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
import dagster as dg
from lance_ops.dagster.declaration.config import DatasetConfig
from lance_ops.dagster.definitions import build_definitions
from lance_ops.dagster.runners.runner import RUNNER_KEY, ThreadRunner

config = DatasetConfig.model_validate_json({declared!r})
defs = dg.Definitions.merge(build_definitions(config), dg.Definitions(resources={{RUNNER_KEY: ThreadRunner()}}))
"""


@pytest.fixture
def daemon(deployment: Deployment, tmp_path: Path) -> Iterator[dg.DagsterInstance]:
    """Run the daemon on the deployment until the test ends; yield its instance."""
    for day in range(8):
        deployment.land(f"d{day}", range(day * 10, day * 10 + 10))
    location = tmp_path / "location.py"
    location.write_text(DEFINITIONS.format(declared=deployment.config.model_dump_json()))
    home = tmp_path / "home"
    home.mkdir()
    (home / "dagster.yaml").write_text("telemetry: {enabled: false}\n")
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
