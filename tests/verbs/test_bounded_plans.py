from __future__ import annotations

import os
import time
from pathlib import Path

import pyarrow as pa
import pytest

from lance_ops.api import LanceDataset, dataset, write_dataset
from lance_ops.core.errors import InvalidInput, PlanOutdated
from lance_ops.maintenance.erasure import erasing
from lance_ops.verbs import Cleanup, Erase, StoredPlan, Verb, do_now, execute_plan, make_plan

ERASE = Erase("x = 2", "request 12", remove_tags=True)


@pytest.fixture
def numbers(dataset_uri: str) -> LanceDataset:
    """Three versions; the first has a tag, and all of them hold the row 2."""
    write_dataset(pa.table({"x": range(4)}), dataset_uri)
    dataset(dataset_uri).tags.create("first", 1)
    dataset(dataset_uri).insert(pa.table({"x": [8]}))
    return write_dataset(pa.table({"x": [9]}), dataset_uri, mode="append")


def stored(verb: Verb, uri: str) -> StoredPlan:
    return StoredPlan.from_json(make_plan(verb, dataset(uri))[0].to_json())


def retained(uri: str) -> list[int]:
    return [each["version"] for each in dataset(uri).versions()]


def test_a_clean_up_removes_no_version_that_became_old_after_its_preview(numbers: LanceDataset) -> None:
    uri = numbers.uri
    plan = stored(Cleanup(retain_versions=1), uri)
    dataset(uri).insert(pa.table({"x": [10]}))
    dataset(uri).tags.delete("first")
    done = execute_plan(plan, dataset(uri))
    assert (done.facts["old_versions"], retained(uri)) == (1, [1, 3, 4])
    assert do_now(Cleanup(retain_versions=1), dataset(uri)).facts["old_versions"] == 2


def test_a_clean_up_leaves_a_previewed_version_that_a_tag_holds_by_then(numbers: LanceDataset) -> None:
    plan = stored(Cleanup(retain_versions=1), numbers.uri)
    dataset(numbers.uri).tags.create("second", 2)
    assert execute_plan(plan, dataset(numbers.uri)).facts["old_versions"] == 0
    assert retained(numbers.uri) == [1, 2, 3]


def test_a_clean_up_removes_no_unnamed_file_that_is_newer_than_its_preview(numbers: LanceDataset) -> None:
    folder, hour = Path(numbers.uri, "data"), 3600
    shown, later = folder / f"{'0' * 32}.lance", folder / f"{'1' * 32}.lance"
    shown.write_bytes(b"x")
    os.utime(shown, (time.time() - hour,) * 2)
    plan = stored(Cleanup(versions=(), delete_unverified=True), numbers.uri)
    later.write_bytes(b"x")
    os.utime(later, (time.time() + hour,) * 2)
    assert execute_plan(plan, dataset(numbers.uri)).facts["data_files_removed"] == 1
    assert (shown.exists(), later.exists()) == (False, True)
    assert do_now(plan.verb, dataset(numbers.uri)).facts["data_files_removed"] == 1


@pytest.mark.parametrize(
    ("grow", "message"),
    [
        (lambda data: data.insert(pa.table({"x": [2, 2]})), r"3 rows instead of 1; 1 more versions \(main/4\)"),
        (lambda data: data.insert(pa.table({"x": [5]})), r"showed: 1 more versions \(main/4\); plan again"),
        (lambda data: data.tags.create("audit", 2), r"showed: 1 more tags \(audit\); plan again"),
    ],
    ids=["rows", "version", "tag"],
)
def test_an_erasure_that_has_grown_is_refused_before_it_changes_anything(
    numbers: LanceDataset, grow: object, message: str
) -> None:
    uri = numbers.uri
    plan = stored(ERASE, uri)
    assert callable(grow)
    grow(dataset(uri))
    versions, tags = retained(uri), dataset(uri).tags.list().keys()
    with pytest.raises(PlanOutdated, match=message):
        execute_plan(plan, dataset(uri))
    assert (retained(uri), dataset(uri).tags.list().keys()) == (versions, tags)
    assert not list(Path(uri).rglob("*erasure*")), "no record, which would block restores"
    assert execute_plan(stored(ERASE, uri), dataset(uri)).facts["is_proven"]


def test_an_erasure_that_has_shrunk_is_executed(numbers: LanceDataset) -> None:
    plan = stored(ERASE, numbers.uri)
    dataset(numbers.uri).tags.delete("first")
    assert execute_plan(plan, dataset(numbers.uri)).facts["erased_rows"] == 1


def test_a_plan_of_an_erasure_that_died_goes_on(numbers: LanceDataset, monkeypatch: pytest.MonkeyPatch) -> None:
    plan = stored(ERASE, numbers.uri)
    with monkeypatch.context() as patched:

        def die(*_: object) -> None:
            raise KeyboardInterrupt

        patched.setattr(erasing._Erasing, "_remove_holders", die)
        with pytest.raises(KeyboardInterrupt):
            execute_plan(plan, dataset(numbers.uri))
    assert len(retained(numbers.uri)) > 3, "versions of the erasure itself hold the row, too"
    assert execute_plan(plan, dataset(numbers.uri)).facts["is_proven"]


def test_a_plan_without_what_it_promised_is_refused(numbers: LanceDataset) -> None:
    plan = make_plan(Cleanup(retain_versions=1), numbers)[0]
    bare = StoredPlan(plan.verb, plan.uri, plan.read_version, plan.version_id, plan.summary, plan.created_at)
    with pytest.raises(InvalidInput, match="which versions its clean-up may remove: make it again"):
        execute_plan(bare, dataset(numbers.uri))
