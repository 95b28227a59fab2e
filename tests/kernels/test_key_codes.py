from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from lance_ops import kernels
from lance_ops.kernels.read_only_arrays import read_only

KEYS = st.lists(st.one_of(st.integers(0, 9), st.integers(0, 2**64 - 1)), max_size=60)


@given(KEYS, KEYS, st.integers(0, 3))
def test_keys_are_numbered_by_first_appearance_and_found_again(
    keys: list[int], asked: list[int], spare_bits: int
) -> None:
    bits = (2 * len(keys)).bit_length() + 3 + spare_bits
    slots, marks = np.full(1 << bits, -1, np.int32), np.zeros(1 << (bits - 3), np.uint64)
    codes, key_of = np.empty(len(keys), np.int64), np.empty(len(keys), np.uint64)
    count = kernels.build_codes(read_only(np.array(keys, np.uint64)), 64 - bits, slots, marks, codes, key_of)

    distinct = list(dict.fromkeys(keys))
    assert key_of[:count].tolist() == distinct
    assert codes.tolist() == [distinct.index(key) for key in keys]
    found = np.empty(len(asked), np.int64)
    kernels.find_codes(
        read_only(np.array(asked, np.uint64)), 64 - bits, read_only(slots), read_only(key_of[:count]), found
    )
    assert found.tolist() == [distinct.index(key) if key in distinct else -1 for key in asked]
    places, hits = np.empty(len(asked), np.int64), np.empty(len(asked), np.int64)
    num_hits = kernels.find_hits(
        read_only(np.array(asked, np.uint64)),
        64 - bits,
        read_only(slots),
        read_only(key_of[:count]),
        read_only(marks),
        places,
        hits,
    )
    there = [place for place, key in enumerate(asked) if key in distinct]
    assert places[:num_hits].tolist() == there
    assert hits[:num_hits].tolist() == [distinct.index(asked[place]) for place in there]
