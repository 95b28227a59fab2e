"""Which values Spark and this library find equal.

Spark reads nanoseconds as microseconds, and half floats as floats. It compares two types in a third one, or by a
collation; this library casts one value to the type of the other. So where both match rows by a key, a key of which
any of this is true may match other rows in Spark than in the library.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import pyarrow as pa
from pyspark.sql.pandas.types import from_arrow_schema
from pyspark.sql.types import DataType, DecimalType, IntegralType, NullType, StructType

from lance_ops.changing.merge_insert import cast_may_change
from lance_ops.core.errors import UnsupportedFeature
from lance_ops.core.schema import Field, Schema
from lance_ops.spark.translation.arrow_schemas import arrow_schema_of
from lance_ops.spark.translation.types import schema_for_spark

__all__ = ["check_half_floats", "check_key_types", "compares_keys_alike", "has_nanoseconds"]


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


def compares_keys_alike(given: StructType, table: Schema, *, inserts: bool = False) -> bool:
    """Return whether Spark and a merge of this library find the same keys equal.

    `given` are the keys of the source, under their names in the table. The merge casts them to the table's types, and
    fails for a number that does not fit. So would a statement that `inserts` it; for any other, it equals no key.
    """
    for field, sent in zip(given, arrow_schema_of(given), strict=True):
        own = table.field(field.name)
        stored = own.arrow_type
        seen = from_arrow_schema(schema_for_spark(pa.schema([("key", stored)])))["key"].dataType
        is_cut = pa.types.is_float16(stored) or has_nanoseconds(own) or cast_may_change(sent.type, stored)
        if is_cut or not _is_same_value(field.dataType, seen) or not (inserts or _fits(sent.type, stored)):
            return False
    return True


def _fits(given: pa.DataType, stored: pa.DataType) -> bool:
    """Return whether every exact number of one type is one of the other; True for what is no exact number."""
    least, most = _range(given), _range(stored)
    return least is None or most is None or (most[0] <= least[0] and least[1] <= most[1])


def _range(kind: pa.DataType) -> tuple[int, int] | None:
    """Return the least and the greatest exact number of a type, in its last digits; None for another type."""
    if pa.types.is_integer(kind):
        span = 1 << kind.bit_width
        return (0, span - 1) if pa.types.is_unsigned_integer(kind) else (-span // 2, span // 2 - 1)
    return (1 - 10**kind.precision, 10**kind.precision - 1) if pa.types.is_decimal(kind) else None


def _is_same_value(given: DataType, stored: DataType) -> bool:
    """Return whether a cast between the types keeps each value or fails: one type, or numbers of as many digits."""
    scales = [_scale(kind) for kind in (given, stored)]
    return isinstance(given, NullType) or given == stored or (None not in scales and scales[0] == scales[1])


def _scale(kind: DataType) -> int | None:
    """Return the digits behind the point of an exact number; None for another type."""
    if isinstance(kind, DecimalType):
        return kind.scale
    return 0 if isinstance(kind, IntegralType) else None
