"""A search for many values finds what a search for each of them finds, and does not grow with their number."""

from __future__ import annotations

import time

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lance_ops.maintenance.erasure.byte_search import ByteSearch

_LETTERS = st.sampled_from(b"ab\x00").map(lambda letter: bytes([letter]))


def _bytes(least: int, most: int) -> st.SearchStrategy[bytes]:
    return st.lists(_LETTERS, min_size=least, max_size=most).map(b"".join)


@given(content=_bytes(0, 60), values=st.lists(_bytes(4, 12), max_size=40))
def test_a_value_is_found_wherever_it_stands(content: bytes, values: list[bytes]) -> None:
    assert ByteSearch(values).finds_any_in(content) == any(value in content for value in values)


@pytest.mark.parametrize("place", [0, 1, 7, 8, 4_000, 9_987])
@pytest.mark.parametrize("value", [b"abcd", b"abcdefg", b"abcdefgh", b"abcdefghijkl"])
def test_one_of_many_values_is_found_at_any_place(place: int, value: bytes) -> None:
    others = [b"other-%05d" % number for number in range(500)]
    content = bytearray(10_000)
    content[place : place + len(value)] = value
    content = content[:10_000]
    assert ByteSearch([*others, value]).finds_any_in(bytes(content)) == (value in content)
    assert not ByteSearch(others).finds_any_in(bytes(content))


def test_a_hundred_times_as_many_values_take_no_ten_times_as_long() -> None:
    content = np.random.default_rng(1).integers(0, 256, 4 << 20, dtype=np.uint8).tobytes()
    searches = [ByteSearch([b"user-%08d" % each for each in range(count)]) for count in (1_000, 100_000)]
    seconds = [min(_seconds(search, content) for _ in range(3)) for search in searches]
    assert seconds[1] < 10 * seconds[0]


def _seconds(search: ByteSearch, content: bytes) -> float:
    began = time.process_time()
    assert not search.finds_any_in(content)
    return time.process_time() - began
