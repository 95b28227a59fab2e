"""Compare the entries of an index segment with the rows of fragments that it covers.

Each live row must have exactly one entry, under the value that the row has. An entry may also name a deleted row, a
row of a fragment that the segment does not cover, or a row of a fragment that is gone: such entries are stale, and
searches ignore them. An entry must not name a row that a covered fragment never had. An index that describes rows
together, as zones, must not rule out the value of a live row.

The rows are taken in spans, so that memory is bounded by a span and not by the table. Each span reads all entries of
the segment and keeps its own.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence

import numpy as np
import pyarrow as pa

from lance_ops.core.addresses import TOMBSTONE_ROW, fragment_of, offset_of, row_addr, row_addrs
from lance_ops.core.errors import LanceOpsError, UnsupportedFeature
from lance_ops.core.ndarrays import BoolArray, Int64Array, Uint64Array
from lance_ops.core.records import dataclass
from lance_ops.core.schema import Field
from lance_ops.indices import INDEX_ROW, INDEX_VALUE, IndexQuery, LoadedIndex, RowKey, index_type_of, keys_of
from lance_ops.maintenance.indexing import indexed_values
from lance_ops.maintenance.verification.checks.data_file_checks import column_windows
from lance_ops.maintenance.verification.findings import DamageKind, FindingCollector
from lance_ops.reading import open_index, row_key_of
from lance_ops.snapshot import Snapshot
from lance_ops.table import Fragment, IndexMetadata
from lance_ops.table.rows import offsets_in

__all__ = ["RowSpan", "check_index_entries"]

_SHOWN = 5


@dataclass(frozen=True)
class RowSpan:
    """The physical rows `start` to `stop` (exclusive) of a fragment; a `stop` beyond its rows means all of them."""

    fragment_id: int
    start: int
    stop: int


def check_index_entries(
    snapshot: Snapshot, index: IndexMetadata, spans: Sequence[RowSpan], found: FindingCollector
) -> None:
    """Record rows of the spans without an entry, with several, or with another value, and entries of no row.

    If the rows themselves cannot be read, the entries are unverified: the damage is the fragment's.
    """
    found = found.of_index(index)
    field = snapshot.schema.by_id(index.fields[0])
    assert field is not None
    try:
        clipped = _Spans.of(_Span.of(snapshot.fragments_by_id[span.fragment_id], span) for span in spans)
        addresses_of = _addressing(snapshot, index)
    except LanceOpsError as error:
        found.unverified(DamageKind.INDEX_ENTRIES, f"its rows cannot be read: {error}")
        return
    if not index_type_of(index).names_rows:
        _check_descriptions(snapshot, index, field, clipped.spans, found)
        return
    with found.errors_as(DamageKind.INDEX_FILE):
        for span, positions, values in _entries_by_span(snapshot, index, clipped, addresses_of, found):
            try:
                _compare(snapshot, field, span, positions, values, found)
            except LanceOpsError as error:
                detail = f"the rows of fragment {span.fragment.id} cannot be read: {error}"
                found.unverified(DamageKind.INDEX_ENTRIES, detail)


@dataclass(frozen=True)
class _Span:
    fragment: Fragment
    start: int
    stop: int

    @classmethod
    def of(cls, fragment: Fragment, span: RowSpan) -> _Span:
        return cls(fragment, span.start, min(span.stop, fragment.physical_rows))

    @property
    def has_last_row(self) -> bool:
        return self.stop == self.fragment.physical_rows


@dataclass(frozen=True)
class _Spans:
    """Spans in the order of addresses. `first_rows` numbers the rows of all spans in one sequence."""

    spans: tuple[_Span, ...]
    starts: Uint64Array
    stops: Uint64Array
    first_rows: Int64Array

    @classmethod
    def of(cls, spans: Iterable[_Span]) -> _Spans:
        ordered = tuple(sorted(spans, key=lambda span: (span.fragment.id, span.start)))
        starts = np.array([row_addr(span.fragment.id, span.start) for span in ordered], np.uint64)
        stops = np.array([row_addr(span.fragment.id, span.stop) for span in ordered], np.uint64)
        counts = [span.stop - span.start for span in ordered]
        return cls(ordered, starts, stops, np.cumsum([0, *counts], dtype=np.int64))

    def find(self, addresses: Uint64Array) -> tuple[Int64Array, Int64Array]:
        """Return which of the addresses are in a span, and the numbers of their rows."""
        owners = np.searchsorted(self.starts, addresses, side="right") - 1
        inside = np.flatnonzero((owners >= 0) & (addresses < self.stops[np.maximum(owners, 0)]))
        owner = owners[inside]
        return inside, (addresses[inside] - self.starts[owner]).astype(np.int64) + self.first_rows[owner]

    def beyond(self, addresses: Uint64Array) -> dict[int, Uint64Array]:
        """Return, by fragment, the offsets of addresses behind the last row of a fragment whose last row is here."""
        ends = {span.fragment.id: span.stop for span in self.spans if span.has_last_row}
        owners = np.searchsorted(self.starts, addresses, side="right") - 1
        outside = addresses[(owners >= 0) & (addresses >= self.stops[np.maximum(owners, 0)])]
        found = {}
        for fragment_id in np.unique(fragment_of(outside)).tolist():
            offsets = offset_of(outside[fragment_of(outside) == np.uint64(fragment_id)])
            if fragment_id in ends and (offsets >= np.uint64(ends[fragment_id])).any():
                found[fragment_id] = offsets[offsets >= np.uint64(ends[fragment_id])]
        return found


def _addressing(snapshot: Snapshot, index: IndexMetadata) -> Callable[[Uint64Array], Uint64Array]:
    """Return a function from an index's rows to addresses. It maps an id of no live row to `TOMBSTONE_ROW`."""
    if row_key_of(snapshot, index) is RowKey.STABLE_ID:
        return snapshot.row_id_index.find
    return lambda addresses: addresses


def _check_descriptions(
    snapshot: Snapshot, index: IndexMetadata, field: Field, spans: Iterable[_Span], found: FindingCollector
) -> None:
    """Record live rows of the spans whose value the index rules out."""
    with found.errors_as(DamageKind.INDEX_FILE):
        loaded = open_index(snapshot, index)
        for span in spans:
            try:
                rows = _rows_ruled_out(snapshot, field, span, loaded)
            except LanceOpsError as error:
                detail = f"the rows of fragment {span.fragment.id} cannot be read: {error}"
                found.unverified(DamageKind.INDEX_ENTRIES, detail)
                continue
            if len(rows):
                detail = f"it rules out the values of {len(rows)} live rows: rows {_first(rows)}"
                found.damaged(DamageKind.INDEX_ENTRIES, detail, fragment_id=span.fragment.id)


def _rows_ruled_out(snapshot: Snapshot, field: Field, span: _Span, index: LoadedIndex[IndexQuery]) -> Uint64Array:
    """Return the offsets of the span's live rows whose value the index rules out."""
    live = _live_rows(snapshot, span)
    wrong: list[Uint64Array] = []
    for first, column in _values_in(snapshot, field, span):
        rows = np.flatnonzero(live[first : first + len(column)])
        addresses = row_addrs(span.fragment.id, rows + first + span.start)
        batch = pa.record_batch([column.take(pa.array(rows)), pa.array(addresses)], names=[INDEX_VALUE, INDEX_ROW])
        wrong.append(offset_of(index.contradicted(batch)))
    return np.concatenate([np.empty(0, np.uint64), *wrong])


def _live_rows(snapshot: Snapshot, span: _Span) -> BoolArray:
    """Return which rows of a span are not deleted."""
    num_rows = span.stop - span.start
    live = np.ones(num_rows, np.bool_)
    deleted = offsets_in(snapshot.deletion_vector(span.fragment)).astype(np.int64) - span.start
    live[deleted[(deleted >= 0) & (deleted < num_rows)]] = False
    return live


def _entries_by_span(
    snapshot: Snapshot,
    index: IndexMetadata,
    spans: _Spans,
    addresses_of: Callable[[Uint64Array], Uint64Array],
    found: FindingCollector,
) -> Iterator[tuple[_Span, Int64Array, pa.Array]]:
    """Yield each span with its entries: their positions in the span, ascending, and their values."""
    rows: list[Int64Array] = []
    values: list[pa.Array] = []
    for batch in open_index(snapshot, index).entries():
        addresses = addresses_of(batch.column(INDEX_ROW).to_numpy())
        for fragment_id, offsets in spans.beyond(addresses[addresses != np.uint64(TOMBSTONE_ROW)]).items():
            num_rows = snapshot.fragments_by_id[fragment_id].physical_rows
            detail = f"entries name rows {_first(offsets)} of a fragment of {num_rows} rows"
            found.damaged(DamageKind.INDEX_ENTRIES, detail, fragment_id=fragment_id)
        inside, numbers = spans.find(addresses)
        rows.append(numbers)
        values.append(batch.column(INDEX_VALUE).take(pa.array(inside)))
    all_rows = np.concatenate([np.empty(0, np.int64), *rows])
    order = np.argsort(all_rows, kind="stable")
    ascending = all_rows[order]
    entries = pa.concat_arrays(values).take(pa.array(order)) if values else pa.nulls(0)
    cuts = np.searchsorted(ascending, spans.first_rows).tolist()
    for at, span in enumerate(spans.spans):
        begin, end = cuts[at], cuts[at + 1]
        yield span, ascending[begin:end] - spans.first_rows[at], entries.slice(begin, end - begin)


def _compare(
    snapshot: Snapshot, field: Field, span: _Span, positions: Int64Array, values: pa.Array, found: FindingCollector
) -> None:
    """Compare the entries of one span with the span's live rows; `positions` ascend."""
    num_rows = span.stop - span.start
    live = _live_rows(snapshot, span)
    counts = np.bincount(positions, minlength=num_rows)
    for wrong, what in ((live & (counts == 0), "no entry"), (live & (counts > 1), "several entries")):
        if wrong.any():
            rows = np.flatnonzero(wrong) + span.start
            detail = f"{len(rows)} live rows have {what}: rows {_first(rows)}"
            found.damaged(DamageKind.INDEX_ENTRIES, detail, fragment_id=span.fragment.id)
    comparable = live & (counts == 1)
    if not comparable.any():
        return
    entries = values.filter(pa.array(comparable[positions]))
    wrong_rows = _rows_with_other_values(snapshot, field, span, np.flatnonzero(comparable), entries)
    if len(wrong_rows):
        detail = f"{len(wrong_rows)} entries have another value than their row: rows {_first(wrong_rows)}"
        found.damaged(DamageKind.INDEX_ENTRIES, detail, fragment_id=span.fragment.id)


def _rows_with_other_values(
    snapshot: Snapshot, field: Field, span: _Span, compared: Int64Array, entries: pa.Array
) -> Int64Array:
    """Return the offsets of rows whose value is not their entry's; `compared` are ascending positions in the span."""
    different = []
    for first, column in _values_in(snapshot, field, span):
        begin, end = np.searchsorted(compared, [first, first + len(column)]).tolist()
        rows = compared[begin:end]
        ours = keys_of(_as_type(column.take(pa.array(rows - first)), entries.type))
        theirs = keys_of(entries.slice(begin, end - begin))
        if not ours.equals(theirs):
            is_other = [a != b for a, b in zip(ours.to_pylist(), theirs.to_pylist(), strict=True)]
            different.append(rows[np.flatnonzero(is_other)] + span.start)
    return np.concatenate([np.empty(0, np.int64), *different])


def _values_in(snapshot: Snapshot, field: Field, span: _Span) -> Iterator[tuple[int, pa.Array]]:
    """Yield the span's values of a field in windows, each with its first position in the span."""
    schema = snapshot.schema.project([snapshot.schema.path_of(field.id)])
    for first, table in column_windows(snapshot.reader(span.fragment), schema, span.start, span.stop):
        values = indexed_values(table.column(0), schema, field).combine_chunks()
        yield first - span.start, values if isinstance(values, pa.Array) else pa.concat_arrays(values.chunks)


def _as_type(values: pa.Array, wanted: pa.DataType) -> pa.Array:
    if values.type == wanted:
        return values
    try:
        return values.cast(wanted)
    except pa.ArrowException as error:
        raise UnsupportedFeature(f"comparing an index of {wanted} with a column of {values.type}") from error


def _first(rows: Int64Array | Uint64Array) -> str:
    more = ", …" if len(rows) > _SHOWN else ""
    return ", ".join(map(str, rows[:_SHOWN].tolist())) + more
