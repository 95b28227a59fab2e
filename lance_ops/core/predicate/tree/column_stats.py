"""Column statistics, the bounds on values that they prove, and how bounded values may compare.

Values are ordered as the reference implementation orders them: numbers by value (-0.0 is 0.0), text and binary by
bytes, and NaN above everything and equal to itself. If the statistics do not decide, the answer is "may".
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from enum import Flag, auto
from typing import Any, TypeAlias

import pyarrow as pa

from lance_ops.core.records import dataclass

__all__ = ["Bounds", "ColumnStats", "Relations", "Statistics", "order_key", "successor"]


@dataclass(frozen=True)
class ColumnStats:
    """Statistics of one column over a set of rows (a page, a zone, a fragment, a file).

    `min` and `max` bound the values that are neither null nor NaN. `max_truncated` states that `max` is only a prefix
    of the largest value and so does not bound it; a truncated `min` still bounds. None means unknown.
    """

    min: pa.Scalar | None = None
    max: pa.Scalar | None = None
    null_count: int | None = None
    num_rows: int | None = None
    nan_count: int | None = None
    max_truncated: bool = False


Statistics: TypeAlias = Mapping[str, ColumnStats]
"""Statistics by column path, spelled as `Column.name` spells it."""


class Relations(Flag):
    """The ways in which a value of one side may compare with a value of the other."""

    NONE = 0
    LESS = auto()
    EQUAL = auto()
    GREATER = auto()
    ANY = LESS | EQUAL | GREATER


@dataclass(frozen=True)
class Bounds:
    """Bounds on the values of an expression: order keys `lower` and `upper`, None for unbounded.

    `values`, `nulls` and `nans` say whether ordinary values, nulls and NaNs may occur.
    """

    lower: Any = None
    upper: Any = None
    upper_open: bool = False
    values: bool = True
    nulls: bool = True
    nans: bool = True

    @classmethod
    def of_literal(cls, value: pa.Scalar) -> Bounds:
        """Return the bounds of one value."""
        if not value.is_valid:
            return cls(values=False, nans=False)
        key = order_key(value)
        if key != key:
            return cls(values=False, nulls=False)
        return cls(key, key, nulls=False, nans=False)

    @classmethod
    def of_column(cls, stats: ColumnStats, value_type: pa.DataType) -> Bounds:
        """Return the bounds that a column's statistics prove for values of that type."""
        rows, nulls, nans = stats.num_rows, stats.null_count, stats.nan_count
        if not pa.types.is_floating(value_type):
            nans = 0
        lower, upper = _key(stats.min, value_type), _key(stats.max, value_type)
        upper_open = False
        if stats.max_truncated and upper is not None:
            upper, upper_open = successor(upper), True
        bounds = cls(lower, upper, upper_open, rows != 0, nulls != 0 and rows != 0, nans != 0 and rows != 0)
        if rows is not None and nulls is not None:
            if nulls >= rows:
                return replace(bounds, values=False, nans=False)
            if nans is not None and nulls + nans >= rows:
                return replace(bounds, values=False)
        return bounds

    @property
    def single(self) -> bool:
        """Whether all values that are not null are equal."""
        return self.lower is not None and self.lower == self.upper and not self.nans and not self.upper_open

    def relations_to(self, other: Bounds) -> Relations:
        """Return how values of this side, nulls aside, may compare with values of the other."""
        result = Relations.NONE
        if self.values and other.values:
            result |= self._ordered_relations_to(other)
        if self.nans and other.values:
            result |= Relations.GREATER
        if self.values and other.nans:
            result |= Relations.LESS
        if self.nans and other.nans:
            result |= Relations.EQUAL
        return result

    def _ordered_relations_to(self, other: Bounds) -> Relations:
        if self.single and other.single and self.lower == other.lower:
            return Relations.EQUAL
        result = Relations.NONE
        if other.upper is None or self.lower is None or self.lower < other.upper:
            result |= Relations.LESS
        if self.upper is None or other.lower is None or other.lower < self.upper:
            result |= Relations.GREATER
        if self._reaches(other) and other._reaches(self):
            result |= Relations.EQUAL
        return result

    def _reaches(self, other: Bounds) -> bool:
        """Whether the upper end of this side lies at or above the lower end of the other."""
        if self.upper is None or other.lower is None:
            return True
        return bool(other.lower < self.upper) or (other.lower == self.upper and not self.upper_open)


def order_key(value: pa.Scalar) -> Any:
    """Return a Python value that orders as the scalar does among non-null scalars of its type."""
    if pa.types.is_temporal(value.type):
        return value.value  # as_py would drop nanoseconds
    key = value.as_py()
    return key.encode("utf-8", "surrogatepass") if isinstance(key, str) else key


def successor(prefix: bytes) -> bytes | None:
    """Return the least byte string above all that start with the prefix; None when there is none."""
    stem = prefix.rstrip(b"\xff")
    return stem[:-1] + bytes([stem[-1] + 1]) if stem else None


def _key(value: pa.Scalar | None, value_type: pa.DataType) -> Any:
    if value is None or not value.is_valid:
        return None
    try:
        key = order_key(value if value.type == value_type else value.cast(value_type))
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError):
        return None
    return None if key != key else key
