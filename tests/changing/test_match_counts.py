"""Tasks count the rows that a merge would match, and no row or key comes back from a task."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import lance_ops
from lance_ops.changing.merge_insert.by_tasks import MatchCounts, SourceRows, TaskSizes, count_matches
from lance_ops.core.ndarrays import Uint64Array
from lance_ops.snapshot import Snapshot
from tests.pickling_runner import PicklingRunner

KEYS_STEP, JOIN_STEP, SOURCE_STEP = (f"count matches ({step}) in" for step in ("keys", "join", "source"))

PARTS = TaskSizes(rows_per_part=4, fragments_per_part=1)
SHUFFLED = TaskSizes(rows_per_bucket=3, rows_per_part=4, fragments_per_part=2)
CUT = TaskSizes(rows_per_part=1)
"""Sizes with which a few rows make several buckets and parts; those of `PARTS` and `CUT` make one bucket."""

KEYS = st.none() | st.integers(0, 6)
PAIRS = st.lists(st.tuples(KEYS, st.sampled_from(["a", "b", None]), st.integers(0, 9)), max_size=12)


def write(pairs: list[tuple[int | None, str | None, int]], path: Path, max_rows_per_file: int = 4) -> Snapshot:
    ids, texts, values = zip(*pairs, strict=True) if pairs else ((), (), ())
    table = pa.table(
        {"id": pa.array(ids, pa.int64()), "k": pa.array(texts, pa.string()), "v": pa.array(values, pa.int64())}
    )
    return lance_ops.write_dataset(table, path, max_rows_per_file=max_rows_per_file).snapshot


@settings(max_examples=60)
@given(
    target=PAIRS,
    source=PAIRS,
    on=st.sampled_from([("id",), ("id", "k"), ("k",)]),
    unmatched=st.sampled_from([None, "true", "v > 4"]),
    sizes=st.sampled_from([None, PARTS, SHUFFLED, CUT]),
)
def test_tasks_count_what_a_loop_over_the_rows_counts(
    tmp_path_factory: pytest.TempPathFactory,
    target: list[tuple[int | None, str | None, int]],
    source: list[tuple[int | None, str | None, int]],
    on: tuple[str, ...],
    unmatched: str | None,
    sizes: TaskSizes | None,
) -> None:
    folder = tmp_path_factory.mktemp("counts")
    table, rows, runner = write(target, folder / "t"), write(source, folder / "s"), PicklingRunner()
    counts = count_matches(
        table, on, SourceRows.of(rows), runner, unmatched=unmatched, num_first=3, counts_source=True, sizes=sizes
    )

    def key(row: tuple[int | None, str | None, int]) -> tuple[object, ...]:
        return tuple(row[["id", "k"].index(name)] for name in on)

    given_keys, known = ({key(row) for row in side if None not in key(row)} for side in (source, target))
    matches = [place for place, row in enumerate(target) if key(row) in given_keys]
    others = [
        place
        for place, row in enumerate(target)
        if place not in matches and unmatched is not None and (unmatched == "true" or row[2] > 4)
    ]
    assert (counts.matched.count, counts.unmatched.count) == (len(matches), len(others))
    assert counts.num_source_rows == sum(key(row) in known for row in source)
    for found, places in ((counts.matched, matches), (counts.unmatched, others)):
        assert found.first.tolist() == [place // 4 << 32 | place % 4 for place in places[:3]]
    for address, of_source in zip(counts.matched.first.tolist(), counts.matched.sources.tolist(), strict=True):
        assert key(target[place_of(address)]) == key(source[place_of(of_source)])
    assert not [path for path in Path(table.uri, "data").glob("*") if path.is_dir()]


def place_of(address: int) -> int:
    return (address >> 32) * 4 + address % (1 << 32)


def counted(folder: Path, number: int, runner: PicklingRunner, sizes: TaskSizes) -> MatchCounts:
    table = write([(key, None, 0) for key in range(number)], folder / f"t{number}", 1000)
    source = write([(key, None, 0) for key in range(number // 2, 2 * number)], folder / f"s{number}", 1000)
    return count_matches(table, ("id",), SourceRows.of(source), runner, num_first=5, counts_source=True, sizes=sizes)


def test_a_source_row_that_several_tasks_find_counts_once(tmp_path: Path) -> None:
    table = write([(1, None, 0)] * 12, tmp_path / "t")
    source = write([(1, None, 0), (1, None, 1), (2, None, 0)], tmp_path / "s")
    runner = PicklingRunner()
    counts = count_matches(table, ("id",), SourceRows.of(source), runner, counts_source=True, sizes=PARTS)
    assert (counts.matched.count, counts.num_source_rows, len(counts.matched.first)) == (12, 2, 0)
    assert runner.jobs == [(KEYS_STEP, 1), (JOIN_STEP, 3), (SOURCE_STEP, 1)]
    runner = PicklingRunner()
    count_matches(table, ("id",), SourceRows.of(source), runner, sizes=PARTS)
    assert runner.jobs == [(KEYS_STEP, 1), (JOIN_STEP, 3)], "the source's rows count only where it is asked for"


def test_few_keys_are_counted_by_the_index_in_one_task(tmp_path: Path) -> None:
    table = write([(key, None, 0) for key in range(1000)], tmp_path / "t", max_rows_per_file=300)
    lance_ops.dataset(table.uri).create_scalar_index("id", "BTREE")
    source = SourceRows.of(write([(key, None, 0) for key in (5, 305, 5000)], tmp_path / "s"))
    runner = PicklingRunner()
    counts = count_matches(
        lance_ops.dataset(table.uri).snapshot, ("id",), source, runner, num_first=5, counts_source=True
    )
    assert (counts.matched.count, counts.num_source_rows) == (2, 2)
    assert counts.matched.first.tolist() == [5, 1 << 32 | 5]
    assert runner.jobs == [(KEYS_STEP, 1), (JOIN_STEP, 1)]


@pytest.mark.parametrize("sizes", [TaskSizes(rows_per_part=1000), TaskSizes(rows_per_bucket=2000)])
def test_what_tasks_return_does_not_grow_with_the_rows(tmp_path: Path, sizes: TaskSizes) -> None:
    largest = []
    for number in (2000, 16_000):
        runner = PicklingRunner()
        counts = counted(tmp_path, number, runner, sizes)
        assert (counts.matched.count, counts.num_source_rows) == (number // 2, number // 2)
        assert np.array_equal(counts.matched.sources, np.arange(5))
        largest.append(max(runner.outcome_bytes))
    assert largest[1] < largest[0] + 512


def sum_of(_: Snapshot, addresses: Uint64Array) -> int:
    return int(addresses.sum())


@pytest.mark.parametrize("sizes", [PARTS, SHUFFLED], ids=["one bucket", "buckets"])
def test_only_rows_of_chosen_fragments_are_counted_and_digested(tmp_path: Path, sizes: TaskSizes) -> None:
    table = write([(key % 7, None, key) for key in range(12)], tmp_path / "t")
    lance_ops.dataset(table.uri).create_scalar_index("id", "BTREE")
    source = SourceRows.of(write([(key, None, 0) for key in (0, 1, 4, 9)], tmp_path / "s"))
    counts = count_matches(
        lance_ops.dataset(table.uri).snapshot,
        ("id",),
        source,
        PicklingRunner(),
        unmatched="v > 6",
        num_first=5,
        fragment_ids={1},
        digest=sum_of,
        sizes=sizes,
    )
    found = [1 << 32 | offset for offset in (0, 3)]  # of the keys 4, 5, 6, 0
    assert counts.matched.first.tolist() == found
    assert (counts.unmatched.count, counts.digest) == (0, sum(found))
