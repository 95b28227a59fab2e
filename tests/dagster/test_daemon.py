"""The sensors and the runs under a real daemon, with the instance file of a laptop: each in its own process."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import dagster as dg
import pytest

from lance_ops.dagster.instances import instance_file
from tests.dagster.deployment import Deploy, Deployment
from tests.dagster.running_daemon import home_with, launch_backfill, running_daemon, sensors_with_a_cursor, wait_for
from tests.groups import DAEMONS

pytestmark = [pytest.mark.dagster, pytest.mark.timeout(900), DAEMONS]

DEFINITIONS = """
import time
import warnings
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


defs = dg.Definitions.merge(
    build_definitions(config), dg.Definitions(resources={{RUNNER_KEY: Held()}}, executor=dg.in_process_executor)
)
"""


@pytest.fixture
def hold(tmp_path: Path) -> Path:
    """Return a file: while it exists, ingestion waits before its tasks begin."""
    return tmp_path / "hold"


@pytest.fixture
def laptop(tmp_path: Path) -> dict[str, str]:
    """Make an instance of the shipped `laptop.yaml`; return its environment."""
    return home_with(tmp_path, instance_file("laptop"))


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
    with running_daemon(location, environment, monkeypatch) as instance:
        yield instance


def num_succeeded(instance: dg.DagsterInstance) -> int:
    return instance.get_runs_count(dg.RunsFilter(statuses=[dg.DagsterRunStatus.SUCCESS]))


def test_the_daemon_ingests_a_backlog_in_one_run_and_checks_what_a_backfill_ingests(
    deploy: Deploy, laptop: dict[str, str], hold: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    deployment = deploy({"isolated": True})
    hold.touch()
    for number, key in enumerate(["u0", "u1"]):  # which never settle for the sensor
        os.utime(deployment.land(key, range(100 + number, 110 + number)), (time.time() + 10**6,) * 2)
    with dg.DagsterInstance.from_config(laptop["DAGSTER_HOME"]) as instance:
        launch_backfill(instance, deployment.location.definitions, deployment.names, ["u0", "u1"])
    with daemon(deployment, laptop, tmp_path, monkeypatch) as instance:
        wait_for(lambda: "trips_backfills" in sensors_with_a_cursor(instance))
        hold.unlink()
        wait_for(lambda: num_succeeded(instance) == 3)
        runs = {record.dagster_run.job_name: record.dagster_run for record in instance.get_run_records()}
        assert runs.keys() == {"trips_ingest", "__ASSET_JOB", "trips_checks"}
        assert runs["trips_ingest"].tags["dagster/asset_partition_range_start"] == "d0"
        assert runs["trips_ingest"].tags["dagster/asset_partition_range_end"] == "d7"
        assert runs["__ASSET_JOB"].tags["dagster/backfill"] == "by-hand"
        assert runs["trips_checks"].tags["dagster/run_key"] == runs["__ASSET_JOB"].run_id
        checked = instance.get_latest_asset_check_evaluation_record(
            dg.AssetCheckKey(deployment.names.head, "batches_exactly_once")
        )
        assert checked is not None and checked.run_id in {runs["trips_checks"].run_id, runs["trips_ingest"].run_id}
        of_backfill = instance.get_records_for_run(runs["__ASSET_JOB"].run_id).records
        assert not [record for record in of_backfill if "multiprocess" in record.event_log_entry.user_message]
        assert len(instance.get_materialized_partitions(deployment.names.batches)) == 10
        assert (deployment.data.version, deployment.data.count_rows()) == (2, 100)
