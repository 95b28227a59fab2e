"""Write the columns of 2.0 files: lists and structs have columns too, before the columns of their children."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence

import numpy as np
import pyarrow as pa
import pyarrow.types as pt

from lance_ops.core.arrow import items_of
from lance_ops.core.errors import SchemaMismatch, UnsupportedFeature
from lance_ops.core.ndarrays import BoolArray, OffsetArray
from lance_ops.core.records import dataclass
from lance_ops.core.schema import Field
from lance_ops.encodings import EncodingOptions
from lance_ops.file.arrow_values import copy_array, validity_of
from lance_ops.file.container import PLAIN_COLUMN, ColumnWriter, EncodedPage, FieldWriter, WriteBytes
from lance_ops.file.leaves import is_packed
from lance_ops.file.stored_blobs import store_blobs
from lance_ops.file.v2_0.array_encoder import encode_array, encode_descriptors
from lance_ops.file.v2_0.contract import ARRAY_ENCODING_URL, PageBuffers
from lance_ops.file.v2_0.stored_offsets import encode_offsets
from lance_ops.pb import encodings_v2_0_pb2 as pb

__all__ = ["V20FieldWriter"]


_BLOB_COLUMN = pb.ColumnEncoding(blob=pb.Blob(inner=pb.ColumnEncoding.FromString(PLAIN_COLUMN))).SerializeToString()


class V20FieldWriter(FieldWriter):
    """The writer of a top-level field, with a column for every field in it."""

    def __init__(self, field: Field) -> None:
        self._root = _node(field)
        self.writers = list(self._root.walk())

    def add(self, array: pa.Array, first_row: int, write: WriteBytes) -> None:
        self._root.add(array, first_row, write)


class _Node(ABC):
    """A field with its column writer, and the nodes of its children."""

    def __init__(self, field: Field, children: Sequence[_Node]) -> None:
        self.field = field
        self.children = children

    def walk(self) -> Sequence[ColumnWriter]:  # type: ignore[type-arg]  # the type of pieces differs
        """Return the writers in column order."""
        return [self.writer, *(writer for child in self.children for writer in child.walk())]

    @property
    @abstractmethod
    def writer(self) -> ColumnWriter:  # type: ignore[type-arg]  # the type of pieces differs
        """The writer of the field's own column."""

    @abstractmethod
    def add(self, array: pa.Array, first_row: int, write: WriteBytes) -> None:
        """Append values; `write` writes those of blobs."""

    def check_nulls(self, array: pa.Array) -> None:
        """Raise `SchemaMismatch` for a null in a field that is not nullable."""
        if array.null_count and not self.field.nullable:
            raise SchemaMismatch(f"column {self.field.name!r} is not nullable and the data has nulls in it")


class _StructNode(_Node):
    def __init__(self, field: Field) -> None:
        super().__init__(field, [_node(child) for child in field.children])
        self._writer = _StructWriter(field.id, ARRAY_ENCODING_URL)

    @property
    def writer(self) -> ColumnWriter[int]:
        return self._writer

    def add(self, array: pa.Array, first_row: int, write: WriteBytes) -> None:
        if array.null_count:
            feature = "a null struct in file version 2.0 (use 2.1 or later)"
            raise UnsupportedFeature(feature, f"column {self.field.name!r}")
        self._writer.add(len(array), first_row)
        for index, child in enumerate(self.children):
            child.add(array.field(index), first_row, write)


class _ListNode(_Node):
    def __init__(self, field: Field) -> None:
        super().__init__(field, [_node(child) for child in field.children])
        self._writer = _ListWriter(field.id, ARRAY_ENCODING_URL)
        self._has_page = False

    @property
    def writer(self) -> ColumnWriter[_Lists]:
        return self._writer

    def add(self, array: pa.Array, first_row: int, write: WriteBytes) -> None:
        self.check_nulls(array)
        offsets, items = items_of(array)
        validity = validity_of(array)
        if validity is not None:
            lengths = np.diff(offsets)
            if lengths[~validity].any():
                items = copy_array(items).take(pa.array(np.flatnonzero(np.repeat(validity, lengths))))
                offsets = np.append(0, np.cumsum(np.where(validity, lengths, 0)))
        self._writer.add(_Lists(offsets[1:], validity), first_row)
        if len(items) or not self._has_page:  # readers expect a page of items, even an empty one
            self.children[0].add(items, first_row, write)
            self._has_page = True


class _LeafNode(_Node):
    def __init__(self, field: Field) -> None:
        super().__init__(field, ())
        self._writer = _BlobWriter(field) if field.is_blob_v1 else _LeafWriter(field)

    @property
    def writer(self) -> ColumnWriter[pa.Array]:
        return self._writer

    def add(self, array: pa.Array, first_row: int, write: WriteBytes) -> None:
        self.check_nulls(array)
        self._writer.add(store_blobs(array, None, write) if self.field.is_blob_v1 else array, first_row)


def _node(field: Field) -> _Node:
    if not field.children or is_packed(field):
        return _StructNode(field) if field.logical_type == "struct" and not is_packed(field) else _LeafNode(field)
    return _StructNode(field) if field.logical_type == "struct" else _ListNode(field)


class _StructWriter(ColumnWriter[int]):
    """The writer of a struct's column, whose pages store only the number of structs."""

    def _encode(self, pieces: Sequence[int]) -> list[EncodedPage]:
        return [EncodedPage(pb.ArrayEncoding(struct=pb.SimpleStruct()), (), sum(pieces))]

    def _size_of(self, piece: int) -> int:
        return 0

    def _copy_of(self, piece: int) -> int:
        return piece


@dataclass(frozen=True, eq=False)
class _Lists:
    """Where lists end, counted in the items of these lists, and which lists are not null."""

    end_offsets: OffsetArray
    validity: BoolArray | None

    @property
    def num_items(self) -> int:
        """Number of items in all lists."""
        return int(self.end_offsets[-1]) if len(self.end_offsets) else 0


class _ListWriter(ColumnWriter[_Lists]):
    """The writer of a list's column, whose pages store where each list ends among the page's items."""

    def _encode(self, pieces: Sequence[_Lists]) -> list[EncodedPage]:
        validity = None
        if any(piece.validity is not None for piece in pieces):
            validity = np.concatenate(
                [np.ones(len(p.end_offsets), np.bool_) if p.validity is None else p.validity for p in pieces]
            )
        end_offsets, num_items = pieces[0].end_offsets, pieces[0].num_items
        if len(pieces) > 1:
            counts = np.array([piece.num_items for piece in pieces])
            before = np.cumsum(counts) - counts
            end_offsets = np.concatenate(
                [piece.end_offsets + shift for piece, shift in zip(pieces, before, strict=True)]
            )
            num_items = int(counts.sum())
        buffers = PageBuffers()
        stored, adjustment = encode_offsets(end_offsets, num_items, validity, buffers)
        described = pb.List(offsets=stored, null_offset_adjustment=adjustment, num_items=num_items)
        return [EncodedPage(pb.ArrayEncoding(list=described), tuple(buffers.buffers), len(end_offsets))]

    def _size_of(self, piece: _Lists) -> int:
        return 8 * len(piece.end_offsets)

    def _copy_of(self, piece: _Lists) -> _Lists:
        return piece  # its arrays are computed, so they do not belong to the caller's batch


class _LeafWriter(ColumnWriter[pa.Array]):
    """The writer of a column of values."""

    def __init__(self, field: Field, column_encoding: bytes = PLAIN_COLUMN) -> None:
        super().__init__(field.id, ARRAY_ENCODING_URL, column_encoding)
        self._field = field
        self._options = EncodingOptions.from_metadata(field.metadata)

    def _encode(self, pieces: Sequence[pa.Array]) -> list[EncodedPage]:
        return [self._encode_page(array) for array in _concat(pieces)]

    def _encode_page(self, array: pa.Array) -> EncodedPage:
        buffers = PageBuffers()
        try:
            described = encode_array(array, self._options, buffers)
        except UnsupportedFeature as error:
            raise UnsupportedFeature(error.feature, f"column {self._field.name!r}") from error
        return EncodedPage(described, tuple(buffers.buffers), len(array))

    def _size_of(self, piece: pa.Array) -> int:
        return int(piece.nbytes)

    def _copy_of(self, piece: pa.Array) -> pa.Array:
        return copy_array(piece)


class _BlobWriter(_LeafWriter):
    """The writer of stored blobs; pages store their (position, size): (1, 0) is a null, (0, 0) an empty value."""

    def __init__(self, field: Field) -> None:
        super().__init__(field, _BLOB_COLUMN)

    def _encode_page(self, array: pa.Array) -> EncodedPage:
        positions, sizes = (array.field(index).to_numpy() for index in range(2))
        validity = validity_of(array)
        if validity is not None:
            positions = np.where(validity, positions, np.uint64(1))
        buffers = PageBuffers()
        described = encode_descriptors(positions, sizes, buffers)
        return EncodedPage(described, tuple(buffers.buffers), len(array))


def _concat(pieces: Sequence[pa.Array]) -> Sequence[pa.Array]:
    """Concatenate arrays; return them as they are if their unified dictionary has too many entries for the keys."""
    if len(pieces) == 1:
        return pieces
    try:
        return [pa.concat_arrays(pieces)]
    except pa.ArrowInvalid:
        if not pt.is_dictionary(pieces[0].type):
            raise
        return pieces
