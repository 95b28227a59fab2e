"""The job `verify` and the check `intact` name damaged fragments, and bounded runs check every file in turn."""

from __future__ import annotations

import shutil
from dataclasses import replace
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import dagster as dg
import pytest

import lance_ops
from lance_ops.dagster.declaration import DatasetConfig
from lance_ops.dagster.evaluations import not_looked_warning
from lance_ops.dagster.head import build_version_sensor, integrity
from lance_ops.dagster.jobs import build_schedules
from lance_ops.dagster.ops import launch, launch_class, launch_plan
from lance_ops.maintenance.verification import (
    DamageKind,
    Finding,
    FindingSeverity,
    VerificationLevel,
    VerificationOptions,
    VerificationReport,
    verify_uri,
)
from lance_ops.maintenance.verification import verify as verify_snapshot
from lance_ops.snapshot import Snapshot
from lance_ops.verbs import Repair, Verify
from lance_ops.verbs.maintenance import verify as verify_verb
from tests.dagster.deployment import Deployment, check_results, output_metadata, values

pytestmark = pytest.mark.dagster

NOW = launch(Verify(), dry_run=False)


def flip(deployment: Deployment, fragment: int) -> Path:
    """Flip a bit in the only data file of a fragment."""
    (file,) = deployment.data.snapshot.fragments[fragment].files
    path = Path(deployment.config.uri, "data", file.path)
    data = bytearray(path.read_bytes())
    data[3] ^= 4
    path.write_bytes(data)
    return path


def intact_history(deployment: Deployment) -> list[bool]:
    """Return whether the check passed, for each recorded evaluation, the newest first."""
    key = dg.AssetCheckKey(deployment.names.head, "intact")
    records = deployment.instance.event_log_storage.get_asset_check_execution_history(key, limit=100)
    return [record.evaluation.passed for record in records if record.evaluation is not None]


def test_a_verification_of_an_intact_dataset_succeeds_and_is_an_evaluation_of_the_check(deployment: Deployment) -> None:
    deployment.fill(3)
    result = deployment.run("verify", NOW)
    metadata = output_metadata(result)
    assert (metadata["lance/num_damages"], metadata["lance/next_part"]) == (0, 0)
    assert metadata["lance/num_files"] >= 3
    assert check_results(result)["intact"].passed
    assert intact_history(deployment) == [True]
    assert deployment.data.version == 3


def test_a_verification_is_previewed_and_its_plan_executed_finds_what_is_damaged(deployment: Deployment) -> None:
    deployment.fill(2)
    preview = deployment.run("verify")
    page = output_metadata(preview)["lance/plan"]
    assert "Full verification of version 2: 2 files" in page
    assert "| data files, deletion files and rows of fragments | 1 |" in page
    assert intact_history(deployment) == []
    flip(deployment, 0)
    with pytest.raises(dg.Failure, match="fragment 0; run lance-ops repair") as failed:
        deployment.run("verify", launch_plan(Verify, preview.run_id))
    assert "| damaged | checksum | 0 |" in values(failed.value.metadata)["lance/outcome"]
    assert intact_history(deployment) == [False]


def test_a_damaged_fragment_fails_the_run_and_the_check_and_is_named(deployment: Deployment) -> None:
    deployment.fill(3)
    path = flip(deployment, 1)
    with pytest.raises(dg.Failure, match="1 damages in .*: fragment 1; run lance-ops repair") as failed:
        deployment.run("verify", NOW)
    metadata = values(failed.value.metadata)
    assert metadata["lance/damaged_fragments"] == "1"
    assert path.name in metadata["lance/damages"]
    assert intact_history(deployment) == [False]
    evaluation = deployment.check()["intact"]
    assert not evaluation.passed and not evaluation.blocking
    assert evaluation.metadata["lance/damaged_fragments"].value == "1"


def test_a_newest_version_that_does_not_open_is_a_damage(deployment: Deployment) -> None:
    deployment.fill(2)
    newest = min(Path(deployment.config.uri, "_versions").glob("*.manifest"))
    newest.write_bytes(b"garbage")
    with pytest.raises(dg.Failure, match="manifest"):
        deployment.run("verify", NOW)
    assert intact_history(deployment) == [False]


def test_bounded_runs_continue_one_another(deployment: Deployment, monkeypatch: pytest.MonkeyPatch) -> None:
    deployment.fill(3)
    flip(deployment, 2)
    bounds: list[tuple[int | None, int]] = []

    def by_the_byte(options: VerificationOptions) -> VerificationOptions:
        bounds.append((options.max_bytes, options.first_part))
        return VerificationOptions(max_bytes=1, first_part=options.first_part)

    def of_uri(uri: str, version: Any, storage: Any, options: VerificationOptions, runner: Any) -> VerificationReport:
        return verify_uri(uri, version, storage, by_the_byte(options), runner)

    def of_snapshot(snapshot: Snapshot, options: VerificationOptions, runner: Any) -> VerificationReport:
        return verify_snapshot(snapshot, by_the_byte(options), runner)

    monkeypatch.setattr(integrity, "verify_uri", of_uri)
    monkeypatch.setattr(verify_verb, "verify", of_snapshot)
    passed = []
    for _ in range(3):
        result = deployment.location.run(
            deployment.names.of("verify"),
            {"verify": launch(Verify(max_megabytes=7), dry_run=False)},
            raise_on_error=False,
        )
        passed.append(result.success)
    assert passed == [True, True, False]
    evaluation = deployment.check()["intact"]
    assert bounds == [(7 << 20, 0), (7 << 20, 1), (7 << 20, 2), (1024 << 20, 0)], "it goes on at the first fragment"
    assert not evaluation.passed and "fragment 2 (version 3)" in (evaluation.description or "")
    monkeypatch.undo()
    with pytest.raises(dg.Failure, match="fragment 2"):
        deployment.run("verify", launch_class(Verify).model_validate({"dry_run": False, "max_megabytes": 0}))


class TestKnownDamages:
    """What a run found damaged keeps the check red until it is known to be whole, or gone."""

    def by_the_part(self, deployment: Deployment, *, quick: bool = False) -> dg.AssetCheckEvaluation:
        def a_part(uri: str, version: Any, storage: Any, options: VerificationOptions, runner: Any) -> Any:
            return verify_uri(uri, version, storage, replace(options, max_bytes=1), runner)

        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(integrity, "verify_uri", a_part)
            found = integrity.verify_some(deployment.instance, deployment.config, max_megabytes=7, quick=quick)
        deployment.instance.report_runless_asset_event(found)
        return found

    def verified(self, deployment: Deployment, *parts: str) -> list[bool]:
        return [self.by_the_part(deployment, quick=part == "quick").passed for part in parts]

    def test_a_later_part_and_a_quick_pass_leave_it_red_and_a_whole_pass_ends_it(self, deployment: Deployment) -> None:
        deployment.fill(3)
        path = flip(deployment, 1)
        assert self.verified(deployment, "full", "full", "full") == [True, False, False]
        assert self.verified(deployment, "quick", "quick", "quick") == [False] * 3
        flip(deployment, 1)  # the bytes are as they were
        assert path.exists()
        assert self.verified(deployment, "full", "full", "full", "full") == [False, False, True, True]

    def test_it_stays_red_while_pass_after_pass_finds_it(self, deployment: Deployment) -> None:
        deployment.fill(2)
        flip(deployment, 0)
        assert self.verified(deployment, *["full"] * 6) == [False] * 6

    def test_a_damaged_tag_stays_red_after_other_commits(self, deployment: Deployment) -> None:
        deployment.fill(2)
        deployment.data.tags.create("kept", 1)
        next(Path(deployment.config.uri, "_refs", "tags").glob("kept*")).write_bytes(b"no tag")
        assert self.verified(deployment, "full") == [False]
        deployment.data.insert(deployment.data.to_table(limit=1))
        assert self.verified(deployment, "quick") == [False]

    @pytest.mark.parametrize("from_copy", [True, False])
    def test_a_repair_ends_it(self, deployment: Deployment, tmp_path: Path, from_copy: bool) -> None:
        deployment.fill(3)
        copy = shutil.copytree(deployment.config.uri, tmp_path / "copy.lance")
        flip(deployment, 1)
        assert self.verified(deployment, "full", "full") == [True, False]
        asked = Repair(copy_uri=str(copy)) if from_copy else Repair(drop_damaged_rows=True)
        deployment.run("repair", launch(asked, dry_run=False))
        assert deployment.data.count_rows() == (30 if from_copy else 20)
        assert self.verified(deployment, "full") == [True]

    def test_a_run_of_intact_parts_succeeds_while_the_check_is_red(
        self, deployment: Deployment, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        deployment.fill(2)
        flip(deployment, 0)
        assert self.verified(deployment, "full") == [False]

        def a_part(snapshot: Snapshot, options: VerificationOptions, runner: Any) -> VerificationReport:
            return verify_snapshot(snapshot, replace(options, max_bytes=1), runner)

        monkeypatch.setattr(verify_verb, "verify", a_part)
        result = deployment.run("verify", launch(Verify(first_part=1), dry_run=False))
        assert result.success
        assert intact_history(deployment)[0] is False

    def test_checks_that_could_not_look_do_not_forget_it(self, deployment: Deployment) -> None:
        deployment.fill(2)
        flip(deployment, 0)
        assert self.verified(deployment, "full") == [False]
        blind = not_looked_warning(deployment.names.head, "intact", "the store is away")
        deployment.instance.report_runless_asset_event(blind)
        assert self.verified(deployment, "full") == [False]

    def test_many_runs_that_ended_before_they_came_to_the_check_do_not_forget_it(self, deployment: Deployment) -> None:
        deployment.fill(3)
        flip(deployment, 1)
        assert self.verified(deployment, "full", "full") == [True, False]
        checks = deployment.location.definitions.resolve_job_def(deployment.names.of("checks"))
        for _ in range(25):
            deployment.instance.create_run_for_job(checks)
        assert self.verified(deployment, "full", "full") == [False, False], "of the last part, and of the first one"


def test_only_a_full_pass_without_damage_counts_as_a_verification(
    deployment: Deployment, monkeypatch: pytest.MonkeyPatch
) -> None:
    deployment.fill(3)
    config, instance = deployment.config, deployment.instance
    first_parts: list[int] = []

    def a_part(uri: str, version: Any, storage: Any, options: VerificationOptions, runner: Any) -> VerificationReport:
        first_parts.append(options.first_part)
        return verify_uri(uri, version, storage, replace(options, max_bytes=1), runner)

    monkeypatch.setattr(integrity, "verify_uri", a_part)

    def verified_after(*, quick: bool = False) -> datetime | None:
        evaluation = integrity.verify_some(instance, config, max_megabytes=7, quick=quick)
        instance.report_runless_asset_event(evaluation)
        return integrity.last_intact_pass_at(instance, config)

    runs = [verified_after(quick=quick) for quick in (False, True, False, True, True)]
    assert runs == [None] * 5, "quick runs neither end a full pass nor move its place"
    assert first_parts == [0, 0, 1, 1, 2]
    ended = verified_after()
    assert ended is not None and first_parts[-1] == 2
    path = flip(deployment, 0)
    assert [verified_after() for _ in range(3)] == [ended] * 3, "a pass that found damage does not count"
    data = bytearray(path.read_bytes())
    data[3] ^= 4
    path.write_bytes(data)
    *_, last = [verified_after() for _ in range(3)]
    assert last is not None and last > ended
    assert first_parts[-6:] == [0, 1, 2] * 2


def test_a_run_that_skipped_parts_ends_no_pass_and_keeps_the_place() -> None:
    config = DatasetConfig.model_validate({"name": "a", "uri": "x"})

    def verified(first_part: int, next_part: int | None, findings: tuple[Finding, ...] = ()) -> tuple[int, bool]:
        """Record a full verification; return where the next one continues, and whether a full pass has ended."""
        report = VerificationReport.of("x", 1, VerificationLevel.FULL, (1,), findings, (), next_part)
        instance.report_runless_asset_event(integrity.intact_evaluation(instance, config, report, first_part))
        place = integrity.next_part_to_verify(instance, config, VerificationLevel.FULL)
        return place, integrity.last_intact_pass_at(instance, config) is not None

    with dg.DagsterInstance.ephemeral() as instance:
        assert verified(900, 0) == (0, False), "900 parts of a new table were never read"
        assert verified(0, 800) == (800, False)
        assert verified(100, 50) == (800, False), "a plan of before the place moved"
        damage = Finding(DamageKind.ROW_COUNT, FindingSeverity.DAMAGED, "a wrong count", 1)
        assert verified(100, 200, (damage,)) == (800, False)
        assert verified(800, 0) == (0, False), "the pass met a damage"
        assert verified(0, 800) == (800, False)
        assert verified(800, 0) == (0, True)


def test_many_quick_verifications_between_two_full_ones_do_not_forget_the_place_of_the_full_ones() -> None:
    config = DatasetConfig.model_validate({"name": "a", "uri": "x"})

    def verified(level: VerificationLevel, first_part: int, next_part: int) -> None:
        report = VerificationReport.of("x", 1, level, (1,), (), (), next_part)
        instance.report_runless_asset_event(integrity.intact_evaluation(instance, config, report, first_part))

    with dg.DagsterInstance.ephemeral() as instance:
        verified(VerificationLevel.FULL, 0, 7)
        for part in range(25):
            verified(VerificationLevel.QUICK, part, part + 1)
        assert integrity.next_part_to_verify(instance, config, VerificationLevel.FULL) == 7
        assert integrity.next_part_to_verify(instance, config, VerificationLevel.QUICK) == 25


def test_an_ingestion_does_not_read_all_files_again(deployment: Deployment) -> None:
    deployment.land("a", range(3))
    deployment.tick()
    result = deployment.ingest("a")
    assert "valid" in check_results(result)
    assert "intact" not in check_results(result)


def test_a_verification_has_a_schedule_if_one_is_declared() -> None:
    declared = {"name": "a", "uri": "x", "maintenance": {"cron": None, "verification": {"cron": "0 1 * * *"}}}
    (schedule,) = build_schedules(DatasetConfig.model_validate(declared))
    assert (schedule.name, schedule.job_name, schedule.cron_schedule) == ("a_verify_schedule", "a_verify", "0 1 * * *")
    (asked,) = schedule.evaluate_tick(dg.build_schedule_context()).run_requests or ()
    assert asked.run_config["ops"]["verify"]["config"]["dry_run"] is False
    with pytest.raises(ValueError, match="not a cron schedule"):
        DatasetConfig.model_validate(declared | {"maintenance": {"verification": {"cron": "daily-ish"}}})


def test_the_head_shows_the_message_of_a_commit(deployment: Deployment) -> None:
    deployment.fill(1)
    message = "Fix | the cities\nof March " + "and April " * 20
    lance_ops.write_dataset(
        deployment.data.to_table(),
        deployment.config.uri,
        mode="append",
        transaction_properties={"team": "north"},
        commit_message=message,
    )
    sensor = build_version_sensor(deployment.config, grace=timedelta(0))
    with dg.build_sensor_context(instance=deployment.instance) as context:
        events = sensor.evaluate_tick(context).asset_events
    *_, event = (each for each in events if each.asset_key == deployment.names.head)
    assert isinstance(event, dg.AssetMaterialization)
    shown = values(event.metadata)
    assert shown["lance/commit_message"] == message
    assert shown["lance/transaction"] == {"team": "north"}
    [line] = [line for line in shown["lance/timeline"].splitlines() if "| 2 |" in line]
    assert "Fix \\| the cities of March and April" in line and line.endswith("… |")
