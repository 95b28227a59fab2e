"""Decide how many values each chunk of a page holds, and find the entries and rows of each chunk."""

from __future__ import annotations

from lance_ops.core.ndarrays import Int64Array, Uint16Array, Uint64Array
from lance_ops.kernels.compile import kernel

__all__ = ["count_chunk_rows", "cut_chunks", "end_chunks"]


@kernel
def cut_chunks(costs: Int64Array, chunk_bytes: int, max_bytes: int, max_values: int, counts: Int64Array) -> int:
    """Cut values into chunks, write how many values each has, and return how many chunks there are.

    Values `[i, j)` cost `costs[j] - costs[i]` bytes, and each chunk costs `chunk_bytes` more. A chunk takes the largest
    power of two of values that fits, and at least one. The last chunk takes all values that are left, if they fit.
    `counts` has room for as many chunks as there are values.
    """
    num_values, start, num_chunks = len(costs) - 1, 0, 0
    while start < num_values:
        most = min(max_values, num_values - start)
        room = costs[start] + max_bytes - chunk_bytes
        count = 1
        if costs[start + most] <= room:
            count = most
        else:
            while 2 * count <= most and costs[start + 2 * count] <= room:
                count *= 2
        if start + count < num_values:
            power = 1
            while 2 * power <= count:
                power *= 2
            count = power
        counts[num_chunks] = count
        num_chunks += 1
        start += count
    return num_chunks


@kernel
def end_chunks(definition: Uint16Array, most_visible: int, counts: Int64Array, ends: Int64Array) -> None:
    """Write the number of entries up to the end of each chunk of `counts[i]` values, which ends after its last value.

    An entry has a value if its level is at most `most_visible`; there are as many such entries as values.
    """
    entry = 0
    for chunk in range(len(counts)):
        left = counts[chunk]
        while left > 0:
            left -= definition[entry] <= most_visible
            entry += 1
        ends[chunk] = entry


@kernel
def count_chunk_rows(rep: Uint16Array, row_level: int, chunk_ends: Int64Array, words: Uint64Array) -> None:
    """Write two numbers for each chunk: how many rows end in it, and how many entries after them it has.

    A row starts at repetition level `row_level`, and the first entry starts one.
    """
    entry, num_begun, num_ended, row_start = 0, 0, 0, 0
    for chunk in range(len(chunk_ends)):
        chunk_start = entry
        while entry < chunk_ends[chunk]:
            starts = rep[entry] == row_level
            num_begun += starts
            row_start = entry if starts else row_start
            entry += 1
        is_open = entry < len(rep) and rep[entry] != row_level
        words[2 * chunk] = num_begun - is_open - num_ended
        words[2 * chunk + 1] = entry - max(row_start, chunk_start) if is_open else 0
        num_ended = num_begun - is_open
