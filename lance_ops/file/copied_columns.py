"""Find columns of another file whose pages can be copied byte for byte instead of being encoded anew.

A page's description and buffers do not depend on where the page is in the file, so they can be copied between files of
one version, 2.1 or later. Pages of blobs are the exception: they hold positions in their file.
"""

from __future__ import annotations

from collections.abc import Sequence

from lance_ops.core.schema import Field
from lance_ops.core.versions import FileVersion
from lance_ops.file.container import Column
from lance_ops.file.leaves import Leaf, leaves_of_field
from lance_ops.file.open_file import DescribedFile
from lance_ops.file.page_reading import row_bytes
from lance_ops.file.reader import FileReader

__all__ = ["columns_to_append", "columns_to_copy", "stores_field_alike"]

_LEAST_SHARE = 4
"""A page is small if it has less than one part in this many of a full page. Small pages are better encoded anew."""


def columns_to_copy(reader: FileReader, field: Field, version: FileVersion, page_bytes: int) -> Sequence[Column] | None:
    """Return the columns of a field, known by its id; None if new pages of its values would differ, or be larger.

    `version` is that of the file to write, and `page_bytes` the size of its pages.
    """
    if reader.version is not version:
        return None
    columns = _columns_of(reader, field)
    leaves = leaves_of_field(field)
    whole = all(_has_full_pages(leaf, column, page_bytes) for leaf, column in zip(leaves, columns, strict=False))
    return columns if columns and whole else None


def columns_to_append(
    reader: FileReader, fields: Sequence[Field], version: FileVersion
) -> Sequence[Sequence[Column]] | None:
    """Return the columns of each field, if a file of these fields can be made longer by their pages; None if not."""
    if reader.version is not version:
        return None
    columns = [_columns_of(reader, field) for field in fields]
    return columns if all(of_field and not any(each.buffers for each in of_field) for of_field in columns) else None


def _columns_of(reader: FileReader, field: Field) -> list[Column]:
    """Return the columns of a field, known by its id, if their pages can be copied; no columns otherwise."""
    if not stores_field_alike(reader, field):
        return []
    leaves = list(leaves_of_field(field))
    columns = [reader.column(reader.field_ids.index(leaf.field.id)) for leaf in leaves]
    counted = (
        column.length == reader.num_rows * leaf.elements_per_row for leaf, column in zip(leaves, columns, strict=True)
    )
    return columns if all(counted) else []


def stores_field_alike(reader: DescribedFile, field: Field) -> bool:
    """Return whether a file of 2.1 or later stores a field, known by its id, as `field` describes it, without blobs."""
    stored = reader.schema.by_id(field.id)
    if stored is None or reader.version < FileVersion.V2_1:
        return False
    if any(part.is_blob_v1 or part.is_blob_v2 for part in field.walk()):
        return False
    return stored is field or [*map(_storage_key, leaves_of_field(stored))] == [
        *map(_storage_key, leaves_of_field(field))
    ]


def _storage_key(leaf: Leaf) -> tuple[object, ...]:
    """Return everything that decides how a leaf is stored."""
    return leaf.field.id, leaf.arrow_type, leaf.steps, leaf.options


def _has_full_pages(leaf: Leaf, column: Column, page_bytes: int) -> bool:
    """Return whether a column has no column buffers, and pages that are not small on average; the last one may be."""
    size = max(column.size_bytes, column.length * (row_bytes(leaf.arrow_type) - 1))
    return not column.buffers and size * _LEAST_SHARE >= (len(column.pages) - 1) * page_bytes
