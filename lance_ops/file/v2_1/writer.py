"""Write the columns of 2.1 and 2.2 files: one for every leaf, with the layers around it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.types as pt

from lance_ops.core.errors import UnsupportedFeature
from lance_ops.core.schema import Field
from lance_ops.core.versions import FileVersion
from lance_ops.encodings import NO_OPTIONS, FixedWidth
from lance_ops.file.arrow_values import buffer_bytes, validity_of, values_of
from lance_ops.file.container import ColumnWriter, EncodedPage, FieldWriter, WriteBytes, end_columns
from lance_ops.file.leaves import Leaf, leaves_of_field
from lance_ops.file.v2_1.assembly import concat_rows
from lance_ops.file.v2_1.equal_pages import MAX_EQUAL_VALUES, encode_equal_pages
from lance_ops.file.v2_1.layouts import LeafRows, PageChoice
from lance_ops.file.v2_1.page_encoder import encode_blob_page, encode_page, store_blob_values
from lance_ops.file.v2_1.page_reader import PAGE_LAYOUT_URL
from lance_ops.file.v2_1.shred import shred

__all__ = ["V21FieldWriter"]


_LEAST_TOGETHER, _MOST_TOGETHER = 8, 256
"""Fewer columns are encoded one by one; more are encoded in several calls, which bounds the memory."""

_NUMBERS = (
    *(pa.int8(), pa.int16(), pa.int32(), pa.int64(), pa.uint8(), pa.uint16(), pa.uint32(), pa.uint64()),
    *(pa.float16(), pa.float32(), pa.float64(), pa.date32(), pa.date64(), pa.timestamp("us"), pa.duration("us")),
    *(pa.time32("s"), pa.time64("us")),
)
_WIDTHS = {number.id: number.bit_width for number in _NUMBERS}
"""The bits of a value of the types whose columns are encoded together, by type id."""


class _EqualKey(NamedTuple):
    """What columns that are encoded together have in common."""

    bits_per_value: int
    num_rows: int
    has_nulls: bool
    version: FileVersion


class V21FieldWriter(FieldWriter):
    """The writer of a top-level field, which is shredded into its leaves."""

    def __init__(self, field: Field, version: FileVersion) -> None:
        self._field = field
        self._leaves = [_LeafWriter(leaf, version) for leaf in leaves_of_field(field)]
        self.writers = self._leaves

    @classmethod
    def flush_together(cls, fields: Sequence[FieldWriter], write: WriteBytes) -> None:
        columns: dict[_EqualKey, list[_LeafWriter]] = {}
        for field in fields if len(fields) >= _LEAST_TOGETHER else ():
            assert isinstance(field, V21FieldWriter)
            leaf = field._leaves[0]
            key = leaf.equal_key if len(field._leaves) == 1 else None
            if key is not None:
                columns.setdefault(key, []).append(leaf)
        for key, leaves in columns.items():
            if len(leaves) >= _LEAST_TOGETHER:
                for first in range(0, len(leaves), _MOST_TOGETHER):
                    _flush_equal(leaves[first : first + _MOST_TOGETHER], key, write)

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
            raise self._naming_column(error) from error

    @property
    def equal_key(self) -> _EqualKey | None:
        """What columns that are encoded together have in common; None if this one must be encoded alone."""
        piece = self.only_piece
        if piece is None or piece.layers or self._leaf.field.metadata:
            return None
        array = piece.values
        bits = _WIDTHS.get(array.type.id)
        if bits is None or not 2 <= len(array) <= MAX_EQUAL_VALUES:
            return None
        return _EqualKey(bits, len(array), array.null_count > 0, self._choice.version)

    def _encode(self, pieces: Sequence[LeafRows]) -> list[EncodedPage]:
        try:
            return self._encode_pages(pieces)
        except UnsupportedFeature as error:
            raise self._naming_column(error) from error

    def _naming_column(self, error: UnsupportedFeature) -> UnsupportedFeature:
        return UnsupportedFeature(error.feature, f"column {self._leaf.field.name!r}")

    def _encode_pages(self, pieces: Sequence[LeafRows]) -> list[EncodedPage]:
        if self._leaf.field.is_blob_v1:
            return [encode_blob_page(concat_rows(pieces), self._choice)]
        if pt.is_dictionary(self._leaf.arrow_type):
            return [encode_page(rows, self._choice) for rows in _with_unified_dictionary(pieces)]
        return [encode_page(concat_rows(pieces), self._choice)]

    def _size_of(self, piece: LeafRows) -> int:
        return int(piece.values.nbytes) + _layer_bytes(piece)

    def _bound_of(self, piece: LeafRows) -> int:
        return buffer_bytes(piece.values) + _layer_bytes(piece)

    def _copy_of(self, piece: LeafRows) -> LeafRows:
        return piece.copy()

    def _rows_of(self, page: EncodedPage) -> int:
        return page.length // self._leaf.elements_per_row


def _flush_equal(leaves: Sequence[_LeafWriter], key: _EqualKey, write: WriteBytes) -> None:
    """Encode and write the pages of columns with this key, as far as they can be encoded together."""
    arrays = [piece.values for piece in (leaf.only_piece for leaf in leaves) if piece is not None]
    parts = [values.data for values in map(values_of, arrays) if isinstance(values, FixedWidth)]
    numbers = np.concatenate(parts).view(f"<u{key.bits_per_value // 8}").reshape(len(leaves), key.num_rows)
    present = None
    if key.has_nulls:
        present = np.stack([validity for validity in map(validity_of, arrays) if validity is not None])
    for pages in encode_equal_pages(numbers, present, PageChoice(key.version, NO_OPTIONS)):
        position = write(memoryview(pages.data)).position  # type: ignore[arg-type]  # an array is one
        columns = [leaves[column] for column in pages.columns.tolist()]
        end_columns(columns, pages.buffers + np.array([position, 0]), key.num_rows, PAGE_LAYOUT_URL, pages.description)


def _layer_bytes(piece: LeafRows) -> int:
    return sum([8 * layer.length for layer in piece.layers])


def _with_unified_dictionary(pieces: Sequence[LeafRows]) -> Sequence[LeafRows]:
    """Concatenate rows of a dictionary column; return them as they are if one dictionary has too many entries."""
    try:
        return [concat_rows(pieces)]
    except pa.ArrowInvalid:
        return pieces
