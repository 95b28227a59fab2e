"""A repair mends each damage that can be mended, refuses the rest with a reason, and never makes anything worse."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from typer.testing import CliRunner

import lance_ops
from lance_ops.cli import app
from lance_ops.committers import PutIfAbsentCommitter
from lance_ops.core.errors import CorruptFile, InvalidInput, RetryableConflict
from lance_ops.maintenance.repair import actions, open_newest_readable
from lance_ops.table import decode_manifest, encode_manifest
from lance_ops.transactions import restore_as_next_version
from tests.maintenance.verification.planted_damages import (
    ALL_DAMAGES,
    ROWS_PER_FRAGMENT,
    Damage,
    data_path,
    deletion_path,
    make_dataset,
)

HINT = "latest_version_hint.json"


def content(root: Path) -> dict[str, bytes]:
    return {str(path.relative_to(root)): path.read_bytes() for path in root.rglob("*") if path.is_file()}


def rows(root: Path | str) -> pa.Table:
    return lance_ops.dataset(str(root)).to_table(columns=["x", "text"], with_row_id=True).sort_by("x")


def planted(name: str) -> Damage:
    return next(damage for damage in ALL_DAMAGES if damage.name == name)


def repair_with(root: Path, copy: Path | None = None) -> tuple[list[str], list[str]]:
    """Verify, plan, repair; return the names of the applied actions and the reasons of the refusals."""
    opened = lance_ops.dataset(str(root))
    plan = opened.plan_repair(copy=None if copy is None else str(copy))
    result = opened.repair(plan)
    assert result.failed == ()
    return [action.name for action in plan.actions], [refusal.reason for refusal in plan.refusals]


@pytest.mark.parametrize("damage", [each for each in ALL_DAMAGES if each.mended_by], ids=lambda each: each.name)
def test_a_damage_that_can_be_mended_is_mended_and_no_file_is_lost(healthy: Path, copied: Path, damage: Damage) -> None:
    damage.plant(copied)
    before = content(copied)
    actions, refusals = repair_with(copied, healthy if damage.mended_by == "copy" else None)
    assert (len(actions), refusals) == (1, [])
    assert lance_ops.dataset(str(copied)).verify().ok
    assert rows(copied) == rows(healthy)
    assert lance_ops.dataset(str(copied)).count_rows("x > 5") == lance_ops.dataset(str(healthy)).count_rows("x > 5")
    after = content(copied)
    kept = set(after.values())
    changed = {path for path, data in before.items() if data not in kept and HINT not in path}
    assert changed <= ({path for path in before if path.endswith(".txn")} if "transaction" in damage.name else set())


@pytest.mark.parametrize(
    "damage", [each for each in ALL_DAMAGES if each.mended_by == "copy"], ids=lambda each: each.name
)
def test_a_lost_file_without_a_copy_is_refused_and_nothing_is_written(copied: Path, damage: Damage) -> None:
    damage.plant(copied)
    before = content(copied)
    actions, reasons = repair_with(copied)
    assert actions == []
    assert reasons
    assert all("pass copy=" in reason for reason in reasons)
    assert content(copied) == before


@pytest.mark.parametrize("damage", [each for each in ALL_DAMAGES if not each.mended_by], ids=lambda each: each.name)
def test_a_damage_that_cannot_be_mended_is_refused_with_a_reason(healthy: Path, copied: Path, damage: Damage) -> None:
    damage.plant(copied)
    opened = lance_ops.dataset(str(copied))
    report = opened.verify(all_versions=damage.all_versions)
    before = content(copied)
    plan = opened.plan_repair(report, copy=str(healthy))
    assert {refusal.damage for refusal in plan.refusals} == set(report.damages)
    assert all(refusal.reason for refusal in plan.refusals)
    assert "not mended" in str(plan)
    opened.repair(plan)
    assert content(copied) == before


FEEDS: dict[str, tuple[str, int | None, int]] = {
    "data file missing": ("put files back", 0, 0),
    "data file with one flipped bit": ("replace data file", 600, 0),
    "deletion file of garbage": ("replace deletion file", None, 0),
    "index file missing": ("rebuild index", 0, 0),
    "drop": ("drop damaged rows", 0, 590),
}
"""By damage: the action that mends it, and how many rows the change feed reports as updated and as deleted by it.

None stands for an error: which rows the damaged version had deleted cannot be told.
"""


@pytest.mark.parametrize("name", FEEDS)
def test_the_change_feed_after_a_repair_has_what_the_repair_changed_and_later_changes(
    healthy: Path, copied: Path, name: str
) -> None:
    action, num_updated, num_deleted = FEEDS[name]
    drops = name == "drop"
    planted("data file without its footer" if drops else name).plant(copied)
    opened = lance_ops.dataset(str(copied))
    before = opened.version
    plan = opened.plan_repair(copy=None if drops else str(healthy), drop_damaged_rows=drops)
    assert action in [each.name for each in plan.actions]
    assert opened.repair(plan).failed == ()
    repaired = opened.version
    if num_updated is None:
        with pytest.raises(CorruptFile, match="deletion vector"):
            changes(opened, before)
    else:
        assert changes(opened, before) == (0, num_updated, num_deleted)
    columns = [pa.array([5000, 5001]), pa.array(["a", "b"]), lance_ops.blob_array([None, b"blob"])]
    more = pa.table(columns, ["x", "text", "blob"])
    lance_ops.write_dataset(more, str(copied), mode="append")
    opened = lance_ops.dataset(str(copied))
    opened.update({"text": "'new'"}, "x = 7")
    opened.delete("x in (8, 9)")
    assert changes(opened, repaired) == (2, 1, 2)
    new = opened.delta(compared_against=repaired).get_updated_rows().read_all()
    assert new.select(["x", "text"]).to_pylist() == [{"x": 7, "text": "new"}]
    if num_updated:  # a replaced file holds rows 1200 to 1799, which nothing else changed
        assert changes(opened, before) == (2, num_updated + 1, 2)


def changes(opened: lance_ops.LanceDataset, version: int) -> tuple[int, int, int]:
    """Return how many rows were inserted, updated and deleted since a version."""
    delta = opened.delta(compared_against=version)
    parts = (delta.get_inserted_rows(), delta.get_updated_rows(), delta.get_deleted_row_ids())
    inserted, updated, deleted = (part.read_all().num_rows for part in parts)
    return inserted, updated, deleted


@pytest.fixture
def compacted(tmp_path: Path) -> Path:
    """Ten fragments that became one: versions 10 and 11 hold the same rows in other files."""
    root = tmp_path / "compacted.lance"
    for at in range(10):
        lance_ops.write_dataset(pa.table({"x": range(at * 10, at * 10 + 10)}), str(root), mode="append")
    lance_ops.dataset(str(root)).optimize.compact_files()
    return root


def test_an_older_version_is_restored_if_nothing_but_places_of_rows_changed_since(compacted: Path) -> None:
    before = lance_ops.dataset(str(compacted)).to_table()
    [fragment] = lance_ops.dataset(str(compacted)).get_fragments()
    (compacted / "data" / fragment.metadata.files[0].path).unlink()
    assert repair_with(compacted) == (["restore version"], [])
    repaired = lance_ops.dataset(str(compacted))
    assert repaired.verify().ok
    assert repaired.to_table() == before


def test_an_older_version_that_takes_changes_back_is_restored_only_if_allowed(compacted: Path) -> None:
    opened = lance_ops.dataset(str(compacted))
    opened.delete("x = 7")
    data_file = opened.get_fragments()[0].metadata.files[0].path
    (compacted / "data" / data_file).unlink()
    report = opened.verify()
    [refusal] = opened.plan_repair(report).refusals
    assert "restore_older_version restores version 11" in refusal.reason
    assert f"Delete (version {opened.version})" in refusal.reason
    plan = opened.plan_repair(report, restore_older_version=True)
    assert [action.name for action in plan.actions] == ["restore version"]
    opened.repair(plan)
    assert opened.verify().ok
    assert sorted(opened.to_table()["x"].to_pylist()) == list(range(100))


def test_a_restore_takes_back_no_commit_that_the_plan_did_not_name(
    compacted: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    opened = lance_ops.dataset(str(compacted))
    (compacted / "data" / opened.get_fragments()[0].metadata.files[0].path).unlink()
    plan = opened.plan_repair()
    plain = restore_as_next_version

    def after_an_append(*arguments: Any) -> Any:
        lance_ops.write_dataset(pa.table({"x": [999]}), str(compacted), mode="append")
        return plain(*arguments)

    monkeypatch.setattr(actions, "restore_as_next_version", after_an_append)
    [(_, reason)] = opened.repair(plan).failed
    assert "appeared since the repair was planned" in reason
    newest = lance_ops.dataset(str(compacted))
    assert newest.version == plan.version + 1 and newest.count_rows() == 101


def test_nothing_is_restored_over_a_version_that_needs_a_newer_writer(compacted: Path) -> None:
    opened = lance_ops.dataset(str(compacted))
    snapshot = opened.snapshot
    manifest = decode_manifest(encode_manifest(snapshot.manifest, b""), "m")
    object.__setattr__(manifest, "writer_feature_flags", manifest.writer_feature_flags | 1 << 40)
    (compacted / snapshot.committer.location(opened.version)).write_bytes(encode_manifest(manifest, b""))
    (compacted / "data" / opened.get_fragments()[0].metadata.files[0].path).unlink()
    opened = lance_ops.dataset(str(compacted))
    plan = opened.plan_repair(restore_older_version=True)
    assert [action.name for action in plan.actions] == ["restore version"]
    [(_, reason)] = opened.repair(plan).failed
    assert "writing a table with feature flags" in reason
    assert opened.latest_version == plan.version


@pytest.mark.parametrize("is_there", [False, True], ids=["removed", "unreadable"])
def test_versions_that_cannot_be_read_count_as_changes_that_a_restore_takes_back(
    compacted: Path, is_there: bool
) -> None:
    opened = lance_ops.dataset(str(compacted))
    (compacted / "data" / opened.get_fragments()[0].metadata.files[0].path).unlink()
    for version in (10, 11):  # the last append, and the reservation of the compaction's fragment
        manifest = compacted / opened.snapshot.committer.location(version)
        if is_there:
            manifest.write_bytes(b"no manifest at all")
        else:
            manifest.unlink()
    plan = opened.plan_repair(opened.verify())
    assert plan.actions == ()  # version 9 lacks the rows that version 10 appended
    [refusal, *older] = plan.refusals
    assert "mend the newest version's rows first" in older[0].reason if is_there else not older
    assert "restore_older_version restores version 9" in refusal.reason
    assert "unknown changes (versions 10 to 11)" in refusal.reason


def test_a_version_that_clean_up_removes_meanwhile_is_passed_over(
    compacted: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    listed = PutIfAbsentCommitter.versions
    monkeypatch.setattr(PutIfAbsentCommitter, "versions", lambda committer: [*listed(committer), 99])
    assert open_newest_readable(str(compacted)).version == lance_ops.dataset(str(compacted)).version


def test_rows_of_a_damaged_fragment_are_dropped_only_if_allowed(copied: Path) -> None:
    planted("data file missing").plant(copied)
    opened = lance_ops.dataset(str(copied))
    report = opened.verify()
    [refusal] = opened.plan_repair(report).refusals
    assert "drop_damaged_rows deletes the fragment's rows" in refusal.reason
    plan = opened.plan_repair(report, drop_damaged_rows=True)
    assert f"delete the {ROWS_PER_FRAGMENT} rows of fragments 0" in plan.actions[0].explanation
    opened.repair(plan)
    assert opened.verify().ok
    assert opened.to_table(columns=["x"])["x"].to_pylist()[0] == ROWS_PER_FRAGMENT
    assert opened.count_rows() == 2 * ROWS_PER_FRAGMENT - 10


def test_a_tag_of_no_version_is_deleted_only_if_allowed(copied: Path) -> None:
    planted("tag of a version that does not exist").plant(copied)
    opened = lance_ops.dataset(str(copied))
    opened.repair(opened.plan_repair())
    assert list(opened.tags.list()) == ["indexed"]
    opened.repair(opened.plan_repair(delete_dangling_tags=True))
    assert opened.tags.list() == {}
    assert opened.verify().ok


def test_a_tag_whose_file_cannot_be_read_is_never_deleted(copied: Path) -> None:
    planted("tag file of garbage").plant(copied)
    opened = lance_ops.dataset(str(copied))
    plan = opened.plan_repair(delete_dangling_tags=True)
    assert plan.actions == ()
    assert "create it again" in plan.refusals[0].reason


# -- copies --------------------------------------------------------------------------------------------------------


def cut_data_file(root: Path) -> None:
    planted("data file cut short").plant(root)


def lose_data_file(root: Path) -> None:
    planted("data file missing").plant(root)


@pytest.mark.parametrize("harm", [cut_data_file, lose_data_file, lambda root: deletion_path(root).unlink()])
@pytest.mark.parametrize("stable_row_ids", [False, True])
def test_a_deep_clone_gives_files_under_other_names_back(
    tmp_path: Path, harm: Callable[[Path], object], stable_row_ids: bool
) -> None:
    root, clone = tmp_path / "data.lance", tmp_path / "clone.lance"
    made = make_dataset(root, stable_row_ids=stable_row_ids)
    made.deep_clone(str(clone), made.version)
    lance_ops.dataset(str(clone)).delete("x = 3")  # the clone went on, but its first version is retained
    before = rows(root)
    harm(root)
    assert not lance_ops.dataset(str(root)).verify().ok
    [action], refusals = repair_with(root, clone)
    assert refusals == []
    assert action == ("replace data file" if harm is cut_data_file else "put files back")
    assert lance_ops.dataset(str(root)).verify().ok
    assert rows(root) == before


@pytest.mark.parametrize("what", ["another dataset", "an old clone", "a damaged copy", "a shallow clone"])
def test_a_copy_whose_file_is_not_surely_the_same_is_not_used(tmp_path: Path, what: str) -> None:
    root, copy = tmp_path / "data.lance", tmp_path / "copy.lance"
    made = make_dataset(root)
    match what:
        case "another dataset":  # of the same sizes, columns and numbers
            make_dataset(copy)
        case "an old clone":
            made.deep_clone(str(copy), 2)
            made.delete("x = 1000")
            for version in (1, 2):
                (root / made.snapshot.committer.location(version)).unlink()
        case "a damaged copy":
            shutil.copytree(root, copy)
            (copy / data_path(root, 0).relative_to(root)).write_bytes(b"garbage")
        case "a shallow clone":
            made.shallow_clone(str(copy), made.version)
    lose_data_file(root)
    actions, reasons = repair_with(root, copy)
    assert actions == []
    assert any("the copy has no bytes to mend it" in reason for reason in reasons)


def test_the_damaged_dataset_is_no_copy_of_itself(copied: Path) -> None:
    lose_data_file(copied)
    opened = lance_ops.dataset(str(copied))
    with pytest.raises(InvalidInput, match="is the damaged dataset itself"):
        opened.plan_repair(copy=str(copied))


def test_a_shallow_clone_whose_source_lost_a_file_gets_one_of_its_own(tmp_path: Path) -> None:
    source, shallow, deep = (tmp_path / name for name in ("source.lance", "shallow.lance", "deep.lance"))
    made = make_dataset(source, blobs=False)
    made.shallow_clone(str(shallow), made.version)
    opened = lance_ops.dataset(str(shallow))
    opened.deep_clone(str(deep), opened.version)
    before = rows(shallow)
    lost = data_path(source, 0)
    lost.unlink()
    report = opened.verify()
    assert report.damaged_fragments == (0,)
    assert report.damages[0].path == str(lost)
    plan = opened.plan_repair(report, copy=str(deep))
    assert [action.name for action in plan.actions] == ["replace data file"]
    opened.repair(plan)
    assert opened.verify().ok
    assert rows(shallow) == before
    assert not lost.exists()


# -- plans that do not fit -----------------------------------------------------------------------------------------


def test_a_plan_is_refused_after_another_commit(healthy: Path, copied: Path) -> None:
    planted("index file missing").plant(copied)
    opened = lance_ops.dataset(str(copied))
    plan = opened.plan_repair()
    lance_ops.dataset(str(copied)).delete("text = 'text 5'")
    before = content(copied)
    with pytest.raises(RetryableConflict, match="verify and plan again"):
        opened.repair(plan)
    assert content(copied) == before


def test_a_report_of_another_version_is_refused(copied: Path) -> None:
    older = lance_ops.dataset(str(copied), 1)
    with pytest.raises(InvalidInput, match="only the newest version"):
        older.plan_repair()
    with pytest.raises(InvalidInput, match="the report is about version 1"):
        lance_ops.dataset(str(copied)).plan_repair(older.verify(level="quick"))


def test_a_whole_version_needs_no_repair(copied: Path) -> None:
    assert repair_with(copied) == ([], [])


@pytest.mark.interop
def test_a_damaged_index_of_a_type_that_is_not_read_here_is_dropped(tmp_path: Path) -> None:
    lance = pytest.importorskip("lance", reason="pylance, the reference implementation, is not installed")
    uri = str(tmp_path / "data.lance")
    lance.write_dataset(pa.table({"x": range(100), "kind": ["a", "b"] * 50}), uri)
    lance.dataset(uri).create_scalar_index("kind", "NGRAM")
    opened = lance_ops.dataset(uri)
    index = opened.snapshot.manifest.indices[0]
    assert opened.verify().ok
    Path(uri, index.directory, index.files[0].path).unlink()
    assert lance_ops.dataset(uri).verify().damaged_indices == (index.name,)
    assert repair_with(Path(uri)) == (["drop index"], [])
    assert lance_ops.dataset(uri).verify().ok
    assert lance.dataset(uri).count_rows("contains(kind, 'a')") == 50


# -- the command ---------------------------------------------------------------------------------------------------


def test_the_command_says_what_it_would_do_and_then_does_it(healthy: Path, copied: Path) -> None:
    planted("index file missing").plant(copied)
    lose_data_file(copied)
    before = content(copied)
    runner = CliRunner()
    shown = runner.invoke(app, ["repair", str(copied), "--dry-run"])
    assert shown.exit_code == 1  # the data file cannot be mended without a copy
    assert "would drop index" in shown.stdout
    assert "not mended: damaged: missing file: fragment 0" in " ".join(shown.stdout.split())
    assert content(copied) == before
    done = runner.invoke(app, ["repair", str(copied), "--copy", str(healthy), "--json"])
    assert done.exit_code == 0, done.output
    answer = json.loads(done.stdout)
    assert [action["action"] for action in answer["actions"]] == ["put files back", "rebuild index"]
    assert len(answer["result"]["applied"]) == 2
    assert runner.invoke(app, ["verify", str(copied)]).exit_code == 0
    assert "nothing to repair" in runner.invoke(app, ["repair", str(copied)]).stdout
