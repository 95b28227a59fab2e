from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from lance_ops import kernels
from lance_ops.kernels.arrays import readable
from tests.kernels import twins


def test_known_hashes() -> None:
    # From the test vectors of the specification.
    assert twins.xxh64(b"") == 0xEF46DB3751D8E999
    assert twins.xxh64(b"abc") == 0x44BC2CF5AD770999


@given(st.lists(st.binary(max_size=80), max_size=9), st.integers(0, 7))
def test_every_string_gets_its_hash(strings: list[bytes], before: int) -> None:
    data = np.frombuffer(bytes(before) + b"".join(strings) + b"!", np.uint8)
    ends = before + np.cumsum([0, *map(len, strings)])
    out = np.zeros(len(strings), np.uint64)
    kernels.xxh64(readable(data), readable(ends.astype(np.int64)), out)
    assert out.tolist() == [twins.xxh64(string) for string in strings]
