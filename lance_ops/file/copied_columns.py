"""Columns of another file whose pages may be taken over byte for byte.

A page's description and buffers say nothing of where in the file they stand, so what was encoded once need not be so
again. That holds for files of one version, 2.1 or later; pages of blobs are the exception: they name places in a file.
"""

from __future__ import annotations

from collections.abc import Sequence

from lance_ops.core.schema import Field
from lance_ops.core.versions import FileVersion
from lance_ops.encodings.options import EncodingOptions
from lance_ops.file.budget import row_bytes
from lance_ops.file.columns import Leaf, leaves_of_field
from lance_ops.file.container import Column
from lance_ops.file.reader import FileReader

__all__ = ["columns_to_copy"]

_LEAST_SHARE = 4
"""Pages are small that hold less than such a part of what makes a page: they are better made anew, as fewer."""


def columns_to_copy(reader: FileReader, field: Field, version: FileVersion, page_bytes: int) -> Sequence[Column] | None:
    """Return the columns of a field, known by its id; None where new pages of its values would be others, or larger.

    `version` is that of the file to write, and `page_bytes` what makes a page there.
    """
    stored = reader.schema.by_id(field.id)
    if stored is None or reader.version is not version or version < FileVersion.V2_1:
        return None
    if any(part.is_blob_v1 or part.is_blob_v2 for part in field.walk()):
        return None
    leaves = list(leaves_of_field(field))
    if [_kind(leaf) for leaf in leaves_of_field(stored)] != [_kind(leaf) for leaf in leaves]:
        return None
    columns = [reader.column(reader.field_ids.index(leaf.field.id)) for leaf in leaves]
    for leaf, column in zip(leaves, columns, strict=True):
        if column.length != reader.num_rows * leaf.elements_per_row or not _is_whole(leaf, column, page_bytes):
            return None
    return columns


def _kind(leaf: Leaf) -> tuple[object, ...]:
    """Return what decides how a leaf is stored."""
    return leaf.field.id, leaf.arrow_type, leaf.steps, EncodingOptions.from_metadata(leaf.field.metadata)


def _is_whole(leaf: Leaf, column: Column, page_bytes: int) -> bool:
    """Return whether a column is in pages alone, none of them small but the last."""
    size = max(column.size_bytes, column.length * (row_bytes(leaf.arrow_type) - 1))
    return not column.buffers and size * _LEAST_SHARE >= (len(column.pages) - 1) * page_bytes
