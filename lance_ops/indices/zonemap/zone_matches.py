"""Decide for each zone whether a condition on the indexed column may be true for one of its rows.

This is `Predicate.may_match` for thousands of zones at once: three masks say for which zones the condition may be true,
false and unknown. Values are ordered as in filters: -0.0 equals 0.0, and NaN is above all numbers and equals itself.
"""

from __future__ import annotations

from functools import reduce
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from lance_ops.core.arrow import array_of_scalars, numbers_of, scalar, truths_of
from lance_ops.core.ndarrays import BoolArray
from lance_ops.core.predicate import (
    And,
    BooleanValue,
    Column,
    Compare,
    CompareOp,
    In,
    IsNull,
    IsTrue,
    Like,
    Literal,
    Not,
    Or,
    Predicate,
    StartsWith,
)
from lance_ops.core.records import dataclass
from lance_ops.indices.sort_keys import sort_keys
from lance_ops.indices.zonemap.layout import ZoneTable

__all__ = ["ZoneBounds", "can_rule_out", "may_match"]

Keys = npt.NDArray[Any]
"""Order keys without nulls: floats, integers, or Python objects."""


def can_rule_out(predicate: Predicate) -> bool:
    """Return whether the bounds of a zone can rule out that a condition on one column is true there."""
    match predicate:
        case Compare(_, Column() as column, Literal(value)):
            return bool(value.is_valid and value.type == column.type)
        case In(Column()) | IsNull(Column()) | BooleanValue(Column()) | StartsWith(Column()):
            return True
        case Like(Column()):
            return bool(predicate.prefix)
        case Not(IsNull(Column()) | BooleanValue(Column()) | In(Column()) | Compare() as part):
            return can_rule_out(part)
        case IsTrue(part):
            return can_rule_out(part)
        case And(parts):
            return any(map(can_rule_out, parts))
        case Or(parts):
            return all(map(can_rule_out, parts))
        case _:
            return False


def may_match(predicate: Predicate, zones: ZoneTable) -> BoolArray:
    """Return for each zone whether the condition may be true for one of its rows."""
    return _Zones(zones).truths(predicate).true


@dataclass(frozen=True)
class ZoneBounds:
    """The known bounds of zones as order keys, in which `is_known` says where there is one.

    The bounds are those of the numbers, the texts and so on; NaNs are counted apart.
    """

    keys: Keys
    is_known: BoolArray

    @classmethod
    def of(cls, values: pa.Array) -> ZoneBounds:
        """Convert stored bounds, or any other values, to keys."""
        if pa.types.is_float16(values.type):
            values = values.cast(pa.float32())
        if pa.types.is_floating(values.type):
            keys = numbers_of(values.fill_null(scalar(float("nan"), values.type))).astype(np.float64)
            return cls(keys, ~np.isnan(keys))
        is_known = truths_of(pc.is_valid(values))
        keys = sort_keys(values)
        if pa.types.is_integer(keys.type):
            return cls(numbers_of(keys.fill_null(scalar(0, keys.type))), is_known)
        objects = np.empty(len(keys), np.object_)
        objects[:] = keys.to_pylist()
        return cls(objects, is_known)

    def compare(self, op: np.ufunc, key: Any) -> BoolArray:
        """Return the comparison of each known bound with a key; true where the bound is unknown."""
        result = np.ones(len(self.keys), np.bool_)
        boxed = np.empty(1, self.keys.dtype)
        boxed[0] = key  # numpy would strip the zeros at the end of bytes that stand alone
        result[self.is_known] = op(self.keys[self.is_known], boxed).astype(np.bool_)
        return result


@dataclass(frozen=True)
class _Truths:
    """For each zone, whether a condition may be true, false and unknown for one of its rows."""

    true: BoolArray
    false: BoolArray
    unknown: BoolArray

    def both(self, other: _Truths) -> _Truths:
        unknown = (self.unknown & (other.true | other.unknown)) | (other.unknown & self.true)
        return _Truths(self.true & other.true, self.false | other.false, unknown)

    def negated(self) -> _Truths:
        return _Truths(self.false, self.true, self.unknown)

    def either(self, other: _Truths) -> _Truths:
        return self.negated().both(other.negated()).negated()


class _Zones:
    def __init__(self, zones: ZoneTable) -> None:
        self._table = zones
        self._values = zones.may_have_values()
        self._nulls = zones.null_counts > 0
        self._nans = zones.nan_counts > 0
        self._bounds: dict[Column, tuple[ZoneBounds, ZoneBounds]] = {}

    def truths(self, predicate: Predicate) -> _Truths:
        match predicate:
            case And(parts):
                return reduce(_Truths.both, map(self.truths, parts))
            case Or(parts):
                return reduce(_Truths.either, map(self.truths, parts))
            case Not(part):
                return self.truths(part).negated()
            case IsTrue(part):
                inner = self.truths(part)
                return _Truths(inner.true, inner.false | inner.unknown, self._none)
            case IsNull(Column()):
                return _Truths(self._nulls, self._values | self._nans, self._none)
            case BooleanValue(Column() as column):
                return self._compared(CompareOp.EQ, column, scalar(True))
            case Compare(op, Column() as column, Literal(value)) if value.is_valid and value.type == column.type:
                return self._compared(op, column, value)
            case In(Column() as column, values, or_null):
                return self._listed(column, values, or_null)
            case StartsWith(Column() as column) | Like(Column() as column):
                return self._prefixed(column, predicate.prefix)
            case _:
                return _Truths(*[np.ones(len(self._values), np.bool_)] * 3)

    @property
    def _none(self) -> BoolArray:
        return np.zeros(len(self._values), np.bool_)

    def _compared(self, op: CompareOp, column: Column, value: pa.Scalar) -> _Truths:
        wanted = ZoneBounds.of(array_of_scalars([value], value.type))
        lower, upper = self._bounds_of(column)
        less = greater = equal = self._values
        if wanted.is_known[0]:
            key = wanted.keys[0]
            less = less & lower.compare(np.less, key)
            equal = equal & lower.compare(np.less_equal, key) & upper.compare(np.greater_equal, key)
            greater = (greater & upper.compare(np.greater, key)) | self._nans
        else:  # NaN
            equal, greater = self._nans, self._none
        relations = ((less, "less"), (equal, "equal"), (greater, "greater"))
        true, false = self._none, self._none
        for mask, name in relations:
            if name in _RELATIONS[op]:
                true = true | mask
            else:
                false = false | mask
        return _Truths(true, false, self._nulls)

    def _listed(self, column: Column, values: pa.Array, or_null: bool) -> _Truths:
        wanted = ZoneBounds.of(values)
        lower, upper = self._bounds_of(column)
        keys = np.sort(wanted.keys[wanted.is_known])
        # the range of positions in the list that are within the bounds
        first, last = np.zeros(len(self._values), np.int64), np.full(len(self._values), len(keys))
        first[lower.is_known] = np.searchsorted(keys, lower.keys[lower.is_known], "left")
        last[upper.is_known] = np.searchsorted(keys, upper.keys[upper.is_known], "right")
        lists_nan = len(keys) < len(values)
        true = (self._values & (first < last)) | (self._nans & lists_nan)
        is_single = lower.is_known & upper.is_known & ~self._nans
        is_single[is_single] = (lower.keys[is_single] == upper.keys[is_single]).astype(np.bool_)
        others = (self._values | self._nans) & ~(is_single & true)
        unknown = self._nulls | others if or_null else self._nulls
        return _Truths(true, self._none if or_null else others, unknown)

    def _prefixed(self, column: Column, prefix: str) -> _Truths:
        lower, upper = self._bounds_of(column)
        start = prefix.encode("utf-8", "surrogatepass")
        true = self._values & upper.compare(np.greater_equal, start)
        stem = start.rstrip(b"\xff")
        if stem:
            true &= lower.compare(np.less, stem[:-1] + bytes([stem[-1] + 1]))
        return _Truths(true, self._values, self._nulls)

    def _bounds_of(self, column: Column) -> tuple[ZoneBounds, ZoneBounds]:
        """Return the bounds in the type that the column is compared in."""
        if column not in self._bounds:
            stored = Column(("bound",), column.arrow_type)
            sides = (
                pa.RecordBatch.from_arrays([side], names=["bound"]) for side in (self._table.mins, self._table.maxs)
            )
            lower, upper = (ZoneBounds.of(stored.evaluate(side)) for side in sides)
            self._bounds[column] = lower, upper
        return self._bounds[column]


_RELATIONS = {
    CompareOp.EQ: {"equal"},
    CompareOp.NE: {"less", "greater"},
    CompareOp.LT: {"less"},
    CompareOp.LE: {"less", "equal"},
    CompareOp.GT: {"greater"},
    CompareOp.GE: {"equal", "greater"},
}
