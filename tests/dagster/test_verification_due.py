"""The sensor of a dataset's debt asks for verifications when the last pass over all files is older than declared."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import dagster as dg
import pytest

from lance_ops.dagster.head import integrity, verification_due
from lance_ops.dagster.ops import launch
from lance_ops.dagster.upkeep import verifying
from lance_ops.dagster.upkeep.paying import Upkeep
from lance_ops.dagster.upkeep.records import SPENT_BYTES
from lance_ops.errors import InvalidInput
from lance_ops.verbs import Verify
from tests.dagster.deployment import Deploy, Deployment, check_results, output_metadata, values
from tests.dagster.test_verify import flip, intact_history

pytestmark = pytest.mark.dagster


@pytest.fixture
def old(deploy: Deploy) -> Deployment:
    """A dataset of three small files that owes nothing but its verification, every 30 days."""
    deployment = deploy(indices=[], maintenance={"upkeep": {"verify_after_days": 30, "payback_reads": 1e-9}})
    deployment.fill(3)
    return deployment


def record_pass(deployment: Deployment, days_ago: float) -> datetime:
    """Record that a full pass over all files ended so long ago."""
    ended = datetime.now(UTC) - timedelta(days=days_ago)
    metadata: dict[str, Any] = {"lance/read_checksums": True, "lance/next_part": 0, "lance/pass_is_intact": True}
    metadata["lance/pass_ended_at"] = dg.MetadataValue.timestamp(ended)
    evaluation = dg.AssetCheckEvaluation(deployment.names.head, "intact", True, metadata)
    deployment.instance.report_runless_asset_event(evaluation)
    return ended


def newest_observation(deployment: Deployment) -> dict[str, Any]:
    (record,) = deployment.instance.fetch_observations(deployment.names.head, limit=1).records
    assert record.asset_observation is not None
    return values(record.asset_observation.metadata)


def test_files_that_were_never_verified_are_verified_once_and_then_the_sensor_is_quiet(old: Deployment) -> None:
    ticked = old.tick("debt")
    assert [request.run_key for request in ticked.run_requests] == ["v3 verify"]
    (run,) = ticked.runs
    assert run.success and check_results(run)["intact"].passed
    found = newest_observation(old)
    assert (found["lance/upkeep"], found[SPENT_BYTES] > 0) == ("done", True)
    assert "files of version 3" in found["lance/steps"]
    assert "nothing is owed at version 3" in str(old.tick("debt").skip_message)


@pytest.mark.parametrize(("days_ago", "is_owed"), [(29.9, False), (30.1, True)])
def test_a_verification_is_owed_from_the_declared_age_on(old: Deployment, days_ago: float, is_owed: bool) -> None:
    record_pass(old, days_ago)
    due = verification_due(old.instance, old.config, old.data.snapshot)
    assert due is not None and due.is_owed is is_owed
    assert due.why == f"all files were last verified {days_ago:.3g} days ago; the limit is 30 days"
    assert bool(old.tick("debt").run_requests) is is_owed


def test_a_dataset_that_declares_no_age_owes_no_verification(deploy: Deploy) -> None:
    deployment = deploy(indices=[], maintenance={"upkeep": {"payback_reads": 1e-9}})
    deployment.fill(1)
    record_pass(deployment, 1000)
    assert verification_due(deployment.instance, deployment.config, deployment.data.snapshot) is None
    assert "nothing is owed" in str(deployment.tick("debt").skip_message)


def test_the_job_verify_pays_the_due_too(old: Deployment) -> None:
    record_pass(old, 31)
    old.run("verify", launch(Verify(), dry_run=False))
    assert "nothing is owed" in str(old.tick("debt").skip_message)


def test_quick_verifications_neither_pay_the_due_nor_forget_the_last_pass(old: Deployment) -> None:
    ended = record_pass(old, 31)
    for _ in range(25):
        evaluation = integrity.verify_some(old.instance, old.config, max_megabytes=None, quick=True)
        old.instance.report_runless_asset_event(evaluation)
    assert integrity.last_pass_ended_at(old.instance, old.config) == ended
    assert old.tick("debt").run_requests


def test_runs_continue_one_another_until_the_pass_has_ended(old: Deployment, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[int | None] = []

    def a_part(instance: Any, config: Any, runner: Any, max_bytes: int | None) -> Any:
        asked.append(max_bytes)
        return integrity.verify_within(instance, config, runner, 1)

    monkeypatch.setattr(verifying, "verify_within", a_part)
    keys = [request.run_key for _ in range(3) for request in old.tick("debt").run_requests]
    assert len(set(keys)) == 3 and all(str(key).startswith("v3 verify") for key in keys)
    assert asked == [1024 * 1024**2] * 3, "a run keeps to maintenance.verification, which is less than its budget"
    assert "nothing is owed" in str(old.tick("debt").skip_message)


def test_a_damage_fails_the_run_turns_the_check_red_and_is_not_looked_for_again(old: Deployment) -> None:
    flip(old, 1)
    (run,) = old.tick("debt", raise_on_error=False).runs
    assert not run.success and intact_history(old) == [False]
    assert "fragment 1; run lance-ops repair" in newest_observation(old)["lance/steps"]
    assert "nothing is owed" in str(old.tick("debt").skip_message)
    assert integrity.last_intact_pass_at(old.instance, old.config) is None


def test_a_verification_waits_for_the_budget_of_a_day(deploy: Deploy) -> None:
    upkeep = {"verify_after_days": 30, "payback_reads": 1e-9, "max_megabytes_per_day": 1}
    deployment = deploy(indices=[], maintenance={"upkeep": upkeep})
    deployment.fill(1)
    spent = dg.AssetObservation(deployment.names.head, metadata={SPENT_BYTES: 1024**2})
    deployment.instance.report_runless_asset_event(spent)
    assert "verify: the budget has 0 bytes left" in str(deployment.tick("debt").skip_message)
    refused = output_metadata(deployment.run("upkeep"))
    assert (refused["lance/upkeep"], refused["lance/waiting"]) == ("waiting", "verify")
    assert "- verify: " in output_metadata(deployment.run("upkeep", Upkeep(max_megabytes=1)))["lance/steps"]


def test_an_error_of_the_verification_is_told_with_what_was_paid_before(
    old: Deployment, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object) -> None:
        raise InvalidInput("is odd")

    monkeypatch.setattr(verifying, "verify_within", fail)
    (run,) = old.tick("debt", raise_on_error=False).runs
    found = newest_observation(old)
    assert not run.success and (found["lance/upkeep"], found["lance/reason"]) == ("failed", "verify: is odd")


def test_the_head_and_a_dry_run_show_the_age(old: Deployment) -> None:
    record_pass(old, 45)
    row = "| verify | yes | all files were last verified 45 days ago; the limit is 30 days |  | reads "
    assert row in output_metadata(old.run("upkeep", Upkeep(dry_run=True)))["lance/debt"]
    old.land("d3", range(30, 40))
    old.tick()
    head = old.instance.get_latest_materialization_event(old.names.head)
    assert head is not None and head.asset_materialization is not None
    shown = values(head.asset_materialization.metadata)
    assert shown["lance/owed"] == "verify" and row in shown["lance/debt"]


def test_the_age_is_declared_in_days_above_zero(deploy: Deploy, tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="verify_after_days"):
        deploy(maintenance={"upkeep": {"verify_after_days": 0}})
