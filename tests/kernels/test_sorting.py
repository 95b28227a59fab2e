"""Words are sorted as Python sorts them, and equal ones stay in their order."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lance_ops.core.ndarrays import Uint32Array, Uint64Array
from lance_ops.kernels.without_numba import TWINS
from lance_ops.kernels.words import sort_words

SortWords = Callable[[Uint64Array, Uint32Array], int]
any_words = st.lists(st.integers(0, 3) | st.sampled_from([255, 256, 1 << 40, 1 << 63]) | st.integers(0, 2**64 - 1))


@pytest.mark.parametrize("sort", [sort_words, TWINS["sort_words"]], ids=["kernel", "twin"])
@given(any_words)
def test_any_words_are_sorted_stably(sort: SortWords, words: list[int]) -> None:
    given_words, order = np.array(words, np.uint64), np.full(len(words), 7, np.uint32)
    assert sort(given_words, order) == len(words)
    assert given_words.tolist() == sorted(words)
    assert order.tolist() == sorted(range(len(words)), key=words.__getitem__)


@pytest.mark.parametrize("num_bytes", range(9))
def test_words_that_differ_in_any_number_of_bytes_are_sorted(num_bytes: int) -> None:
    words = np.random.default_rng(num_bytes).integers(0, 1 << 63, 5000, np.uint64) << np.uint64(1)
    words >>= np.uint64(64 - max(8 * num_bytes, 1))
    words[words > 0] |= np.uint64(1 << 63)  # so that the first byte differs, too
    expected = np.argsort(words, kind="stable")
    given_words, order = words.copy(), np.empty(5000, np.uint32)
    sort_words(given_words, order)
    assert (order == expected).all()
    assert (given_words == words[expected]).all()
