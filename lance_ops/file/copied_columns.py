"""Columns of another file whose pages may be taken over byte for byte.

A page's description and buffers say nothing of where in the file they stand, so what was encoded once need not be so
again. That holds for files of one version, 2.1 or later; pages of blobs are the exception: they name places in a file.
"""

from __future__ import annotations

from collections.abc import Sequence

from lance_ops.core.schema import Field
from lance_ops.core.versions import FileVersion
from lance_ops.file.budget import row_bytes
from lance_ops.file.container import Column
from lance_ops.file.leaves import Leaf, leaves_of_field
from lance_ops.file.reader import FileReader

__all__ = ["columns_to_copy", "holds_alike"]

_LEAST_SHARE = 4
"""Pages are small that hold less than such a part of what makes a page: they are better made anew, as fewer."""


def columns_to_copy(reader: FileReader, field: Field, version: FileVersion, page_bytes: int) -> Sequence[Column] | None:
    """Return the columns of a field, known by its id; None where new pages of its values would be others, or larger.

    `version` is that of the file to write, and `page_bytes` what makes a page there.
    """
    if reader.version is not version:
        return None
    columns = _columns_of(reader, field)
    leaves = leaves_of_field(field)
    whole = all(_is_whole(leaf, column, page_bytes) for leaf, column in zip(leaves, columns, strict=False))
    return columns if columns and whole else None


def _columns_of(reader: FileReader, field: Field) -> list[Column]:
    """Return the columns of a field, known by its id, whose pages mean the same wherever they stand.

    None of them if one does not, if the file is older than 2.1, or if it has the field in another way.
    """
    if not holds_alike(reader, field):
        return []
    leaves = list(leaves_of_field(field))
    columns = [reader.column(reader.field_ids.index(leaf.field.id)) for leaf in leaves]
    counted = (
        column.length == reader.num_rows * leaf.elements_per_row for leaf, column in zip(leaves, columns, strict=True)
    )
    return columns if all(counted) else []


def holds_alike(reader: FileReader, field: Field) -> bool:
    """Return whether a file of 2.1 or later has a field, known by its id, as it is given, and in it no blobs."""
    stored = reader.schema.by_id(field.id)
    if stored is None or reader.version < FileVersion.V2_1:
        return False
    if any(part.is_blob_v1 or part.is_blob_v2 for part in field.walk()):
        return False
    return stored is field or [*map(_kind, leaves_of_field(stored))] == [*map(_kind, leaves_of_field(field))]


def _kind(leaf: Leaf) -> tuple[object, ...]:
    """Return what decides how a leaf is stored."""
    return leaf.field.id, leaf.arrow_type, leaf.steps, leaf.options


def _is_whole(leaf: Leaf, column: Column, page_bytes: int) -> bool:
    """Return whether a column is in pages alone, none of them small but the last."""
    size = max(column.size_bytes, column.length * (row_bytes(leaf.arrow_type) - 1))
    return not column.buffers and size * _LEAST_SHARE >= (len(column.pages) - 1) * page_bytes
