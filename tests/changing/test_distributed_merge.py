"""A merge by tasks gives what the merge of a source in memory gives, and no row comes back from a task."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from datetime import timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import lance_ops
from lance_ops.changing import delete_by_keys
from lance_ops.changing.merge_insert import MergeRequest, WhenMatched, merge_insert
from lance_ops.changing.merge_insert.by_tasks import (
    SourceRows,
    TaskSizes,
    distributed_merge,
    merge_parts,
    plan_distributed_merge,
    prepare_distributed_merge,
)
from lance_ops.committers import open_root
from lance_ops.core.predicate import parse_filter
from lance_ops.core.schema import Schema
from lance_ops.core.versions import FileVersion
from lance_ops.errors import InvalidInput, RetryableConflict, SchemaMismatch
from lance_ops.runners import InThreads, Job
from lance_ops.snapshot import Snapshot
from lance_ops.transactions import PendingFiles
from lance_ops.writing import create_dataset
from tests.pickling_runner import PicklingRunner

T = TypeVar("T")
R = TypeVar("R")

SHUFFLED = TaskSizes(rows_per_bucket=3, rows_per_part=4, fragments_per_part=2)
"""Sizes with which a few rows make several buckets and parts."""

CUT = TaskSizes(rows_per_bucket=3, rows_per_part=1)
"""Sizes with which a fragment of four rows is two parts of two rows."""

KEYS_STEP, JOIN_STEP, ROWS_STEP = (f"merge ({step}) into" for step in ("keys", "join", "rows"))

UPSERT = MergeRequest(("id",), WhenMatched.UPDATE, inserts=True)


def rows(keys: Sequence[int | None], value: int = 0) -> pa.Table:
    return pa.table(
        {
            "id": pa.array(keys, pa.int64()),
            "v": pa.array([value + (key or 0) for key in keys], pa.int64()),
            "s": pa.array([f"{value}-{key}" for key in keys], pa.string()),
        }
    )


def write(table: pa.Table, path: Path, **options: Any) -> Snapshot:
    return lance_ops.write_dataset(table, path, **{"max_rows_per_file": 4, **options}).snapshot


def listed(snapshot: Snapshot) -> list[str]:
    """Return the rows in an order that does not depend on how they were written."""
    return sorted(map(repr, lance_ops.dataset(snapshot.uri).to_table().to_pylist()))


def names(snapshot: Snapshot) -> list[Path]:
    return sorted(Path(snapshot.uri).rglob("*"))


@pytest.mark.parametrize("stable", [False, True], ids=["addresses", "stable ids"])
@pytest.mark.parametrize("sizes", [None, SHUFFLED], ids=["one bucket", "buckets"])
def test_an_upsert_by_tasks_leaves_only_its_version(tmp_path: Path, sizes: TaskSizes | None, stable: bool) -> None:
    target = write(rows([*range(10), None]), tmp_path / "t", enable_stable_row_ids=stable)
    source = write(rows([2, 20, 9, None, 21, 3], 100), tmp_path / "s")
    before = lance_ops.dataset(target.uri).to_table(with_row_id=True, filter="id IN (2, 3, 9)")
    runner = PicklingRunner()
    made, counts = distributed_merge(target, UPSERT, SourceRows.of(source), runner, sizes=sizes)
    assert (counts.inserted, counts.updated, counts.deleted, made.version) == (3, 3, 0, 2)
    assert listed(made) == listed_of(rows([0, 1, *range(4, 9), None]), rows([2, 3, 9], 100), rows([20, None, 21], 100))
    opened = lance_ops.dataset(target.uri)
    opened.validate()
    assert opened.verify().ok
    folders = [path for path in (tmp_path / "t" / "data").iterdir() if path.is_dir()]
    assert not folders
    steps = dict(runner.jobs)
    assert steps.keys() == {KEYS_STEP, JOIN_STEP, ROWS_STEP}
    if sizes is not None:
        assert steps[JOIN_STEP] == 2  # buckets
        assert steps[KEYS_STEP] == 2 + 3  # parts of the source, and of the target
    if stable:
        after = opened.to_table(with_row_id=True, filter="id IN (2, 3, 9)")
        pairs = [dict(zip(t["id"].to_pylist(), t["_rowid"].to_pylist(), strict=True)) for t in (before, after)]
        assert pairs[0] == pairs[1]


@pytest.mark.parametrize("rows_per_bucket", [1 << 20, 5], ids=["one bucket", "buckets"])
def test_large_fragments_of_both_sides_are_cut_into_ranges_of_rows(tmp_path: Path, rows_per_bucket: int) -> None:
    options = {"max_rows_per_file": 40, "enable_stable_row_ids": True}
    target = write(rows(range(40)), tmp_path / "t", **options)
    source = write(rows(range(30, 60), 100), tmp_path / "s", **options)
    for snapshot in (target, source):
        lance_ops.dataset(snapshot.uri).delete("id IN (3, 31, 44)")
    target, source = (lance_ops.dataset(snapshot.uri).snapshot for snapshot in (target, source))
    sizes = TaskSizes(rows_per_bucket=rows_per_bucket, rows_per_part=4)
    plan = plan_distributed_merge(target, UPSERT, SourceRows.of(source), sizes)
    assert [part.rows for part in plan.target_parts] == [range(first, first + 8) for first in range(0, 40, 8)]
    assert [part.rows for part in plan.source_parts] == [range(10), range(10, 20), range(20, 30)]
    runner = PicklingRunner()
    made, counts = distributed_merge(target, UPSERT, SourceRows.of(source), runner, sizes=sizes)
    assert (counts.updated, counts.inserted) == (9, 19)
    kept, updated = [*range(3), *range(4, 30)], [30, *range(32, 40)]
    assert listed(made) == listed_of(rows(kept), rows([*updated, *range(40, 44), *range(45, 60)], 100))
    assert dict(runner.jobs)[ROWS_STEP] == 1 + 3  # one deletion file, whatever the number of tasks that read
    opened = lance_ops.dataset(target.uri)
    found = opened.to_table(with_row_id=True, filter="id >= 30 AND id < 40")
    assert found["_rowid"].to_pylist() == found["id"].to_pylist() == updated
    assert opened.verify().ok


def test_a_very_large_side_has_larger_parts_and_not_more(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    target = write(rows(range(40)), tmp_path / "t", max_rows_per_file=1)
    monkeypatch.setattr(merge_parts, "_MOST_PARTS", 4)
    plan = plan_distributed_merge(target, UPSERT, SourceRows.of(target), TaskSizes(fragments_per_part=1))
    assert [len(part.fragment_ids) for part in plan.target_parts] == [11, 11, 11, 7]


def listed_of(*tables: pa.Table) -> list[str]:
    return sorted(map(repr, pa.concat_tables(tables).to_pylist()))


KEYS = st.none() | st.integers(0, 6)
PAIRS = st.lists(st.tuples(KEYS, st.sampled_from(["a", "b", None]), st.integers(0, 9)), max_size=9)


@settings(max_examples=60)
@given(
    target=PAIRS,
    source=PAIRS,
    on=st.sampled_from([("id",), ("id", "k"), ("k",)]),
    matched=st.sampled_from(list(WhenMatched)),
    condition=st.sampled_from([None, "source.v > target.v"]),
    inserts=st.booleans(),
    removes=st.sampled_from([None, "true", "v > 4"]),
    lacks=st.booleans(),
    sizes=st.sampled_from([None, SHUFFLED, CUT, TaskSizes(rows_per_part=1)]),
)
def test_a_merge_by_tasks_is_the_merge_in_memory(
    tmp_path_factory: pytest.TempPathFactory,
    target: list[tuple[Any, ...]],
    source: list[tuple[Any, ...]],
    on: tuple[str, ...],
    matched: WhenMatched,
    condition: str | None,
    inserts: bool,
    removes: str | None,
    lacks: bool,
    sizes: TaskSizes | None,
) -> None:
    request = MergeRequest(
        on,
        matched,
        condition if matched is WhenMatched.UPDATE else None,
        inserts,
        removes is not None,
        None if removes in (None, "true") else removes,
    )
    folder = tmp_path_factory.mktemp("merge")
    given_rows = table_of(source).drop_columns(["w"] if lacks else [])
    source_rows = write(given_rows, folder / "s", max_rows_per_file=3)
    both = [write(table_of(target), folder / name, max_rows_per_file=3) for name in ("memory", "tasks")]
    outcomes: list[Any] = []
    for place in both:
        try:
            if place is both[0]:
                outcomes.append(merge_insert(place, request, given_rows, InThreads())[1])
            else:
                outcomes.append(
                    distributed_merge(place, request, SourceRows.of(source_rows), InThreads(), sizes=sizes)[1]
                )
        except InvalidInput as error:
            outcomes.append(str(error).split(":")[0])
    assert outcomes[0] == outcomes[1]
    assert listed(both[0]) == listed(both[1])
    lance_ops.dataset(both[1].uri).validate()


def table_of(pairs: list[tuple[Any, ...]]) -> pa.Table:
    return pa.table(
        {
            "id": pa.array([row[0] for row in pairs], pa.int64()),
            "k": pa.array([row[1] for row in pairs], pa.string()),
            "v": pa.array([row[2] for row in pairs], pa.int64()),
            "w": pa.array([f"w{number}" for number in range(len(pairs))], pa.string()),
        }
    )


@pytest.mark.parametrize("sizes", [None, SHUFFLED], ids=["one bucket", "buckets"])
def test_two_source_rows_for_one_row_are_refused_by_name_before_any_file(
    tmp_path: Path, sizes: TaskSizes | None
) -> None:
    target = write(rows(range(10)), tmp_path / "t")
    source = write(rows([1, 50, 51, 52, 7, 53, 7, 54, 50], 100), tmp_path / "s")
    before = names(target)
    runner = PicklingRunner()
    with pytest.raises(InvalidInput, match="id = 7"):
        distributed_merge(target, UPSERT, SourceRows.of(source), runner, sizes=sizes)
    assert ROWS_STEP not in dict(runner.jobs)
    assert (names(target), lance_ops.dataset(target.uri).version) == (before, 1)
    failing = MergeRequest(("id",), WhenMatched.FAIL, inserts=True)
    with pytest.raises(InvalidInput, match="allows none: id = "):
        distributed_merge(target, failing, SourceRows.of(source), runner, sizes=sizes)
    assert names(target) == before


@pytest.mark.parametrize("sizes", [None, SHUFFLED], ids=["one bucket", "buckets"])
def test_floats_match_by_value_in_whatever_bucket(tmp_path: Path, sizes: TaskSizes | None) -> None:
    nan = math.copysign(math.nan, -1)
    keys = pa.array(np.array([0.0, math.nan, 1.5, 2.5]), pa.float64(), from_pandas=False)
    target = write(pa.table({"k": keys, "v": [1, 2, 3, 4]}), tmp_path / "t")
    given_keys = pa.array(np.array([-0.0, nan, 7.5, 8.5]), pa.float64(), from_pandas=False)
    source = write(pa.table({"k": given_keys, "v": [10, 20, 30, 40]}), tmp_path / "s")
    request = MergeRequest(("k",), WhenMatched.UPDATE, inserts=True)
    made, counts = distributed_merge(target, request, SourceRows.of(source), InThreads(), sizes=sizes)
    assert (counts.updated, counts.inserted) == (2, 2)
    assert sorted(lance_ops.dataset(made.uri).to_table()["v"].to_pylist()) == [3, 4, 10, 20, 30, 40]


@pytest.mark.parametrize("stable", [False, True], ids=["addresses", "stable ids"])
@pytest.mark.parametrize("sizes", [None, SHUFFLED], ids=["one bucket", "buckets"])
def test_columns_are_rewritten_in_place_by_tasks(tmp_path: Path, sizes: TaskSizes | None, stable: bool) -> None:
    target = write(rows(range(12)), tmp_path / "t", enable_stable_row_ids=stable)
    source = write(rows([11, 1, 2, 40], 100).select(["id", "v"]), tmp_path / "s", max_rows_per_file=2)
    request = MergeRequest(("id",), WhenMatched.UPDATE, in_place=True)
    made, counts = distributed_merge(target, request, SourceRows.of(source), PicklingRunner(), sizes=sizes)
    assert (counts.updated, len(made.fragments)) == (3, 3)
    found = lance_ops.dataset(made.uri).to_table()
    assert found["v"].to_pylist() == [0, 101, 102, *range(3, 11), 111]
    assert found["s"].to_pylist() == rows(range(12))["s"].to_pylist()
    lance_ops.dataset(made.uri).validate()


def test_nested_keys_and_structs_that_lack_fields_are_merged_by_tasks(tmp_path: Path) -> None:
    def place(a: int, b: str, c: str | None = None) -> dict[str, Any]:
        return {"a": a, "b": b} if c is None else {"a": a, "b": b, "c": c}

    table = pa.table({"k": [place(1, "x", "1x"), place(1, "y", "1y"), place(2, "x", "2x")], "v": [1, 2, 3]})
    target = write(table, tmp_path / "t", max_rows_per_file=1)
    source = write(pa.table({"k": [place(1, "y"), place(3, "x"), place(2, "x")], "v": [20, 30, 40]}), tmp_path / "s")
    request = MergeRequest(("k.a", "k.b"), WhenMatched.UPDATE, inserts=True)
    made, _ = distributed_merge(target, request, SourceRows.of(source), PicklingRunner(), sizes=SHUFFLED)
    found = sorted(lance_ops.dataset(made.uri).to_table().to_pylist(), key=lambda row: row["v"])
    assert found == [
        {"k": place(1, "x", "1x"), "v": 1},
        {"k": place(1, "y", "1y"), "v": 20},
        {"k": {"a": 3, "b": "x", "c": None}, "v": 30},
        {"k": place(2, "x", "2x"), "v": 40},
    ]


def test_only_the_rows_and_columns_that_the_source_names_are_merged(tmp_path: Path) -> None:
    target = write(rows(range(8)), tmp_path / "t")
    source = write(rows(range(4, 14), 100), tmp_path / "s")
    where = parse_filter("id % 2 = 0", source.schema.to_arrow_storage())
    part = SourceRows.of(source, ["id", "v"], where)
    made, counts = distributed_merge(target, UPSERT, part, PicklingRunner(), sizes=SHUFFLED)
    assert (counts.updated, counts.inserted) == (2, 3)
    found = {row["id"]: (row["v"], row["s"]) for row in lance_ops.dataset(made.uri).to_table().to_pylist()}
    assert found[4] == (104, "0-4")
    assert found[12] == (112, None)
    assert sorted(found) == [*range(8), 8, 10, 12]


def test_values_that_do_not_fit_are_named_and_leave_no_file(tmp_path: Path) -> None:
    target = write(rows(range(4)), tmp_path / "t")
    source = write(rows([1, 9]).append_column("z", pa.array([1, 2])), tmp_path / "s")
    other = write(pa.table({"id": [1, 9], "v": ["one", "nine"]}), tmp_path / "o")
    before = names(target)
    for wrong, name in ((source, "'z'"), (other, "'v'")):
        with pytest.raises(SchemaMismatch, match=name):
            distributed_merge(target, UPSERT, SourceRows.of(wrong), InThreads())
    late = write(pa.table({"id": [2.0, 9.5]}), tmp_path / "l")
    with pytest.raises(SchemaMismatch, match="'id'"):
        distributed_merge(target, MergeRequest(("id",), WhenMatched.DELETE), SourceRows.of(late), InThreads())
    assert names(target) == before


def test_few_keys_are_found_by_the_index_in_one_task(tmp_path: Path) -> None:
    dataset = lance_ops.write_dataset(rows(range(1000)), tmp_path / "t", max_rows_per_file=300)
    dataset.create_scalar_index("id", "BTREE")
    dataset = lance_ops.write_dataset(rows(range(1000, 1100)), dataset, mode="append")
    source = SourceRows.of(write(rows([5, 305, 1005, 5000], 10_000), tmp_path / "s"))
    assert plan_distributed_merge(dataset.snapshot, UPSERT, source).uses_index
    assert not plan_distributed_merge(
        dataset.snapshot, MergeRequest(("id",), inserts=True, use_index=False), source
    ).uses_index
    runner = PicklingRunner()
    made, counts = distributed_merge(dataset.snapshot, UPSERT, source, runner)
    assert (counts.updated, counts.inserted, dict(runner.jobs)[JOIN_STEP]) == (3, 1, 1)
    assert lance_ops.dataset(made.uri).count_rows("v >= 10000") == 4


def test_what_tasks_return_does_not_grow_with_the_rows(tmp_path: Path) -> None:
    largest = []
    for number in (2_000, 32_000):
        options = {"max_rows_per_file": 1 << 20}
        target = write(rows(range(number)), tmp_path / f"t{number}", **options)
        source = write(rows(range(number // 2, number + number // 2), 1), tmp_path / f"s{number}", **options)
        runner = PicklingRunner()
        sizes = TaskSizes(rows_per_bucket=number // 4)
        _, counts = distributed_merge(target, UPSERT, SourceRows.of(source), runner, sizes=sizes)
        assert (counts.updated, counts.inserted) == (number // 2, number // 2)
        assert dict(runner.jobs)[JOIN_STEP] == 4
        largest.append(max(runner.outcome_bytes))
    assert largest[1] < largest[0] + 256


def test_a_concurrent_change_of_the_same_rows_is_a_conflict_and_leaves_no_file(tmp_path: Path) -> None:
    target = write(rows(range(8)), tmp_path / "t")
    source = SourceRows.of(write(rows([1, 9], 100), tmp_path / "s"))
    lance_ops.dataset(target.uri).delete("id = 1")
    before = names(target)
    with pytest.raises(RetryableConflict):
        distributed_merge(target, UPSERT, source, InThreads())
    assert names(target) == before


def test_concurrent_inserts_of_one_primary_key_conflict(tmp_path: Path) -> None:
    plain = Schema.from_arrow(pa.schema([pa.field("id", pa.int64(), False), ("v", pa.int64())]))
    schema = Schema((replace(plain.fields[0], unenforced_primary_key=True), plain.fields[1]))
    empty = create_dataset(open_root(str(tmp_path / "t")), schema, PendingFiles(), FileVersion.V2_2)
    target = write(pa.table({"id": range(8), "v": range(8)}, schema=plain.to_arrow()), tmp_path / "t", mode="append")
    assert empty.schema == target.schema
    first = SourceRows.of(write(rows([1, 77], 100).select(["id", "v"]), tmp_path / "a"))
    again = SourceRows.of(write(rows([77, 78], 200).select(["id", "v"]), tmp_path / "b"))
    other = SourceRows.of(write(rows([80, 81], 200).select(["id", "v"]), tmp_path / "c"))
    request = MergeRequest((), WhenMatched.UPDATE, inserts=True)
    distributed_merge(target, request, first, InThreads(), sizes=SHUFFLED)
    with pytest.raises(RetryableConflict):
        distributed_merge(target, request, again, InThreads(), sizes=SHUFFLED)
    made, _ = distributed_merge(target, request, other, InThreads(), sizes=SHUFFLED)
    assert sorted(lance_ops.dataset(made.uri).to_table()["id"].to_pylist()) == [*range(8), 77, 80, 81]


def test_files_of_a_merge_that_is_prepared_and_abandoned_are_gone(tmp_path: Path) -> None:
    target = write(rows(range(8)), tmp_path / "t")
    source = SourceRows.of(write(rows([1, 9], 100), tmp_path / "s"))
    before = names(target)
    prepared = prepare_distributed_merge(plan_distributed_merge(target, UPSERT, source), InThreads())
    assert prepared.pending.files
    prepared.pending.abandon()
    assert [path for path in names(target) if path.is_file()] == [path for path in before if path.is_file()]


@dataclass
class FailingAtLast:
    """Runs the tasks of a step, and fails instead of the last one of the step that is named."""

    step: str

    def map(
        self,
        function: Callable[[T], R],
        tasks: Sequence[T],
        job: Job | None = None,
        discard: Callable[[R], None] | None = None,
    ) -> list[R]:
        def run(numbered: tuple[int, T]) -> R:
            if function.__name__ == self.step and numbered[0] == len(tasks) - 1:
                raise OSError("the disk is full")
            return function(numbered[1])

        return InThreads(1).map(run, list(enumerate(tasks)), job, discard)


@pytest.mark.parametrize("step", ["shuffle_keys", "join_keys", "write_changes"])
def test_a_task_that_fails_leaves_the_dataset_as_before(tmp_path: Path, step: str) -> None:
    target = write(rows(range(8)), tmp_path / "t")
    source = SourceRows.of(write(rows([1, 9, 5, 10, 11], 100), tmp_path / "s"))
    before = [path for path in names(target) if path.is_file()]
    with pytest.raises(OSError, match="disk is full"):
        distributed_merge(target, UPSERT, source, FailingAtLast(step), sizes=SHUFFLED)
    assert [path for path in names(target) if path.is_file()] == before
    assert lance_ops.dataset(target.uri).version == 1


@pytest.mark.parametrize("distributed", [False, True], ids=["in memory", "by tasks"])
def test_rows_are_deleted_by_keys_that_may_repeat(tmp_path: Path, distributed: bool) -> None:
    target = write(rows([*range(12), None]), tmp_path / "t")
    keys = pa.table({"id": pa.array([3, 3, None, 8, 9, 10, 11, 99], pa.int64())})
    given_keys = SourceRows.of(write(keys, tmp_path / "k")) if distributed else keys
    made, number = delete_by_keys(target, ("id",), given_keys, PicklingRunner())
    assert (number, made.version) == (5, 2)
    assert lance_ops.dataset(target.uri).to_table()["id"].to_pylist() == [0, 1, 2, 4, 5, 6, 7, None]
    transaction = lance_ops.dataset(target.uri).read_transaction(2)
    assert transaction is not None
    assert isinstance(transaction.operation, lance_ops.LanceOperation.Delete)
    again, none = delete_by_keys(made, ("id",), given_keys, PicklingRunner())
    assert (none, again.version) == (0, 2)


@dataclass
class RunningTwice:
    """Runs every task twice, as a cluster does that lost the first outcome, and returns the second one."""

    def map(
        self,
        function: Callable[[T], R],
        tasks: Sequence[T],
        job: Job | None = None,
        discard: Callable[[R], None] | None = None,
    ) -> list[R]:
        def run(task: T) -> R:
            function(task)
            return function(task)

        return InThreads(1).map(run, tasks, job, discard)


def test_tasks_that_run_twice_change_the_table_once_and_clean_up_finds_their_files(tmp_path: Path) -> None:
    target = write(rows(range(8)), tmp_path / "t")
    source = SourceRows.of(write(rows([1, 9, 5, 10, 11], 100), tmp_path / "s"))
    made, counts = distributed_merge(target, UPSERT, source, RunningTwice(), sizes=SHUFFLED)
    assert (counts.inserted, counts.updated) == (3, 2)
    assert listed(made) == listed_of(rows([0, 2, 3, 4, 6, 7]), rows([1, 5, 9, 10, 11], 100))
    new = sum(fragment.id >= len(target.fragments) for fragment in made.fragments)
    deletions = sum(fragment.deletion_file is not None for fragment in made.fragments)
    stats = lance_ops.dataset(target.uri).cleanup_old_versions(timedelta(days=1), delete_unverified=True)
    assert (stats.data_files_removed, stats.deletion_files_removed) == (new, deletions)
    assert listed(made) == listed(lance_ops.dataset(target.uri).snapshot)


@pytest.mark.parametrize(
    "keys",
    [
        pa.array([1, 2, 3], pa.date32()),
        pa.array([1, 2, 3], pa.timestamp("us", "UTC")),
        pa.array([Decimal("1.10"), Decimal("2.20"), Decimal("3.30")]),
        pa.array([1, 2, 2**64 - 1], pa.uint64()),
        pa.array([-1, 0, 1], pa.int8()),
        pa.array([b"a", b"", b"c"], pa.binary()),
        pa.array([b"aa", b"bb", b"cc"], pa.binary(2)),
        pa.array(["a", "ä", ""], pa.large_string()),
        pa.array(["a", "b", "c"]).dictionary_encode(),
    ],
    ids=lambda keys: str(keys.type),
)
def test_keys_of_every_kind_find_each_other_in_buckets(tmp_path: Path, keys: pa.Array) -> None:
    target = write(pa.table({"k": keys.slice(0, 2), "v": [1, 2]}), tmp_path / "t")
    source = write(pa.table({"k": keys.slice(1), "v": [20, 30]}), tmp_path / "s")
    request = MergeRequest(("k",), WhenMatched.UPDATE, inserts=True)
    one_each = TaskSizes(rows_per_bucket=1)
    made, counts = distributed_merge(target, request, SourceRows.of(source), PicklingRunner(), sizes=one_each)
    assert (counts.updated, counts.inserted) == (1, 1)
    assert sorted(lance_ops.dataset(made.uri).to_table()["v"].to_pylist()) == [1, 20, 30]
