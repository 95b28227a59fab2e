"""A table whose newest manifest is damaged opens again at the newest version that can be read; nothing is destroyed."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from typer.testing import CliRunner

import lance_ops
from lance_ops.cli import app
from lance_ops.core.errors import CorruptFile, LanceOpsError, RetryableConflict, UnsupportedFeature
from lance_ops.fragment import write_fragments
from lance_ops.maintenance.batch_ledger import batch_properties
from lance_ops.maintenance.repair import RepairOptions, plan_repair_of_manifest
from lance_ops.maintenance.repair import repair as repair_snapshot
from lance_ops.maintenance.verification import VerificationOptions, verify_uri

runner = CliRunner()

Harm = Callable[[Path], object]


def flip(path: Path) -> None:
    data = bytearray(path.read_bytes())
    data[len(data) // 2] ^= 8
    path.write_bytes(data)


HARMS: dict[str, Harm] = {
    "one flipped bit": flip,
    "empty": lambda path: path.write_bytes(b""),
    "garbage": lambda path: path.write_bytes(b"garbage" * 50),
    "cut": lambda path: path.write_bytes(path.read_bytes()[:-20]),
    "zeroed": lambda path: path.write_bytes(bytes(path.stat().st_size)),
}


def table(start: int, stop: int) -> pa.Table:
    return pa.table({"x": range(start, stop), "text": [f"text {i}" for i in range(start, stop)]})


def manifests(root: Path) -> list[Path]:
    """Return the manifests, the newest first."""
    return sorted((root / "_versions").glob("*.manifest"))


stable_row_ids = pytest.mark.parametrize("root", [True], indirect=True, ids=["stable row ids"])


@pytest.fixture(params=[False, True], ids=["addresses", "stable row ids"])
def root(tmp_path: Path, request: pytest.FixtureRequest) -> Path:
    """Four versions of ten rows each: 10, 20, 20 without the first three, and 27."""
    uri = str(tmp_path / "table.lance")
    lance_ops.write_dataset(table(0, 10), uri, enable_stable_row_ids=request.param)
    lance_ops.write_dataset(table(10, 20), uri, mode="append")
    lance_ops.dataset(uri).delete("x < 3")
    lance_ops.write_dataset(table(20, 30), uri, mode="append")
    return Path(uri)


def go_back(root: Path, version: int) -> lance_ops.LanceDataset:
    """Repair the table from a handle on an older version, with the caller's leave."""
    opened = lance_ops.dataset(str(root), version=version)
    plan = opened.plan_repair(restore_older_version=True)
    assert [action.name for action in plan.actions] == ["go back to a readable version"]
    assert opened.repair(plan).failed == ()
    return opened


@pytest.mark.parametrize("harm", HARMS)
def test_a_table_whose_newest_manifest_is_damaged_opens_again(root: Path, harm: str) -> None:
    bad = manifests(root)[0]
    HARMS[harm](bad)
    content = bad.read_bytes()
    with pytest.raises(CorruptFile):
        lance_ops.dataset(str(root))
    opened = go_back(root, 1)
    assert opened.version == 5
    assert lance_ops.dataset(str(root)).to_table().column("x").to_pylist() == list(range(3, 20))
    assert lance_ops.dataset(str(root)).verify(all_versions=True).ok
    [kept] = (root / "_lance_ops" / "unreadable").iterdir()
    assert kept.name.startswith("4-") and kept.read_bytes() == content
    assert not bad.exists()


def test_no_fragment_gets_an_id_that_an_unreadable_version_gave_out(root: Path) -> None:
    given_out = max(fragment.fragment_id for fragment in lance_ops.dataset(str(root)).get_fragments())
    flip(manifests(root)[0])
    go_back(root, 1)
    appended = lance_ops.write_dataset(table(30, 40), str(root), mode="append")
    assert max(fragment.fragment_id for fragment in appended.get_fragments()) > given_out


def test_going_back_needs_leave_and_says_what_is_lost(root: Path) -> None:
    flip(manifests(root)[0])
    before = {path: path.read_bytes() for path in root.rglob("*") if path.is_file()}
    opened = lance_ops.dataset(str(root), version=2)
    plan = opened.plan_repair()
    assert (plan.version, plan.actions) == (4, ())
    [refusal] = plan.refusals
    assert "restore_older_version goes back to version 3, which takes back Append (version 4)" in refusal.reason
    assert opened.repair(plan).version == 4
    assert {path: path.read_bytes() for path in root.rglob("*") if path.is_file()} == before
    allowed = opened.plan_repair(restore_older_version=True)
    assert "commit the content of version 3 as version 5: this takes back Append (version 4)" in str(allowed)


def test_several_damaged_manifests_are_passed_over(root: Path) -> None:
    for path in manifests(root)[:2]:
        path.write_bytes(b"")
    opened = go_back(root, 1)
    assert (opened.version, opened.count_rows()) == (5, 20)
    assert len(list((root / "_lance_ops" / "unreadable").iterdir())) == 2
    assert opened.verify(all_versions=True).ok


def test_a_table_without_a_readable_manifest_is_refused(root: Path) -> None:
    opened = lance_ops.dataset(str(root), version=3)
    for path in manifests(root):
        flip(path)
    snapshot = opened.snapshot
    cached = snapshot.with_manifest(replace(snapshot.manifest, version=9))  # so that version 3 is read again
    plan = plan_repair_of_manifest(cached, RepairOptions(restore_older_version=True))
    assert plan is not None and plan.actions == ()
    assert all("no older version can be read" in refusal.reason for refusal in plan.refusals)
    assert runner.invoke(app, ["repair", str(root)]).exit_code == 1


def test_a_version_of_a_newer_writer_is_not_damaged(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    opened = lance_ops.dataset(str(root), version=1)

    def refused(*_: Any) -> None:
        raise UnsupportedFeature("a new flag", str(root))

    monkeypatch.setattr("lance_ops.snapshot.snapshot.check_readable", refused)
    with pytest.raises(UnsupportedFeature):
        opened.plan_repair(restore_older_version=True)


@pytest.mark.parametrize("planned_on", [3, 4])
def test_a_commit_that_was_planned_before_the_repair_is_a_conflict(root: Path, planned_on: int) -> None:
    fragments = write_fragments(table(50, 60), str(root))
    assert isinstance(fragments, list)
    append = lance_ops.LanceOperation.Append(fragments)
    flip(manifests(root)[0])
    opened = go_back(root, 3)
    with pytest.raises(RetryableConflict):
        lance_ops.LanceDataset.commit(str(root), append, read_version=planned_on)
    assert lance_ops.dataset(str(root)).version == opened.version == 5


def test_handles_from_before_the_repair_change_the_repaired_table(root: Path) -> None:
    stale, lost = lance_ops.dataset(str(root), version=3), lance_ops.dataset(str(root))
    flip(manifests(root)[0])
    go_back(root, 3)
    stale.update({"text": "'late'"}, "x = 5")
    lost.update({"text": "'later'"}, "x = 6")
    rows = lance_ops.dataset(str(root)).to_table().sort_by("x")
    assert rows.column("x").to_pylist() == list(range(3, 20))
    assert rows.column("text").to_pylist()[2:4] == ["late", "later"]


@stable_row_ids
def test_stable_row_ids_of_the_lost_version_are_not_given_out_again(root: Path) -> None:
    ids = lance_ops.dataset(str(root)).to_table(with_row_id=True).column("_rowid").to_pylist()
    flip(manifests(root)[0])
    go_back(root, 3)
    lance_ops.write_dataset(table(30, 35), str(root), mode="append")
    again = lance_ops.dataset(str(root)).to_table(with_row_id=True, filter="x >= 30").column("_rowid").to_pylist()
    assert len(again) == 5 and set(again).isdisjoint(ids)


@stable_row_ids
def test_the_change_feed_after_going_back_has_only_later_changes(root: Path) -> None:
    flip(manifests(root)[0])
    opened = go_back(root, 3)
    unchanged = opened.delta(compared_against=3)
    assert unchanged.get_inserted_rows().read_all().num_rows == unchanged.get_updated_rows().read_all().num_rows == 0
    assert unchanged.get_deleted_row_ids().read_all().num_rows == 0
    lance_ops.write_dataset(table(30, 35), str(root), mode="append")
    newest = lance_ops.dataset(str(root))
    newest.update({"text": "'new'"}, "x = 7")
    newest.delete("x = 8")
    delta = newest.delta(compared_against=3)
    assert delta.get_inserted_rows().read_all().column("x").to_pylist() == [*range(30, 35)]
    assert delta.get_updated_rows().read_all().column("x").to_pylist() == [7]
    assert delta.get_deleted_row_ids().read_all().num_rows == 1


def test_a_repair_is_refused_after_another_commit(root: Path) -> None:
    flip(manifests(root)[0])
    opened = lance_ops.dataset(str(root), version=1)
    plan = opened.plan_repair(restore_older_version=True)
    go_back(root, 2)
    with pytest.raises(RetryableConflict, match="verify and plan again"):
        repair_snapshot(opened.snapshot, plan)


def test_a_repair_that_stops_after_its_commit_leaves_a_table_that_opens(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    flip(manifests(root)[0])
    opened = lance_ops.dataset(str(root), version=3)
    plan = opened.plan_repair(restore_older_version=True)

    def fails(*_: Any) -> None:
        raise LanceOpsError("the store is away")

    with monkeypatch.context() as patched:
        patched.setattr("lance_ops.committers.PutIfAbsentCommitter.remove", fails)
        result = opened.repair(plan)
    assert [error for _, error in result.failed] == ["the store is away"]
    assert lance_ops.dataset(str(root)).count_rows() == 17
    assert (result.version, len(manifests(root))) == (5, 5)
    again = opened.plan_repair()
    assert [action.name for action in again.actions] == ["set unreadable manifests aside"]
    assert opened.repair(again).failed == ()
    assert {path.name.partition("-")[0] for path in (root / "_lance_ops" / "unreadable").iterdir()} == {"4"}
    assert [version["version"] for version in opened.versions()] == [1, 2, 3, 5]


@pytest.mark.parametrize("harm", HARMS)
def test_a_damaged_older_manifest_is_set_aside(root: Path, harm: str) -> None:
    bad = manifests(root)[2]
    HARMS[harm](bad)
    content = bad.read_bytes()
    opened = lance_ops.dataset(str(root))
    with pytest.raises(CorruptFile):
        opened.cleanup_old_versions(retain_versions=1)
    plan = opened.plan_repair(opened.verify(all_versions=True))
    assert ([action.name for action in plan.actions], plan.refusals) == (["set unreadable manifests aside"], ())
    assert "versions 2" in str(plan) and opened.repair(plan).version == 4
    [kept] = (root / "_lance_ops" / "unreadable").iterdir()
    assert kept.name.startswith("2-") and kept.read_bytes() == content
    assert [version["version"] for version in opened.versions()] == [1, 3, 4]
    assert opened.verify(all_versions=True).ok and opened.count_rows() == 27
    assert opened.cleanup_old_versions(retain_versions=1).old_versions == 2


def test_a_damaged_older_manifest_that_a_tag_names_stays(root: Path) -> None:
    opened = lance_ops.dataset(str(root))
    opened.tags.create("second", 2)
    flip(manifests(root)[2])
    [refusal] = opened.plan_repair().refusals
    assert (refusal.damage.version, refusal.reason) == (2, "tag 'second' names it: delete that, and repair again")
    opened.tags.delete("second")
    assert opened.repair(opened.plan_repair()).failed == ()
    assert len(opened.versions()) == 3


@pytest.mark.parametrize("properties", [batch_properties({"a": "1"}), {"lance_ops.token": "t"}], ids=["batch", "token"])
def test_a_damaged_older_manifest_that_may_have_recorded_work_stays(root: Path, properties: dict[str, str]) -> None:
    lance_ops.write_dataset(table(30, 31), str(root), mode="append", transaction_properties=properties)
    opened = lance_ops.dataset(str(root))
    opened.delete("x = 4")
    newest = manifests(root)
    HARMS["cut"](newest[4])  # version 2: its transaction is known
    newest[1].write_bytes(b"garbage")
    newest[3].write_bytes(b"garbage")
    plan = opened.plan_repair()
    assert [refusal.damage.version for refusal in plan.refusals] == [5, 3]
    assert "could be done twice" in plan.refusals[0].reason
    assert "versions 2," in str(plan)
    opened.checkout_version(1).restore()  # so that the table holds none of that work any more
    opened.checkout_latest()
    assert opened.plan_repair().refusals == ()


def test_the_command_goes_back_if_it_is_told_to(root: Path) -> None:
    flip(manifests(root)[0])
    refused = runner.invoke(app, ["repair", str(root)])
    assert refused.exit_code == 1
    assert "restore_older_version goes back to version 3" in refused.output
    mended = runner.invoke(app, ["repair", str(root), "--restore-older-version"])
    assert mended.exit_code == 0, mended.output
    assert runner.invoke(app, ["verify", str(root)]).exit_code == 0


@pytest.mark.parametrize("arguments", [(), ("--version", "4"), ("--quick",)])
def test_the_command_reports_the_damage_if_no_version_is_left(root: Path, arguments: tuple[str, ...]) -> None:
    for path in manifests(root):
        flip(path)
    result = runner.invoke(app, ["verify", str(root), *arguments, "--json"])
    report = json.loads(result.stdout)
    assert (result.exit_code, report["ok"], report["version"]) == (1, False, 4)
    assert [finding["kind"] for finding in report["findings"]] == ["manifest"]
    assert runner.invoke(app, ["verify", str(root), "--dry-run"]).exit_code == 1


@pytest.mark.interop
def test_the_reference_opens_and_appends_to_the_repaired_table(root: Path) -> None:
    lance = pytest.importorskip("lance", reason="pylance, the reference implementation, is not installed")
    manifests(root)[0].write_bytes(b"garbage" * 50)
    with pytest.raises((OSError, ValueError), match="manifest|magic|Lance"):
        lance.dataset(str(root))
    go_back(root, 3)
    theirs = lance.dataset(str(root))
    theirs.validate()
    assert theirs.version == 5
    assert theirs.to_table().column("x").to_pylist() == list(range(3, 20))
    assert [version["version"] for version in theirs.versions()] == [1, 2, 3, 5]
    lance.write_dataset(table(40, 45), str(root), mode="append")
    lance.dataset(str(root)).optimize.compact_files()
    lance.dataset(str(root)).delete("x = 41")
    ours = lance_ops.dataset(str(root))
    assert ours.to_table() == lance.dataset(str(root)).to_table()
    assert ours.count_rows() == 21
    assert verify_uri(str(root), options=VerificationOptions(all_versions=True)).ok
