from __future__ import annotations

import dagster as dg
import pytest

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
    assert "the ingest job checks the head itself" in str(watching.tick("backfills").skip_message)


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
    for _ in range(2):
        assert "checks the head after this run has ended" in str(watching.tick("backfills").skip_message)
    assert "the run ingested no batch of trips" in str(watching.tick("backfills").skip_message)  # the checks' own run

    backfill(watching, "g")
    (request,) = watching.tick("backfills").run_requests
    assert request.run_key != first.run_requests[0].run_key


def test_no_second_run_of_the_checks_is_asked_for_while_one_has_not_begun(watching: Deployment) -> None:
    job = watching.location.definitions.resolve_job_def(watching.names.of("checks"))
    waiting = watching.instance.create_run_for_job(job, status=dg.DagsterRunStatus.NOT_STARTED)
    backfill(watching, "a")
    assert f"run {waiting.run_id[:8]} checks the head" in str(watching.tick("backfills").skip_message)


def test_checks_that_were_cancelled_are_asked_for_again(watching: Deployment) -> None:
    job = watching.location.definitions.resolve_job_def(watching.names.of("checks"))
    backfill(watching, "a")
    watching.instance.create_run_for_job(job, status=dg.DagsterRunStatus.CANCELED)
    assert len(watching.tick("backfills").run_requests) == 1
