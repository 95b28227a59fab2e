"""Cast values to the types of the columns that get them: a value that does not fit fails the statement."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from pyspark.sql.functions import col, lit, raise_error, when
from pyspark.sql.types import ArrayType, DataType, MapType, NullType, StringType, StructField, StructType

from lance_ops.core.errors import SchemaMismatch
from lance_ops.spark.translation.arrow_schemas import arrow_schema_of
from lance_ops.spark.translation.column_names import quoted_path
from lance_ops.spark.translation.store_assignment import why_not_assigned

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

__all__ = ["assigned_columns", "assigned_value", "is_nested"]


def is_nested(kind: DataType) -> bool:
    """Return whether values of a type hold other values."""
    return isinstance(kind, ArrayType | MapType | StructType)


def assigned_value(value: Column, given: DataType, wanted: DataType, refusal: str) -> Column:
    """Return a value of the type `given` for a column of the type `wanted`, which is not nested, by Spark's cast.

    A value that does not fit fails the statement with the text `refusal`, in a session without ANSI mode, too. Raises
    `SchemaMismatch`, with that text, for a type of which Spark assigns no value, though it casts some.
    """
    if given == wanted:
        return value
    if isinstance(given, NullType):
        return value.cast(wanted)
    if reason := _why_not(given, wanted):
        raise SchemaMismatch(f"{refusal}: {reason}")
    fitting = value.try_cast(wanted)
    return when(value.isNull() | fitting.isNotNull(), fitting).otherwise(raise_error(lit(refusal)))


def _why_not(given: DataType, wanted: DataType) -> str:
    if isinstance(wanted, StringType):
        return ""
    try:
        types = arrow_schema_of(StructType([StructField("value", given), StructField("column", wanted)])).types
    except SchemaMismatch:
        return f"no Lance table stores {given.simpleString()}; cast it"
    return why_not_assigned(*types)


def assigned_columns(work: str, frame: DataFrame, types: Mapping[str, DataType]) -> list[Column]:
    """Return the columns of a frame, each cast to its type in `types`; nested ones, and others, stay as they are.

    Raises `SchemaMismatch` for a nested value where a plain one is wanted, or the other way round. `work` begins the
    text of an error.
    """
    return [_assigned(work, field, types.get(field.name)) for field in frame.schema.fields]


def _assigned(work: str, field: StructField, wanted: DataType | None) -> Column:
    value = col(quoted_path(field.name))
    if wanted is None or (isinstance(field.dataType, NullType) and is_nested(wanted)):
        return value
    what = f"column {field.name!r} of type {wanted.simpleString()}"
    if is_nested(wanted) != is_nested(field.dataType) and not isinstance(field.dataType, NullType):
        raise SchemaMismatch(f"{work}: {what} gets a {field.dataType.simpleString()}: cast the value")
    if is_nested(wanted):
        return value
    return assigned_value(value, field.dataType, wanted, f"{work}: a value does not fit {what}").alias(field.name)
