"""Byte ranges: check them, merge neighbours into fewer and larger reads, cut the results back out.

A request to an object store costs about as much as a few hundred kilobytes of transfer, so a small gap between two
ranges is cheaper to read than to skip.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa

from lance_ops.core.errors import CorruptFile, InvalidInput
from lance_ops.core.ndarrays import Int64Array
from lance_ops.core.records import dataclass
from lance_ops.store.contract import ByteRange

__all__ = ["MergedRange", "check_ranges", "group_reads", "merge_ranges", "merge_touching", "slice_ranges"]


@dataclass(frozen=True, slots=True)
class MergedRange:
    """One read, and the positions in the caller's list of the ranges it serves."""

    start: int
    end: int
    members: tuple[int, ...]


def check_ranges(path: str, ranges: Sequence[ByteRange]) -> None:
    """Raise `InvalidInput` for a range that runs backwards or starts before the object."""
    for start, end in ranges:
        if not 0 <= start <= end:
            raise InvalidInput(f"{path}: bytes {start} to {end} are not a range")


def merge_ranges(
    ranges: Sequence[ByteRange], max_gap_bytes: int, max_read_bytes: int, free_gap_bytes: int | None = None
) -> list[MergedRange]:
    """Merge ranges that overlap or lie at most `max_gap_bytes` apart, into reads of at most `max_read_bytes`.

    The first `free_gap_bytes` of each gap cost nothing (default: the whole gap). The bytes of gaps beyond that must not
    exceed the bytes of the ranges in the same read, so that few small ranges do not become a large read. Every range is
    a member of exactly one read, which contains it whole. A range longer than the limit is a read of its own. Empty
    ranges need no read and are members of none.
    """
    free = max_gap_bytes if free_gap_bytes is None else free_gap_bytes
    merged: list[MergedRange] = []
    read_start, read_end, members = 0, 0, list[int]()
    asked_bytes, costly_bytes = 0, 0
    for index in sorted((i for i, (start, end) in enumerate(ranges) if start < end), key=lambda i: ranges[i]):
        start, end = ranges[index]
        gap = start - read_end
        added = end - max(start, read_end)
        costs = max(gap - free, 0)
        fits = added <= 0 or (
            gap <= max_gap_bytes and end - read_start <= max_read_bytes and costly_bytes + costs <= asked_bytes + added
        )
        if members and fits:
            read_end = max(read_end, end)
            members.append(index)
            asked_bytes += max(added, 0)
            costly_bytes += costs
            continue
        if members:
            merged.append(MergedRange(read_start, read_end, tuple(members)))
        read_start, read_end, members = start, end, [index]
        asked_bytes, costly_bytes = end - start, 0
    if members:
        merged.append(MergedRange(read_start, read_end, tuple(members)))
    return merged


def group_reads(reads: Sequence[MergedRange], most: int, max_bytes: int) -> list[list[MergedRange]]:
    """Cut reads into groups of at most `most` reads and `max_bytes` bytes; a longer read is a group of its own."""
    groups: list[list[MergedRange]] = []
    num_bytes = 0
    for read in reads:
        size = read.end - read.start
        if groups and len(groups[-1]) < most and num_bytes + size <= max_bytes:
            groups[-1].append(read)
            num_bytes += size
        else:
            groups.append([read])
            num_bytes = size
    return groups


_FEW_RANGES = 8
"""A list sorts and merges no more ranges than these in less time than an array."""


def merge_touching(starts: Int64Array, stops: Int64Array) -> tuple[Int64Array, Int64Array]:
    """Sort ranges, drop empty ones, and merge those that overlap or touch."""
    if len(starts) <= _FEW_RANGES:
        return _merge_few(starts, stops)
    wanted = starts < stops
    starts, stops = starts[wanted], stops[wanted]
    if not len(starts):
        return starts, stops
    order = np.argsort(starts, kind="stable")
    starts, stops = starts[order], np.maximum.accumulate(stops[order])
    begins = np.ones(len(starts) + 1, np.bool_)  # whether range `i` begins a merged range; the one past the last does
    np.greater(starts[1:], stops[:-1], out=begins[1:-1])
    return starts[begins[:-1]], stops[begins[1:]]


def _merge_few(starts: Int64Array, stops: Int64Array) -> tuple[Int64Array, Int64Array]:
    merged: list[list[int]] = []
    for start, stop in sorted(zip(starts.tolist(), stops.tolist(), strict=True)):
        if start >= stop:
            continue
        if merged and start <= merged[-1][1]:
            merged[-1][1] = max(merged[-1][1], stop)
        else:
            merged.append([start, stop])
    found = np.array(merged, np.int64).reshape(-1, 2)
    return found[:, 0], found[:, 1]


def slice_ranges(path: str, data: pa.Buffer, ranges: Sequence[ByteRange], offset: int = 0) -> list[pa.Buffer]:
    """Cut ranges out of `data`, which starts at byte `offset` of the object, without copying.

    Raises `CorruptFile` for a range that runs past the end of `data`.
    """
    end_of_data = offset + data.size
    for start, end in ranges:
        if start < end and end > end_of_data:
            raise CorruptFile(path, f"bytes {start} to {end}", f"the file ends at byte {end_of_data}")
    return [data.slice(start - offset, end - start) if start < end else _EMPTY for start, end in ranges]


_EMPTY = pa.py_buffer(b"")
