"""The sensor asks for upkeep when something is owed, a run pays it within the budget, and nothing loops."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any

import dagster as dg
import pyarrow as pa
import pytest

import lance_ops
from lance_ops.dagster.declaration import DatasetConfig
from lance_ops.dagster.head import PAST_COSTS, debt_policy, past_costs
from lance_ops.dagster.runs import retry_waits
from lance_ops.dagster.upkeep import paying
from lance_ops.dagster.upkeep.earlier_runs import EarlierRuns
from lance_ops.dagster.upkeep.paying import Upkeep
from lance_ops.dagster.upkeep.records import FRUITLESS, SPENT_BYTES, allowance, resting_steps
from lance_ops.errors import InvalidInput, StoreError
from lance_ops.maintenance.debt import StepKind, measure_debt, payment
from tests.dagster.deployment import Deploy, Deployment, check_results, output_metadata, values

pytestmark = pytest.mark.dagster


@pytest.fixture
def owing(deploy: Deploy) -> Deployment:
    """A dataset without index that owes nothing yet but the index that it declares."""
    deployment = deploy(maintenance={"upkeep": {"interval_seconds": 1}})
    lance_ops.write_dataset(pa.table({"id": [0], "city": ["Bern"]}), deployment.config.uri)
    return deployment


def append(deployment: Deployment, num_fragments: int) -> None:
    rows = pa.table({"id": range(num_fragments), "city": ["Bern"] * num_fragments})
    lance_ops.write_dataset(rows, deployment.config.uri, mode="append", max_rows_per_file=1)


def observations(deployment: Deployment) -> list[dict[str, Any]]:
    """Return the metadata of the head's observations, newest first."""
    found = deployment.instance.fetch_observations(deployment.names.head, limit=100).records
    return [values(each.asset_observation.metadata) for each in found if each.asset_observation]


def _fail_with(error: Exception) -> Callable[..., None]:
    def fail(*_: object, **__: object) -> None:
        raise error

    return fail


def test_what_is_owed_is_paid_once_and_then_the_sensor_is_quiet(owing: Deployment) -> None:
    ticked = owing.tick("debt")
    assert [request.run_key for request in ticked.run_requests] == ["v1 reindex id_idx"]
    assert ticked.runs[0].success and owing.data.describe_indices()[0].num_rows_indexed == 1
    assert "nothing is owed at version 2" in str(owing.tick("debt").skip_message)

    append(owing, 12)
    ticked = owing.tick("debt")
    assert [request.run_key for request in ticked.run_requests] == ["v3 compact; v3 reindex id_idx"]
    # What the index covered was not rewritten with what it did not.
    assert len(owing.data.get_fragments()) == 2 and owing.data.describe_indices()[0].num_rows_indexed == 13
    found = output_metadata(ticked.runs[0])
    assert found["lance/upkeep"] == "done" and found["lance/saved_read_bytes"] > 11 * 4 * 1024**2
    assert "| before | 3 | 13 |" in found["lance/debt"] and "- compact: rewrote" in found["lance/steps"]
    checks = check_results(ticked.runs[0])
    assert len(checks) == 4 and all(check.passed for check in checks.values())
    assert owing.head_versions()[-1] == owing.data.version
    assert "nothing is owed" in str(owing.tick("debt").skip_message)
    assert not measure_debt(owing.data.snapshot, debt_policy(owing.config)).owed


def test_what_a_run_measures_prices_what_is_owed_next(owing: Deployment) -> None:
    owing.tick("debt")
    append(owing, 12)
    found = output_metadata(owing.tick("debt").runs[0])
    assert ", moved " in found["lance/steps"] and found["lance/moved_bytes"] > 0
    learned = past_costs(owing.instance, owing.config)
    assert learned.sums.keys() == {StepKind.COMPACT}
    assert learned.to_facts() == found[PAST_COSTS] == observations(owing)[0][PAST_COSTS]

    append(owing, 12)
    snapshot, policy = owing.data.snapshot, debt_policy(owing.config)
    (due, *_) = measure_debt(snapshot, policy).owed
    for recorded, ratio in (({"compact": [100, 300]}, 3), ({"compact": "?"}, 1), ("?", 1)):
        metadata = {PAST_COSTS: dg.MetadataValue.json(recorded)}
        owing.instance.report_runless_asset_event(dg.AssetObservation(owing.names.head, metadata=metadata))
        (priced, *_) = measure_debt(snapshot, policy, past_costs=past_costs(owing.instance, owing.config)).owed
        assert priced.key == due.key == "compact" and priced.cost_bytes == ratio * due.cost_bytes


def test_a_run_that_gained_nothing_is_not_repeated_until_the_table_changes(
    owing: Deployment, monkeypatch: pytest.MonkeyPatch
) -> None:
    owing.tick("debt")
    append(owing, 12)
    monkeypatch.setattr(payment, "_compact", lambda snapshot, *_: (snapshot, "nothing"))
    monkeypatch.setattr(payment, "_reindex", lambda snapshot, *_: (snapshot, "nothing"))
    assert owing.tick("debt").runs[0].success
    assert observations(owing)[0][FRUITLESS] == ["v3 compact", "v3 reindex id_idx"]
    assert "gained nothing at this version" in str(owing.tick("debt").skip_message)
    assert output_metadata(owing.run("upkeep"))["lance/upkeep"] == "fruitless"
    assert "gained nothing" in str(owing.tick("debt").skip_message)  # the run by hand did not make it forget
    monkeypatch.undo()
    append(owing, 1)
    assert owing.tick("debt").runs[0].success and not observations(owing)[0][FRUITLESS]


def test_runs_stay_within_the_budget_of_a_day(deploy: Deploy) -> None:
    budget = {"max_megabytes_per_run": 2, "max_megabytes_per_day": 3}
    deployment = deploy(maintenance={"upkeep": budget}, indices=[])
    append(deployment, 12)
    head = deployment.names.head
    assert deployment.tick("debt").runs[0].success
    spent = observations(deployment)[0][SPENT_BYTES]
    assert 0 < spent < 2 * 1024**2
    deployment.instance.report_runless_asset_event(dg.AssetObservation(head, metadata={SPENT_BYTES: 3 * 1024**2}))
    append(deployment, 12)
    assert "compact: the budget has 0 bytes left" in str(deployment.tick("debt").skip_message)
    refused = output_metadata(deployment.run("upkeep"))
    assert (refused["lance/upkeep"], refused["lance/waiting"]) == ("waiting", "compact")
    by_hand = output_metadata(deployment.run("upkeep", Upkeep(max_megabytes=1)))
    assert by_hand["lance/upkeep"] == "done" and len(deployment.data.get_fragments()) == 1


def test_what_runs_spent_counts_for_a_day_however_many_observations_followed() -> None:
    upkeep = {"max_megabytes_per_run": None, "max_megabytes_per_day": 10}
    config = DatasetConfig.model_validate({"name": "a", "uri": "x", "maintenance": {"upkeep": upkeep}})
    head = dg.AssetKey("a")
    with dg.DagsterInstance.ephemeral() as instance:
        instance.report_runless_asset_event(dg.AssetObservation(head, metadata={SPENT_BYTES: 3 * 1024**2}))
        for _ in range(201):
            instance.report_runless_asset_event(dg.AssetObservation(head, metadata={SPENT_BYTES: 1024}))
        assert allowance(instance, config) == 7 * 1024**2 - 201 * 1024


def test_a_clean_up_of_upkeep_tells_the_orphan_bytes_that_are_left(deploy: Deploy) -> None:
    cleanup = {"older_than_days": None, "retain_versions": 1}
    deployment = deploy(indices=[], maintenance={"cleanup": cleanup, "upkeep": {"min_removable_versions": 1}})
    append(deployment, 1)
    assert "lance/orphan_bytes" not in output_metadata(deployment.run("upkeep"))
    append(deployment, 1)
    assert output_metadata(deployment.run("upkeep"))["lance/orphan_bytes"] == 0
    assert observations(deployment)[0]["lance/orphan_bytes"] == 0


@pytest.mark.parametrize(("error", "ends"), [(InvalidInput("is odd"), dg.Failure), (StoreError("is away"), StoreError)])
def test_a_failed_run_says_why_on_the_head(
    owing: Deployment, monkeypatch: pytest.MonkeyPatch, error: Exception, ends: type[Exception]
) -> None:
    monkeypatch.setattr(payment, "create_scalar_index", _fail_with(error))
    if ends is StoreError:
        monkeypatch.setattr("lance_ops.dagster.failures._SECONDS_TO_WAIT", 0)
    result = owing.location.run(owing.names.of("upkeep"), raise_on_error=False)
    assert not result.success
    found = observations(owing)[0]
    assert (found["lance/upkeep"], found["lance/reason"]) == ("failed", f"reindex id_idx: {error}")
    assert found[FRUITLESS] == (["v1 reindex id_idx"] if ends is dg.Failure else [])


def test_upkeep_that_met_a_passing_error_is_asked_for_again_after_longer_and_longer_waits(
    owing: Deployment, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("lance_ops.dagster.failures._SECONDS_TO_WAIT", 0)
    with monkeypatch.context() as store:
        store.setattr(payment, "create_scalar_index", _fail_with(StoreError("is away")))
        lost = owing.tick("debt", raise_on_error=False)
        assert not lost.runs[0].success
        again = f"v1 reindex id_idx: run {lost.runs[0].run_id[:8]} failed; the sensor asks for it again after"
        assert again in str(owing.tick("debt").skip_message)
        store.setattr(retry_waits, "_FIRST_WAIT", timedelta(0))
        second = owing.tick("debt", raise_on_error=False)
        assert [run.success for run in second.runs] == [False]
    newest = owing.instance.get_run_records(limit=2)
    ended = newest[0].update_timestamp
    found = EarlierRuns.of(owing.instance, owing.names.of("upkeep"), "v1 reindex id_idx")
    assert [each.dagster_run.run_id for each in found.records] == [second.runs[0].run_id, lost.runs[0].run_id]
    assert found.reason_to_wait(owing.instance, ended + timedelta(minutes=9)) is not None
    assert found.reason_to_wait(owing.instance, ended + timedelta(minutes=11)) is None
    many = EarlierRuns(found.debt_key, found.records * 20)
    assert many.reason_to_wait(owing.instance, ended + timedelta(hours=5)) and not many.reason_to_wait(
        owing.instance, ended + timedelta(hours=7)
    )

    monkeypatch.setattr(retry_waits, "_FIRST_WAIT", timedelta(0))
    paid = owing.tick("debt")
    assert [run.success for run in paid.runs] == [True]
    assert len({each.run_requests[0].run_key for each in (lost, second, paid)}) == 3
    assert "nothing is owed at version 2" in str(owing.tick("debt").skip_message)


@pytest.mark.parametrize("error", [InvalidInput("is odd"), StoreError("is away")])
def test_a_step_that_fails_on_a_busy_table_is_tried_after_longer_and_longer_waits_and_holds_up_no_other(
    owing: Deployment, monkeypatch: pytest.MonkeyPatch, error: Exception
) -> None:
    monkeypatch.setattr("lance_ops.dagster.failures._SECONDS_TO_WAIT", 0)
    with monkeypatch.context() as failing:
        failing.setattr(payment, "create_scalar_index", _fail_with(error))
        assert not owing.tick("debt", raise_on_error=False).runs[0].success
        append(owing, 1)
        said = str(owing.tick("debt").skip_message)
        assert "reindex id_idx failed lately and is tried again later" in said
        append(owing, 12)
        (run,) = owing.tick("debt").runs
        assert run.success and "- compact: rewrote" in output_metadata(run)["lance/steps"]
        assert not owing.data.describe_indices()
    version = owing.data.version

    def resting(minutes: float) -> tuple[str, ...]:
        return resting_steps(owing.instance, owing.config, version, datetime.now(UTC) + timedelta(minutes=minutes))

    assert resting(4) == ("reindex id_idx",) and resting(6) == ()
    monkeypatch.setattr(retry_waits, "_FIRST_WAIT", timedelta(0))
    assert owing.tick("debt").runs[0].success and owing.data.describe_indices()
    assert resting(0) == ()


def test_a_retry_tries_the_step_again_although_another_writer_has_committed(
    owing: Deployment, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("lance_ops.dagster.failures._SECONDS_TO_WAIT", 0)
    with monkeypatch.context() as failing:
        failing.setattr(payment, "create_scalar_index", _fail_with(StoreError("is away")))
        failing.setattr(paying, "record_verdicts", lambda _: append(owing, 1))  # between two attempts
        lost = owing.location.run(owing.names.of("upkeep"), raise_on_error=False)
    assert not lost.success
    assert [each["lance/upkeep"] for each in observations(owing)] == ["failed"] * 4

    parent = {"dagster/parent_run_id": lost.run_id, "dagster/root_run_id": lost.run_id}
    again = owing.location.run(owing.names.of("upkeep"), tags=parent)
    assert again.success and owing.data.describe_indices(), "a run in place of the failed one tries the step, too"


def test_upkeep_that_was_cancelled_waits_for_another_version(owing: Deployment) -> None:
    job = owing.location.definitions.resolve_job_def(owing.names.of("upkeep"))
    cancelled = owing.instance.create_run_for_job(
        job, status=dg.DagsterRunStatus.CANCELED, tags={"dagster/run_key": "v1 reindex id_idx"}
    )
    assert f"run {cancelled.run_id[:8]} was cancelled" in str(owing.tick("debt").skip_message)
    append(owing, 1)
    assert owing.tick("debt").runs[0].success


def test_upkeep_that_dagster_does_not_retry_in_time_is_asked_for_again(owing: Deployment) -> None:
    job = owing.location.definitions.resolve_job_def(owing.names.of("upkeep"))
    promised = {"dagster/run_key": "v1 reindex id_idx", "dagster/will_retry": "true"}
    owing.instance.create_run_for_job(job, status=dg.DagsterRunStatus.FAILURE, tags=promised)
    found = EarlierRuns.of(owing.instance, owing.names.of("upkeep"), "v1 reindex id_idx")
    ended = found.records[0].update_timestamp
    assert "Dagster may retry it" in (found.reason_to_wait(owing.instance, ended + timedelta(minutes=9)) or "")
    assert found.reason_to_wait(owing.instance, ended + timedelta(minutes=11)) is None


def test_a_dry_run_shows_the_price_and_changes_nothing(owing: Deployment) -> None:
    append(owing, 12)
    version = owing.data.version
    found = output_metadata(owing.run("upkeep", Upkeep(dry_run=True)))
    assert "13 of 13 fragments are small" in found["lance/debt"] and owing.data.version == version
    assert not observations(owing)


def test_a_dataset_without_upkeep_has_the_job_and_no_sensor(deployment: Deployment) -> None:
    repository = deployment.location.definitions.get_repository_def()
    assert repository.has_job("trips_upkeep") and not repository.has_sensor_def("trips_debt")
    assert deployment.config.maintenance.upkeep is None
