"""Derive the schema of a new table from the Arrow schema of its data."""

from __future__ import annotations

import pyarrow as pa

from lance_ops.core.blob_types import blobs_as_v2
from lance_ops.core.schema import Schema, check_depth, check_table_schema
from lance_ops.core.versions import FileVersion

__all__ = ["table_schema"]


def table_schema(schema: pa.Schema, version: FileVersion) -> Schema:
    """Return the schema of a table made of data of this schema.

    Binary columns that are marked as blobs become `lance.blob.v2` where the file version supports it. Raises as
    `Schema.from_arrow` and `check_table_schema` do.
    """
    check_depth(schema)
    made = Schema.from_arrow(blobs_as_v2(schema) if version >= FileVersion.V2_2 else schema)
    check_table_schema(made)
    return made
