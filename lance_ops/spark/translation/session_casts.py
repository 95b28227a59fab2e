"""Cast in Spark's plan what Spark casts by settings of the session: moments by its clock, and values to text.

Arrow's casts know no session: they take midnight, and a clock without a zone, to be in UTC. They spell moments,
doubles and intervals otherwise than Spark.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.types as pt
from pyspark.sql.functions import col
from pyspark.sql.types import (
    ArrayType,
    BooleanType,
    DataType,
    DateType,
    DayTimeIntervalType,
    MapType,
    NumericType,
    StringType,
    StructField,
    StructType,
    TimestampNTZType,
    TimestampType,
    TimeType,
)

from lance_ops.core.arrow import is_any_list, is_text_or_view
from lance_ops.core.schema import CaseRule
from lance_ops.spark.translation.column_names import quoted_path

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

__all__ = ["cast_to", "session_types", "with_moments_of"]

_SPELLED = (
    NumericType,
    BooleanType,
    DateType,
    TimestampType,
    TimestampNTZType,
    TimeType,
    DayTimeIntervalType,
)
"""The types whose values Spark casts to text. Arrow casts bytes, and checks that they are UTF-8."""


def with_moments_of(frame: DataFrame, table: pa.Schema, case_rule: CaseRule) -> DataFrame:
    """Cast the frame's dates and timestamps to the kind of timestamp that the table has: with a zone or without.

    It also casts those in lists, structs and maps. Spark reads a date, or a timestamp without a zone, in the session's
    time zone. Where the table's column has no zone, Spark keeps the time that the session's clock shows. Other values
    stay as they are.
    """
    return cast_to(frame, _types_for(frame.schema, table, case_rule, _moment_for))


def session_types(given: StructType, table: pa.Schema, case_rule: CaseRule) -> StructType:
    """Return the types of rows that Spark has cast, as far as it does, for the columns of a table.

    It casts as `with_moments_of` says. Besides, a timestamp for a date becomes the day of the session's clock, and a
    value for a text becomes what `CAST(… AS STRING)` gives. The table's JSON is text.
    """
    return _types_for(given, table, case_rule, _value_for)


def cast_to(frame: DataFrame, types: StructType) -> DataFrame:
    """Return a frame with its columns cast to these types; columns of equal types stay as they are."""
    kinds = {
        field.name: kind.dataType
        for field, kind in zip(frame.schema, types, strict=True)
        if field.dataType != kind.dataType
    }
    if not kinds:
        return frame
    return frame.select(*(_chosen(name, kinds.get(name)) for name in frame.columns))


_KindFor = Callable[[DataType, pa.DataType], DataType]
"""Returns the type to cast a value to, which is not nested, from its type and from the type of the table's column."""


def _types_for(given: StructType, table: pa.Schema, case_rule: CaseRule, kind_for: _KindFor) -> StructType:
    fields = {field.name: field.type for field in table}
    return StructType([_field_for(field, fields, case_rule, kind_for) for field in given])


def _field_for(
    field: StructField, wanted: Mapping[str, pa.DataType], case_rule: CaseRule, kind_for: _KindFor
) -> StructField:
    stored = case_rule.find(field.name, tuple(wanted))
    kind = field.dataType if stored is None else _kind_for(field.dataType, wanted[stored], case_rule, kind_for)
    return StructField(field.name, kind, field.nullable, field.metadata)


def _kind_for(given: DataType, wanted: pa.DataType, case_rule: CaseRule, kind_for: _KindFor) -> DataType:
    """Return the type of a frame's column with the wanted kind in place of each value that is not nested."""
    if isinstance(given, StructType) and pt.is_struct(wanted):
        fields = {field.name: field.type for field in wanted}
        return StructType([_field_for(field, fields, case_rule, kind_for) for field in given])
    if isinstance(given, ArrayType) and is_any_list(wanted):
        return ArrayType(_kind_for(given.elementType, wanted.value_type, case_rule, kind_for), given.containsNull)
    if isinstance(given, MapType) and pt.is_map(wanted):
        key = _kind_for(given.keyType, wanted.key_type, case_rule, kind_for)
        value = _kind_for(given.valueType, wanted.item_type, case_rule, kind_for)
        return MapType(key, value, given.valueContainsNull)
    return kind_for(given, wanted)


def _moment_for(given: DataType, wanted: pa.DataType) -> DataType:
    if not pt.is_timestamp(wanted):
        return given
    if wanted.tz is not None and isinstance(given, DateType | TimestampNTZType):
        return TimestampType()
    return TimestampNTZType() if wanted.tz is None and isinstance(given, TimestampType) else given


def _value_for(given: DataType, wanted: pa.DataType) -> DataType:
    if pt.is_dictionary(wanted):
        wanted = wanted.value_type
    if pt.is_date(wanted) and isinstance(given, TimestampType | TimestampNTZType):
        return DateType()
    if isinstance(given, _SPELLED) and is_text_or_view(wanted):
        return StringType()
    return _moment_for(given, wanted)


def _chosen(name: str, kind: DataType | None) -> Column:
    column = col(quoted_path(name))
    return column if kind is None else column.cast(kind).alias(name)
