"""Indices built, extended and remapped by tasks: the same files as one process writes, and nothing left behind."""

from __future__ import annotations

import pickle
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from datetime import timedelta
from typing import Any, TypeVar

import numpy as np
import pyarrow as pa
import pytest

import lance_ops
from lance_ops.core.errors import CorruptFile
from lance_ops.indices.btree.index import BTreeIndex
from lance_ops.maintenance.compaction.compacting import compact_files
from lance_ops.maintenance.compaction.compaction_plan import CompactionOptions
from lance_ops.maintenance.indexing import task_build
from lance_ops.maintenance.indexing.reindex import create_scalar_index, optimize_indices
from lance_ops.maintenance.indexing.remap_tasks import remap_segment
from lance_ops.maintenance.indexing.task_shares import IndexWork, TaskSizes, cut_entries, cut_fragments
from lance_ops.reading import open_index
from lance_ops.runners import InThreads, Job
from lance_ops.snapshot import Snapshot
from lance_ops.store import Store
from lance_ops.table import IndexFile, IndexMetadata
from lance_ops.table.rows import NewFragment, OldFragment, RewrittenGroup, RowAddressMap

T = TypeVar("T")
R = TypeVar("R")

SMALL = TaskSizes(least_bytes=1, task_bytes=64 << 10)
ROWS = 30_000


@dataclass
class Elsewhere:
    """Runs tasks as another process would: functions, tasks and outcomes are pickled. Counts what travels."""

    function_names: list[str] = field(default_factory=list)
    num_tasks: list[int] = field(default_factory=list)
    sent_bytes: int = 0
    returned_bytes: int = 0

    def map(
        self,
        function: Callable[[T], R],
        tasks: Sequence[T],
        job: Job | None = None,
        discard: Callable[[R], None] | None = None,
    ) -> list[R]:
        assert job is not None and len(job.weights) == len(tasks) and discard is not None
        self.function_names.append(function.__name__)
        self.num_tasks.append(len(tasks))

        def run(task: bytes) -> bytes:
            self.sent_bytes += len(task)
            called, argument = pickle.loads(task)
            return pickle.dumps(called(argument))

        outcomes = InThreads(2).map(run, [pickle.dumps((function, task)) for task in tasks])
        self.returned_bytes += sum(map(len, outcomes))
        return [pickle.loads(outcome) for outcome in outcomes]


def rows(start: int, stop: int) -> pa.Table:
    ids = np.arange(start, stop)
    keys = (ids * 7919) % 5003
    floats = np.where(ids % 13 == 0, np.nan, keys * -0.5)
    return pa.table(
        {
            "id": ids,
            "key": pa.array(keys, pa.int64(), mask=ids % 11 == 0),
            "float": pa.array(floats, pa.float64(), mask=ids % 17 == 0),
            "text": pa.array([f"name {key % 997}" for key in keys.tolist()], mask=ids % 19 == 0),
            "same": pa.array(np.zeros(len(ids), np.int32)),
            "nested": pa.StructArray.from_arrays([pa.array(keys)], ["key"], mask=pa.array(ids % 7 == 0)),
        }
    )


@pytest.fixture
def table(dataset_uri: str) -> lance_ops.LanceDataset:
    """A dataset of seven fragments, with deleted rows."""
    made = lance_ops.write_dataset(rows(0, ROWS), dataset_uri, max_rows_per_file=4500)
    made.delete("id % 23 = 0")
    return made


def segment_of(snapshot: Snapshot, name: str) -> IndexMetadata:
    [segment] = [index for index in snapshot.manifest.indices if index.name == name]
    return segment


def contents(snapshot: Snapshot, name: str) -> tuple[bytes, list[Any]]:
    """The bytes of page_lookup, and all rows of page_data."""
    segment = segment_of(snapshot, name)
    index = open_index(snapshot, segment)
    assert isinstance(index, BTreeIndex)
    stored = snapshot.store.get(f"{segment.directory}/page_lookup.lance").to_pybytes()
    return stored, [repr(row) for batch in index.entries() for row in batch.to_pylist()]


def ids(dataset: lance_ops.LanceDataset, predicate: str, **options: Any) -> list[int]:
    found: list[int] = dataset.to_table(["id"], filter=predicate, **options)["id"].to_pylist()
    return found


def check_nothing_is_left(snapshot: Snapshot) -> None:
    named = {
        path
        for version in lance_ops.dataset(snapshot.uri).versions()
        for index in lance_ops.dataset(snapshot.uri, version["version"]).snapshot.manifest.indices
        for path in index.paths()
    }
    assert {info.path for info in snapshot.store.list("_indices")} == named


@pytest.mark.parametrize("column", ["key", "float", "text", "same", "nested.key"])
def test_tasks_build_what_one_process_builds(table: lance_ops.LanceDataset, column: str) -> None:
    runner = Elsewhere()
    alone = create_scalar_index(table.snapshot, column, "BTREE", "alone")
    built = create_scalar_index(alone, column, "BTREE", "shared", runner=runner, sizes=SMALL)

    assert runner.function_names == ["execute", "execute_merge"]
    assert min(runner.num_tasks) > 3
    assert contents(built, "shared") == contents(built, "alone")
    assert segment_of(built, "shared").fragment_bitmap == segment_of(built, "alone").fragment_bitmap
    check_nothing_is_left(built)


def test_only_names_and_one_key_a_page_travel(table: lance_ops.LanceDataset) -> None:
    runner = Elsewhere()
    create_scalar_index(table.snapshot, "text", "BTREE", runner=runner, sizes=SMALL)
    tasks = sum(runner.num_tasks)
    assert runner.sent_bytes < 3000 * tasks
    assert runner.returned_bytes < 3000 * tasks  # the column has some 300 kB


def test_little_work_stays_in_this_process(table: lance_ops.LanceDataset) -> None:
    runner = Elsewhere()
    table.create_scalar_index("key", "BTREE", runner=runner)
    lance_ops.write_dataset(rows(ROWS, ROWS + 100), table, mode="append")
    table = lance_ops.dataset(table.uri)
    table.optimize.optimize_indices(runner=runner)
    assert runner.num_tasks == []
    assert table.index_statistics("key_idx")["num_unindexed_rows"] == 0


def test_tasks_extend_an_index_as_one_process_does(table: lance_ops.LanceDataset) -> None:
    for name in ("alone", "shared"):
        table.create_scalar_index("key", "BTREE", name)
    lance_ops.write_dataset(rows(ROWS, ROWS + 9000), table, mode="append", max_rows_per_file=4000)
    table = lance_ops.dataset(table.uri)
    table.update({"key": "77"}, where="id = 5")  # its old entry is stale
    runner = Elsewhere()
    extended = optimize_indices(table.snapshot, ["shared"], runner=runner, sizes=SMALL)
    extended = optimize_indices(extended, ["alone"])
    assert runner.function_names == ["execute", "execute_merge"]
    assert contents(extended, "shared") == contents(extended, "alone")
    check_nothing_is_left(extended)
    newest = lance_ops.dataset(table.uri)
    assert ids(newest, "key = 77") == ids(newest, "key = 77", use_scalar_index=False)
    assert 5 in ids(newest, "key = 77")
    assert optimize_indices(extended, runner=runner, sizes=SMALL).version == extended.version


@pytest.mark.parametrize("deleted", [True, False])
def test_tasks_remap_an_index_as_one_process_does(
    dataset_uri: str, deleted: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = lance_ops.write_dataset(rows(0, ROWS), dataset_uri, max_rows_per_file=4500)
    for name in ("alone", "shared"):
        made.create_scalar_index("key", "BTREE", name)
    if deleted:
        made.delete("id % 23 = 0")
    runner = Elsewhere()

    def by_tasks(
        snapshot: Snapshot, segment: IndexMetadata, moves: RowAddressMap, store_out: Store, given: object
    ) -> tuple[IndexFile, ...]:
        assert given is not None
        chosen = runner if segment.name == "shared" else None
        return remap_segment(snapshot, segment, moves, store_out, chosen, replace(SMALL, least_remap_bytes=1))

    monkeypatch.setattr("lance_ops.maintenance.compaction.index_remap.remap_segment", by_tasks)
    compacted, metrics = compact_files(made.snapshot, CompactionOptions(target_rows_per_fragment=10_000))
    assert metrics.fragments_added < metrics.fragments_removed
    # without deleted rows every task writes whole pages, which need no merge
    assert runner.function_names == (["execute", "execute_merge"] if deleted else ["execute"])
    assert runner.num_tasks[0] > 3
    assert contents(compacted, "shared") == contents(compacted, "alone")
    check_nothing_is_left(compacted)
    newest = lance_ops.dataset(dataset_uri)
    for predicate in ("key = 77", "key IS NULL", "key > 4990"):
        assert ids(newest, predicate) == ids(newest, predicate, use_scalar_index=False) != []


def test_stable_row_ids_are_indexed_by_address(dataset_uri: str) -> None:
    made = lance_ops.write_dataset(rows(0, ROWS), dataset_uri, max_rows_per_file=4500, enable_stable_row_ids=True)
    made.delete("id % 23 = 0")
    built = create_scalar_index(made.snapshot, "key", "BTREE", "shared", runner=Elsewhere(), sizes=SMALL)
    built = create_scalar_index(built, "key", "BTREE", "alone")
    assert contents(built, "shared") == contents(built, "alone")
    assert segment_of(built, "shared").index_version == 1


@pytest.mark.parametrize("failing", ["execute", "execute_merge"])
def test_a_failed_task_leaves_the_table_as_it_was(
    table: lance_ops.LanceDataset, monkeypatch: pytest.MonkeyPatch, failing: str
) -> None:
    calls: list[object] = []
    function = getattr(task_build, failing)

    def fail_at_the_third(task: object) -> object:
        calls.append(task)
        if len(calls) == 3:
            raise CorruptFile("data/x.lance", "footer", "torn")
        return function(task)

    monkeypatch.setattr(task_build, failing, fail_at_the_third)
    version = table.version
    with pytest.raises(CorruptFile, match="torn"):
        create_scalar_index(table.snapshot, "key", "BTREE", runner=InThreads(2), sizes=SMALL)
    assert len(calls) >= 3
    assert lance_ops.dataset(table.uri).version == version
    check_nothing_is_left(table.snapshot)


def test_a_repeated_task_does_no_harm(table: lance_ops.LanceDataset, monkeypatch: pytest.MonkeyPatch) -> None:
    execute, execute_merge = task_build.execute, task_build.execute_merge
    monkeypatch.setattr(task_build, "execute", lambda task: (execute(task), execute(task))[1])
    monkeypatch.setattr(task_build, "execute_merge", lambda task: (execute_merge(task), execute_merge(task))[0])
    built = create_scalar_index(table.snapshot, "key", "BTREE", "shared", runner=InThreads(2), sizes=SMALL)
    built = create_scalar_index(built, "key", "BTREE", "alone")
    assert contents(built, "shared") == contents(built, "alone")
    check_nothing_is_left(built)


def test_clean_up_finds_what_a_driver_that_died_left(
    table: lance_ops.LanceDataset, monkeypatch: pytest.MonkeyPatch
) -> None:
    def die(runner: object, function: Callable[[T], R], tasks: Sequence[T], *rest: object) -> list[R]:
        outcomes = [function(task) for task in tasks]
        monkeypatch.setattr(type(table.snapshot.store), "clear", lambda store: None)
        raise KeyboardInterrupt(len(outcomes))

    monkeypatch.setattr(Elsewhere, "map", die)
    with pytest.raises(KeyboardInterrupt) as caught:
        create_scalar_index(table.snapshot, "key", "BTREE", runner=Elsewhere(), sizes=SMALL)
    monkeypatch.undo()
    left = [info.path for info in table.snapshot.store.list("_indices")]
    assert len(left) == caught.value.args[0] > 3

    table.create_scalar_index("key", "BTREE")
    assert table.cleanup_old_versions(timedelta(0)).index_files_removed == 0  # the files are young
    stats = table.cleanup_old_versions(timedelta(0), delete_unverified=True)
    assert stats.index_files_removed == len(left)
    check_nothing_is_left(table.snapshot)
    assert table.count_rows("key = 7919") == 0 and table.count_rows("key = 77") > 0


def test_a_concurrent_compaction_moves_what_tasks_have_indexed(
    table: lance_ops.LanceDataset, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = task_build.TaskBuild.run

    def compact_first(build: task_build.TaskBuild, *arguments: Any, **options: Any) -> object:
        files = run(build, *arguments, **options)
        lance_ops.dataset(table.uri).optimize.compact_files(target_rows_per_fragment=10_000)
        return files

    monkeypatch.setattr(task_build.TaskBuild, "run", compact_first)
    create_scalar_index(table.snapshot, "key", "BTREE", runner=Elsewhere(), sizes=SMALL)
    newest = lance_ops.dataset(table.uri)
    assert "ScalarIndexQuery" in newest.scanner(filter="key = 77").explain_plan()
    assert ids(newest, "key < 77") == ids(newest, "key < 77", use_scalar_index=False) != []
    check_nothing_is_left(newest.snapshot)


def test_a_remap_is_shared_only_if_it_is_very_large(dataset_uri: str) -> None:
    made = lance_ops.write_dataset(rows(0, ROWS), dataset_uri, max_rows_per_file=4500)
    made.create_scalar_index("key", "BTREE")
    runner = Elsewhere()
    snapshot, moves = made.snapshot, RowAddressMap(())
    for sizes, shared in ((replace(SMALL, least_remap_bytes=1), True), (SMALL, False)):
        store_out = snapshot.store.child(f"_indices/{shared}")
        remap_segment(snapshot, segment_of(snapshot, "key_idx"), moves, store_out, runner, sizes)
        assert runner.function_names == ["execute"]


def test_large_fragments_are_cut_and_small_ones_share_a_task() -> None:
    work = IndexWork(((0, 10, 100), (1, 1000, 10_000), (2, 5, 50), (3, 0, 0), (4, 10, 100)))
    shares = list(cut_fragments(work, 4000))
    assert [size for _, size in shares] == [4000, 4000, 2250]
    assert [ranges for ranges, _ in shares] == [
        ((0, 0, 10), (1, 0, 390)),
        ((1, 390, 790),),
        ((1, 790, 1000), (2, 0, 5), (4, 0, 10)),
    ]
    assert list(cut_fragments(IndexWork(()), 10)) == []


def test_entries_are_cut_at_whole_pages() -> None:
    assert list(cut_entries(20_000, 200_000, 100_000)) == [(0, 12_288), (12_288, 20_000)]
    assert list(cut_entries(0, 0, 10)) == []


def test_work_of_any_size_has_a_bounded_number_of_tasks() -> None:
    sizes = TaskSizes()
    assert sizes.each(1, 2) == sizes.task_bytes
    assert -(-(1 << 45) // sizes.each(1 << 45, 2)) == sizes.max_tasks


@pytest.mark.parametrize(
    ("num_tasks", "num_slots", "wanted"), [(5, 2, 6), (6, 2, 6), (2, 8, 2), (9, 8, 16), (25, 3, 25), (1024, 300, 900)]
)
def test_the_last_round_of_a_few_is_full(num_tasks: int, num_slots: int, wanted: int) -> None:
    sizes = TaskSizes(task_bytes=1000)
    work = IndexWork(tuple((number, 1000, 1000) for number in range(num_tasks)))
    shares = [size for _, size in cut_fragments(work, sizes.each(work.size_bytes, num_slots))]
    assert len(shares) == wanted
    assert sum(shares) == work.size_bytes


def test_tasks_of_an_index_on_100_tib_have_equal_bytes_and_at_most_a_million_slices() -> None:
    sizes, fragments = TaskSizes(), tuple((number, 1 << 20, 1 << 30) for number in range(100 << 10))
    work = IndexWork(fragments)
    shares = [size for _, size in cut_fragments(work, sizes.each(work.size_bytes, 256))]
    assert sum(shares) == 100 << 40
    assert max(shares) <= 100 << 30
    assert len(shares) ** 2 <= 1 << 20


def test_an_index_on_little_has_tasks_of_the_usual_size() -> None:
    work = IndexWork(((0, 1 << 20, 1 << 30),))
    sizes = TaskSizes()
    assert len(list(cut_fragments(work, sizes.each(work.size_bytes, 2)))) == 16


def test_deleted_offsets_travel_as_a_bitmap() -> None:
    deleted = np.arange(0, 1 << 20, 2, dtype=np.uint32)
    old = OldFragment(3, 1 << 20, deleted)
    moves = RowAddressMap((RewrittenGroup((old,), (NewFragment(9, 1 << 19),)),))
    before = moves.remap(np.array([3 << 32 | 5], np.uint64))
    sent = pickle.dumps(moves)
    assert len(sent) < 140_000
    assert pickle.loads(sent).remap(np.array([3 << 32 | 5], np.uint64)) == before == (9 << 32 | 2)
