"""Estimated statistics of values compared with exact ones."""

from __future__ import annotations

import numpy as np
import pytest

from lance_ops.encodings.choosing.stats import estimate_distinct
from lance_ops.encodings.page_values.values import FixedWidth


def integers(numbers: np.ndarray[tuple[int], np.dtype[np.int64]]) -> FixedWidth:
    return FixedWidth(numbers.astype("<i8").view(np.uint8), 64, len(numbers))


@pytest.mark.parametrize("num_values", [0, 1, 100, 10_000, 100_000])
def test_values_that_are_all_distinct_are_counted(num_values: int) -> None:
    assert estimate_distinct(integers(np.random.default_rng(1).permutation(num_values))) == num_values


@pytest.mark.parametrize("num_values", [100, 10_000, 100_000])
@pytest.mark.parametrize("copies", [3, 10, 50])
@pytest.mark.parametrize("in_runs", [False, True])
def test_repeated_values_are_counted_within_bounds(num_values: int, copies: int, in_runs: bool) -> None:
    numbers = np.arange(num_values) // copies
    if not in_runs:
        numbers = np.random.default_rng(2).permutation(numbers)
    distinct = len(np.unique(numbers))
    assert 0.9 * distinct <= estimate_distinct(integers(numbers)) <= 1.5 * distinct
