"""Twins of the kernels that cut pages into chunks and write them; see `lance_ops.kernels.chunks`."""

from __future__ import annotations

import numpy as np

from lance_ops.core.ndarrays import Int64Array, Uint8Array, Uint16Array, Uint64Array

__all__ = ["count_chunk_rows", "cut_chunks", "end_chunks", "write_headers", "write_parts"]

_PAD = 0xFE
_POWERS = np.left_shift(1, np.arange(63))


def cut_chunks(costs: Int64Array, chunk_bytes: int, max_bytes: int, max_values: int, counts: Int64Array) -> int:
    """Do what the kernel `cut_chunks` does.

    It cuts chunk by chunk: a chunk takes some KiB, so there are few.
    """
    cost, num_values, start, num_chunks = costs.item, len(costs) - 1, 0, 0
    while start < num_values:
        most = min(max_values, num_values - start)
        room = cost(start) + max_bytes - chunk_bytes
        count = 1
        if cost(start + most) <= room:
            count = most
        else:
            while 2 * count <= most and cost(start + 2 * count) <= room:
                count *= 2
        if start + count < num_values:
            count = 1 << max(count.bit_length() - 1, 0)
        counts[num_chunks] = count
        num_chunks += 1
        start += count
    return num_chunks


def end_chunks(definition: Uint16Array, most_visible: int, counts: Int64Array, ends: Int64Array) -> int:
    """Do what the kernel `end_chunks` does.

    It finds the entries of all values at once.
    """
    after_values = np.append(0, 1 + np.flatnonzero(definition <= most_visible))
    ends[:] = after_values[np.cumsum(counts)]
    return len(counts)


def count_chunk_rows(rep: Uint16Array, row_level: int, chunk_ends: Int64Array, words: Uint64Array) -> int:
    """Do what the kernel `count_chunk_rows` does.

    It finds the starts of all rows at once.
    """
    row_starts = np.flatnonzero(rep == row_level)
    num_begun = np.searchsorted(row_starts, chunk_ends)
    is_open = num_begun == np.searchsorted(row_starts, chunk_ends, side="right")
    is_open &= chunk_ends < len(rep)
    since = np.maximum(np.append(0, row_starts)[num_begun], np.append(0, chunk_ends)[:-1])
    words[0::2] = np.diff(num_begun - is_open, prepend=0)
    words[1::2] = np.where(is_open, chunk_ends - since, 0)
    return len(chunk_ends)


def write_headers(
    counts: Int64Array,
    num_levels: Int64Array,
    part_sizes: Int64Array,
    num_level_parts: int,
    width: int,
    out: Uint8Array,
    places: Int64Array,
    words: Int64Array,
) -> int:
    """Do what the kernel `write_headers` does.

    It makes the headers of all chunks as rows of bytes, and copies them.
    """
    num_chunks = len(counts)
    if not num_chunks:
        return 0
    parts = part_sizes.reshape(-1, num_chunks)
    columns = [num_levels.astype("<u2"), *(part.astype("<u2") for part in parts[:num_level_parts])]
    columns += [part.astype(f"<u{width}") for part in parts[num_level_parts:]]
    rows = np.column_stack([column.view(np.uint8).reshape(num_chunks, -1) for column in columns])
    header_bytes = rows.shape[1] + 7 & ~7
    chunk_sizes = header_bytes + (parts + 7 & ~7).sum(axis=0)
    ends = np.cumsum(chunk_sizes)
    places[:] = ends - chunk_sizes + header_bytes
    headers = np.full((num_chunks, header_bytes), _PAD, np.uint8)
    headers[:, : rows.shape[1]] = rows
    out[(places - header_bytes)[:, None] + np.arange(header_bytes)] = headers
    logarithms = np.searchsorted(_POWERS, counts)
    logarithms[-1] = 0
    words[:] = (chunk_sizes // 8 - 1 << 4) | logarithms
    return int(ends[-1])


def write_parts(data: Uint8Array, sizes: Int64Array, places: Int64Array, out: Uint8Array) -> int:
    """Do what the kernel `write_parts` does.

    It copies part by part: a part takes some KiB, so there are few.
    """
    start = 0
    for size, place in zip(sizes.tolist(), places.tolist(), strict=True):
        end = place + size
        out[place:end] = data[start : start + size]
        out[end : end + 7 & ~7] = _PAD
        start += size
    places += sizes + 7 & ~7
    return len(sizes)
