from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from lance_ops import kernels
from lance_ops.kernels.arrays import readable
from tests.kernels import twins


@given(st.lists(st.integers(0, 300), max_size=200), st.integers(0, 20), st.sampled_from([1, 2, 64, 4096]))
def test_chunks_end_where_the_plain_twin_ends_them(costs: list[int], chunk_bytes: int, max_values: int) -> None:
    ends = np.cumsum([0, *costs]).astype(np.int64)
    counts = np.zeros(len(costs), np.int64)
    num_chunks = kernels.cut_chunks(readable(ends), chunk_bytes, 512, max_values, counts)
    assert counts[:num_chunks].tolist() == twins.cut_chunks(costs, chunk_bytes, 512, max_values)
