"""Shares of tasks: few of them, with the rows that indices found and those that no index covers."""

from __future__ import annotations

import pickle
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import TypeVar

import pyarrow as pa
import pytest

import lance_ops
from lance_ops.changing import plan_deletion
from lance_ops.changing.columns.backfill import plan_backfill
from lance_ops.changing.columns.column_sources import CastColumns
from lance_ops.changing.row_updates import bind_updates, plan_update
from lance_ops.core.versions import FileVersion
from lance_ops.indices import RowAddressSet
from lance_ops.indices.btree import BTreeIndex, BTreeQuery
from lance_ops.maintenance.compaction import plan_migration
from lance_ops.maintenance.health import column_statistics
from lance_ops.reading import bind_filter, scan_rows
from lance_ops.runners import InThreads, Job, JobProgress, Runner
from lance_ops.snapshot import Snapshot
from lance_ops.table import Fragment, FragmentList
from lance_ops.writing import TaskShare, share_fragments, share_rows, task_shares
from tests.pickling_runner import PicklingRunner

FRAGMENTS = 40

T = TypeVar("T")
R = TypeVar("R")


def _written(uri: str) -> Snapshot:
    """Write a version of 40 fragments with 5 rows each, of which an index covers 38."""
    rows = pa.table({"id": range(5 * FRAGMENTS), "half": [row // 2 for row in range(5 * FRAGMENTS)]})
    dataset = lance_ops.write_dataset(rows.slice(0, 5 * (FRAGMENTS - 2)), uri, max_rows_per_file=5)
    dataset.create_scalar_index("id", "BTREE")
    dataset.insert(rows.slice(5 * (FRAGMENTS - 2)), max_rows_per_file=5)
    return lance_ops.dataset(uri).snapshot


@pytest.fixture(scope="module")
def snapshot(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Snapshot]:
    """A version of which several tests plan, and none changes the dataset."""
    yield _written(str(tmp_path_factory.mktemp("planned") / "table"))
    _fragments_like.cache_clear()


@pytest.fixture
def own_snapshot(dataset_uri: str) -> Snapshot:
    """Such a version of a test's own dataset."""
    return _written(dataset_uri)


def _ids(snapshot: Snapshot, share: TaskShare) -> list[int]:
    found = scan_rows(snapshot, share.request(snapshot, snapshot.schema))
    return [row for rows in found for row in rows.table["id"].to_pylist()]


def _sized(snapshot: Snapshot, rows: int, file_size_bytes: int, rows_of: Mapping[int, int] | None = None) -> Snapshot:
    """Return the version as if its fragments had other sizes; `rows_of` has the rows of those that differ."""

    def sized(fragment: Fragment) -> Fragment:
        files = tuple(replace(file, file_size_bytes=file_size_bytes) for file in fragment.files)
        return replace(fragment, files=files, physical_rows=(rows_of or {}).get(fragment.id, rows))

    fragments = FragmentList(map(sized, snapshot.fragments))
    return snapshot.with_manifest(replace(snapshot.manifest, fragments=fragments))


def _repeated(snapshot: Snapshot, num_fragments: int, file_size_bytes: int) -> Snapshot:
    """Return the version as if it had so many fragments like its first one, with 1,000 rows each."""
    fragments = _fragments_like(snapshot.fragments[0], num_fragments, file_size_bytes)
    return snapshot.with_manifest(replace(snapshot.manifest, fragments=fragments, indices=()))


@cache
def _fragments_like(first: Fragment, num_fragments: int, file_size_bytes: int) -> FragmentList:
    files = tuple(replace(file, file_size_bytes=file_size_bytes) for file in first.files)
    like = replace(first, files=files, physical_rows=1000)
    return FragmentList(replace(like, id=number) for number in range(num_fragments))


class _CountsTasks:
    """A runner that runs no task."""

    num_tasks = 0

    def map(
        self,
        function: Callable[[T], R],
        tasks: Sequence[T],
        job: Job | None = None,
        discard: Callable[[R], None] | None = None,
    ) -> list[R]:
        self.num_tasks = len(tasks)
        return []


@pytest.mark.parametrize(
    ("condition", "fragments", "ids"),
    [
        ("id = 12", [(2,), (38, 39)], [[12], []]),
        ("id IN (3, 101, 192, 199)", [(0, 20), (38, 39)], [[3, 101], [192, 199]]),
        ("id > 4 AND id < 21 AND half = 4", [(1, 2, 3, 4), (38, 39)], [[8, 9], []]),
        ("id < 0", [(38, 39)], [[]]),
        ("half = 4", [tuple(range(FRAGMENTS))], [[8, 9]]),
    ],
)
def test_shares_leave_out_the_fragments_in_which_an_index_found_nothing(
    snapshot: Snapshot, condition: str, fragments: list[tuple[int, ...]], ids: list[list[int]]
) -> None:
    shares = share_rows(snapshot, bind_filter(snapshot, condition))
    assert [share.fragment_ids for share in shares] == fragments
    assert [_ids(snapshot, share) for share in shares] == ids


def test_all_rows_are_shared_without_a_predicate(snapshot: Snapshot) -> None:
    (share,) = share_rows(snapshot, None)
    stored = sum(file.file_size_bytes for fragment in snapshot.fragments for file in fragment.files)
    assert share == TaskShare(tuple(range(FRAGMENTS)), None, None, stored)
    assert _ids(snapshot, share) == list(range(5 * FRAGMENTS))


@pytest.mark.parametrize(
    ("rows", "file_size_bytes", "lengths"),
    [
        (5, 1000, [40]),
        (1 << 14, 1000, [20, 20]),
        (1 << 13, 1000, [40]),
        (5, 1 << 20, [20, 20]),
        (5, 1 << 19, [40]),
    ],
)
def test_shares_have_many_fragments_and_equally_many_rows_or_bytes(
    snapshot: Snapshot, rows: int, file_size_bytes: int, lengths: list[int]
) -> None:
    sized = _sized(snapshot, rows, file_size_bytes)
    assert [len(share.fragment_ids) for share in share_rows(sized, None)] == lengths


@pytest.mark.parametrize(
    ("rows_of", "lengths"),
    [
        ({0: 38 << 14}, [1, 39]),
        ({0: 19 << 14, 20: 19 << 14}, [20, 20]),
        ({39: 1 << 21}, [39, 1]),
        (dict.fromkeys(range(10, FRAGMENTS), 1), [FRAGMENTS]),
    ],
)
def test_shares_of_unequal_fragments_have_about_equally_many_rows(
    snapshot: Snapshot, rows_of: Mapping[int, int], lengths: list[int]
) -> None:
    sized = _sized(snapshot, 1 << 14, 1000, rows_of)
    assert [len(share.fragment_ids) for share in share_rows(sized, None)] == lengths


@pytest.mark.parametrize(
    ("num_fragments", "file_size_bytes", "fewest", "most"),
    [
        (100_000, 100 << 20, 12_000, 1 << 14),
        (100, 1 << 30, 512, 800),
        (10, 1 << 20, 1, 1),
        (3, 1 << 30, 16, 24),
    ],
)
def test_a_table_has_as_many_shares_as_its_bytes_are_worth_up_to_the_cores_of_a_large_cluster(
    snapshot: Snapshot, num_fragments: int, file_size_bytes: int, fewest: int, most: int
) -> None:
    large = _repeated(snapshot, num_fragments, file_size_bytes)
    shares = plan_deletion(large, bind_filter(large, "half = 4")).tasks
    assert fewest <= len(shares) <= most
    assert len({each for task in shares for each in task.share.fragment_ids}) == num_fragments
    assert max(task.share.size_bytes for task in shares) <= 2 * num_fragments * file_size_bytes // len(shares)


@pytest.mark.parametrize(("columns", "fewest"), [(["id"], 12_000), ([f"c{number}" for number in range(40)], 1024)])
def test_tasks_that_measure_many_columns_are_fewer_so_that_the_driver_can_hold_their_hashes(
    tmp_path: Path, columns: list[str], fewest: int
) -> None:
    small = lance_ops.write_dataset(pa.table({name: [1] for name in columns}), tmp_path / "wide").snapshot
    runner = _CountsTasks()
    column_statistics(_repeated(small, 100_000, 100 << 20), runner=runner)
    assert fewest <= runner.num_tasks
    assert runner.num_tasks * len(columns) * 8192 <= 512 << 20


@pytest.mark.parametrize(("message_bytes", "num_tasks"), [(0, 1 << 14), (1 << 19, 1024), (3 << 18, 512), (1 << 30, 64)])
def test_tasks_with_long_messages_are_fewer_but_not_below_sixty_four(
    snapshot: Snapshot, message_bytes: int, num_tasks: int
) -> None:
    large = _repeated(snapshot, 100_000, 100 << 20)
    assert len(share_rows(large, None, message_bytes=message_bytes)) == num_tasks


@pytest.mark.parametrize(
    ("num_fragments", "reading", "writing"), [(100, 8, 8), (4_000, 256, 64), (100_000, 8192, 1024)]
)
def test_tasks_that_write_fragments_are_fewer_in_a_large_table(
    snapshot: Snapshot, num_fragments: int, reading: int, writing: int
) -> None:
    sized = _repeated(snapshot, num_fragments, 1 << 20)
    assert len(share_rows(sized, None)) == reading
    assert len(share_rows(sized, None, writes_fragments=True)) == writing
    assert len(plan_update(sized, bind_updates(sized, {"half": "half + 1"}), None).tasks) == writing


@pytest.fixture
def one_fragment(dataset_uri: str, monkeypatch: pytest.MonkeyPatch) -> lance_ops.LanceDataset:
    """A dataset whose one fragment, of 1,000 rows with every tenth one deleted, is worth 100 tasks."""
    monkeypatch.setattr(task_shares, "_ROWS_PER_TASK", 10)
    rows = pa.table({"id": range(1000), "half": [row // 2 for row in range(1000)]})
    dataset = lance_ops.write_dataset(rows, dataset_uri)
    dataset.create_scalar_index("id", "BTREE")
    dataset.delete("id % 10 = 0")
    return dataset


@pytest.mark.parametrize("condition", [None, "half >= 100", "id >= 200 AND id < 900", "id >= 200 AND half < 450"])
def test_a_large_fragment_is_cut_into_ranges_of_rows_for_several_tasks(
    one_fragment: lance_ops.LanceDataset, condition: str | None
) -> None:
    snapshot = one_fragment.snapshot
    shares = share_rows(snapshot, None if condition is None else bind_filter(snapshot, condition))
    assert 8 <= len(shares) <= 12
    assert {share.fragment_ids for share in shares} == {(0,)}
    found = [_ids(snapshot, share) for share in shares]
    assert [row for part in found for row in part] == one_fragment.to_table(filter=condition)["id"].to_pylist()
    sizes = [share.size_bytes for share in shares]
    assert max(sizes) <= 2 * min(sizes) + 1
    assert sum(sizes) <= snapshot.size_bytes


def test_small_fragments_beside_a_large_one_stay_whole(snapshot: Snapshot) -> None:
    sized = _sized(snapshot, 1 << 14, 1000, {1: 1 << 24})
    shares = share_rows(sized, None)
    ranges = [each for share in shares for each in share.row_ranges]
    assert {fragment_id for fragment_id, _, _ in ranges} == {1}
    assert [first for _, first, _ in ranges] == [0, *(last for _, _, last in ranges[:-1])]
    assert ranges[-1][2] == 1 << 24
    assert sorted({each for share in shares for each in share.fragment_ids}) == list(range(FRAGMENTS))


def test_very_many_fragments_share_tasks_that_write_a_file_for_each(
    snapshot: Snapshot, monkeypatch: pytest.MonkeyPatch
) -> None:
    shares = share_fragments(_repeated(snapshot, 20_000, 1 << 20).fragments)
    assert 8_192 < len(shares) <= 16_384
    assert [each for share in shares for each in share] == list(range(20_000))
    monkeypatch.setattr(task_shares, "_MAX_TASKS", 16)
    columns = snapshot.schema.project(["id"])
    for tasks in (
        plan_backfill(snapshot, columns, CastColumns(("id",))),
        plan_migration(snapshot, FileVersion.V2_1).tasks,
    ):
        assert len(tasks) == 16
        assert [each for task in tasks for each in task.fragment_ids] == list(range(FRAGMENTS))


def test_a_thread_that_writes_fragments_gets_no_part_of_one(one_fragment: lance_ops.LanceDataset) -> None:
    (share,) = share_rows(one_fragment.snapshot, None, writes_fragments=True)
    assert share.row_ranges == ()


def test_tasks_that_write_fragments_elsewhere_share_large_ones(snapshot: Snapshot) -> None:
    large = _repeated(snapshot, 40, 1 << 30)
    assert len(share_rows(large, None, writes_fragments=True)) == 2
    shares = share_rows(large, None, writes_fragments=True, in_threads=False)
    assert len(shares) == 256
    assert max(len(share.fragment_ids) for share in shares) == 2
    small = _repeated(snapshot, 4_000, 1 << 20)
    assert len(share_rows(small, None, writes_fragments=True, in_threads=False)) == 64


@pytest.mark.parametrize("stable", [False, True])
@pytest.mark.parametrize(
    ("condition", "num_rows"), [(None, 900), ("half >= 100", 720), ("id >= 200 AND half < 450", 630)]
)
def test_several_tasks_update_one_large_fragment_as_one_thread_does(
    dataset_uri: str, monkeypatch: pytest.MonkeyPatch, stable: bool, condition: str | None, num_rows: int
) -> None:
    monkeypatch.setattr(task_shares, "_ROWS_PER_TASK", 10)
    rows = pa.table({"id": range(1000), "half": [row // 2 for row in range(1000)]})
    tables = [
        lance_ops.write_dataset(rows, f"{dataset_uri}.{name}", enable_stable_row_ids=stable)
        for name in ("threads", "tasks")
    ]
    runner = PicklingRunner()
    runners: tuple[Runner, Runner] = (InThreads(2), runner)
    for table, used in zip(tables, runners, strict=True):
        table.create_scalar_index("id", "BTREE")
        table.delete("id % 10 = 0")
        assert table.update({"half": "-half"}, condition, runner=used)["num_rows_updated"] == num_rows
    num_tasks = dict(runner.jobs)["update"]
    assert 8 <= num_tasks <= 12
    expected, found = (table.to_table(with_row_id=stable).sort_by("id") for table in tables)
    assert found == expected
    assert tables[1].verify().ok
    assert len(tables[0].get_fragments()) == (1 if condition is None else 2)
    num_fragments = len(tables[1].get_fragments())
    assert num_fragments == num_tasks if condition is None else 2 < num_fragments <= 1 + num_tasks


def test_verbs_on_one_large_fragment_do_the_same_by_many_tasks(one_fragment: lance_ops.LanceDataset) -> None:
    runner = PicklingRunner()
    assert one_fragment.count_rows("half >= 100", runner=runner) == 720
    measured = one_fragment.stats.column_stats(["half"], runner=runner)["half"]
    assert (measured.num_rows, measured.min, measured.max, measured.num_distinct) == (900, 0, 499, 500)
    assert one_fragment.duplicates("half", runner=runner).num_keys == 400
    merged = one_fragment.merge_insert("half").when_matched_delete()
    assert merged.execute(pa.table({"half": [1, 499]}), runner=runner)["num_deleted_rows"] == 4
    assert one_fragment.delete("half < 100", runner=runner)["num_deleted_rows"] == 178
    assert one_fragment.count_rows() == 718
    assert {verb: num_tasks for verb, num_tasks in runner.jobs if num_tasks > 1} == dict.fromkeys(
        ("count rows of", "measure columns of", "merge into", "delete"), 12
    )


def test_an_index_is_searched_once_for_all_shares(own_snapshot: Snapshot, monkeypatch: pytest.MonkeyPatch) -> None:
    searched: list[object] = []
    search = BTreeIndex.search

    def recorded(self: BTreeIndex, query: BTreeQuery) -> RowAddressSet:
        searched.append(query)
        return search(self, query)

    monkeypatch.setattr(BTreeIndex, "search", recorded)
    shares = share_rows(own_snapshot, bind_filter(own_snapshot, "id >= 0"))
    assert [len(share.fragment_ids) for share in shares] == [38, 2]
    for share in shares:
        assert _ids(own_snapshot, pickle.loads(pickle.dumps(share))) == _ids(own_snapshot, share)
    assert len(searched) == 1


def test_tasks_of_many_verbs_are_weighed_by_the_bytes_of_their_rows(own_snapshot: Snapshot) -> None:
    stored = sum(file.file_size_bytes for fragment in own_snapshot.fragments for file in fragment.files)
    seen: dict[str, JobProgress] = {}

    def note(progress: JobProgress) -> None:
        assert progress.job is not None and progress.job.unit == "bytes"
        assert len(progress.job.weights) == progress.num_tasks
        seen[progress.job.verb] = progress

    dataset, runner = lance_ops.dataset(own_snapshot.uri), InThreads(1, on_progress=note)
    assert dataset.count_rows("half > 3", runner=runner) == 192
    assert dataset.stats.column_stats(["half"], runner=runner)["half"].max == 99
    dataset.update({"half": "-1"}, "half = 7", runner=runner)
    dataset.delete("half = 8", runner=runner)
    weights = {verb: progress.done_weight for verb, progress in seen.items()}
    updated = sum(file.file_size_bytes for fragment in dataset.snapshot.fragments for file in fragment.files)
    assert stored < updated, "the update wrote a fragment"
    assert weights == {"count rows of": stored, "measure columns of": stored, "update": stored, "delete": updated}
    seen.clear()
    dataset.add_columns({"twice": "half * 2"}, runner=runner)
    assert seen["add columns to"].done_weight == updated
    assert dataset.verify(runner=runner).ok
    assert (seen["verify"].done_weight or 0) > updated
