from __future__ import annotations

import shutil
from datetime import UTC, datetime
from pathlib import Path

import pyarrow as pa
import pytest

from lance_ops.api import LanceDataset, dataset, write_dataset
from lance_ops.committers import DatasetRoot
from lance_ops.core.errors import (
    CorruptFile,
    DatasetAlreadyExists,
    InvalidInput,
    PlanOutdated,
    ReferenceNotFound,
    RepairIncomplete,
    StoreError,
)
from lance_ops.maintenance.repair import open_newest_readable
from lance_ops.refs import branches
from lance_ops.verbs import (
    Branch,
    Cleanup,
    Clone,
    Compact,
    Migrate,
    Repair,
    Tag,
    Verify,
    do_now,
    execute_plan,
    make_plan,
    make_verb,
    parse_options,
)
from tests.verbs.living import live, section


@pytest.fixture
def numbers(dataset_uri: str) -> LanceDataset:
    """Two versions of four and eight rows, in fragments of four."""
    write_dataset(pa.table({"x": range(4)}), dataset_uri, max_rows_per_file=4)
    return write_dataset(pa.table({"x": range(4, 8)}), dataset_uri, mode="append", max_rows_per_file=4)


def test_a_branch_begins_with_the_planned_version_and_is_removed(numbers: LanceDataset) -> None:
    plan, preview = make_plan(Branch("trial"), numbers)
    assert preview.summary == "begin branch trial with version 2: 8 rows"
    numbers.insert(pa.table({"x": [8]}))
    done = execute_plan(plan, dataset(numbers.uri))
    branch = dataset(str(done.facts["branch_uri"]))
    assert (branch.count_rows(), done.facts["begins_with"], done.version) == (8, 2, 2)
    with pytest.raises(InvalidInput, match="branch 'trial' exists already"):
        make_plan(Branch("trial"), numbers)
    branch.delete("x = 0")
    preview, _ = live(Branch("trial", action="delete"), dataset(numbers.uri))
    assert "its newest has 7 rows" in preview.warnings[0]
    assert dataset(numbers.uri).branches.list() == {}


@pytest.mark.parametrize("removed_before", ["", "_transactions", "_versions"])
def test_a_removal_of_a_branch_that_was_interrupted_is_resumed(
    numbers: LanceDataset, monkeypatch: pytest.MonkeyPatch, removed_before: str
) -> None:
    begun = datetime.now(UTC)
    numbers.create_branch("trial").insert(pa.table({"x": [8]}))
    verb, folder = Branch("trial", action="delete"), Path(numbers.uri, "tree", "trial")
    plan, _ = make_plan(verb, numbers)

    def dies(root: DatasetRoot) -> None:
        if removed_before:
            shutil.rmtree(folder / "_transactions")
        if removed_before == "_versions":
            shutil.rmtree(folder / "_versions")
        raise StoreError("503 Slow Down")

    with monkeypatch.context() as patched:
        patched.setattr(branches, "remove_branch_files", dies)
        with pytest.raises(StoreError, match="503"):
            do_now(verb, numbers)
    assert numbers.branches.list() == {} and any(folder.rglob("*.lance"))
    assert "whose removal or creation was interrupted" in make_plan(verb, numbers)[1].summary
    for _ in range(2):
        done = execute_plan(plan, numbers, attempted_since=begun)
        assert done.facts["branch"] == "trial" and not [path for path in folder.rglob("*") if path.is_file()]
    with pytest.raises(ReferenceNotFound, match="no branch 'trial'"):
        do_now(verb, numbers)


def test_a_tag_says_what_it_names_before_it_is_moved_or_deleted(numbers: LanceDataset) -> None:
    numbers.tags.create("t", 1)
    preview, _ = live(Tag("t", action="move"), numbers)
    assert preview.summary == "move tag t from version 1 to version 2"
    assert preview.warnings == ("Clean-up may then remove version 1, unless something else keeps it.",)
    assert make_plan(Tag("t", action="move"), numbers)[1].warnings == ()
    preview, _ = live(Tag("t", action="delete"), numbers)
    assert preview.summary == "delete tag t of version 2" and len(preview.warnings) == 1


def test_a_preview_lists_some_of_many_groups(dataset_uri: str) -> None:
    data = write_dataset(pa.table({"x": range(240)}), dataset_uri, max_rows_per_file=2)
    _, preview = make_plan(Compact(target_rows_per_fragment=4), data)
    (groups,) = preview.sections
    assert groups.title == "Groups to rewrite (the first 50 of 60)" and len(groups.lines) == 50


def test_a_branch_begins_with_a_tagged_version(numbers: LanceDataset) -> None:
    numbers.tags.create("first", 1)
    _, done = live(Branch("old", tag="first"), numbers)
    assert dataset(str(done.facts["branch_uri"])).count_rows() == 4
    with pytest.raises(ReferenceNotFound, match="nothing"):
        make_plan(Branch("new", tag="nothing"), numbers)
    with pytest.raises(InvalidInput, match="either a version or a tag"):
        make_plan(Branch("new", tag="first", version=1), numbers)


@pytest.mark.parametrize("shallow", [False, True])
def test_a_clone_copies_the_planned_version_or_names_its_files(
    numbers: LanceDataset, tmp_path: Path, shallow: bool
) -> None:
    target = str(tmp_path / "clone.lance")
    plan, preview = make_plan(Clone(target, shallow=shallow), numbers)
    assert (preview.writes_bytes, bool(preview.warnings)) == (0 if shallow else preview.before.size_bytes, shallow)
    numbers.insert(pa.table({"x": [8]}))
    done = execute_plan(plan, dataset(numbers.uri))
    assert (done.facts["rows"], dataset(target).count_rows()) == (8, 8)
    assert len(list(Path(target, "data").glob("*"))) == (0 if shallow else 2)
    with pytest.raises(DatasetAlreadyExists, match="clone.lance"):
        make_plan(Clone(target), numbers)


def test_a_migration_counts_the_files_by_version_and_rewrites_those_of_others(numbers: LanceDataset) -> None:
    preview, done = live(Migrate("2.0"), numbers)
    assert preview.facts == {"fragments_to_rewrite": 2}
    assert section(preview, "Data files by the version in the manifest")["files"] == ("2",)
    assert done.facts == {"fragments_removed": 2, "fragments_added": 2}
    assert dataset(numbers.uri).data_storage_version == "2.0"
    assert make_plan(Migrate("2.0"), dataset(numbers.uri))[1].does_nothing


def test_a_repair_lists_what_it_mends_and_fails_for_what_stays(numbers: LanceDataset, tmp_path: Path) -> None:
    assert make_plan(Repair(), numbers)[1].summary == "version 2 is whole"
    copy = str(tmp_path / "copy.lance")
    numbers.deep_clone(copy, 2)
    files = sorted(Path(numbers.uri, "data").glob("*"))
    content = files[0].read_bytes()
    files[0].unlink()
    _, preview = make_plan(Repair(), numbers)
    assert preview.does_nothing and preview.facts["refusals"] == 1
    assert files[0].name in section(preview, "What would stay damaged")["damage"][0]
    with pytest.raises(RepairIncomplete, match=rf"1 damages stay: .*{files[0].name}"):
        live(Repair(level="quick"), numbers)
    preview, done = live(Repair(copy_uri=copy, level="quick"), numbers)
    assert (preview.facts["actions"], done.facts["actions"]) == (1, 1)
    assert dataset(numbers.uri).to_table()["x"].to_pylist() == list(range(8))
    assert content in [path.read_bytes() for path in Path(numbers.uri, "data").glob("*")]


def test_a_repair_is_planned_for_one_version(numbers: LanceDataset) -> None:
    plan, _ = make_plan(Repair(level="quick"), numbers)
    numbers.insert(pa.table({"x": [8]}))
    with pytest.raises(PlanOutdated, match="repair was planned on version 2"):
        execute_plan(plan, dataset(numbers.uri))


def test_a_clustering_is_previewed_within_its_bounds(numbers: LanceDataset) -> None:
    numbers.delete("x = 5")
    preview, done = live(Compact(cluster_by=("x",), max_source_fragments=1), dataset(numbers.uri))
    assert preview.summary == "rewrite 1 fragments, sorted by x"
    assert section(preview, "Groups to rewrite")["rows"] == ("4",)
    assert done.facts == {"fragments_removed": 1, "fragments_added": 1}
    preview, done = live(Compact(cluster_by=("x",), excluded_fragment_ids=(0,)), dataset(numbers.uri))
    assert preview.after is not None
    assert (preview.after.deleted_rows, done.after.deleted_rows) == (0, 0)


def test_clean_up_removes_the_named_versions_at_a_rate(numbers: LanceDataset) -> None:
    numbers.insert(pa.table({"x": [8]}))
    words = parse_options("cleanup", {"versions": ["2"], "delete_rate_limit": ["1000"]})
    verb = make_verb("cleanup", words)
    assert verb == Cleanup(versions=(2,), delete_rate_limit=1000)
    preview, _ = live(verb, dataset(numbers.uri))
    assert section(preview, "What would go")["which"][0] == "2"
    assert [each["version"] for each in dataset(numbers.uri).versions()] == [1, 3]
    with pytest.raises(InvalidInput, match="versions is a number, not 'two'"):
        parse_options("cleanup", {"versions": ["two"]})


def test_the_preview_of_a_clean_up_names_the_versions(numbers: LanceDataset) -> None:
    for number in range(6):
        dataset(numbers.uri).insert(pa.table({"x": [number]}))
    dataset(numbers.uri).tags.create("kept", 4)
    _, preview = make_plan(Cleanup(retain_versions=2), dataset(numbers.uri))
    assert section(preview, "What would go")["which"][0] == "1 to 3, 5 to 6"


def damage_newest_manifest(data: LanceDataset) -> LanceDataset:
    """Overwrite the newest manifest; return the newest version that can be read."""
    store = data.snapshot.store
    store.put(data.snapshot.committer.location(data.version), b"garbage")
    with pytest.raises(CorruptFile):
        dataset(data.uri)
    return LanceDataset.of(open_newest_readable(data.uri, data.snapshot.storage_options))


def test_a_planned_version_that_cannot_be_read_any_more_is_what_a_verification_finds(numbers: LanceDataset) -> None:
    planned, _ = make_plan(Verify(), numbers)
    mending, _ = make_plan(Repair(), numbers)
    older = damage_newest_manifest(numbers)
    done = execute_plan(planned, older)
    assert done.problem.startswith("version 2 has 1 damages") and done.facts["damages"] == 1
    with pytest.raises(PlanOutdated, match="version 2 cannot be read any more: plan again"):
        execute_plan(mending, older)


def test_a_chosen_version_is_verified_whatever_became_of_the_newest(numbers: LanceDataset) -> None:
    older = damage_newest_manifest(numbers)
    plan, preview = make_plan(Verify(version=1), older)
    done = execute_plan(plan, older)
    assert preview.summary == "full verification of version 1: 1 files"
    assert (done.problem, done.facts["version"], done.facts["damages"]) == ("", 1, 0)
    plan, preview = make_plan(Verify(version=2), older)
    done = execute_plan(plan, older)
    assert preview.summary == "version 2 cannot be read"
    assert (done.facts["version"], done.facts["damages"]) == (2, 1)
