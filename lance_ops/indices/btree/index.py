"""A loaded segment of a B-tree index: search it, remap it, merge it with others.

A search reads in two steps. First it reads the values of the pages in which its spans begin or end. Then it reads the
row addresses of the spans. It does not read the values of pages that lie inside a span. If all spans begin and end in
one page, a single step reads the values and addresses of that page.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import partial
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyroaring import BitMap, FrozenBitMap

from lance_ops.core.addresses import TOMBSTONE_ROW, fragment_of
from lance_ops.core.arrow import numbers_of
from lance_ops.core.cached_property import cached_property
from lance_ops.core.errors import CorruptFile, InvalidInput
from lance_ops.core.ndarrays import BoolArray, Uint64Array
from lance_ops.file import FileReader
from lance_ops.indices.btree.layout import (
    IDS,
    MAX,
    MIN,
    PAGE_DATA,
    PAGE_LOOKUP,
    VALUES,
    NotCopied,
    check_schema,
    copy_pages,
    data_rows,
    data_schema,
    write_pages,
)
from lance_ops.indices.btree.lookup_file import LOOKUP_FILES
from lance_ops.indices.btree.page_checks import checked_pages
from lance_ops.indices.btree.page_lookup import Cut
from lance_ops.indices.btree.query_spans import BTreeQuery, spans_of
from lance_ops.indices.btree.row_ranges import RowRange, join_ranges, split_ranges
from lance_ops.indices.contract import (
    INDEX_ROW,
    INDEX_VALUE,
    LoadedIndex,
    TrainingBatches,
    check_training_batch,
    claimed_fragments,
)
from lance_ops.indices.external_sort import sort_rows
from lance_ops.indices.row_address_set import RowAddressSet
from lance_ops.indices.sort_keys import sort_keys
from lance_ops.indices.sorted_merge import merge_sorted
from lance_ops.store import Store
from lance_ops.table import IndexFile, IndexMetadata
from lance_ops.table.rows import NO_CODE, KeyCodeTable, RowAddressMap, offsets_in

__all__ = ["BTreeIndex"]


_READ_ROWS = 1 << 18
"""The number of page_data's rows that are in memory at once."""

_MAX_READ_THROUGH = 4
"""Read every row from the first wanted one to the last if they are at most this many times the wanted rows.

Picking single rows costs more than reading the rows between them.
"""


_LEAST_MEMORY_BYTES = 32 << 10
_BYTES_PER_PAGE = 200  # two Python values, of some 60 bytes each, and their places in tuples
_DATA_BYTES_PER_METADATA_BYTE = 256


_NO_ADDRESSES: Uint64Array = np.empty(0, np.uint64)


class _Page(NamedTuple):
    """One page of page_data: its first row, and the keys and addresses of its rows."""

    first: int
    keys: pa.Array
    ids: pa.Array


class BTreeIndex(LoadedIndex[BTreeQuery]):
    """One segment of a B-tree index. page_lookup is in memory; page_data is opened beside it if that is a request."""

    def __init__(self, store: Store, metadata: IndexMetadata, sort_bytes: int) -> None:
        super().__init__(metadata)
        self._store = store
        self._sort_bytes = sort_bytes
        size = self._recorded_size(PAGE_DATA)
        # most searches need it too
        self._begun = store.begin_call(partial(FileReader, store, PAGE_DATA, size, verifies=True))
        lookup = LOOKUP_FILES.read(store, self._recorded_size(PAGE_LOOKUP))
        self.value_type = lookup.value_type
        self._lookup_file = lookup.file
        self._page_lookup = lookup.table
        self._pages = lookup.pages

    @property
    def memory_bytes(self) -> int:
        """The lookup table, its file if that is kept, its keys as Python values, and the metadata of the open files."""
        kept = self._lookup_file.source.kept_bytes + int(self._page_lookup.nbytes)
        page_data = sum(file.size_bytes or 0 for file in self.metadata.files if file.path == PAGE_DATA)
        keys = _BYTES_PER_PAGE * self._pages.num_pages
        return _LEAST_MEMORY_BYTES + kept + keys + page_data // _DATA_BYTES_PER_METADATA_BYTE

    def search(self, query: BTreeQuery) -> RowAddressSet:
        """Return the rows of the values that the query looks for."""
        spans = spans_of(query.wanted, self.value_type)
        rows, page = self._rows_after({cut for span in spans for cut in span})
        ranges = join_ranges((rows[start], rows[stop]) for start, stop in spans)
        if page is not None and all(
            page.first <= start and stop <= page.first + len(page.ids) for start, stop in ranges
        ):
            parts = [self._addresses(page.ids.slice(start - page.first, stop - start)) for start, stop in ranges]
            found = RowAddressSet.from_addresses(np.concatenate([*parts, _NO_ADDRESSES]))
        else:
            found = RowAddressSet.union(self._addresses_in(ranges))
        covered = found if self.fragments is None else found.restrict(self.fragments)
        return replace(covered, exact=query.exact)

    def remap(self, address_map: RowAddressMap, store_out: Store) -> tuple[IndexFile, ...]:
        """Write the same pages with new addresses; values keep their order, and deleted rows leave no gaps.

        If no row was deleted, the pages of the values are copied and only the addresses are encoded again.
        """
        address_map = address_map.within(self.fragments)
        if not address_map.loses_rows:
            with suppress(NotCopied):
                lookup = self._lookup_file.verifying().whole()
                return copy_pages(self._page_data, lookup, self._remapped_ids(address_map), store_out)
        return write_pages(self.remapped_rows(address_map), self.value_type, self._pages.page_rows, store_out)

    def merge(
        self,
        others: Sequence[LoadedIndex[BTreeQuery]],
        rows: TrainingBatches,
        store_out: Store,
        *,
        live_fragments: Iterable[int],
    ) -> tuple[IndexFile, ...]:
        """Sort the new rows and merge them with the sorted pages of the segments."""
        streams: list[Iterable[pa.RecordBatch]] = []
        segments = (self, *others)
        for index, claimed in zip(segments, claimed_fragments(segments, live_fragments), strict=True):
            if not isinstance(index, BTreeIndex) or index.value_type != self.value_type:
                raise InvalidInput(f"index {self.metadata.name!r}: segments of different kinds or types do not merge")
            streams.append(index.sorted_rows(claimed))
        new_rows = (data_rows(*check_training_batch(batch, self.value_type, self.metadata.name)) for batch in rows)
        with sort_rows(new_rows, self._sort_bytes) as ordered:
            merged = merge_sorted([*streams, ordered])
            return write_pages(merged, self.value_type, self._pages.page_rows, store_out)

    @property
    def num_rows(self) -> int:
        """How many rows the index has, stale ones too."""
        return self._page_data.num_rows

    def sorted_rows(
        self, fragments: BitMap | FrozenBitMap | None, start: int = 0, stop: int | None = None
    ) -> Iterator[pa.RecordBatch]:
        """Yield the rows of these fragments (None: of all) among the index's rows from `start` to `stop`, in order."""
        wanted = None if fragments is None else KeyCodeTable(offsets_in(fragments).astype(np.uint64))
        schema = self._page_data.schema.project([VALUES, IDS])
        for batch in self._page_data.iter_batches(schema, start, stop, batch_rows=_READ_ROWS):
            rows, addresses = data_rows(*batch.columns), self._addresses(batch.column(1))
            yield rows if wanted is None else _filtered(wanted.find(fragment_of(addresses)) != NO_CODE, rows)

    def remapped_rows(
        self, address_map: RowAddressMap, start: int = 0, stop: int | None = None
    ) -> Iterator[pa.RecordBatch]:
        """Yield the rows from `start` to `stop` with their new addresses, without deleted rows, in order."""
        within = address_map.within(self.fragments)
        return (_remapped(batch, within) for batch in self.sorted_rows(None, start, stop))

    def entries(self) -> Iterator[pa.RecordBatch]:
        """Yield the rows of page_data in order; see `checked_pages` for what is checked as they pass."""
        data = self._page_data
        batches = data.iter_batches(data.schema.project([VALUES, IDS]), batch_rows=_READ_ROWS)
        for batch in checked_pages(batches, data.num_rows, self._pages, data.path):
            yield pa.RecordBatch.from_arrays(batch.columns, names=[INDEX_VALUE, INDEX_ROW])

    def statistics(self) -> dict[str, object]:
        """Return the first and the last value as the reference prints them, and the number of pages."""
        with_values = self._page_lookup.filter(pc.is_valid(self._page_lookup.column(MAX)))
        mins, maxs = with_values.column(MIN), with_values.column(MAX)
        return {
            "min": _as_text(mins[0]) if len(mins) else "N/A",
            "max": _as_text(maxs[-1]) if len(maxs) else "N/A",
            "num_pages": self._pages.num_pages,
        }

    @cached_property
    def _page_data(self) -> FileReader:
        reader = self._begun()
        num_pages = -(-reader.num_rows // self._pages.page_rows)
        if num_pages != self._pages.num_pages:
            reason = f"{num_pages} pages where page_lookup has {self._pages.num_pages}: build the index again"
            raise CorruptFile(reader.path, "length", reason)
        check_schema(reader.schema.to_arrow_storage(), data_schema(self.value_type), reader.path)
        return reader

    def _recorded_size(self, path: str) -> int | None:
        return next((file.size_bytes for file in self.metadata.files if file.path == path), None)

    def _addresses_in(self, ranges: Sequence[RowRange]) -> Iterator[RowAddressSet]:
        """Yield the addresses in these ranges of rows, in sets of a bounded size."""
        if not ranges:
            return
        num_rows = self._page_data.num_rows  # the lookup does not say how short the last page is
        for part in split_ranges([(start, min(stop, num_rows)) for start, stop in ranges], _READ_ROWS):
            yield RowAddressSet.from_addresses(self._addresses(self._read(IDS, part)))

    def _rows_after(self, cuts: Collection[Cut | None]) -> tuple[dict[Cut | None, int], _Page | None]:
        """Return the row that follows each cut; read the pages that have a cut inside.

        A single page is read with its addresses and returned too: the rows of most look-ups are in it.
        """
        positions = {cut: self._pages.position(cut) for cut in cuts}
        rows = {cut: position.row for cut, position in positions.items()}
        inside: dict[int, list[Cut]] = {}
        for cut, position in positions.items():
            if cut is not None and position.page is not None:
                inside.setdefault(position.page, []).append(cut)
        pages = sorted(inside)
        if len(pages) == 1:
            page = self._read_page(pages[0])
            rows.update(self._pages.rows_in(pages[0], page.keys, inside[pages[0]], self._page_data.path))
            return rows, page
        at_once = max(1, _READ_ROWS // self._pages.page_rows)
        for portion in (pages[start : start + at_once] for start in range(0, len(pages), at_once)):
            for number, keys in self._page_keys(portion):
                rows.update(self._pages.rows_in(number, keys, inside[number], self._page_data.path))
        return rows, None

    def _read_page(self, page: int) -> _Page:
        first = page * self._pages.page_rows
        stop = min(first + self._pages.page_rows, self._page_data.num_rows)
        table = self._page_data.read(self._page_data.schema.project([VALUES, IDS]), first, stop)
        values, ids = (column.combine_chunks() for column in table.columns)
        return _Page(first, sort_keys(values), ids)

    def _page_keys(self, pages: Sequence[int]) -> Iterator[tuple[int, pa.Array]]:
        """Yield the keys of these pages; the page numbers ascend."""
        page_rows, num_rows = self._pages.page_rows, self._page_data.num_rows
        ranges = [(page * page_rows, min((page + 1) * page_rows, num_rows)) for page in pages]
        keys = sort_keys(self._read(VALUES, join_ranges(ranges)))
        for page, (start, stop) in zip(pages, ranges, strict=True):
            yield page, keys.slice(0, stop - start)
            keys = keys.slice(stop - start)

    def _read(self, column: str, ranges: Sequence[RowRange]) -> pa.Array:
        """Return one column of page_data for these ranges of rows, concatenated."""
        schema = self._page_data.schema.project([column])
        first, last = ranges[0][0], ranges[-1][1]
        if last - first > _MAX_READ_THROUGH * sum(stop - start for start, stop in ranges):
            rows = np.concatenate([np.arange(*rows) for rows in ranges])
            return self._page_data.take(schema, rows).column(0).combine_chunks()
        between = self._page_data.read(schema, first, last).column(0).combine_chunks()
        if len(ranges) == 1:
            return between
        return pa.concat_arrays([between.slice(start - first, stop - start) for start, stop in ranges])

    def _remapped_ids(self, address_map: RowAddressMap) -> Iterator[pa.RecordBatch]:
        """Yield the new addresses of all rows; raise `NotCopied` at the first row that was deleted."""
        schema = self._page_data.schema.project([IDS])
        for batch in self._page_data.iter_batches(schema, batch_rows=_READ_ROWS):
            addresses = address_map.remap(self._addresses(batch.column(0)))
            if int(addresses.max(initial=0)) == TOMBSTONE_ROW:
                raise NotCopied
            yield pa.RecordBatch.from_arrays([pa.array(addresses)], names=[IDS])

    def _addresses(self, ids: pa.Array) -> Uint64Array:
        if ids.null_count:
            raise CorruptFile(self._page_data.path, IDS, "a row has no address")
        addresses: Uint64Array = numbers_of(ids)
        return addresses


def _remapped(batch: pa.RecordBatch, address_map: RowAddressMap) -> pa.RecordBatch:
    addresses = address_map.remap(numbers_of(batch.column(1)))
    return _filtered(addresses != np.uint64(TOMBSTONE_ROW), data_rows(batch.column(0), pa.array(addresses)))


def _filtered(mask: BoolArray, rows: pa.RecordBatch) -> pa.RecordBatch:
    """Return the rows where the mask is true; return the batch itself if all are, to save the copy."""
    return rows if mask.all() else rows.filter(pa.array(mask))


def _as_text(value: pa.Scalar) -> str:
    return str(value.as_py()) if value.is_valid else "NULL"
