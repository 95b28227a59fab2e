"""Convert a query on values into spans of an index's sorted rows.

The index distinguishes more values than a query does. -0.0 and 0.0 are neighbours in the index, so a cut leaves both on
the same side. For a query NaN is above all numbers, whatever its sign bit. In the index the NaNs with the sign bit set
come first. So a span that reaches the end of the index gets a second span with those NaNs.
"""

from __future__ import annotations

import math
from typing import TypeAlias

import numpy as np
import pyarrow as pa

from lance_ops.core.arrow import array_of_scalars, scalar
from lance_ops.core.predicate import ColumnQuery, Equals, NotNull, Nulls, Range
from lance_ops.core.records import dataclass
from lance_ops.indices.btree.page_lookup import AFTER_NULLS, BEFORE_NULLS, END, Cut
from lance_ops.indices.sort_keys import Side, key_of, sort_keys

__all__ = ["BTreeQuery", "Span", "spans_of"]

Span: TypeAlias = tuple[Cut | None, Cut | None]
"""The rows between two cuts; `END` stands for the position after the last row."""


@dataclass(frozen=True)
class BTreeQuery:
    """The values to look for. If `exact` is false, some of their rows may not match."""

    wanted: ColumnQuery
    exact: bool = True


def spans_of(wanted: ColumnQuery, value_type: pa.DataType) -> list[Span]:
    """Return the spans that hold a query's rows in an index on this type. Spans may be empty, and may overlap."""
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
                [start] = _cuts(
                    array_of_scalars([lower.value], lower.value.type),
                    "left" if lower.inclusive else "right",
                    value_type,
                )
            if upper is not None:
                [stop] = _cuts(
                    array_of_scalars([upper.value], upper.value.type),
                    "right" if upper.inclusive else "left",
                    value_type,
                )
            spans = [(start, stop)]
    if pa.types.is_floating(value_type) and any(start != END and stop == END for start, stop in spans):
        spans.append((AFTER_NULLS, _first_value(value_type)))
    return spans


_SIDES: tuple[Side, Side] = ("left", "right")


def _first_value(value_type: pa.DataType) -> Cut:
    """Return the cut before the least value in the query's order."""
    return _cut_at(-math.inf, "left", value_type) if pa.types.is_floating(value_type) else AFTER_NULLS


def _cuts(values: pa.Array, side: Side, value_type: pa.DataType) -> list[Cut | None]:
    """Return the cuts before (`left`) or after (`right`) values, none of which is null."""
    if pa.types.is_floating(value_type):
        return [_float_cut(value, side, value_type) for value in values.to_pylist()]
    return [Cut(key, side) for key in sort_keys(values.cast(value_type)).to_pylist()]


def _float_cut(value: float, side: Side, value_type: pa.DataType) -> Cut | None:
    if math.isnan(value):
        return _cut_at(math.inf, "right", value_type) if side == "left" else END
    if value == 0:
        return _cut_at(-0.0 if side == "left" else 0.0, side, value_type)
    with np.errstate(over="ignore"):
        nearest = float(value_type.to_pandas_dtype()(value))
    if nearest != value:  # a query on half floats has bounds in single precision
        side = "right" if nearest < value else "left"
    return _cut_at(nearest, side, value_type)


def _cut_at(value: float, side: Side, value_type: pa.DataType) -> Cut:
    return Cut(key_of(scalar(float(value_type.to_pandas_dtype()(value)), value_type)), side)
