from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lance_ops import kernels
from lance_ops.core.ndarrays import OffsetArray, Uint32Array
from lance_ops.kernels.read_only_arrays import read_only
from tests.kernels import twins

NO_FLAGS = read_only(np.empty(0, np.uint8))


def offsets_of(items: list[bytes], width: int) -> OffsetArray:
    ends = np.cumsum([0, *map(len, items)])
    return ends.astype(np.int32) if width == 4 else ends.astype(np.int64)


def places_of(positions: list[int]) -> Uint32Array:
    return read_only(np.array(positions, np.uint32))


@given(st.lists(st.binary(max_size=40), min_size=1, max_size=9), st.sampled_from([4, 8]), st.data())
def test_repeating_items_equals_the_plain_twin(items: list[bytes], width: int, data: st.DataObject) -> None:
    picked = data.draw(st.lists(st.tuples(st.integers(0, len(items) - 1), st.booleans()), max_size=30))
    all_there = data.draw(st.booleans())
    # where nothing is there, the position may be anything
    positions = [position if there or all_there else (1 << 32) - 1 for position, there in picked]
    present = [there or all_there for _, there in picked]
    flags = NO_FLAGS if all_there else read_only(np.array(present, np.uint8))
    offsets, joined, places = read_only(offsets_of(items, width)), b"".join(items), places_of(positions)
    ends = np.zeros(len(positions) + 1, offsets.dtype)
    size = kernels.place_items(offsets, len(joined), places, flags, ends)
    out = np.zeros(size + 16, np.uint8)
    kernels.repeat_items(read_only(np.frombuffer(joined, np.uint8)), offsets, places, out, read_only(ends))
    expected = twins.repeat_items(items, positions, present)
    assert (ends[0], ends[-1]) == (0, size)
    assert [out[a:b].tobytes() for a, b in itertools.pairwise(ends)] == expected


@pytest.mark.parametrize("width", [4, 8])
@pytest.mark.parametrize("offsets", [[0, 3, 2], [0, -1, 4], [0, 3, 9]])
def test_items_outside_the_bytes_are_refused(width: int, offsets: list[int]) -> None:
    items = read_only(np.array(offsets, f"<i{width}"))
    ends = np.zeros(3, items.dtype)
    assert kernels.place_items(items, 8, places_of([0, 1]), NO_FLAGS, ends) == -1


@pytest.mark.parametrize("position", [2, 1 << 31, (1 << 32) - 1])
def test_a_position_beyond_the_items_is_refused(position: int) -> None:
    items, ends = read_only(offsets_of([b"a", b"bc"], 4)), np.zeros(3, np.int32)
    assert kernels.place_items(items, 3, places_of([1, position]), NO_FLAGS, ends) == -1


def test_the_returned_end_may_exceed_narrow_offsets() -> None:
    items, ends = read_only(np.array([0, 1 << 30], np.int32)), np.zeros(9, np.int32)
    assert kernels.place_items(items, 1 << 30, places_of([0] * 8), NO_FLAGS, ends) == 8 << 30
