"""Which values Spark and this library find equal.

Spark reads nanoseconds as microseconds, and half floats as floats. It compares two types in a third one, or by a
collation; this library casts one value to the type of the other. So where both match rows by a key, a key of which
any of this is true may match other rows in Spark than in the library.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import datetime, timedelta
from decimal import Context
from typing import TYPE_CHECKING

import pyarrow as pa
from pyspark.sql.pandas.types import from_arrow_schema
from pyspark.sql.types import DataType, DecimalType, IntegralType, NullType, StructField, StructType

from lance_ops.changing.merge_insert import cast_may_change
from lance_ops.core.errors import UnsupportedFeature
from lance_ops.core.schema import CaseRule, Field, Schema
from lance_ops.maintenance import health
from lance_ops.reading import bind_filter
from lance_ops.spark.translation.arrow_schemas import arrow_schema_of
from lance_ops.spark.translation.column_names import quoted_path, stored_path
from lance_ops.spark.translation.types import schema_for_spark

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from lance_ops.runners import Runner
    from lance_ops.snapshot import Snapshot

__all__ = [
    "check_half_floats",
    "check_key_types",
    "check_whole_microseconds",
    "compares_keys_alike",
    "has_nanoseconds",
    "rows_with_possible_keys",
]

_EXACT = Context(prec=80)
"""Arithmetic of numbers of up to 76 digits, the most of any type."""
_EPOCH = datetime(1970, 1, 1)  # noqa: DTZ001 - a time of the clock, to which the condition adds a zone
_MOST_OF_NANOSECONDS = timedelta(microseconds=(1 << 63) // 1000)
_SECONDS = {"s": "1", "ms": "0.001"}


def has_nanoseconds(field: Field) -> bool:
    """Return whether a column, or a column within it, has nanoseconds, which Spark cuts."""
    types = [node.arrow_type for node in field.walk()]
    return any((pa.types.is_timestamp(kind) or pa.types.is_duration(kind)) and kind.unit == "ns" for kind in types)


def check_whole_microseconds(work: str, snapshot: Snapshot, paths: Iterable[str], runner: Runner) -> None:
    """Raise `UnsupportedFeature` for a column of which a row of the table has nanoseconds that Spark cuts.

    `work` does something with the column, whose name follows it in the error. Spark sees such a value as the
    microsecond before it: a key that it read from the table would match no row there, and a merge would insert the row
    again. Of the columns, tasks of the runner read those of nanoseconds. One within another column is refused unread.
    """
    for given in paths:
        path = stored_path(given, snapshot.schema, CaseRule.INSENSITIVE)
        lineage = snapshot.schema.lineage(path)
        if has_nanoseconds(lineage[-1]):
            name = quoted_path(*(node.name for node in lineage))
            is_cut = f"arrow_cast({name}, 'Int64') % 1000 <> 0"
            if lineage[-1].children or health.count_rows(snapshot, bind_filter(snapshot, is_cut), runner):
                raise UnsupportedFeature(
                    f"{work} {path!r}, whose values are not all whole microseconds: Spark cuts nanoseconds (use "
                    "another column, or give Arrow data, files or a dataset to merge_insert or delete_by_keys)"
                )


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


def compares_keys_alike(given: StructType, table: Schema) -> bool:
    """Return whether Spark and a merge of this library find the same keys equal.

    `given` are the keys of the source, under their names in the table. The merge casts them to the table's types, and
    fails for a value that does not fit: `rows_with_possible_keys` leaves it out. A key of nanoseconds must have whole
    microseconds: see `check_whole_microseconds`.
    """
    for field, sent in zip(given, arrow_schema_of(given), strict=True):
        stored = table.field(field.name).arrow_type
        seen = from_arrow_schema(schema_for_spark(pa.schema([("key", stored)])))["key"].dataType
        if (
            pa.types.is_float16(stored)
            or cast_may_change(sent.type, stored)
            or not _is_same_value(field.dataType, seen)
        ):
            return False
    return True


def rows_with_possible_keys(rows: DataFrame, keys: Iterable[str], table: Schema) -> DataFrame:
    """Leave out the rows with a key that the table's type does not have, since it equals no key of the table."""
    conditions = (_condition_of_key(rows.schema[key], table.field(key).arrow_type) for key in keys)
    for condition in conditions:
        rows = rows if condition is None else rows.where(condition)
    return rows


def _condition_of_key(key: StructField, stored: pa.DataType) -> str | None:
    """Return the condition of Spark's SQL that a key has a value of the table's type; None if each one has."""
    name = quoted_path(key.name)
    if pa.types.is_timestamp(stored) or pa.types.is_duration(stored):
        return _is_time_of(name, stored)
    if pa.types.is_fixed_size_binary(stored):
        return f"octet_length({name}) = {stored.byte_width}"
    possible, wanted = _range(arrow_schema_of(StructType([key])).field(0).type), _range(stored)
    if possible is None or wanted is None or (wanted[0] <= possible[0] and possible[1] <= wanted[1]):
        return None
    scale = _scale(key.dataType) or 0
    least, most = (f"{_EXACT.scaleb(bound, -scale):f}BD" for bound in wanted)
    return f"{name} BETWEEN {least} AND {most}"


def _is_time_of(name: str, stored: pa.TimestampType | pa.DurationType) -> str | None:
    """Return the condition that a moment or a duration in microseconds is one of a type; see `_condition_of_key`."""
    if stored.unit == "us":
        return None
    if stored.unit != "ns":
        return f"date_part('SECOND', {name}) % {_SECONDS[stored.unit]}BD = 0"
    if pa.types.is_duration(stored):
        least, most = (
            f"make_dt_interval(0, 0, 0, {sign}{_MOST_OF_NANOSECONDS.total_seconds():.6f}BD)" for sign in ("-", "")
        )
        return f"{name} BETWEEN {least} AND {most}"
    kind, zone = ("TIMESTAMP_NTZ", "") if stored.tz is None else ("TIMESTAMP", "Z")
    least, most = (f"{kind} '{_EPOCH + sign * _MOST_OF_NANOSECONDS}{zone}'" for sign in (-1, 1))
    return f"{name} BETWEEN {least} AND {most}"


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
