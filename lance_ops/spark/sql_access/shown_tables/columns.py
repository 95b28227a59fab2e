"""The columns of a table as Spark sees them."""

from __future__ import annotations

from pyspark.sql.pandas.types import from_arrow_schema
from pyspark.sql.types import StructType

from lance_ops.api import LanceDataset
from lance_ops.core.json import text_schema
from lance_ops.spark.translation import schema_for_spark

__all__ = ["shown_columns"]


def shown_columns(opened: LanceDataset) -> StructType:
    """Return the columns as Spark sees them."""
    return from_arrow_schema(schema_for_spark(text_schema(opened.snapshot.schema.to_arrow_storage())))
