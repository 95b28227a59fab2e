"""The columns of a table as Spark sees them, and the key of comments."""

from __future__ import annotations

from pyspark.sql.pandas.types import from_arrow_schema
from pyspark.sql.types import StructType

from lance_ops.api import LanceDataset
from lance_ops.core.json import text_schema
from lance_ops.spark.translation import schema_for_spark

__all__ = ["COMMENT", "shown_columns"]

COMMENT = "comment"
"""The key of a comment: Spark's, in a column's metadata, and in the configuration for the table's comment."""


def shown_columns(opened: LanceDataset) -> StructType:
    """Return the columns as Spark sees them; their metadata has their comments and the hints on their types."""
    return from_arrow_schema(schema_for_spark(text_schema(opened.snapshot.schema.to_arrow_storage())))
