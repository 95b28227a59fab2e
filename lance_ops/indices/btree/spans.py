"""From a query on values to spans of an index's rows.

The index tells more values apart than a query does. -0.0 and 0.0 are neighbours, and a cut at either leaves both on
the same side. NaN is above all numbers to a query, whatever its sign bit; in the index those with the bit set come
first of all, so a span that reaches the end takes them along.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
import pyarrow as pa

from lance_ops.core.predicate import ColumnQuery, Equals, NotNull, Nulls, Range
from lance_ops.indices.btree.lookup import AFTER_NULLS, BEFORE_NULLS, END, Cut
from lance_ops.indices.sort_keys import Side, key_of, sort_keys

__all__ = ["BTreeQuery", "Span", "spans_of"]

Span: TypeAlias = tuple[Cut | None, Cut | None]
"""The rows between two cuts; `END` is the one after the last row."""


@dataclass(frozen=True)
class BTreeQuery:
    """Values to look for, and whether their rows are all and only those that match."""

    wanted: ColumnQuery
    exact: bool = True


def spans_of(wanted: ColumnQuery, value_type: pa.DataType) -> list[Span]:
    """Return where the rows of a query are in an index on this type. Spans may be empty, or overlap."""
    match wanted:
        case Nulls():
            return [(BEFORE_NULLS, AFTER_NULLS)]
        case NotNull():
            return [(AFTER_NULLS, END)]
        case Equals(_, values):
            starts, stops = (_cuts(values, side, value_type) for side in _SIDES)
            spans: list[Span] = list(zip(starts, stops, strict=True))
        case Range(_, lower, upper):
            start: Cut | None = _first_value(value_type)
            stop: Cut | None = END
            if lower is not None:
                [start] = _cuts(pa.array([lower.value]), "left" if lower.inclusive else "right", value_type)
            if upper is not None:
                [stop] = _cuts(pa.array([upper.value]), "right" if upper.inclusive else "left", value_type)
            spans = [(start, stop)]
    if pa.types.is_floating(value_type) and any(start != END and stop == END for start, stop in spans):
        spans.append((AFTER_NULLS, _first_value(value_type)))
    return spans


_SIDES: tuple[Side, Side] = ("left", "right")


def _first_value(value_type: pa.DataType) -> Cut:
    """Return the cut before the least value of a query's order."""
    return _at(-math.inf, "left", value_type) if pa.types.is_floating(value_type) else AFTER_NULLS


def _cuts(values: pa.Array, side: Side, value_type: pa.DataType) -> list[Cut | None]:
    """Return the cuts before (`left`) or after (`right`) values, none of them null."""
    if pa.types.is_floating(value_type):
        return [_float_cut(value, side, value_type) for value in values.to_pylist()]
    return [Cut(key, side) for key in sort_keys(values.cast(value_type)).to_pylist()]


def _float_cut(value: float, side: Side, value_type: pa.DataType) -> Cut | None:
    if math.isnan(value):
        return _at(math.inf, "right", value_type) if side == "left" else END
    if value == 0:
        return _at(-0.0 if side == "left" else 0.0, side, value_type)
    with np.errstate(over="ignore"):
        nearest = float(value_type.to_pandas_dtype()(value))
    if nearest != value:  # half floats are asked for in single precision
        side = "right" if nearest < value else "left"
    return _at(nearest, side, value_type)


def _at(value: float, side: Side, value_type: pa.DataType) -> Cut:
    return Cut(key_of(pa.scalar(value_type.to_pandas_dtype()(value), value_type)), side)
