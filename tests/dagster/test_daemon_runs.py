"""Runs of one dataset under a real daemon with the instance file of a laptop: killed, all at once, and cancelled."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import dagster as dg
import pytest

from lance_ops.core.file_names import DATA_DIR
from lance_ops.dagster.instances import instance_file
from lance_ops.dagster.landing import batch_states
from lance_ops.maintenance.cleanup import CleanupOptions, explain_cleanup_old_versions
from lance_ops.refs import ERASURES_DIR, list_erasures
from tests.dagster.deployment import Deploy, Deployment
from tests.dagster.mortal_location import Orders, write_location
from tests.dagster.running_daemon import home_with, running_daemon, wait_for
from tests.groups import DAEMONS

pytestmark = [pytest.mark.dagster, pytest.mark.timeout(900), DAEMONS]

SUCCESS, CANCELED = dg.DagsterRunStatus.SUCCESS, dg.DagsterRunStatus.CANCELED
ERASE = {"erase": {"config": {"predicate": "id = 12", "reason": "request 12", "dry_run": False}}}


@pytest.fixture
def orders(tmp_path: Path) -> Orders:
    return Orders(tmp_path / "orders")


@pytest.fixture
def laptop(tmp_path: Path) -> dict[str, str]:
    """Make an instance of the shipped `laptop.yaml`; return its environment."""
    return home_with(tmp_path, instance_file("laptop"))


def runs(instance: dg.DagsterInstance, job: str, status: dg.DagsterRunStatus) -> list[dg.DagsterRun]:
    return list(instance.get_runs(dg.RunsFilter(job_name=job, statuses=[status])))


def files_of(deployment: Deployment) -> dict[str, int]:
    """Return every file beneath the table's root with its size."""
    root = Path(deployment.config.uri)
    return {str(path.relative_to(root)): path.stat().st_size for path in root.rglob("*") if path.is_file()}


def proofs(deployment: Deployment) -> list[Mapping[str, Any]]:
    """Return the reports of erasures that ended, the newest last. One that waits for writers is tried again."""
    ended = [record for record in list_erasures(deployment.data.snapshot.store) if record.get("finished_at")]
    return sorted(ended, key=lambda record: str(record["finished_at"]))


def test_killed_runs_of_ingestion_and_upkeep_start_again_and_finish(
    deploy: Deploy, orders: Orders, laptop: dict[str, str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    deployment = deploy(maintenance={"upkeep": {}, "cron": None})
    deployment.land("d0", range(10))
    orders.doom("trips_ingest", 2)
    orders.doom("trips_upkeep", 2)
    location = write_location(tmp_path / "location.py", orders, deployment.config)
    with running_daemon(location, laptop, monkeypatch) as instance:
        assert type(instance.run_storage).__name__ == "SqliteRunStorage"
        wait_for(lambda: orders.are_met("doom/trips_ingest", "doom/trips_upkeep"), what="no run came to its death")
        for job in ("trips_ingest", "trips_upkeep"):
            wait_for(lambda: bool(runs(instance, job, SUCCESS)), what=f"{job} is not started again")  # noqa: B023 # it is called at once
            (again,) = runs(instance, job, SUCCESS)
            assert again.parent_run_id == runs(instance, job, dg.DagsterRunStatus.FAILURE)[0].run_id
        slots = instance.event_log_storage.get_concurrency_info
        wait_for(lambda: not slots(deployment.names.pool).claimed_slots, what="a slot of a killed run is not free")
        assert sorted(deployment.data.to_table()["id"].to_pylist()) == list(range(10))
        assert deployment.data.describe_indices()[0].num_rows_indexed == 10
        assert instance.get_materialized_partitions(deployment.names.batches) == {"d0"}


def test_a_run_that_died_with_the_daemon_and_the_code_server_starts_again(
    deploy: Deploy, orders: Orders, laptop: dict[str, str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    deployment = deploy(indices=[], maintenance={"cron": None})
    deployment.land("d0", range(10))
    orders.hold("ingest into")
    location = write_location(tmp_path / "location.py", orders, deployment.config)
    with running_daemon(location, laptop, monkeypatch, kill=True):
        wait_for(lambda: orders.are_met("hold/ingest into"), what="the run is not in mid-work")
    with running_daemon(location, laptop, monkeypatch) as instance:
        wait_for(lambda: bool(runs(instance, "trips_ingest", SUCCESS)), what="the run is not started again")
        (again,) = runs(instance, "trips_ingest", SUCCESS)
        (died,) = runs(instance, "trips_ingest", dg.DagsterRunStatus.FAILURE)
        assert again.parent_run_id == died.run_id
        assert sorted(deployment.data.to_table()["id"].to_pylist()) == list(range(10))
        slots = instance.event_log_storage.get_concurrency_info
        wait_for(lambda: not slots(deployment.names.pool).claimed_slots, what="the slot of the dead run is not free")


def test_ingestion_erasure_and_maintenance_run_at_once_and_all_finish(
    deploy: Deploy, orders: Orders, laptop: dict[str, str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    deployment = deploy(maintenance={"cleanup": {"older_than_days": None, "retain_versions": 2}, "cron": None})
    deployment.fill(4)
    deployment.land("d4", range(40, 50))
    jobs = ("trips_ingest", "trips_erase", "trips_maintenance")
    orders.meet(*jobs)
    orders.launch("erase", "trips_erase", ERASE)
    orders.launch("maintain", "trips_maintenance")
    location = write_location(tmp_path / "location.py", orders, deployment.config)
    with running_daemon(location, laptop, monkeypatch) as instance:
        # The shipped file lets them take turns. With a slot for each they are at work at once.
        instance.event_log_storage.set_concurrency_slots(deployment.names.pool, len(jobs))
        wait_for(lambda: orders.are_met(*(f"at_once/{job}" for job in jobs)), what="the runs did not meet")
        wait_for(lambda: all(runs(instance, job, SUCCESS) for job in jobs), what="not every run finished")
        assert not instance.get_runs(dg.RunsFilter(statuses=[dg.DagsterRunStatus.FAILURE]))
        assert sorted(deployment.data.to_table()["id"].to_pylist()) == [*range(12), *range(13, 50)]
        *_, proof = proofs(deployment)
        # How many fragments there are to search depends on which of the runs came first.
        assert proof["unproven"] == [] and proof["searched_fragments"] >= 1
        assert deployment.data.describe_indices()[0].name == "id_idx"


def test_cancelled_runs_leave_the_files_and_the_version_as_they_were(
    deploy: Deploy, orders: Orders, laptop: dict[str, str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    deployment = deploy(indices=[], maintenance={"cron": None})
    deployment.fill(4)
    deployment.land("d4", range(40, 50))
    before, version = files_of(deployment), deployment.data.version
    verbs = {"compact": "trips_compact", "ingest into": "trips_ingest", "erase from": "trips_erase"}
    for verb in verbs:
        orders.hold(verb)
    orders.launch("compact", "trips_compact", {"compact": {"config": {"dry_run": False}}})
    orders.launch("erase", "trips_erase", ERASE)
    location = write_location(tmp_path / "location.py", orders, deployment.config)
    with running_daemon(location, laptop, monkeypatch) as instance:
        instance.event_log_storage.set_concurrency_slots(deployment.names.pool, len(verbs))
        wait_for(lambda: orders.are_met(*(f"hold/{verb}" for verb in verbs)), what="a run is not in mid-work")
        written = [path for path in files_of(deployment) if path.startswith(DATA_DIR) and path not in before]
        assert len(written) >= len(verbs), "each of the runs has written a file"
        for job in verbs.values():
            (run,) = runs(instance, job, dg.DagsterRunStatus.STARTED)
            assert instance.run_launcher.terminate(run.run_id)
        wait_for(lambda: all(runs(instance, job, CANCELED) for job in verbs.values()), what="a run is not cancelled")

        # The erasure had taken the rows out of the newest version, and has a record that the next attempt goes on with.
        data = deployment.data
        assert (data.version, data.count_rows()) == (version + 1, 39)
        left = files_of(deployment)
        assert {path: left[path] for path in before} == before
        assert {path.partition("/")[0] for path in left.keys() - before.keys()} <= {
            "_versions",
            "_transactions",
            "_deletions",
            ERASURES_DIR.partition("/")[0],
        }
        everything = CleanupOptions(versions=(), delete_unverified=True)
        assert explain_cleanup_old_versions(data.snapshot, everything, include_files=True).candidate_files == ()
        assert not proofs(deployment)
        unsettled = {batch.key: batch.reason for batch in batch_states(deployment.config, instance).unsettled}
        assert unsettled.keys() == {"d4"} and "materialize partition d4" in unsettled["d4"]

        orders.launch("erase again", "trips_erase", ERASE)
        wait_for(lambda: bool(runs(instance, "trips_erase", SUCCESS)), what="the erasure did not go on")
        (proof,) = proofs(deployment)
        assert proof["unproven"] == [] and deployment.data.count_rows() == 39
