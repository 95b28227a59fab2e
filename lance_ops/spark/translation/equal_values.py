"""Which values Spark and this library find equal.

Spark reads nanoseconds as microseconds, and half floats as floats. It compares two types in a third one, or by a
collation; this library casts one value to the type of the other. So where both match rows by a key, a key of which
any of this is true may match other rows in Spark than in the library.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import pyarrow as pa
from pyspark.sql.types import DataType, DecimalType, IntegralType, NullType, StructType

from lance_ops.changing.merge_insert import cast_may_change
from lance_ops.core.errors import UnsupportedFeature
from lance_ops.core.schema import Field, Schema
from lance_ops.spark.translation.arrow_schemas import arrow_schema_of

__all__ = ["check_half_floats", "check_key_types", "check_keys_are_kept", "has_nanoseconds"]


def has_nanoseconds(field: Field) -> bool:
    """Return whether a column, or a column within it, has nanoseconds, which Spark cuts."""
    types = [node.arrow_type for node in field.walk()]
    return any((pa.types.is_timestamp(kind) or pa.types.is_duration(kind)) and kind.unit == "ns" for kind in types)


def check_half_floats(work: str, schema: Schema, keys: Iterable[str]) -> None:
    """Raise `UnsupportedFeature` for a key of half floats: Spark compares others with them that `work` rounds."""
    for name in keys:
        if pa.types.is_float16(schema.field(name).arrow_type):
            raise UnsupportedFeature(f"{work} by key {name!r}, which Spark reads as float (match another column)")


def check_key_types(work: str, given: StructType, stored: Mapping[str, DataType]) -> None:
    """Raise `UnsupportedFeature` for a key that Spark compares in another type, or by another collation.

    `given` are the keys of the source of `work`, under their names in the table, and `stored` the table's types.
    """
    for field in given:
        kind = stored[field.name]
        if not _is_same_value(field.dataType, kind):
            raise UnsupportedFeature(
                f"{work} by key {field.name!r}, which is {kind.simpleString()} in the table and "
                f"{field.dataType.simpleString()} in the source: equal values may differ after the cast (cast the "
                f"source's key to {kind.simpleString()})"
            )


def check_keys_are_kept(work: str, given: StructType, table: Schema) -> None:
    """Raise `UnsupportedFeature` for a key of a source that the cast to the table's type changes without an error.

    A moment would become its day, and a number with more digits the nearest float: rows would match that Spark finds
    unequal. `given` are the keys under their names in the table.
    """
    for field, sent in zip(given, arrow_schema_of(given), strict=True):
        kind = table.field(field.name).arrow_type
        if cast_may_change(sent.type, kind):
            raise UnsupportedFeature(
                f"{work} by key {field.name!r}, which is {kind} in the table and {field.dataType.simpleString()} in "
                f"the source: the cast may change values (cast the source's key to {kind}, if that is what you mean)"
            )


def _is_same_value(given: DataType, stored: DataType) -> bool:
    """Return whether a cast between the types keeps each value or fails: one type, or numbers of as many digits."""
    scales = [_scale(kind) for kind in (given, stored)]
    return isinstance(given, NullType) or given == stored or (None not in scales and scales[0] == scales[1])


def _scale(kind: DataType) -> int | None:
    """Return the digits behind the point of an exact number; None for another type."""
    if isinstance(kind, DecimalType):
        return kind.scale
    return 0 if isinstance(kind, IntegralType) else None
