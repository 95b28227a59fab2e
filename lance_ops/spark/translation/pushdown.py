"""Translate Spark's filters into predicates of this library where both have the same meaning.

Both compare text by bytes, put NaN above all numbers and equal to itself, and use three-valued logic. Values may
differ: Spark compares the values that it sees, and a value that was cut or cast on the way (see `types`) is another
one. Filters on such columns stay with Spark.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.types as pt
from pyspark.sql import datasource as spark

from lance_ops.core.errors import InvalidFilter, UnsupportedFeature
from lance_ops.core.predicate import Column, CompareOp, Literal, Predicate
from lance_ops.core.predicate.binding import build
from lance_ops.spark.translation.types import schema_for_spark

__all__ = ["pushed_predicate"]

_COMPARISONS: dict[type[spark.Filter], CompareOp] = {
    spark.EqualTo: CompareOp.EQ,
    spark.GreaterThan: CompareOp.GT,
    spark.GreaterThanOrEqual: CompareOp.GE,
    spark.LessThan: CompareOp.LT,
    spark.LessThanOrEqual: CompareOp.LE,
}


def pushed_predicate(asked: spark.Filter, table: pa.Schema, shape: pa.Schema) -> Predicate | None:
    """Return the predicate equal to a Spark filter on columns of this `shape`, or None if there is none."""
    if isinstance(asked, spark.Not):
        inner = pushed_predicate(asked.child, table, shape)
        return None if inner is None else build.negate(inner)
    path = getattr(asked, "attribute", None)
    column = None if path is None else _column(path, table, shape)
    return None if column is None else _condition(asked, *column)


def _column(path: Sequence[str], table: pa.Schema, shape: pa.Schema) -> tuple[Column, pa.DataType] | None:
    """Return the column and its type in Spark, or None if values of the two compare differently."""
    stored, seen = _leaf(path, table), _leaf(path, shape)
    if stored is None or seen is None or _is_cut(stored):
        return None
    shown = schema_for_spark(pa.schema([("x", stored)])).field(0).type
    return (Column(tuple(path), stored), seen) if shown == seen else None


def _leaf(path: Sequence[str], schema: pa.Schema) -> pa.DataType | None:
    node: pa.DataType = pa.struct(list(schema))
    for name in path:
        if not pt.is_struct(node) or node.get_field_index(name) < 0:
            return None
        node = node.field(name).type
        if isinstance(node, pa.BaseExtensionType):
            node = node.storage_type
    return None if pt.is_nested(node) else node


def _is_cut(stored: pa.DataType) -> bool:
    """Return whether the conversion to Spark may cut values."""
    if pt.is_dictionary(stored):
        stored = stored.value_type
    if pt.is_timestamp(stored) or pt.is_duration(stored):
        return bool(stored.unit == "ns")
    return bool(pt.is_decimal256(stored))


def _is_half_float(value: float) -> bool:
    with np.errstate(over="ignore"):
        return bool(np.isnan(value) or float(np.float16(value)) == value)


def _condition(asked: spark.Filter, column: Column, seen: pa.DataType) -> Predicate | None:
    def literal(value: Any) -> Literal:
        if pt.is_float16(column.arrow_type) and value is not None and not _is_half_float(value):
            raise InvalidFilter(f"{value!r} lies between two half floats, and Spark compares floats")
        return Literal(pa.scalar(value, seen))

    try:
        match asked:
            case spark.IsNull():
                return build.is_null(column)
            case spark.IsNotNull():
                return build.negate(build.is_null(column))
            case spark.EqualNullSafe(value=None):
                return build.is_null(column)
            case spark.EqualNullSafe(value=value):
                return build.is_true(build.compare(CompareOp.EQ, column, literal(value)))
            case spark.In(value=values):
                return build.is_in(column, [literal(value) for value in values])
            case spark.StringStartsWith(value=value):
                return build.starts_with(column, literal(value))
            case spark.StringEndsWith(value=value):
                return build.ends_with(column, literal(value))
            case spark.StringContains(value=value):
                return build.contains(column, literal(value))
            case (
                spark.EqualTo(value=value)
                | spark.GreaterThan(value=value)
                | spark.GreaterThanOrEqual(value=value)
                | spark.LessThan(value=value)
                | spark.LessThanOrEqual(value=value)
            ):
                return build.compare(_COMPARISONS[type(asked)], column, literal(value))
    except (InvalidFilter, UnsupportedFeature, pa.ArrowException, OverflowError, TypeError):
        return None  # for example a value that the column's type cannot hold: Spark evaluates such a filter itself
    return None
