from __future__ import annotations

from typing import Any

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from lance_ops.kernels import chunks as compiled
from lance_ops.kernels.read_only_arrays import read_only
from tests.kernels import twins
from tests.kernels.either import either


@either(compiled)
@given(st.lists(st.integers(0, 300), max_size=200), st.integers(0, 20), st.sampled_from([1, 2, 64, 4096]))
def test_cut_chunks_equals_the_plain_twin(kernels: Any, costs: list[int], chunk_bytes: int, max_values: int) -> None:
    ends = np.cumsum([0, *costs]).astype(np.int64)
    counts = np.zeros(len(costs), np.int64)
    num_chunks = kernels.cut_chunks(read_only(ends), chunk_bytes, 512, max_values, counts)
    assert counts[:num_chunks].tolist() == twins.cut_chunks(costs, chunk_bytes, 512, max_values)


@either(compiled)
@given(st.lists(st.integers(0, 2), min_size=1, max_size=40), st.lists(st.integers(1, 6), min_size=1, max_size=40))
def test_chunks_end_right_after_their_last_value(kernels: Any, levels: list[int], wanted: list[int]) -> None:
    places = np.flatnonzero(np.array(levels) <= 1)
    counts = np.array([count for count, end in zip(wanted, np.cumsum(wanted), strict=True) if end <= len(places)])
    ends = np.empty(len(counts), np.int64)
    kernels.end_chunks(read_only(np.array(levels, np.uint16)), 1, read_only(counts.astype(np.int64)), ends)
    assert ends.tolist() == [places[end - 1] + 1 for end in np.cumsum(counts).astype(int)]


@either(compiled)
@given(st.lists(st.integers(0, 2), max_size=40), st.lists(st.integers(1, 9), min_size=1, max_size=20))
def test_chunk_rows_count_rows_that_end_and_entries_of_the_open_row(
    kernels: Any, levels: list[int], sizes: list[int]
) -> None:
    levels = [2, *levels]
    chunk_ends = np.unique(np.append(np.minimum(np.cumsum(sizes), len(levels)), len(levels)))
    words = np.empty(2 * len(chunk_ends), np.uint64)
    kernels.count_chunk_rows(read_only(np.array(levels, np.uint16)), 2, read_only(chunk_ends), words)
    assert words.reshape(-1, 2).tolist() == twins.count_chunk_rows(levels, 2, chunk_ends.tolist())


@either(compiled)
@given(st.integers(0, 2), st.sampled_from([2, 4]), st.lists(st.lists(st.binary(max_size=30), min_size=3, max_size=3)))
def test_written_chunks_equal_the_plain_twin(
    kernels: Any, num_level_parts: int, width: int, chunks: list[list[bytes]]
) -> None:
    counts = np.array([1 << (i % 5) for i in range(len(chunks))], np.int64)
    if len(counts):
        counts[-1] = 11
    num_levels = counts + 1
    sizes = np.array([len(part) for number in range(3) for part in [chunk[number] for chunk in chunks]], np.int64)
    out = np.zeros(200 * len(chunks), np.uint8)
    places, words = np.zeros(len(chunks), np.int64), np.zeros(len(chunks), np.int64)
    inputs = read_only(counts), read_only(num_levels), read_only(sizes)
    num_bytes = kernels.write_headers(*inputs, num_level_parts, width, out, places, words)
    for number in range(3):
        data = np.frombuffer(b"".join(chunk[number] for chunk in chunks), np.uint8)
        kernels.write_parts(read_only(data), read_only(sizes.reshape(3, -1)[number]), places, out)
    expected = [
        twins.write_chunk(int(levels), chunk, num_level_parts, width)
        for levels, chunk in zip(num_levels, chunks, strict=True)
    ]
    assert out[:num_bytes].tobytes() == b"".join(expected)
    logarithms = [i % 5 for i in range(len(chunks) - 1)] + [0] * bool(chunks)
    assert words.tolist() == [
        (len(chunk) // 8 - 1) << 4 | logarithm for chunk, logarithm in zip(expected, logarithms, strict=True)
    ]
