"""A B-tree index that was loaded: search, remap, merge.

A search reads in two steps: the values of the pages in which its spans begin or end, then the row addresses between.
Pages inside of a span are not read for their values.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import cached_property

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyroaring import BitMap, FrozenBitMap

from lance_ops.core.addresses import TOMBSTONE_ROW, fragment_of
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
    value_type_of,
    write_pages,
)
from lance_ops.indices.btree.lookup import Cut, PageLookup
from lance_ops.indices.btree.row_ranges import RowRange, join_ranges, split_ranges
from lance_ops.indices.btree.spans import BTreeQuery, spans_of
from lance_ops.indices.contract import LoadedIndex, TrainingBatches, check_training_batch
from lance_ops.indices.external_sort import sort_rows
from lance_ops.indices.row_address_set import RowAddressSet
from lance_ops.indices.sort_keys import sort_keys
from lance_ops.indices.sorted_merge import merge_sorted
from lance_ops.store import Store
from lance_ops.table import IndexFile, IndexMetadata
from lance_ops.table.rows import NO_CODE, KeyCodeTable, RowAddressMap, offsets_in

__all__ = ["BTreeIndex"]


_READ_ROWS = 1 << 18
"""Rows of page_data held at once."""

_READ_THROUGH = 4
"""Up to so many times the rows asked for, all between the first and the last cost less than to pick them out."""


class BTreeIndex(LoadedIndex[BTreeQuery]):
    """One segment of a B-tree index: page_lookup in memory, page_data opened by the first search that needs it."""

    def __init__(self, store: Store, metadata: IndexMetadata, sort_bytes: int) -> None:
        super().__init__(metadata)
        self._store = store
        self._sort_bytes = sort_bytes
        lookup = self._open(PAGE_LOOKUP)
        self.value_type = value_type_of(lookup.schema.to_arrow_storage(), lookup.path)
        self._page_lookup = lookup.read()
        self._pages = PageLookup.from_table(self._page_lookup, lookup.path)

    def search(self, query: BTreeQuery) -> RowAddressSet:
        """Return the rows of all values that the query wants."""
        spans = spans_of(query.wanted, self.value_type)
        rows = self._rows_at({cut for span in spans for cut in span})
        found = RowAddressSet.union(self._found(join_ranges((rows[start], rows[stop]) for start, stop in spans)))
        covered = found if self.fragments is None else found.restrict(self.fragments)
        return replace(covered, exact=query.exact)

    def remap(self, moved: RowAddressMap, store_out: Store) -> tuple[IndexFile, ...]:
        """Write the same pages over again: values keep their order, rows that are gone close the gaps.

        Where all rows are left, values stay as they are stored, and only their addresses are made anew.
        """
        moved = moved.within(self.fragments)
        if not moved.loses_rows:
            with suppress(NotCopied):
                lookup = self._store.get(PAGE_LOOKUP)
                return copy_pages(self._page_data, lookup, self._moved_ids(moved), store_out, durable=False)
        rows = (_remapped(batch, moved) for batch in self._rows_of(None))
        return write_pages(rows, self.value_type, self._pages.page_rows, store_out, durable=False)

    def merge(
        self,
        others: Sequence[LoadedIndex[BTreeQuery]],
        rows: TrainingBatches,
        store_out: Store,
        *,
        live_fragments: Iterable[int],
    ) -> tuple[IndexFile, ...]:
        """Merge the sorted pages of the segments with the new rows, sorted."""
        streams: list[Iterable[pa.RecordBatch]] = []
        unclaimed = BitMap(live_fragments)
        for index in (self, *others):
            if not isinstance(index, BTreeIndex) or index.value_type != self.value_type:
                raise InvalidInput(f"index {self.metadata.name!r}: segments of different kinds or types do not merge")
            claimed = unclaimed if index.fragments is None else unclaimed & index.fragments
            unclaimed = unclaimed - claimed
            streams.append(index._rows_of(claimed))
        new_rows = (data_rows(*check_training_batch(batch, self.value_type, self.metadata.name)) for batch in rows)
        with sort_rows(new_rows, self._sort_bytes) as ordered:
            merged = merge_sorted([*streams, ordered])
            return write_pages(merged, self.value_type, self._pages.page_rows, store_out)

    def statistics(self) -> dict[str, object]:
        """Return the first and last value in the reference's words, and the number of pages."""
        with_values = self._page_lookup.filter(pc.is_valid(self._page_lookup.column(MAX)))
        mins, maxs = with_values.column(MIN), with_values.column(MAX)
        return {
            "min": _in_words(mins[0]) if len(mins) else "N/A",
            "max": _in_words(maxs[-1]) if len(maxs) else "N/A",
            "num_pages": self._pages.num_pages,
        }

    @cached_property
    def _page_data(self) -> FileReader:
        reader = self._open(PAGE_DATA)
        num_pages = -(-reader.num_rows // self._pages.page_rows)
        if num_pages != self._pages.num_pages:
            reason = f"{num_pages} pages where page_lookup has {self._pages.num_pages}: build the index again"
            raise CorruptFile(reader.path, "length", reason)
        check_schema(reader.schema.to_arrow_storage(), data_schema(self.value_type), reader.path)
        return reader

    def _open(self, path: str) -> FileReader:
        sizes = {file.path: file.size_bytes for file in self.metadata.files}
        return FileReader(self._store, path, sizes.get(path))

    def _found(self, ranges: Sequence[RowRange]) -> Iterator[RowAddressSet]:
        """Yield the addresses in these ranges of rows, some at a time."""
        if not ranges:
            return
        num_rows = self._page_data.num_rows  # the last page may be shorter than the lookup can know
        for part in split_ranges([(start, min(stop, num_rows)) for start, stop in ranges], _READ_ROWS):
            yield RowAddressSet.from_addresses(self._addresses(self._read(IDS, part)))

    def _rows_at(self, cuts: Collection[Cut | None]) -> dict[Cut | None, int]:
        """Return the row that follows each cut, reading the pages that have one inside."""
        places = {cut: self._pages.place(cut) for cut in cuts}
        rows = {cut: place.row for cut, place in places.items()}
        inside: dict[int, list[Cut]] = {}
        for cut, place in places.items():
            if cut is not None and place.page is not None:
                inside.setdefault(place.page, []).append(cut)
        pages = sorted(inside)
        at_once = max(1, _READ_ROWS // self._pages.page_rows)
        for portion in (pages[start : start + at_once] for start in range(0, len(pages), at_once)):
            for page, keys in self._page_keys(portion):
                rows.update(self._pages.rows_in(page, keys, inside[page], self._page_data.path))
        return rows

    def _page_keys(self, pages: Sequence[int]) -> Iterator[tuple[int, pa.Array]]:
        """Yield the keys of some pages, which ascend."""
        page_rows, num_rows = self._pages.page_rows, self._page_data.num_rows
        ranges = [(page * page_rows, min((page + 1) * page_rows, num_rows)) for page in pages]
        keys = sort_keys(self._read(VALUES, join_ranges(ranges)))
        for page, (start, stop) in zip(pages, ranges, strict=True):
            yield page, keys.slice(0, stop - start)
            keys = keys.slice(stop - start)

    def _read(self, column: str, ranges: Sequence[RowRange]) -> pa.Array:
        """Return one column of page_data in these ranges of rows, one after the other."""
        schema = self._page_data.schema.project([column])
        first, last = ranges[0][0], ranges[-1][1]
        if last - first > _READ_THROUGH * sum(stop - start for start, stop in ranges):
            rows = np.concatenate([np.arange(*rows) for rows in ranges])
            return self._page_data.take(schema, rows).column(0).combine_chunks()
        between = self._page_data.read(schema, first, last).column(0).combine_chunks()
        if len(ranges) == 1:
            return between
        return pa.concat_arrays([between.slice(start - first, stop - start) for start, stop in ranges])

    def _rows_of(self, fragments: BitMap | FrozenBitMap | None) -> Iterator[pa.RecordBatch]:
        """Yield the sorted rows of these fragments, all of them for None."""
        wanted = None if fragments is None else KeyCodeTable(offsets_in(fragments).astype(np.uint64))
        schema = self._page_data.schema.project([VALUES, IDS])
        for batch in self._page_data.iter_batches(schema, batch_rows=_READ_ROWS):
            rows, addresses = data_rows(*batch.columns), self._addresses(batch.column(1))
            yield rows if wanted is None else _where(wanted.find(fragment_of(addresses)) != NO_CODE, rows)

    def _moved_ids(self, moved: RowAddressMap) -> Iterator[pa.RecordBatch]:
        """Yield the addresses of all rows after they moved; raise `NotCopied` at the first that is left out."""
        schema = self._page_data.schema.project([IDS])
        for batch in self._page_data.iter_batches(schema, batch_rows=_READ_ROWS):
            addresses = moved.remap(self._addresses(batch.column(0)))
            if int(addresses.max(initial=0)) == TOMBSTONE_ROW:
                raise NotCopied
            yield pa.RecordBatch.from_arrays([pa.array(addresses)], names=[IDS])

    def _addresses(self, ids: pa.Array) -> Uint64Array:
        if ids.null_count:
            raise CorruptFile(self._page_data.path, IDS, "a row without an address")
        addresses: Uint64Array = ids.to_numpy()
        return addresses


def _remapped(batch: pa.RecordBatch, moved: RowAddressMap) -> pa.RecordBatch:
    addresses = moved.remap(batch.column(1).to_numpy())
    return _where(addresses != np.uint64(TOMBSTONE_ROW), data_rows(batch.column(0), pa.array(addresses)))


def _where(mask: BoolArray, rows: pa.RecordBatch) -> pa.RecordBatch:
    """Return the rows of the mask: the same where it has all, since to copy them costs more than to look."""
    return rows if mask.all() else rows.filter(pa.array(mask))


def _in_words(value: pa.Scalar) -> str:
    return str(value.as_py()) if value.is_valid else "NULL"
