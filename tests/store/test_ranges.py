from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lance_ops.core.errors import CorruptFile
from lance_ops.store.ranges import MergedRange, group_reads, merge_ranges, merge_touching, slice_ranges

RANGES = st.lists(st.tuples(st.integers(0, 500), st.integers(0, 60)).map(lambda r: (r[0], r[0] + r[1])), max_size=30)


@pytest.mark.parametrize(
    ("ranges", "merged"),
    [
        ([], []),
        ([(5, 5)], []),
        ([(0, 4), (4, 8)], [(0, 8)]),
        ([(4, 8), (0, 4)], [(0, 8)]),
        ([(0, 4), (14, 18)], [(0, 18)]),
        ([(0, 4), (15, 18)], [(0, 4), (15, 18)]),
        ([(0, 50), (50, 100), (100, 101)], [(0, 100), (100, 101)]),
        ([(0, 500), (20, 30), (490, 510)], [(0, 500), (490, 510)]),
        ([(0, 40), (10, 20), (10, 20)], [(0, 40)]),
    ],
)
def test_ranges_merge_over_gaps_of_10_up_to_100_bytes(
    ranges: list[tuple[int, int]], merged: list[tuple[int, int]]
) -> None:
    assert [(read.start, read.end) for read in merge_ranges(ranges, 10, 100)] == merged


@pytest.mark.parametrize(
    ("ranges", "merged"),
    [
        ([(0, 20), (40, 60)], [(0, 60)]),
        ([(0, 8), (40, 48)], [(0, 8), (40, 48)]),
        ([(0, 8), (13, 21)], [(0, 21)]),
        ([(0, 20), (40, 60), (80, 100)], [(0, 100)]),
        ([(0, 20), (40, 50), (75, 80)], [(0, 80)]),
        ([(0, 20), (40, 50), (76, 81)], [(0, 50), (76, 81)]),
        ([(0, 2), (8, 10)], [(0, 10)]),
        ([(0, 4), (4, 20), (40, 44)], [(0, 44)]),
    ],
)
def test_what_gaps_have_beyond_5_bytes_takes_no_more_of_a_read_than_its_ranges(
    ranges: list[tuple[int, int]], merged: list[tuple[int, int]]
) -> None:
    assert [(read.start, read.end) for read in merge_ranges(ranges, 50, 1000, 5)] == merged


@pytest.mark.parametrize(
    ("sizes", "groups"),
    [([], []), ([1, 1, 1, 1, 1], [3, 2]), ([6, 4, 1], [2, 1]), ([30, 1, 30, 1], [1, 1, 1, 1]), ([9, 2, 2], [1, 2])],
)
def test_reads_are_grouped_up_to_3_reads_and_10_bytes(sizes: list[int], groups: list[int]) -> None:
    reads = [MergedRange(100 * index, 100 * index + size, (index,)) for index, size in enumerate(sizes)]
    found = group_reads(reads, 3, 10)
    assert [len(group) for group in found] == groups
    assert [read for group in found for read in group] == reads


@given(ranges=RANGES, max_gap=st.integers(0, 50), max_read=st.integers(1, 200), free_gap=st.integers(0, 50))
def test_every_range_is_read_once_within_limits(
    ranges: list[tuple[int, int]], max_gap: int, max_read: int, free_gap: int
) -> None:
    reads = merge_ranges(ranges, max_gap, max_read, free_gap)

    members = sorted(index for read in reads for index in read.members)
    assert members == [index for index, (start, end) in enumerate(ranges) if start < end]
    for read in reads:
        inside = [ranges[index] for index in read.members]
        assert all(read.start <= start and end <= read.end for start, end in inside)
        assert (read.start, read.end) == (min(start for start, _ in inside), max(end for _, end in inside))
        longest = max(end - start for start, end in inside)
        assert read.end - read.start <= max(max_read, longest)
        reached = read.start
        for start, end in sorted(inside):
            assert start <= reached + max_gap
            reached = max(reached, end)


@given(ranges=RANGES, max_gap=st.integers(0, 50), max_read=st.integers(1, 200))
def test_slices_of_merged_reads_are_the_ranges(ranges: list[tuple[int, int]], max_gap: int, max_read: int) -> None:
    data = pa.py_buffer(bytes(index % 251 for index in range(600)))
    for read in merge_ranges(ranges, max_gap, max_read):
        part = data[read.start : read.end]
        asked = [ranges[index] for index in read.members]
        found = slice_ranges("x", part, asked, read.start)
        assert [piece.to_pybytes() for piece in found] == [data[start:end].to_pybytes() for start, end in asked]


def test_slices_copy_nothing() -> None:
    data = pa.py_buffer(b"0123456789")
    (piece,) = slice_ranges("x", data, [(3, 5)])
    assert piece.address == data.address + 3


def test_a_slice_past_the_end_names_file_and_place() -> None:
    with pytest.raises(CorruptFile, match="data/x: bytes 8 to 11: the file ends at byte 10"):
        slice_ranges("data/x", pa.py_buffer(b"0123456789"), [(8, 11)])


def test_ten_thousand_neighbours_merge_into_few_reads() -> None:
    reads = merge_ranges([(8 * index, 8 * index + 8) for index in range(10_000)], 0, 80_000)
    assert reads == [MergedRange(0, 80_000, tuple(range(10_000)))]


@given(RANGES)
def test_ranges_that_touch_become_one_whether_they_are_few_or_many(ranges: list[tuple[int, int]]) -> None:
    starts, stops = np.array(ranges, np.int64).reshape(-1, 2).T
    covered = {byte for start, stop in ranges for byte in range(start, stop)}
    expected = [byte for byte in sorted(covered) if byte - 1 not in covered]
    merged_starts, merged_stops = merge_touching(starts, stops)
    assert merged_starts.tolist() == expected
    assert merged_stops.tolist() == [byte + 1 for byte in sorted(covered) if byte + 1 not in covered]
