"""What is measured of a page's values before an encoding is chosen. Everything is counted in bytes or values.

Measures of the whole page are exact; what would cost more than writing the page is estimated from a sample, which is
the same for the same values.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from lance_ops.encodings.lanes import BLOCK, INTEGER_BITS, bit_widths, packed_bytes
from lance_ops.encodings.values import FixedWidth, Integers, Values, VariableWidth

__all__ = ["FixedStatistics", "arrow_of", "estimate_distinct", "sample_runs"]

_SAMPLE_VALUES = 8192


@dataclass(frozen=True, eq=False)
class FixedStatistics:
    """Measures of fixed-width values of 8, 16, 32 or 64 bits, each taken when it is first asked for."""

    values: FixedWidth

    @cached_property
    def num_runs(self) -> int:
        """Runs of equal values."""
        integers = self.values.as_integers()
        return int(np.count_nonzero(integers[1:] != integers[:-1])) + (len(integers) > 0)

    @cached_property
    def flat_bytes(self) -> int:
        """The values as they are."""
        return self.values.size_bytes

    @cached_property
    def bitpacked_bytes(self) -> int:
        """The values in blocks of 1024, each as wide as its largest value needs."""
        full, rest = divmod(self.values.num_values, BLOCK)
        counts: Integers = np.array([BLOCK] * full + [rest] * (rest > 0), np.int64)
        widths = bit_widths(self.values, counts)
        return int((packed_bytes(widths) + self.values.bits_per_value // 8).sum())

    @cached_property
    def rle_bytes(self) -> int:
        """A value and a length byte for each run; chunks cut runs, and lengths do beyond 255."""
        num_cuts = self.values.num_values // 255
        return min(self.num_runs + num_cuts, self.num_runs * 2) * (self.values.bits_per_value // 8 + 1)


def estimate_distinct(values: FixedWidth | VariableWidth) -> float:
    """Estimate how many distinct values there are; exact for few values.

    From a sample, by how many values it has once and twice (Chao 1984, bias-corrected).
    """
    array = arrow_of(values)
    if len(array) > 2 * _SAMPLE_VALUES:
        picked = np.sort(np.random.default_rng(0).choice(len(array), _SAMPLE_VALUES, replace=False))
        array = array.take(pa.array(picked))
    counts = pc.value_counts(array).field("counts").to_numpy()
    if len(array) == values.num_values:
        return len(counts)
    once, twice = int((counts == 1).sum()), int((counts == 2).sum())
    return min(values.num_values, len(counts) + once * (once - 1) / (2 * (twice + 1)))


def arrow_of(values: FixedWidth | VariableWidth) -> pa.Array:
    """View values as an Arrow array without nulls, without a copy."""
    if isinstance(values, VariableWidth):
        arrow_type: Any = pa.binary() if values.bits_per_offset == 32 else pa.large_binary()
        buffers = [None, pa.py_buffer(values.offsets), pa.py_buffer(values.data)]
        return pa.Array.from_buffers(arrow_type, values.num_values, buffers)
    if values.bits_per_value in INTEGER_BITS:
        return pa.array(values.as_integers())
    arrow_type = pa.binary(values.bits_per_value // 8)
    return pa.Array.from_buffers(arrow_type, values.num_values, [None, pa.py_buffer(np.ascontiguousarray(values.data))])


def sample_runs(values: FixedWidth | VariableWidth, run_values: int, num_runs: int) -> list[Values]:
    """Return up to `num_runs` runs of consecutive values from all over; all values when they are no more than that."""
    if values.num_values <= run_values * num_runs:
        return [values] if values.num_values else []
    starts = np.linspace(0, values.num_values - run_values, num_runs).astype(np.int64) // 8 * 8
    return [values.slice(start, start + run_values) for start in starts.tolist()]
