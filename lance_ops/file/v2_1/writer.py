"""Write the columns of 2.1 and 2.2 files: one for every leaf, with the layers around it."""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa
import pyarrow.types as pt

from lance_ops.core.errors import UnsupportedFeature
from lance_ops.core.schema import Field
from lance_ops.core.versions import FileVersion
from lance_ops.file.arrow_values import buffer_bytes
from lance_ops.file.container import ColumnWriter, EncodedPage, FieldWriter, WriteBytes
from lance_ops.file.leaves import Leaf, leaves_of_field
from lance_ops.file.v2_1.assembly import concat_rows
from lance_ops.file.v2_1.layouts import PAGE_LAYOUT_URL, LeafRows, PageChoice
from lance_ops.file.v2_1.page_encoder import encode_blob_page, encode_leaf_page, store_blob_values
from lance_ops.file.v2_1.shred import shred

__all__ = ["V21FieldWriter"]


class V21FieldWriter(FieldWriter):
    """The writer of a top-level field, which is shredded into its leaves."""

    def __init__(self, field: Field, version: FileVersion) -> None:
        self._field = field
        self._leaves = [_LeafWriter(leaf, version) for leaf in leaves_of_field(field)]
        self.writers = self._leaves

    def add(self, array: pa.Array, first_row: int, write: WriteBytes) -> None:
        for writer, rows in zip(self._leaves, shred(self._field, array), strict=True):
            writer.add(writer.store_blobs(rows, write), first_row)


class _LeafWriter(ColumnWriter[LeafRows]):
    def __init__(self, leaf: Leaf, version: FileVersion) -> None:
        super().__init__(leaf.field.id, PAGE_LAYOUT_URL)
        self._leaf = leaf
        self._choice = PageChoice(version, leaf.options)

    def store_blobs(self, rows: LeafRows, write: WriteBytes) -> LeafRows:
        """Write the values of a blob column and return where they are; return rows of other columns as they are."""
        if not self._leaf.field.is_blob_v1:
            return rows
        try:
            return store_blob_values(rows, write)
        except UnsupportedFeature as error:
            raise UnsupportedFeature(error.feature, f"column {self._leaf.field.name!r}") from error

    def _encode(self, pieces: Sequence[LeafRows]) -> list[EncodedPage]:
        if self._leaf.field.is_blob_v1:
            return [encode_blob_page(concat_rows(pieces), self._choice)]
        is_dictionary = pt.is_dictionary(self._leaf.arrow_type)
        joined = _with_unified_dictionary(pieces) if is_dictionary else [concat_rows(pieces)]
        return [encode_leaf_page(self._leaf, self._choice, rows) for rows in joined]

    def _size_of(self, piece: LeafRows) -> int:
        return int(piece.values.nbytes) + _layer_bytes(piece)

    def _bound_of(self, piece: LeafRows) -> int:
        return buffer_bytes(piece.values) + _layer_bytes(piece)

    def _copy_of(self, piece: LeafRows) -> LeafRows:
        return piece.copy()

    def _rows_of(self, page: EncodedPage) -> int:
        return page.length // self._leaf.elements_per_row


def _layer_bytes(piece: LeafRows) -> int:
    return sum([8 * layer.length for layer in piece.layers])


def _with_unified_dictionary(pieces: Sequence[LeafRows]) -> Sequence[LeafRows]:
    """Concatenate rows of a dictionary column; return them as they are if one dictionary has too many entries."""
    try:
        return [concat_rows(pieces)]
    except pa.ArrowInvalid:
        return pieces
