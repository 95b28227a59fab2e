"""The columns of a table that a query sees when it gives no schema of its own."""

from __future__ import annotations

import pyarrow as pa

from lance_ops.blobs import with_blobs_as
from lance_ops.core.blob_types import BLOB_KEY
from lance_ops.core.errors import InvalidInput
from lance_ops.core.json import text_schema
from lance_ops.core.schema import Schema
from lance_ops.snapshot import Snapshot
from lance_ops.spark.data_source.options import SourceOptions
from lance_ops.spark.translation import ROW_COLUMN_TYPES, row_column, schema_for_spark, stored_path

__all__ = ["visible_schema"]


def visible_schema(options: SourceOptions, snapshot: Snapshot | None = None) -> pa.Schema:
    """Return the columns, in Spark's types, that a query without its own schema sees.

    The version is that of `snapshot`, or else the one that the options open.
    """
    schema, rule = (snapshot or options.open()).schema, options.case_rule
    of_rows = dict.fromkeys(options.row_columns)
    if options.columns is not None:
        meant = {name: row_column(name, schema.names, rule) for name in options.columns}
        of_rows = dict.fromkeys([*(found for found in meant.values() if found is not None), *of_rows])
        schema = schema.project(stored_path(name, schema, rule) for name, found in meant.items() if found is None)
    visible = schema_for_spark(
        text_schema(_with_marked_blobs(schema) if options.blobs_as_bytes else schema.to_arrow_storage())
    )
    for name in of_rows:
        if name in visible.names:
            raise InvalidInput(f"the table has a column {name!r} of its own")
        visible = visible.append(pa.field(name, ROW_COLUMN_TYPES[name], nullable=False))
    return visible


def _with_marked_blobs(schema: Schema) -> pa.Schema:
    """Return a table's storage schema with blobs as bytes, marked so that a new table keeps them as blobs."""
    return pa.schema([with_blobs_as(field, pa.large_binary(), {BLOB_KEY: "true"}) for field in schema.fields])
