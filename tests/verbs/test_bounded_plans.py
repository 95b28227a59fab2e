from __future__ import annotations

import os
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pytest

from lance_ops.api import LanceDataset, dataset, write_dataset
from lance_ops.core.errors import ErasureNotProven, InvalidInput, PlanOutdated
from lance_ops.maintenance.erasure import erasing, removal
from lance_ops.verbs import Cleanup, Erase, StoredPlan, Verb, do_now, execute_plan, make_plan

ERASE = Erase("x = 2", "request 12", remove_tags=True, rewrite_branches=True)
REMOVAL = removal.Removal, "remove_holders"


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
        (lambda data: data.insert(pa.table({"x": [2, 2]})), r"showed: 3 rows instead of 1; plan again"),
        (lambda data: data.create_branch("later", 1), r"showed: 2 rows instead of 1; 1 more versions \(later/1\)"),
        (lambda data: data.tags.create("audit", 2), r"showed: 1 more tags \(audit\); plan again"),
    ],
    ids=["rows", "branch", "tag"],
)
def test_an_erasure_that_has_grown_is_refused_before_it_changes_anything(
    numbers: LanceDataset, grow: Callable[[LanceDataset], object], message: str
) -> None:
    uri = numbers.uri
    plan = stored(ERASE, uri)
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


def test_an_erasure_takes_the_versions_that_were_committed_after_its_preview(numbers: LanceDataset) -> None:
    plan = stored(ERASE, numbers.uri)
    for value in (5, 6):
        dataset(numbers.uri).insert(pa.table({"x": [value]}))
    done = execute_plan(plan, dataset(numbers.uri))
    assert (done.facts["erased_rows"], done.facts["is_proven"]) == (1, True)
    assert not {3, 4, 5}.intersection(retained(numbers.uri)), "versions 4 and 5 name the file of the row, too"
    assert sorted(dataset(numbers.uri).to_table()["x"].to_pylist()) == [0, 1, 3, 5, 6, 8, 9]


def test_an_erasure_is_refused_for_an_older_version_that_its_preview_did_not_show(numbers: LanceDataset) -> None:
    plan = stored(ERASE, numbers.uri)
    shown = replace(plan, extent={**plan.extent, "versions": ("main/2", "main/3")})
    with pytest.raises(PlanOutdated, match=r"showed: 1 more versions \(main/1\); plan again"):
        execute_plan(shown, dataset(numbers.uri))


@pytest.mark.parametrize(("place", "step"), [REMOVAL, (erasing, "prove")], ids=["removal", "proof"])
def test_a_plan_of_an_erasure_that_died_goes_on(
    numbers: LanceDataset, monkeypatch: pytest.MonkeyPatch, place: object, step: str
) -> None:
    plan = stored(ERASE, numbers.uri)
    die_at(place, step, plan, monkeypatch)
    assert (plan.read_version in retained(numbers.uri)) == (place is removal.Removal)
    assert execute_plan(plan, dataset(numbers.uri)).facts["is_proven"]


@pytest.mark.parametrize(
    ("grow", "message"),
    [
        (lambda data: data.insert(pa.table({"x": [2, 2]})), "showed: 2 rows instead of 1; plan again"),
        (lambda data: data.tags.create("audit", 2), r"showed: 1 more tags \(audit\); plan again"),
    ],
    ids=["rows", "tag"],
)
def test_an_erasure_that_died_and_has_grown_is_refused(
    numbers: LanceDataset, monkeypatch: pytest.MonkeyPatch, grow: Callable[[LanceDataset], object], message: str
) -> None:
    plan = stored(ERASE, numbers.uri)
    die_at(*REMOVAL, plan, monkeypatch)
    grow(dataset(numbers.uri))
    with pytest.raises(PlanOutdated, match=message):
        execute_plan(plan, dataset(numbers.uri))
    assert execute_plan(stored(ERASE, numbers.uri), dataset(numbers.uri)).facts["is_proven"]


def test_the_plan_of_an_unproven_erasure_proves_it_later(numbers: LanceDataset) -> None:
    plan = stored(ERASE, numbers.uri)
    torn = Path(numbers.uri, "data", f"{'0' * 32}.lance")
    torn.write_bytes(b"x")
    with pytest.raises(ErasureNotProven) as unproven:
        execute_plan(plan, dataset(numbers.uri))
    assert unproven.value.retry_may_help and plan.read_version not in retained(numbers.uri)
    torn.unlink()  # its writer gave up
    assert execute_plan(plan, dataset(numbers.uri)).facts["is_proven"]


def test_a_plan_is_executed_after_the_erasure_of_another_subject_removed_its_version(numbers: LanceDataset) -> None:
    erase = stored(replace(ERASE, predicate="x = 1"), numbers.uri)
    clean_up = stored(Cleanup(retain_versions=1), numbers.uri)
    do_now(ERASE, dataset(numbers.uri))
    assert erase.read_version not in retained(numbers.uri)
    assert execute_plan(erase, dataset(numbers.uri)).facts["erased_rows"] == 1
    assert execute_plan(clean_up, dataset(numbers.uri)).facts["old_versions"] == 0


def test_a_plan_whose_version_a_clean_up_removed_is_refused(numbers: LanceDataset) -> None:
    plan = stored(ERASE, numbers.uri)
    dataset(numbers.uri).insert(pa.table({"x": [5]}))
    do_now(Cleanup(retain_versions=1), dataset(numbers.uri))
    with pytest.raises(PlanOutdated, match="version 3 was cleaned up: plan again"):
        execute_plan(plan, dataset(numbers.uri))


def die_at(place: object, step: str, plan: StoredPlan, monkeypatch: pytest.MonkeyPatch) -> None:
    """Execute a plan of an erasure, and end it before a step."""

    def die(*_: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr(place, step, die)
        with pytest.raises(KeyboardInterrupt):
            execute_plan(plan, dataset(plan.uri))


def test_a_plan_without_what_it_promised_is_refused(numbers: LanceDataset) -> None:
    plan = make_plan(Cleanup(retain_versions=1), numbers)[0]
    bare = StoredPlan(plan.verb, plan.uri, plan.read_version, plan.version_id, plan.summary, plan.created_at)
    with pytest.raises(InvalidInput, match="which versions its clean-up may remove: make it again"):
        execute_plan(bare, dataset(numbers.uri))
