from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from lance_ops import kernels
from lance_ops.kernels.read_only_arrays import read_only
from tests.kernels import twins


def test_hashes_equal_the_test_vectors_of_the_specification() -> None:
    # From the test vectors of the specification.
    assert twins.xxh64(b"") == 0xEF46DB3751D8E999
    assert twins.xxh64(b"abc") == 0x44BC2CF5AD770999


@given(st.lists(st.binary(max_size=80), max_size=9), st.integers(0, 7))
def test_the_hash_of_a_string_does_not_depend_on_its_place(strings: list[bytes], before: int) -> None:
    data = np.frombuffer(bytes(before) + b"".join(strings) + b"!", np.uint8)
    ends = before + np.cumsum([0, *map(len, strings)])
    out = np.zeros(len(strings), np.uint64)
    kernels.xxh64(read_only(data), read_only(ends.astype(np.int64)), out)
    assert out.tolist() == [twins.xxh64(string) for string in strings]
