"""Read 2.0 files: lists and structs have columns of their own, before the columns of their children.

A page of lists stores where each list ends among the page's items. The items are in the child's column, whose pages
are cut at other places. The pages of a struct's column hold no values. Old files store text and bytes as lists too
(`byte_lists`).
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa
import pyarrow.types as pt

from lance_ops.core.arrow import is_text_or_bytes
from lance_ops.core.blob_types import POSITION_AND_SIZE
from lance_ops.core.errors import CorruptFile, InvalidInput, ReadTooLarge, UnsupportedFeature
from lance_ops.core.ndarrays import BoolArray, Int64Array, OffsetArray
from lance_ops.core.records import dataclass
from lance_ops.core.schema import Field, Schema
from lance_ops.encodings import (
    VariableWidth,
    check,
    check_expansion,
    gather_ranges,
    offsets_of_lengths,
)
from lance_ops.file.arrow_values import array_of, bitmap_of
from lance_ops.file.container import Column
from lance_ops.file.container_file import ContainerFile
from lance_ops.file.leaves import is_packed
from lance_ops.file.open_file import ColumnPart
from lance_ops.file.page_reading import (
    Budget,
    FileSource,
    PageRows,
    Ranges,
    RowSelection,
    RowSlice,
    Steps,
    combine_steps,
    cut_rows,
    naming_place,
    rows_of_runs,
    shared_boundaries,
    split_rows,
)
from lance_ops.file.v2_0.byte_lists import as_byte_list, from_byte_lists, with_byte_columns
from lance_ops.file.v2_0.contract import ARRAY_ENCODING_URL, ArrayContext, ArrayEncoding
from lance_ops.file.v2_0.field_columns import columns_of_field, fields_of_rows, is_single_column, project
from lance_ops.file.v2_0.registry import array_encoding_from_pb
from lance_ops.file.v2_0.stored_offsets import read_offsets, read_spans
from lance_ops.pb import encodings_v2_0_pb2 as pb
from lance_ops.wire import parse_message

__all__ = ["V20File"]

_LISTS = ("list", "list.struct", "large_list", "large_list.struct")
_MAX_I32 = np.iinfo(np.int32).max


class V20File(ContainerFile):
    """An open file of version 2.0."""

    def __init__(self, source: FileSource, tail: bytes) -> None:
        super().__init__(source, tail)
        self._fields = [node for root in self.schema.fields for node in columns_of_field(root)]
        self._bytes_of: dict[int, Field] = {}
        if len(self._fields) < len(self._column_extents):
            self._fields, self._bytes_of = with_byte_columns(self._fields, self._is_list)
        self.field_ids = tuple([field.id for field in self._fields])
        self._index_of = {field.id: index for index, field in enumerate(self._fields)}
        if len(self._index_of) < len(self._fields):
            raise CorruptFile(self.path, "schema", "two fields have the same id")
        self._check_num_columns()
        self._pages: dict[tuple[int, int], ArrayEncoding] = {}
        self._first_items: dict[int, list[int]] = {}

    def encoded_bytes(self, schema: Schema) -> int:
        wanted = [index for root in schema.fields for index in self._indices_of(root)]
        return sum(column.size_bytes for column in self._load_columns(wanted))

    def load_metadata(self, field: Field) -> None:
        self._load_columns(self._indices_of(field))

    def column_parts(self, field: Field, rows: RowSelection, budget: Budget) -> list[ColumnPart]:
        starts = []
        for node in fields_of_rows(field):
            column = self._column_of(node)
            if column.length != self.num_rows:
                reason = f"pages of {column.length} rows in a file of {self.num_rows}"
                raise CorruptFile(self.path, self._place(node), reason)
            starts.append(column.page_starts)
        boundaries = shared_boundaries(starts or [(0, self.num_rows)])
        cut = cut_rows(rows, boundaries)
        return [ColumnPart([self._read_field(field, part, budget)], lambda arrays: arrays[0]) for part in cut]

    def describe(self, index: int) -> list[tuple[str, ...]]:
        field = self._fields[index]
        (column,) = self._load_columns([index])
        found: list[tuple[str, ...]] = []
        for page in range(len(column.pages)):
            message = self._parse(index, column, page)
            kind = message.WhichOneof("array_encoding") or ""
            if kind == "struct":
                found.append((kind,))
            elif kind == "list":
                found.append((kind, *self._page(index, column, page, pa.uint64(), message.list.offsets).encodings()))
            else:
                blob = ("blob",) if _is_blob(column, self.path, self._place(field)) else ()
                arrow_type = POSITION_AND_SIZE if blob else field.arrow_type
                found.append((*blob, *self._page(index, column, page, arrow_type, message).encodings()))
        return found

    def _read_field(self, field: Field, rows: RowSelection, budget: Budget) -> Steps[pa.Array]:
        if field.logical_type == "struct" and not is_packed(field):
            children = yield from combine_steps([self._read_field(child, rows, budget) for child in field.children])
            with naming_place(self.path, f"column {field.name!r}"):
                return pa.Array.from_buffers(field.arrow_type, rows.count, [None], children=children)
        if field.logical_type in _LISTS:
            return (yield from self._read_lists(field, rows, budget))
        if field.id in self._bytes_of:
            lists = yield from self._read_lists(as_byte_list(field, self._bytes_of[field.id]), rows, budget)
            with naming_place(self.path, self._place(field)):
                return from_byte_lists(lists, field.arrow_type)
        if field.children and not is_single_column(field):
            raise UnsupportedFeature(f"{field.logical_type} in 2.0 files", f"{self.path}: {self._place(field)}")
        column = self._column_of(field)
        pages = self._split(field, column, rows)
        parts = yield from combine_steps([self._read_page(field, column, page, budget) for page in pages])
        return _concat(parts, field.arrow_type)

    def _read_page(self, field: Field, column: Column, page: PageRows, budget: Budget) -> Steps[pa.Array]:
        index = self._find(field)
        place = f"{self._place(field)}, page {page.page}"
        with naming_place(self.path, place):
            message = self._parse(index, column, page.page)
            is_blob = _is_blob(column, self.path, place)
            stored = self._fields[index]
            arrow_type = stored.arrow_type if field.children else field.arrow_type
            found = yield from self._page(
                index, column, page.page, POSITION_AND_SIZE if is_blob else arrow_type, message
            ).read(page.rows)
            if is_blob and field.arrow_type != POSITION_AND_SIZE:
                check(is_text_or_bytes(field.arrow_type), f"blobs in a column of {field.arrow_type}")
                found = yield from self._read_blobs(field, found)
            elif not is_blob:
                found = project(found, stored, field)
            budget.spend(found.nbytes)
            return found

    def _read_lists(self, field: Field, rows: RowSelection, budget: Budget) -> Steps[pa.Array]:
        (child,) = field.children
        column = self._column_of(field)
        first_items = self._first_items_of(field, column)
        pages = self._split(field, column, rows)
        parts = yield from combine_steps([self._read_list_page(field, column, page, first_items) for page in pages])
        offsets = _join_offsets([part.offsets for part in parts])
        items = pa.nulls(0, child.arrow_type)
        if int(offsets[-1]):
            starts = np.concatenate([part.starts for part in parts])
            with naming_place(self.path, self._place(field)):
                budget.expect_items(int(offsets[-1]), len(starts), child.arrow_type)
            runs = rows_of_runs(starts, np.concatenate([part.sizes for part in parts]))
            items = yield from self._read_field(child, runs, budget)
        wide = pt.is_large_list(field.arrow_type)
        if not wide and int(offsets[-1]) > _MAX_I32:
            raise ReadTooLarge("more than 2^31 items in one array: read fewer rows at a time")
        buffer = pa.py_buffer(offsets.astype(np.int64 if wide else np.int32, copy=False))
        validity = bitmap_of(_join_validity(parts))
        return pa.Array.from_buffers(field.arrow_type, len(offsets) - 1, [validity, buffer], children=[items])

    def _read_list_page(
        self, field: Field, column: Column, page: PageRows, first_items: Sequence[int]
    ) -> Steps[_PageLists]:
        index = self._find(field)
        with naming_place(self.path, f"{self._place(field)}, page {page.page}"):
            described = self._parse(index, column, page.page).list
            stored = self._page(index, column, page.page, pa.uint64(), described.offsets)
            adjustment, first_item = described.null_offset_adjustment, first_items[page.page]
            if isinstance(page.rows, RowSlice):
                first, offsets, validity = yield from read_offsets(stored, page.rows, adjustment)
                starts, sizes = np.array([first], np.int64), offsets[-1:].astype(np.int64)
            else:
                starts, stops, validity = yield from read_spans(stored, page.rows, adjustment)
                sizes = stops - starts
                offsets = offsets_of_lengths(sizes, 32)
            last = int((starts + sizes).max())
            check(last <= described.num_items, f"a list ends beyond the page's {described.num_items} items")
            return _PageLists(starts + first_item, sizes, offsets, validity)

    def _first_items_of(self, field: Field, column: Column) -> list[int]:
        """Return how many items come before each page of lists, and how many there are in all."""
        index = self._find(field)
        first_items = self._first_items.get(index)
        if first_items is None:
            first_items = self._first_items[index] = self._count_items(field, index, column)
        return first_items

    def _count_items(self, field: Field, index: int, column: Column) -> list[int]:
        first_items = [0]
        for page in range(len(column.pages)):
            message = self._parse(index, column, page)
            if message.WhichOneof("array_encoding") != "list":
                raise CorruptFile(self.path, self._place(field), f"page {page} is not of lists")
            first_items.append(first_items[-1] + message.list.num_items)
        (child,) = field.children
        found = self._column_of(child).length
        if found != first_items[-1]:
            raise CorruptFile(self.path, self._place(child), f"{found} items where lists count {first_items[-1]}")
        return first_items

    def _read_blobs(self, field: Field, described: pa.Array) -> Steps[pa.Array]:
        positions, sizes = (described.field(i).to_numpy(zero_copy_only=False) for i in range(2))
        has_bytes = sizes > 0
        size_bytes = self.source.size_bytes
        inside = (
            int(sizes.max(initial=0)) <= size_bytes and (positions[has_bytes] <= size_bytes - sizes[has_bytes]).all()
        )
        check(inside, "a blob that ends beyond the file")
        starts, lengths = positions[has_bytes].astype(np.int64), sizes[has_bytes].astype(np.int64)
        check_expansion(sum(lengths.tolist()), size_bytes, "blobs that overlap in a file", max_ratio=1)
        fetched = yield Ranges(starts, starts + lengths)
        data = gather_ranges(fetched.data, fetched.locate(starts), lengths)
        offsets = np.append(0, np.cumsum(sizes.astype(np.int64)))
        validity = has_bytes | (positions == 0)
        return array_of(VariableWidth(offsets, data), field.arrow_type, None if validity.all() else validity)

    def _split(self, field: Field, column: Column, rows: RowSelection) -> list[PageRows]:
        if rows.last >= column.length:
            reason = f"row {rows.last} is needed, pages hold {column.length}"
            raise CorruptFile(self.path, self._place(field), reason)
        return split_rows(rows, column.page_starts)

    def _column_of(self, field: Field) -> Column:
        return self._load_columns([self._find(field)])[0]

    def _is_list(self, index: int) -> bool:
        """Return whether a column has pages of lists, or no pages."""
        if index >= len(self._column_extents):
            return False
        (column,) = self._load_columns([index])
        if not column.pages:
            return True
        message = parse_message(pb.ArrayEncoding, column.pages[0].encoding, self.path, f"column {index}, page 0")
        return bool(message.WhichOneof("array_encoding") == "list")

    def _indices_of(self, field: Field) -> list[int]:
        """Return all columns of a field and of the fields below it."""
        nodes = columns_of_field(field)
        return [*map(self._find, nodes), *(self._find(self._bytes_of[n.id]) for n in nodes if n.id in self._bytes_of)]

    def _find(self, field: Field) -> int:
        index = self._index_of.get(field.id)
        if index is None:
            raise InvalidInput(f"{self.path} has no column for field {field.name!r} (id {field.id})")
        return index

    def _parse(self, index: int, column: Column, page: int) -> pb.ArrayEncoding:
        place = f"{self._place(self._fields[index])}, page {page}"
        if column.pages[page].type_url != ARRAY_ENCODING_URL:
            raise UnsupportedFeature(f"the page description {column.pages[page].type_url!r}", f"{self.path}: {place}")
        return parse_message(pb.ArrayEncoding, column.pages[page].encoding, self.path, place)

    def _page(
        self, index: int, column: Column, page: int, arrow_type: pa.DataType, described: pb.ArrayEncoding
    ) -> ArrayEncoding:
        encoding = self._pages.get((index, page))
        if encoding is None:
            info = column.pages[page]
            with naming_place(self.path, f"{self._place(self._fields[index])}, page {page}"):
                context = ArrayContext(info.buffers, info.length, arrow_type, column.buffers)
                encoding = array_encoding_from_pb(described, context)
            self._pages[index, page] = encoding
        return encoding

    def _place(self, field: Field) -> str:
        return f"column {self._index_of[field.id]} ({field.name})"


@dataclass(frozen=True, eq=False)
class _PageLists:
    """Some lists of one page: `starts` and `sizes` are the runs of their items in the child's column."""

    starts: Int64Array
    sizes: Int64Array
    offsets: OffsetArray
    validity: BoolArray | None


def _join_offsets(parts: Sequence[OffsetArray]) -> OffsetArray:
    """Return the offsets of lists that follow each other; the offsets of each part begin at 0."""
    if len(parts) == 1:
        return parts[0]
    return offsets_of_lengths(np.concatenate([np.diff(part).astype(np.int64) for part in parts]), 32)


def _join_validity(parts: Sequence[_PageLists]) -> BoolArray | None:
    if all(part.validity is None for part in parts):
        return None
    return np.concatenate([np.ones(len(p.offsets) - 1, np.bool_) if p.validity is None else p.validity for p in parts])


def _is_blob(column: Column, path: str, place: str) -> bool:
    """Return whether the pages of a column store the positions of blobs. Zone statistics around it are skipped."""
    encoding = parse_message(pb.ColumnEncoding, column.encoding, path, place)
    kind, is_blob = encoding.WhichOneof("column_encoding"), False
    while kind in ("zone_index", "blob"):
        is_blob |= kind == "blob"
        encoding = encoding.zone_index.inner if kind == "zone_index" else encoding.blob.inner
        kind = encoding.WhichOneof("column_encoding")
    return is_blob


def _concat(parts: Sequence[pa.Array], arrow_type: pa.DataType) -> pa.Array:
    if len(parts) == 1:
        return parts[0]
    return pa.concat_arrays(parts) if parts else pa.nulls(0, arrow_type)
