from __future__ import annotations

from datetime import datetime, timedelta
from types import SimpleNamespace
from typing import Any

import dagster as dg
import pytest

from lance_ops.dagster import backfill_sensor
from lance_ops.dagster.head import INTACT
from tests.dagster.deployment import Deployment, check_results

pytestmark = pytest.mark.dagster


@pytest.fixture
def watching(deployment: Deployment) -> Deployment:
    """A deployment whose sensor has ticked once: the daemon's first tick only takes its cursor."""
    deployment.tick("backfills")
    return deployment


def backfill(deployment: Deployment, key: str) -> dg.ExecuteInProcessResult:
    """Ingest a batch by Dagster's own job of all assets, as the UI does."""
    deployment.land(key, range(3))
    deployment.instance.add_dynamic_partitions(deployment.names.of("batches"), [key])
    job = deployment.location.definitions.resolve_implicit_global_asset_job_def()
    return job.execute_in_process(
        instance=deployment.instance, asset_selection=[deployment.names.batches], partition_key=key
    )


def test_a_run_of_the_ingest_job_is_not_checked_twice(watching: Deployment) -> None:
    watching.land("a", range(3))
    watching.instance.add_dynamic_partitions(watching.names.of("batches"), ["a"])
    watching.ingest("a")
    assert watching.tick("backfills").skip_message == "no other job has ingested batches of trips"


def test_a_backfill_asks_for_all_checks_but_the_one_that_reads_files_again(watching: Deployment) -> None:
    run = backfill(watching, "a")
    (request,) = watching.tick("backfills").run_requests
    assert request.run_key == run.run_id
    job = watching.location.definitions.resolve_job_def(watching.names.of("checks"))
    asked = job.get_subset(
        asset_selection=frozenset(request.asset_selection or ()),
        asset_check_selection=frozenset(request.asset_check_keys or ()),
    )
    evaluated = check_results(asked.execute_in_process(instance=watching.instance))
    every = watching.check()
    assert set(every) - set(evaluated) == {INTACT}


def test_runs_of_a_scattered_backfill_share_the_checks_that_begin_after_them(watching: Deployment) -> None:
    for key in ("a", "c", "e"):
        backfill(watching, key)
    first = watching.tick("backfills")
    assert len(first.runs) == 1
    nothing = watching.tick("backfills")  # it reads the checks' own run
    assert nothing.runs == () and nothing.skip_message == "no other job has ingested batches of trips"

    backfill(watching, "g")
    (request,) = watching.tick("backfills").run_requests
    assert request.run_key != first.run_requests[0].run_key


def checks_run(deployment: Deployment, status: dg.DagsterRunStatus) -> dg.DagsterRun:
    job = deployment.location.definitions.resolve_job_def(deployment.names.of("checks"))
    return deployment.instance.create_run_for_job(job, status=status)


def test_no_second_run_of_the_checks_is_asked_for_while_one_has_not_begun(watching: Deployment) -> None:
    waiting = checks_run(watching, dg.DagsterRunStatus.NOT_STARTED)
    backfill(watching, "a")
    assert f"run {waiting.run_id[:8]} checks the head" in str(watching.tick("backfills").skip_message)
    for cancel in (watching.instance.report_run_canceling, watching.instance.report_run_canceled):
        assert watching.tick("backfills").run_requests == ()
        cancel(waiting)
    assert len(watching.tick("backfills").run_requests) == 1


@pytest.mark.parametrize(
    ("status", "hours", "num_requests"),
    [("NOT_STARTED", 2, 1), ("STARTING", 2, 1), ("NOT_STARTED", 0, 0), ("STARTING", 0, 0)],
)
def test_checks_that_were_not_launched_for_an_hour_are_asked_for_again(
    watching: Deployment, monkeypatch: pytest.MonkeyPatch, status: str, hours: int, num_requests: int
) -> None:
    checks_run(watching, dg.DagsterRunStatus(status))
    backfill(watching, "a")
    later = SimpleNamespace(now=lambda zone: datetime.now(zone) + timedelta(hours=hours))
    monkeypatch.setattr(backfill_sensor, "datetime", later, raising=False)  # the run becomes so old
    assert len(watching.tick("backfills").run_requests) == num_requests


def test_checks_that_were_cancelled_are_asked_for_again(watching: Deployment) -> None:
    backfill(watching, "a")
    checks_run(watching, dg.DagsterRunStatus.CANCELED)
    assert len(watching.tick("backfills").run_requests) == 1


def report(deployment: Deployment, run: dg.DagsterRun, event: str, data: Any = None) -> None:
    deployment.instance.report_dagster_event(dg.DagsterEvent(event, run.job_name, event_specific_data=data), run.run_id)


def succeed(deployment: Deployment, num_runs: int) -> None:
    """Have runs of another job succeed."""
    for _ in range(num_runs):
        run = deployment.instance.create_run_for_job(_others, status=dg.DagsterRunStatus.NOT_STARTED)
        report(deployment, run, "PIPELINE_SUCCESS")


def test_checks_that_were_killed_before_they_looked_are_asked_for_again(watching: Deployment) -> None:
    backfill(watching, "a")
    run = checks_run(watching, dg.DagsterRunStatus.NOT_STARTED)
    report(watching, run, "PIPELINE_START")
    assert "checks the head after run" in str(watching.tick("backfills").skip_message)
    watching.instance.report_run_failed(run)
    assert len(watching.tick("backfills").run_requests) == 1


def test_red_checks_have_looked(watching: Deployment) -> None:
    backfill(watching, "a")
    run = checks_run(watching, dg.DagsterRunStatus.NOT_STARTED)
    evaluation = dg.AssetCheckEvaluation(watching.names.head, "valid", passed=False)
    report(watching, run, "PIPELINE_START")
    report(watching, run, "ASSET_CHECK_EVALUATION", evaluation)
    watching.instance.report_run_failed(run)
    assert "checked the head after run" in str(watching.tick("backfills").skip_message)
    assert watching.tick("backfills").skip_message == "no other job has ingested batches of trips"


def test_many_runs_of_other_jobs_do_not_hold_up_the_checks(watching: Deployment) -> None:
    succeed(watching, 30)
    run = backfill(watching, "a")
    succeed(watching, 30)
    (request,) = watching.tick("backfills").run_requests
    assert request.run_key == run.run_id


def test_a_run_at_the_position_of_a_deleted_one_is_seen(watching: Deployment) -> None:
    succeed(watching, 3)
    watching.tick("backfills")
    for run in watching.instance.get_runs():
        watching.instance.delete_run(run.run_id)
    watching.tick("backfills")
    job = watching.location.definitions.resolve_implicit_global_asset_job_def()
    selection = frozenset([watching.names.batches])
    report(watching, watching.instance.create_run_for_job(job, asset_selection=selection), "PIPELINE_SUCCESS")
    assert len(watching.tick("backfills").run_requests) == 1


@pytest.mark.parametrize("cursor", ['{"__class__": "RunStatusSensorCursor", "record_id": 3}', "x", "[]"])
def test_a_lost_cursor_begins_with_the_next_run(watching: Deployment, cursor: str) -> None:
    backfill(watching, "a")
    watching.location.cursors[watching.names.of("backfills")] = cursor
    assert "from now on" in str(watching.tick("backfills").skip_message)
    backfill(watching, "b")
    assert len(watching.tick("backfills").run_requests) == 1


@dg.op
def _nothing() -> None:
    """Do nothing."""


@dg.job
def _others() -> None:
    _nothing()
