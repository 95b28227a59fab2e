"""Turn dates and moments into a table's kind of moment by the clock of the session, as Spark assigns them.

Arrow's casts know no session: they take midnight, and a clock without a zone, to be in UTC.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.types as pt
from pyspark.sql.functions import col
from pyspark.sql.types import (
    ArrayType,
    DataType,
    DateType,
    MapType,
    StructField,
    StructType,
    TimestampNTZType,
    TimestampType,
)

from lance_ops.core.schema import CaseRule
from lance_ops.spark.translation.column_names import quoted_path

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

__all__ = ["with_moments_of"]


def with_moments_of(frame: DataFrame, table: pa.Schema, case_rule: CaseRule) -> DataFrame:
    """Cast the frame's dates and timestamps to the kind of timestamp that the table has: with a zone or without.

    It also casts those in lists, structs and maps. Spark reads a date, or a timestamp without a zone, in the session's
    time zone. Where the table's column has no zone, Spark keeps the time that the session's clock shows. Other values
    stay as they are.
    """
    kinds = {
        field.name: kind
        for field in frame.schema.fields
        if (stored := case_rule.find(field.name, table.names)) is not None
        and (kind := _kind_for(field.dataType, table.field(stored).type, case_rule)) != field.dataType
    }
    if not kinds:
        return frame
    return frame.select(*(_chosen(name, kinds.get(name)) for name in frame.columns))


def _kind_for(given: DataType, wanted: pa.DataType, case_rule: CaseRule) -> DataType:
    """Return the type of a frame's column with the table's kind of moment in place of each date and moment."""
    if isinstance(given, StructType) and pt.is_struct(wanted):
        fields = {field.name: field.type for field in wanted}
        return StructType([_field_for(field, fields, case_rule) for field in given])
    if isinstance(given, ArrayType) and (
        pt.is_list(wanted) or pt.is_large_list(wanted) or pt.is_fixed_size_list(wanted)
    ):
        return ArrayType(_kind_for(given.elementType, wanted.value_type, case_rule), given.containsNull)
    if isinstance(given, MapType) and pt.is_map(wanted):
        key = _kind_for(given.keyType, wanted.key_type, case_rule)
        return MapType(key, _kind_for(given.valueType, wanted.item_type, case_rule), given.valueContainsNull)
    if not pt.is_timestamp(wanted):
        return given
    if wanted.tz is not None and isinstance(given, DateType | TimestampNTZType):
        return TimestampType()
    return TimestampNTZType() if wanted.tz is None and isinstance(given, TimestampType) else given


def _field_for(field: StructField, wanted: Mapping[str, pa.DataType], case_rule: CaseRule) -> StructField:
    stored = case_rule.find(field.name, tuple(wanted))
    kind = field.dataType if stored is None else _kind_for(field.dataType, wanted[stored], case_rule)
    return StructField(field.name, kind, field.nullable, field.metadata)


def _chosen(name: str, kind: DataType | None) -> Column:
    column = col(quoted_path(name))
    return column if kind is None else column.cast(kind).alias(name)
