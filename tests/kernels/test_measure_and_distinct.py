from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lance_ops import kernels
from lance_ops.kernels.read_only_arrays import read_only

few_words = st.lists(st.integers(0, 3) | st.integers(0, 2**64 - 1), max_size=40)


@given(st.sampled_from([8, 16, 32, 64]), few_words, st.sampled_from([1, 3, 8]))
def test_measured_runs_and_bits_equal_those_of_the_values(bits: int, words: list[int], block: int) -> None:
    values = np.array([word % (1 << bits) for word in words], f"u{bits // 8}")
    unions = np.empty(-(-len(values) // block), np.uint64)
    num_runs = kernels.measure_integers(read_only(values), block, unions)
    assert num_runs == len(list(itertools.groupby(values.tolist())))
    expected = [np.bitwise_or.reduce(values[start : start + block]) for start in range(0, len(values), block)]
    assert unions.tolist() == expected


@given(few_words)
def test_distinct_words_are_numbered_by_first_appearance(words: list[int]) -> None:
    distinct = list(dict.fromkeys(words))
    firsts, indices = np.empty(len(distinct), np.int64), np.empty(len(words), np.uint32)
    assert kernels.number_distinct(read_only(np.array(words, np.uint64)), firsts, indices) == len(distinct)
    assert [words[first] for first in firsts] == distinct
    assert [distinct[index] for index in indices] == words
    assert all(words.index(words[first]) == first for first in firsts)


def test_the_table_of_words_grows_and_too_many_words_are_refused() -> None:
    words = np.random.default_rng(1).permutation(np.repeat(np.arange(5000, dtype=np.uint64), 2))
    firsts, indices = np.empty(5000, np.int64), np.empty(len(words), np.uint32)
    assert kernels.number_distinct(read_only(words), firsts, indices) == 5000
    assert (words[firsts][indices] == words).all()
    assert kernels.number_distinct(read_only(words), firsts[:4999], indices) == -1


@given(st.lists(st.binary(max_size=40), min_size=1, max_size=20))
def test_equal_values_have_equal_hashes_at_any_place(values: list[bytes]) -> None:
    data = b"".join(values)
    sizes = np.array([len(value) for value in values], np.int64)
    ends = np.cumsum(sizes)
    hashes, again = np.empty(len(values), np.uint64), np.empty(1, np.uint64)
    array = read_only(np.frombuffer(data, np.uint8))
    kernels.hash_values(array, read_only(ends - sizes), read_only(sizes), len(data), hashes)
    for value, expected in zip(values, hashes.tolist(), strict=True):
        alone = read_only(np.frombuffer(b"x" + value, np.uint8))
        kernels.hash_values(alone, read_only(np.array([1])), read_only(np.array([len(value)])), 100, again)
        assert again[0] == expected
    assert len(set(hashes.tolist())) == len(set(values))


def test_long_values_are_hashed_by_length_and_ends_only() -> None:
    values = [b"a" * 100, b"a" * 101, b"a" * 50 + b"b" + b"a" * 49, b"b" + b"a" * 99]
    sizes = np.array([len(value) for value in values], np.int64)
    hashes = np.empty(len(values), np.uint64)
    data = read_only(np.frombuffer(b"".join(values), np.uint8))
    kernels.hash_values(data, read_only(np.cumsum(sizes) - sizes), read_only(sizes), 32, hashes)
    assert hashes[0] == hashes[2]
    assert len(set(hashes.tolist())) == 3


@pytest.mark.parametrize("size", [1, 8, 9, 16, 17, 40])
def test_a_value_that_differs_in_one_byte_is_not_in_the_dictionary(size: int) -> None:
    same = np.zeros(2 * size, np.uint8)
    offsets, firsts = read_only(np.array([0, size, 2 * size])), read_only(np.zeros(1, np.int64))
    indices = read_only(np.zeros(2, np.uint32))
    assert kernels.is_dictionary_of(read_only(same), offsets, firsts, indices)
    for place in range(size):
        other = same.copy()
        other[size + place] = 1
        assert not kernels.is_dictionary_of(read_only(other), offsets, firsts, indices)
    shorter = read_only(np.array([0, size, 2 * size - 1]))
    assert not kernels.is_dictionary_of(read_only(same), shorter, firsts, indices)
