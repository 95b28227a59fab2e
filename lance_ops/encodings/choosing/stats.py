"""Measure a page's values before an encoding is chosen. All results are numbers of bytes or of values.

Cheap measures cover the whole page and are exact. Measures that would cost more than writing the page are estimated
from a sample, which is always the same for the same values.
"""

from __future__ import annotations

import math
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from lance_ops import kernels
from lance_ops.core.cached_property import cached_property
from lance_ops.core.ndarrays import BoolArray, Int64Array, Uint64Array, UnsignedArray
from lance_ops.core.records import dataclass
from lance_ops.encodings.lanes import BLOCK, INTEGER_BITS, bit_lengths, packed_bytes
from lance_ops.encodings.page_values import (
    FixedWidth,
    Values,
    VariableWidth,
)
from lance_ops.kernels import read_only

__all__ = ["EqualStatistics", "FixedStatistics", "estimate_distinct", "estimate_index_bytes", "sample_runs"]

_SAMPLE_VALUES = 8192
_SAMPLE_BLOCKS = 8
_SURE_EXPONENT = 12
# Only this many bytes of each end of a sampled value are compared.
_END_BYTES = 32


@dataclass(frozen=True, eq=False)
class FixedStatistics:
    """Statistics of values of 8, 16, 32 or 64 bits; all are measured when the first is asked for."""

    values: FixedWidth

    @cached_property
    def _measured(self) -> tuple[int, Int64Array]:
        """Return the number of runs, and the bit width of each block of 1024 values."""
        unions = np.empty(-(-self.values.num_values // BLOCK), np.uint64)
        num_runs = kernels.measure_integers(read_only(self.values.as_integers()), BLOCK, unions)
        return num_runs, bit_lengths(unions)

    @property
    def num_runs(self) -> int:
        """The number of runs of equal values."""
        return self._measured[0]

    @cached_property
    def bit_width(self) -> int:
        """The number of bits that the largest value needs."""
        return int(self._measured[1].max(initial=0))

    @property
    def flat_bytes(self) -> int:
        """The bytes of the values unpacked."""
        return self.values.size_bytes

    @cached_property
    def bitpacked_bytes(self) -> int:
        """The bytes of the values in packed blocks of 1024, each at the width of its largest value."""
        return int((packed_bytes(self._measured[1]) + self.values.bits_per_value // 8).sum())

    @property
    def rle_bytes(self) -> int:
        """The bytes of a value and a length byte for each run; the ends of chunks and the length 255 cut runs."""
        return self.rle_bytes_of(self.values.bits_per_value)

    def rle_bytes_of(self, bits_per_value: int) -> int:
        """Return `rle_bytes` for values of another width that change at the same positions."""
        num_cuts = self.values.num_values // 255
        return min(self.num_runs + num_cuts, self.num_runs * 2) * (bits_per_value // 8 + 1)


@dataclass(frozen=True, eq=False)
class EqualStatistics:
    """Statistics of several pages of integers, all of one block at most: row `i` of `values` has those of page `i`.

    The measures of a page are those of `FixedStatistics`.
    """

    values: UnsignedArray

    @property
    def bits_per_value(self) -> int:
        """The width of the values."""
        return 8 * self.values.itemsize

    @cached_property
    def num_runs(self) -> Int64Array:
        """The number of runs of equal values in each page."""
        changes: Int64Array = np.count_nonzero(self.values[:, 1:] != self.values[:, :-1], axis=1)
        return changes + 1

    @property
    def flat_bytes(self) -> int:
        """The bytes of any page's values unpacked."""
        return int(self.values.shape[1] * self.values.itemsize)

    @property
    def bitpacked_bytes(self) -> Int64Array:
        """The bytes of each page's values in a packed block."""
        unions: Uint64Array = np.bitwise_or.reduce(self.values, axis=1).astype(np.uint64)
        packed: Int64Array = packed_bytes(bit_lengths(unions))
        return packed + self.values.itemsize

    @property
    def rle_bytes(self) -> Int64Array:
        """The bytes of a value and a length byte for each run of a page."""
        num_cuts = self.values.shape[1] // 255
        num_runs: Int64Array = np.minimum(self.num_runs + num_cuts, self.num_runs * 2)
        return num_runs * (self.values.itemsize + 1)

    @property
    def may_repeat(self) -> BoolArray:
        """Whether `estimate_distinct` may find fewer distinct values in a page than it has values."""
        num_values = self.values.shape[1]
        keys = np.sort(self.values[:, _sample_positions(num_values, _num_picked(num_values))], axis=1)
        repeats: BoolArray = (keys[:, 1:] == keys[:, :-1]).any(axis=1)
        return repeats


def estimate_distinct(values: FixedWidth | VariableWidth) -> float:
    """Estimate how many distinct values there are.

    The estimator uses how many values a sample holds once and twice (Chao 1984, bias-corrected). If no value occurs
    twice in a small first sample, all values count as distinct. Long values with equal lengths and ends count as equal.
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
    """Estimate the bytes of the packed indices of 8- to 64-bit values into a dictionary of `num_entries`.

    Entries stand in the order of their first appearance. The largest index in a block of `k` distinct values is about
    `k / (k + 1)` times the number of entries.
    """
    blocks = sample_runs(values, BLOCK, _SAMPLE_BLOCKS)
    kept = [len(_run_ends(np.sort(block.as_integers()))) for block in blocks if isinstance(block, FixedWidth)]
    widths = [int(num_entries * k / (k + 1)).bit_length() for k in kept]
    return values.num_values * sum(widths) / max(len(widths), 1) / 8


def _no_two_are_equal(values: FixedWidth | VariableWidth) -> bool:
    """Return whether a small sample holds no value twice. If all stood twice in the page, it nearly always would.

    With `d` distinct values, `n` picks are all different with a probability of about `exp(-n ** 2 / (2 * d))`.
    """
    keys = np.sort(_keys(values, _sample_positions(values.num_values, _num_picked(values.num_values))))
    return not (keys[1:] == keys[:-1]).any()


def _num_picked(num_values: int) -> int:
    return math.isqrt(_SURE_EXPONENT * num_values) + 1


@lru_cache(maxsize=16)
def _sample_positions(num_values: int, num_picked: int) -> Int64Array:
    """Return ascending positions of a sample; cached, because the pages of a table are often equally long."""
    picked = np.sort(np.random.default_rng(0).integers(0, num_values, num_picked))
    return read_only(picked[_run_ends(picked)])


def _run_ends(numbers: NDArray[np.signedinteger] | UnsignedArray) -> Int64Array:
    """Return the index of the last number of each run."""
    return np.flatnonzero(np.append(numbers[1:] != numbers[:-1], len(numbers) > 0))


def _keys(values: FixedWidth | VariableWidth, picked: slice | Int64Array) -> UnsignedArray:
    """Return a number for each picked value; equal values get equal numbers."""
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
    kernels.hash_values(read_only(values.data), read_only(starts), read_only(sizes), _END_BYTES, hashes)
    return hashes


def sample_runs(values: FixedWidth | VariableWidth, run_values: int, num_runs: int) -> list[Values]:
    """Return up to `num_runs` runs of consecutive values spread over the page; all values if there are no more."""
    if values.num_values <= run_values * num_runs:
        return [values] if values.num_values else []
    starts = np.linspace(0, values.num_values - run_values, num_runs).astype(np.int64) // 8 * 8
    return [values.slice(start, start + run_values) for start in starts.tolist()]
