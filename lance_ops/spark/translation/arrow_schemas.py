"""Give the Arrow schema in which Spark sends the rows of a DataFrame."""

from __future__ import annotations

import pyarrow as pa
from pyspark.sql.pandas.types import to_arrow_schema
from pyspark.sql.types import StructField, StructType

from lance_ops.core.errors import SchemaMismatch

__all__ = ["arrow_schema_of"]


def arrow_schema_of(schema: StructType) -> pa.Schema:
    """Return the Arrow schema; raise `SchemaMismatch` naming a column whose type Spark does not send."""
    try:
        return to_arrow_schema(schema, timezone="UTC")
    except (ValueError, TypeError) as error:
        refused = next((field for field in schema if not _is_sent(field)), None)
        if refused is None:
            raise
        kind = refused.dataType.simpleString()
        raise SchemaMismatch(
            f"column {refused.name!r} is {kind}, which no Lance table stores: cast it to another type, as an empty "
            "array to array<int>"
        ) from error


def _is_sent(field: StructField) -> bool:
    try:
        to_arrow_schema(StructType([field]), timezone="UTC")
    except (ValueError, TypeError):
        return False
    return True
