"""Turn dates and moments into a table's kind of moment by the clock of the session, as Spark assigns them.

Arrow's casts know no session: they take midnight, and a clock without a zone, to be in UTC.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.types as pt
from pyspark.sql.functions import col
from pyspark.sql.types import DataType, DateType, TimestampNTZType, TimestampType

from lance_ops.core.schema import CaseRule

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

__all__ = ["with_moments_of"]


def with_moments_of(frame: DataFrame, table: pa.Schema, case_rule: CaseRule) -> DataFrame:
    """Return the frame with its dates and moments in the kinds that the table's columns have.

    The session's time zone decides: Spark gives a date, or a timestamp without a zone, the zone that the table's column
    has. It turns a timestamp with a zone into the clock's time where the column has none. Other columns stay as they
    are, and so do values within lists and structs.
    """
    kinds = {
        field.name: kind
        for field in frame.schema.fields
        if (stored := case_rule.find(field.name, table.names)) is not None
        and (kind := _kind_for(field.dataType, table.field(stored).type)) is not None
    }
    if not kinds:
        return frame
    return frame.select(*(_chosen(name, kinds.get(name)) for name in frame.columns))


def _kind_for(given: DataType, wanted: pa.DataType) -> str | None:
    if not pt.is_timestamp(wanted):
        return None
    if wanted.tz is not None and isinstance(given, DateType | TimestampNTZType):
        return "timestamp"
    return "timestamp_ntz" if wanted.tz is None and isinstance(given, TimestampType) else None


def _chosen(name: str, kind: str | None) -> Column:
    column = col("`" + name.replace("`", "``") + "`")
    return column if kind is None else column.cast(kind).alias(name)
