"""What is measured of a page's values before an encoding is chosen. Everything is counted in bytes or values.

Measures of the whole page are exact; what would cost more than writing the page is estimated from a sample, which is
the same for the same values.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property, lru_cache

import numpy as np
from numpy.typing import NDArray

from lance_ops import kernels
from lance_ops.core.ndarrays import Int64Array, UnsignedArray
from lance_ops.encodings.lanes import BLOCK, INTEGER_BITS, bit_lengths, packed_bytes
from lance_ops.encodings.values import (
    FixedWidth,
    Values,
    VariableWidth,
)
from lance_ops.kernels import readable

__all__ = ["FixedStatistics", "estimate_distinct", "estimate_index_bytes", "sample_runs"]

_SAMPLE_VALUES = 8192
_SAMPLE_BLOCKS = 8
_SURE_EXPONENT = 12
# Of a sampled value, so much of either end is looked at.
_END_BYTES = 32


@dataclass(frozen=True, eq=False)
class FixedStatistics:
    """Measures of fixed-width values of 8, 16, 32 or 64 bits, taken together when the first is asked for."""

    values: FixedWidth

    @cached_property
    def _measured(self) -> tuple[int, Int64Array]:
        """The number of runs, and the bits that each block of 1024 values needs."""
        unions = np.empty(-(-self.values.num_values // BLOCK), np.uint64)
        num_runs = kernels.measure_integers(readable(self.values.as_integers()), BLOCK, unions)
        return num_runs, bit_lengths(unions)

    @property
    def num_runs(self) -> int:
        """Runs of equal values."""
        return self._measured[0]

    @cached_property
    def bit_width(self) -> int:
        """The bits that the largest value needs."""
        return int(self._measured[1].max(initial=0))

    @property
    def flat_bytes(self) -> int:
        """The values as they are."""
        return self.values.size_bytes

    @cached_property
    def bitpacked_bytes(self) -> int:
        """The values in blocks of 1024, each as wide as its largest value needs."""
        return int((packed_bytes(self._measured[1]) + self.values.bits_per_value // 8).sum())

    @property
    def rle_bytes(self) -> int:
        """A value and a length byte for each run; chunks cut runs, and lengths do beyond 255."""
        return self.rle_bytes_of(self.values.bits_per_value)

    def rle_bytes_of(self, bits_per_value: int) -> int:
        """The same for values of another width that change where these do."""
        num_cuts = self.values.num_values // 255
        return min(self.num_runs + num_cuts, self.num_runs * 2) * (bits_per_value // 8 + 1)


def estimate_distinct(values: FixedWidth | VariableWidth) -> float:
    """Estimate how many distinct values there are.

    From a sample, by how many values it has once and twice (Chao 1984, bias-corrected); all are taken to be distinct
    where a small one has none twice. Long values that have their length and both ends in common count as one.
    """
    num_values = values.num_values
    if num_values and _no_two_are_equal(values):
        return num_values
    if num_values <= 2 * _SAMPLE_VALUES:
        keys = np.sort(_keys(values, slice(None)))
        return int(np.count_nonzero(keys[1:] != keys[:-1])) + (num_values > 0)
    ends = _run_ends(np.sort(_keys(values, _sample_positions(num_values, _SAMPLE_VALUES))))
    counts = np.diff(ends, prepend=-1)
    once, twice = int((counts == 1).sum()), int((counts == 2).sum())
    return min(num_values, len(counts) + once * (once - 1) / (2 * (twice + 1)))


def estimate_index_bytes(values: FixedWidth, num_entries: float) -> float:
    """Estimate the bytes of packed positions of 8- to 64-bit values in a dictionary of so many entries.

    Entries are in the order of their first appearance. A block with `k` distinct values, which may be any of them, has
    a position of about `k / (k + 1)` times their number.
    """
    blocks = sample_runs(values, BLOCK, _SAMPLE_BLOCKS)
    kept = [len(_run_ends(np.sort(block.as_integers()))) for block in blocks if isinstance(block, FixedWidth)]
    widths = [int(num_entries * k / (k + 1)).bit_length() for k in kept]
    return values.num_values * sum(widths) / max(len(widths), 1) / 8


def _no_two_are_equal(values: FixedWidth | VariableWidth) -> bool:
    """Return whether no value is twice in a small sample: were each twice in the page, one nearly always would be.

    Of `d` distinct values, none is picked twice in `n` picks with a probability of about `exp(-n ** 2 / (2 * d))`.
    """
    num_picked = math.isqrt(_SURE_EXPONENT * values.num_values) + 1
    keys = np.sort(_keys(values, _sample_positions(values.num_values, num_picked)))
    return not (keys[1:] == keys[:-1]).any()


@lru_cache(maxsize=16)
def _sample_positions(num_values: int, num_picked: int) -> Int64Array:
    """Return the positions of a sample of so many values, ascending; the files of a table are often equally long."""
    picked = np.sort(np.random.default_rng(0).integers(0, num_values, num_picked))
    return readable(picked[_run_ends(picked)])


def _run_ends(numbers: NDArray[np.signedinteger] | UnsignedArray) -> Int64Array:
    """Return which number is the last of each run."""
    return np.flatnonzero(np.append(numbers[1:] != numbers[:-1], len(numbers) > 0))


def _keys(values: FixedWidth | VariableWidth, picked: slice | Int64Array) -> UnsignedArray:
    """Return a number for each picked value, the same for equal ones."""
    if isinstance(values, VariableWidth):
        starts = values.offsets[:-1][picked].astype(np.int64, copy=False)
        sizes = values.offsets[1:][picked] - starts
    elif values.bits_per_value in INTEGER_BITS:
        return values.as_integers()[picked]
    else:
        width = values.bits_per_value // 8
        starts = np.arange(values.num_values)[picked] * width
        sizes = np.full(len(starts), width, np.int64)
    hashes = np.empty(len(starts), np.uint64)
    kernels.hash_values(readable(values.data), readable(starts), readable(sizes), _END_BYTES, hashes)
    return hashes


def sample_runs(values: FixedWidth | VariableWidth, run_values: int, num_runs: int) -> list[Values]:
    """Return up to `num_runs` runs of consecutive values from all over; all values when they are no more than that."""
    if values.num_values <= run_values * num_runs:
        return [values] if values.num_values else []
    starts = np.linspace(0, values.num_values - run_values, num_runs).astype(np.int64) // 8 * 8
    return [values.slice(start, start + run_values) for start in starts.tolist()]
