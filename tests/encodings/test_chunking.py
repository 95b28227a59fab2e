from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from lance_ops.encodings.chunking import chunk_counts_of_costs, chunk_counts_of_width, even_chunks
from lance_ops.encodings.contract import ChunkLimits


@given(st.lists(st.integers(0, 3000), max_size=300), st.integers(0, 50), st.sampled_from([1, 16, 4096]))
def test_chunks_take_the_largest_power_of_two_that_fits(costs: list[int], overhead: int, most: int) -> None:
    limits = ChunkLimits(max_values=most, max_bytes=4096)
    ends = np.cumsum([0, *costs]).astype(np.int64)
    counts = chunk_counts_of_costs(ends, overhead, limits).tolist()
    assert sum(counts) == len(costs)
    start = 0
    for count in counts:
        cost = sum(costs[start : start + count]) + overhead
        assert count <= most
        assert count == 1 or cost <= limits.max_bytes
        if start + count < len(costs):
            assert count & (count - 1) == 0
            twice = costs[start : start + 2 * count]
            assert 2 * count > most or sum(twice) + overhead > limits.max_bytes or len(twice) < 2 * count
        start += count


def test_values_of_one_width_share_one_count_a_chunk() -> None:
    assert chunk_counts_of_width(3000, 64, ChunkLimits()).tolist() == [1024, 1024, 952]
    assert chunk_counts_of_width(9000, 1, ChunkLimits()).tolist() == [4096, 4096, 808]
    assert chunk_counts_of_width(5, 8 * 3000, ChunkLimits()).tolist() == [2, 2, 1]
    assert chunk_counts_of_width(4, 8 * 20000, ChunkLimits()).tolist() == [2, 2]
    assert chunk_counts_of_width(20, 8 * 1000 + 1, ChunkLimits(max_bytes=512)).tolist() == [8, 8, 4]


def test_no_values_make_no_chunks() -> None:
    assert even_chunks(0, 1024).tolist() == []
    assert chunk_counts_of_width(0, 32, ChunkLimits()).tolist() == []
    assert chunk_counts_of_costs(np.zeros(1, np.int64), 4, ChunkLimits()).tolist() == []
