"""Cast values to the types of the columns that get them, as Spark assigns values."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyspark.sql.functions import lit, raise_error, when
from pyspark.sql.types import ArrayType, DataType, MapType, NullType, StructType

if TYPE_CHECKING:
    from pyspark.sql import Column

__all__ = ["assigned_value", "is_nested"]


def is_nested(kind: DataType) -> bool:
    """Return whether values of a type hold other values."""
    return isinstance(kind, ArrayType | MapType | StructType)


def assigned_value(value: Column, given: DataType, wanted: DataType, refusal: str) -> Column:
    """Return a value of the type `given` as Spark assigns it to a column of the type `wanted`, which is not nested.

    A value that does not fit fails the statement with the text `refusal`, in a session without ANSI mode, too.
    """
    if given == wanted:
        return value
    if isinstance(given, NullType):
        return value.cast(wanted)
    fitting = value.try_cast(wanted)
    return when(value.isNull() | fitting.isNotNull(), fitting).otherwise(raise_error(lit(refusal)))
