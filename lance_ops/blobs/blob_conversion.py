"""Replace the blob types in a schema, at any depth, by other types, and convert the blobs inside an array."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.types as pt

from lance_ops.core.arrow import EXTENSION_NAME, child_fields, children_of, items_of, with_child_fields, with_children
from lance_ops.core.blob_types import BLOB_V2, BLOB_VALUES
from lance_ops.core.ndarrays import Uint64Array
from lance_ops.core.schema import Field, Schema

__all__ = ["Convert", "field_to_write", "schema_to_write", "walk_blobs", "with_blobs_as"]


Convert: TypeAlias = Callable[[pa.Array, Field, Uint64Array], pa.Array]


def schema_to_write(schema: Schema) -> pa.Schema:
    """Return the Arrow schema of rows that a writer takes: storage types, but blobs as bytes or URIs."""
    storage = schema.to_arrow_storage()
    if not schema.holds_blobs_v2:
        return storage
    return pa.schema([field_to_write(field) for field in schema.fields], storage.metadata)


def field_to_write(field: Field) -> pa.Field:
    """Return one field of `schema_to_write`."""
    return with_blobs_as(field, BLOB_VALUES, {EXTENSION_NAME: BLOB_V2})


def with_blobs_as(field: Field, arrow_type: pa.DataType, metadata: dict[str, str] | None = None) -> pa.Field:
    """Return a field's storage type, with `arrow_type` in place of each blob."""
    if field.is_blob_v2:
        return pa.field(field.name, arrow_type, field.nullable, metadata)
    stored = field.storage_field
    if not field.holds_blobs_v2:
        return stored
    below = [with_blobs_as(child, arrow_type, metadata) for child in field.children]
    return stored.with_type(with_child_fields(stored.type, below))


def walk_blobs(array: pa.Array, field: Field, owners: Uint64Array, convert: Convert) -> pa.Array:
    """Return the array with every array of blobs in it converted; `owners` has one item for each value."""
    if field.is_blob_v2:
        return convert(array, field, owners)
    if not field.holds_blobs_v2:
        return array
    if pt.is_fixed_size_list(array.type):
        owners = np.repeat(owners, array.type.list_size)
    elif not pt.is_struct(array.type):
        owners = np.repeat(owners, np.diff(items_of(array)[0]))
    pairs = zip(children_of(array), field.children, strict=True)
    children = [walk_blobs(child, below, owners, convert) for child, below in pairs]
    fields = [stored.with_type(child.type) for stored, child in zip(child_fields(array.type), children, strict=True)]
    return with_children(array, children, with_child_fields(array.type, fields))
