"""Replace rows by other rows in one version, beside concurrent transactions."""

from __future__ import annotations

import threading
import uuid
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, TypeVar

import pyarrow as pa
import pytest

import lance_ops
from lance_ops.changing.row_replacement import replace_rows
from lance_ops.errors import CommitStateUnknown, IncompatibleTransaction, SchemaMismatch, TooManyConcurrentWriters
from lance_ops.runners import InThreads
from lance_ops.snapshot.snapshot import Snapshot
from lance_ops.writing.fragment_writer import write_fragments

T = TypeVar("T")
R = TypeVar("R")


def rows(day: int, *ids: int) -> pa.Table:
    return pa.table({"day": pa.array([day] * len(ids), pa.int64()), "id": pa.array(ids, pa.int64())})


def replaced(snapshot: Snapshot, day: int, *ids: int) -> Snapshot:
    return replace_rows(snapshot, "day", pa.array([day]), rows(day, *ids), InThreads(2))


class Meanwhile:
    """A runner that calls the next of some concurrent actions after it has run the tasks, before the commit."""

    def __init__(self, *others: Callable[[], object]) -> None:
        self.others = list(others)
        self.calls = 0

    def map(self, function: Callable[[T], R], tasks: Sequence[T], *others: Any) -> list[R]:
        found = [function(task) for task in tasks]
        self.calls += 1
        if self.others:
            self.others.pop(0)()
        return found


def found(dataset: Any) -> list[tuple[int, int]]:
    columns = dataset.to_table(columns=["day", "id"]).to_pydict()
    return sorted(zip(columns["day"], columns["id"], strict=True))


def files(uri: str) -> set[Path]:
    return {path for path in Path(uri).rglob("*") if path.is_file()}


@pytest.fixture(params=[False, True], ids=["addresses", "stable row ids"])
def dataset(request: pytest.FixtureRequest, dataset_uri: str) -> lance_ops.LanceDataset:
    """Rows of two days in three fragments, one of which has rows of both days."""
    both = pa.concat_tables([rows(1, 0, 1, 2), rows(2, 3, 4, 5)])
    return lance_ops.write_dataset(both, dataset_uri, max_rows_per_file=2, enable_stable_row_ids=request.param)


@pytest.mark.interop
def test_both_libraries_find_new_and_kept_rows_by_an_index(
    dataset: lance_ops.LanceDataset,
) -> None:
    lance = pytest.importorskip("lance", reason="pylance, the reference implementation, is not installed")
    dataset.create_scalar_index("id", "BTREE")
    before = lance_ops.dataset(dataset.uri)

    made = replaced(before.snapshot, 1, 2, 7)

    assert made.version == before.version + 1
    for library in (lance_ops, lance):
        after = library.dataset(dataset.uri)
        after.validate()
        assert found(after) == [(1, 2), (1, 7), (2, 3), (2, 4), (2, 5)]
        for key, day in ((0, []), (2, [1]), (3, [2]), (7, [1])):
            assert "ScalarIndexQuery" in after.scanner(filter=f"id = {key}").explain_plan()
            assert after.to_table(filter=f"id = {key}")["day"].to_pylist() == day
        after.optimize.compact_files()
        assert found(library.dataset(dataset.uri)) == [(1, 2), (1, 7), (2, 3), (2, 4), (2, 5)]
    if dataset.has_stable_row_ids:
        kept = before.to_table(filter="day = 2", columns=["id"], with_row_id=True)
        assert lance_ops.dataset(dataset.uri).to_table(filter="day = 2", columns=["id"], with_row_id=True) == kept


@pytest.mark.parametrize(
    ("days", "new", "left"),
    [
        ([3], rows(3, 9), 7),
        ([1], rows(1), 3),
        ([1, 2], rows(3, 9), 1),
    ],
    ids=["nothing goes", "nothing comes", "all go"],
)
def test_replacement_may_only_add_or_only_delete_rows(
    dataset: lance_ops.LanceDataset, days: list[int], new: pa.Table, left: int
) -> None:
    made = replace_rows(dataset.snapshot, "day", pa.array(days), new, InThreads(2))
    assert (made.version, lance_ops.dataset(dataset.uri).count_rows()) == (2, left)


def test_replacement_of_no_rows_by_no_rows_commits_nothing(dataset: lance_ops.LanceDataset) -> None:
    before = files(dataset.uri)
    assert replaced(dataset.snapshot, 3) is dataset.snapshot
    assert files(dataset.uri) == before


def test_rows_of_another_schema_raise_and_leave_no_file(dataset: lance_ops.LanceDataset) -> None:
    before = files(dataset.uri)
    with pytest.raises(SchemaMismatch, match="id"):
        replace_rows(dataset.snapshot, "day", pa.array([1]), pa.table({"day": [1], "id": ["x"]}), InThreads(2))
    assert files(dataset.uri) == before and lance_ops.dataset(dataset.uri).version == 1


def test_concurrent_changes_of_other_rows_stay(dataset: lance_ops.LanceDataset) -> None:
    stale = dataset.snapshot
    other = lance_ops.dataset(dataset.uri)
    other.delete("id = 3")
    other.insert(rows(2, 6))
    assert replaced(stale, 1, 7).version == 4
    assert found(lance_ops.dataset(dataset.uri)) == [(1, 7), (2, 4), (2, 5), (2, 6)]


@pytest.mark.parametrize("day", [1, 3], ids=["with rows to replace", "without rows to replace"])
@pytest.mark.parametrize("compacts", [False, True], ids=["not compacted", "compacted"])
def test_rows_of_a_concurrent_replacement_are_replaced_and_ours_are_written_once(
    dataset: lance_ops.LanceDataset, monkeypatch: pytest.MonkeyPatch, day: int, compacts: bool
) -> None:
    def other(*ids: int) -> None:
        replaced(lance_ops.dataset(dataset.uri).snapshot, day, *ids)
        if compacts:
            lance_ops.dataset(dataset.uri).optimize.compact_files()

    writes: list[object] = []

    def counted(*args: Any, **kwargs: Any) -> Any:
        written = write_fragments(*args, **kwargs)
        writes.extend(written.fragments)
        return written

    monkeypatch.setattr("lance_ops.changing.row_replacement.write_fragments", counted)
    runner = Meanwhile(lambda: other(10, 11), lambda: other(12))
    made = replace_rows(dataset.snapshot, "day", pa.array([day]), rows(day, 20, 21), runner)

    assert runner.calls == 3 and len(writes) == 3
    after = lance_ops.dataset(dataset.uri)
    after.validate()
    assert made.version == after.version
    kept = {1: [(2, 3), (2, 4), (2, 5)], 3: [(1, 0), (1, 1), (1, 2), (2, 3), (2, 4), (2, 5)]}
    assert found(after) == sorted([*kept[day], (day, 20), (day, 21)])


def test_concurrent_replacements_that_share_one_value_run_one_after_the_other(dataset: lance_ops.LanceDataset) -> None:
    def other() -> None:
        both = pa.concat_tables([rows(4, 10), rows(5, 11)])
        replace_rows(lance_ops.dataset(dataset.uri).snapshot, "day", pa.array([4, 5]), both, InThreads(2))

    runner = Meanwhile(other)
    replace_rows(dataset.snapshot, "day", pa.array([3, 4]), pa.concat_tables([rows(3, 20), rows(4, 21)]), runner)
    assert runner.calls == 2
    assert [row for row in found(lance_ops.dataset(dataset.uri)) if row[0] > 2] == [(3, 20), (4, 21), (5, 11)]


@pytest.mark.parametrize("appends", [False, True], ids=["replaced", "appended"])
def test_concurrent_replacement_of_other_values_and_append_do_not_conflict(
    dataset: lance_ops.LanceDataset, appends: bool
) -> None:
    def other() -> None:
        there = lance_ops.dataset(dataset.uri)
        if appends:
            there.insert(rows(3, 10))
        else:
            replaced(there.snapshot, 4, 10)

    runner = Meanwhile(other)
    made = replace_rows(dataset.snapshot, "day", pa.array([3]), rows(3, 20), runner)
    assert (runner.calls, made.version) == (1, 3)
    assert [row for row in found(lance_ops.dataset(dataset.uri)) if row[1] > 5] == sorted(
        [(3 if appends else 4, 10), (3, 20)]
    )


@pytest.mark.parametrize("same", [True, False], ids=["of one value", "of others"])
@pytest.mark.parametrize("in_memory", [False, True], ids=["on disk", "in memory"])
def test_three_concurrent_replacements_leave_the_rows_of_one_for_each_value(
    dataset_uri: str, same: bool, in_memory: bool
) -> None:
    uri = f"memory://{uuid.uuid4().hex}" if in_memory else dataset_uri
    lance_ops.write_dataset(rows(0), uri)
    together = threading.Barrier(3, timeout=60)

    def replace(writer: int) -> tuple[int, list[tuple[int, int]]]:
        snapshot = Snapshot.open(uri)
        day, ids = (0 if same else writer), (writer * 10, writer * 10 + 1)
        together.wait()
        return replaced(snapshot, day, *ids).version, [(day, key) for key in ids]

    with ThreadPoolExecutor(3) as writers:
        made = sorted(writers.map(replace, range(3)))
    assert [version for version, _ in made] == [2, 3, 4]
    left = made[-1][1] if same else sorted(row for _, written in made for row in written)
    assert found(lance_ops.dataset(uri)) == left


def test_replacement_after_a_concurrent_delete_searches_the_rows_again(dataset: lance_ops.LanceDataset) -> None:
    stale = dataset.snapshot
    lance_ops.dataset(dataset.uri).delete("id = 2")
    assert replaced(stale, 1, 7).version == 3
    assert found(lance_ops.dataset(dataset.uri)) == [(1, 7), (2, 3), (2, 4), (2, 5)]


@pytest.mark.parametrize("day", [1, 3])
def test_replacement_that_uses_up_its_retries_leaves_no_file(dataset: lance_ops.LanceDataset, day: int) -> None:
    left: list[set[Path]] = []

    def other(*ids: int) -> None:
        ours = files(dataset.uri) - left[-1] if left else set()
        replaced(lance_ops.dataset(dataset.uri).snapshot, day, *ids)
        left.append(files(dataset.uri) - ours)

    runner = Meanwhile(lambda: other(10), lambda: other(11))
    with pytest.raises(TooManyConcurrentWriters, match=f"2 attempts.*both replace 'day={day}'"):
        replace_rows(dataset.snapshot, "day", pa.array([day]), rows(day, 20), runner, conflict_retries=1)
    assert files(dataset.uri) == left[-1]
    assert [row for row in found(lance_ops.dataset(dataset.uri)) if row[1] > 5] == [(day, 11)]


def test_unknown_commit_outcome_keeps_the_files_of_new_rows(
    dataset: lance_ops.LanceDataset, monkeypatch: pytest.MonkeyPatch
) -> None:
    def unknown(*args: object, **kwargs: object) -> Snapshot:
        raise CommitStateUnknown(str(uuid.uuid4()), 2, "no answer")

    before = files(dataset.uri)
    monkeypatch.setattr("lance_ops.changing.row_replacement.commit_operation", unknown)
    with pytest.raises(CommitStateUnknown):
        replaced(dataset.snapshot, 3, 20)
    assert len(files(dataset.uri) - before) == 1


def test_rows_are_written_again_after_a_concurrent_schema_change(dataset: lance_ops.LanceDataset) -> None:
    def other() -> None:
        there = lance_ops.dataset(dataset.uri)
        there.drop_columns(["id"])
        there.add_columns({"id": "day * 100", "twice": "day * 2"})

    runner = Meanwhile(lambda: replaced(dataset.snapshot, 1, 10), other)
    replace_rows(dataset.snapshot, "day", pa.array([1]), rows(1, 20), runner)
    after = lance_ops.dataset(dataset.uri)
    after.validate()
    assert after.to_table(filter="day = 1").to_pylist() == [{"day": 1, "id": 20, "twice": None}]
    assert runner.calls == 3
    named = {
        file.path
        for version in after.versions()
        for fragment in after.checkout_version(version["version"]).get_fragments()
        for file in fragment.data_files()
    }
    assert {path.name for path in Path(dataset.uri, "data").iterdir()} == named


def test_rows_for_a_dataset_do_not_go_to_another_one_in_its_place(dataset_uri: str) -> None:
    first = lance_ops.write_dataset(rows(1, 0), dataset_uri).snapshot

    def begin_another() -> None:
        lance_ops.LanceDataset.drop(dataset_uri, {})
        lance_ops.write_dataset(rows(2, 3), dataset_uri)

    runner = Meanwhile(lambda: replaced(first, 1, 10), begin_another)
    with pytest.raises(IncompatibleTransaction, match="removed, and another one was created in its place"):
        replace_rows(first, "day", pa.array([1]), rows(1, 20), runner)
    assert found(lance_ops.dataset(dataset_uri)) == [(2, 3)]
    assert len(list(Path(dataset_uri, "data").iterdir())) == 1
