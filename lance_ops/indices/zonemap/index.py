"""A loaded segment of a zone map: search it, move its zones, merge it with others."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyroaring import BitMap

from lance_ops.core.addresses import fragment_of, offset_of
from lance_ops.core.arrow import numbers_of, truths_of
from lance_ops.core.errors import InvalidInput, UnsupportedFeature
from lance_ops.core.ndarrays import BoolArray, Int64Array, Uint64Array
from lance_ops.core.predicate import Column, IsNull, Predicate
from lance_ops.core.records import dataclass
from lance_ops.indices.contract import LoadedIndex, TrainingBatches, check_training_batch, claimed_fragments
from lance_ops.indices.row_address_set import RowAddressSet
from lance_ops.indices.sort_keys import is_sortable
from lance_ops.indices.zonemap.layout import ZONEMAP, ZoneTable, read_zones, write_zones
from lance_ops.indices.zonemap.partials import joined_table, remapped_zones
from lance_ops.indices.zonemap.zone_matches import ZoneBounds, may_match
from lance_ops.indices.zonemap.zones import ZoneBuilder
from lance_ops.store import Store
from lance_ops.table import IndexFile, IndexMetadata
from lance_ops.table.rows import RowAddressMap, offsets_in

__all__ = ["ZoneMapIndex", "ZoneMapQuery", "summarize"]

_LEAST_MEMORY_BYTES = 8 << 10


@dataclass(frozen=True)
class ZoneMapQuery:
    """A condition on the indexed column, which the zones can rule out for some rows."""

    predicate: Predicate


class ZoneMapIndex(LoadedIndex[ZoneMapQuery]):
    """One segment of a zone map, whole in memory: a zone takes some 50 bytes and its two bounds."""

    def __init__(self, store: Store, metadata: IndexMetadata) -> None:
        super().__init__(metadata)
        size = next((file.size_bytes for file in metadata.files if file.path == ZONEMAP), None)
        self.zones = read_zones(store, size)
        if not is_sortable(self.zones.value_type):
            raise UnsupportedFeature(
                f"a zone map on values of type {self.zones.value_type}", f"index {metadata.name!r}"
            )

    @property
    def memory_bytes(self) -> int:
        """The zones and the bitmaps of nulls."""
        return _LEAST_MEMORY_BYTES + self.zones.memory_bytes

    def search(self, query: ZoneMapQuery) -> RowAddressSet:
        """Return the rows of the zones that may have a match.

        A search for nulls is exact if the nulls are recorded.
        """
        zones = self.zones.of_fragments(self.fragments)
        nulls = zones.nulls
        if isinstance(query.predicate, IsNull) and isinstance(query.predicate.operand, Column) and nulls is not None:
            return RowAddressSet.from_bitmaps(nulls)
        return RowAddressSet.from_bitmaps(_rows_of(zones, may_match(query.predicate, zones)), exact=False)

    def remap(self, address_map: RowAddressMap, store_out: Store) -> tuple[IndexFile, ...]:
        """Write the zones where their rows are now; no value is read.

        A zone that the rewrite cut in two keeps its bounds on both sides, so they may be wider than the values.
        """
        moved = remapped_zones(self.zones.of_fragments(self.fragments), address_map)
        return write_zones(joined_table(moved), store_out)

    def merge(
        self,
        others: Sequence[LoadedIndex[ZoneMapQuery]],
        rows: TrainingBatches,
        store_out: Store,
        *,
        live_fragments: Iterable[int],
    ) -> tuple[IndexFile, ...]:
        """Write the zones of the segments and of the new rows one after the other."""
        segments, tables = (self, *others), list[ZoneTable]()
        for index, claimed in zip(segments, claimed_fragments(segments, live_fragments), strict=True):
            if not isinstance(index, ZoneMapIndex) or index.zones.value_type != self.zones.value_type:
                raise InvalidInput(f"index {self.metadata.name!r}: segments of different kinds or types do not merge")
            tables.append(index.zones.of_fragments(claimed))
        tables.append(summarize(rows, self.zones.value_type, self.zones.rows_per_zone, self.metadata.name))
        return write_zones(ZoneTable.concatenated(tables), store_out)

    def stored_values(self) -> Iterator[pa.Array]:
        """Yield the bounds of all zones."""
        yield self.zones.mins
        yield self.zones.maxs

    def contradicted(self, rows: pa.RecordBatch) -> Uint64Array:
        """Return the rows that no zone has, that are outside the bounds of theirs, or whose null is not recorded."""
        values, addresses = check_training_batch(rows, self.zones.value_type, self.metadata.name)
        row_addrs: Uint64Array = numbers_of(addresses)
        zones = self.zones.of_fragments(self.fragments)
        if not zones.rows.num_rows or not len(row_addrs):
            return row_addrs
        owners = np.searchsorted(zones.start_addrs, row_addrs, side="right").astype(np.int64) - 1
        at = np.maximum(owners, 0)
        agrees = (owners >= 0) & (row_addrs < zones.start_addrs[at] + zones.lengths[at])
        return row_addrs[~(agrees & _agrees(values, row_addrs, zones, at))]

    def statistics(self) -> dict[str, object]:
        """Return the number of zones, and of the rows in each."""
        return {"num_zones": self.zones.rows.num_rows, "rows_per_zone": self.zones.rows_per_zone}


def summarize(rows: TrainingBatches, value_type: pa.DataType, rows_per_zone: int, column: str) -> ZoneTable:
    """Return the zones of these rows; raise `SchemaMismatch` for values of another type."""
    builder = ZoneBuilder(rows_per_zone)
    for batch in rows:
        values, addresses = check_training_batch(batch, value_type, column)
        builder.add(values, numbers_of(addresses))
    zones = builder.finish()
    return ZoneTable.of(zones, dict(builder.nulls), value_type, rows_per_zone)


def _rows_of(zones: ZoneTable, chosen: BoolArray) -> Mapping[int, BitMap]:
    """Return the rows of the chosen zones. Rows between two of them were deleted before the index was built."""
    rows: dict[int, BitMap] = {}
    for fragment_id, start, stop in _runs(zones, chosen):
        rows.setdefault(fragment_id, BitMap()).add_range(start, stop)
    return rows


def _runs(zones: ZoneTable, chosen: BoolArray) -> Iterator[tuple[int, int, int]]:
    """Yield the fragment, the first row and the end of each run of chosen zones that follow each other."""
    positions = np.flatnonzero(chosen)
    fragments = zones.fragment_ids[positions]
    follows = (np.diff(positions, prepend=-2) == 1) & (np.diff(fragments, prepend=np.uint64(0)) == 0)
    firsts = np.flatnonzero(~follows)
    lasts = np.append(firsts[1:], len(positions)) - 1
    ends = zones.starts + zones.lengths
    yield from zip(
        fragments[firsts].tolist(),
        zones.starts[positions[firsts]].tolist(),
        ends[positions[lasts]].tolist() if len(firsts) else [],
        strict=True,
    )


def _agrees(values: pa.Array, row_addrs: Uint64Array, zones: ZoneTable, at: Int64Array) -> BoolArray:
    """Return whether each value can be in its zone; `at` numbers the zone of each."""
    is_null = truths_of(pc.is_null(values))
    keys, lower, upper = ZoneBounds.of(values), ZoneBounds.of(zones.mins), ZoneBounds.of(zones.maxs)
    may: BoolArray = zones.may_have_values()[at]
    for bounds, op in ((lower, np.less_equal), (upper, np.greater_equal)):
        tested = np.flatnonzero(keys.is_known & bounds.is_known[at])
        may[tested] &= op(bounds.keys[at[tested]], keys.keys[tested]).astype(np.bool_)
    is_nan = ~keys.is_known & ~is_null
    may[is_nan] = (zones.nan_counts > 0)[at[is_nan]]
    may[is_null] = (zones.null_counts > 0)[at[is_null]]
    if zones.nulls is not None:
        may &= is_null == _recorded(row_addrs, zones.nulls)
    return may


def _recorded(row_addrs: Uint64Array, nulls: Mapping[int, BitMap]) -> BoolArray:
    recorded = np.zeros(len(row_addrs), np.bool_)
    fragments, offsets = fragment_of(row_addrs), offset_of(row_addrs)
    for fragment_id in np.unique(fragments).tolist():
        inside = np.flatnonzero(fragments == fragment_id)
        bitmap = nulls.get(fragment_id, BitMap())
        recorded[inside] = np.isin(offsets[inside], offsets_in(bitmap))
    return recorded
