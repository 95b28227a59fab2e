"""The file of a zone map: one row for each zone, and the addresses of the nulls.

    zonemap.lance    min: T, max: T, null_count: u32, nan_count: u32,
                     fragment_id: u64, zone_start: u64, zone_length: u64    (numbers not null)

`zone_start` is the offset of a zone's first live row when the index was built. `zone_length` counts the physical rows
from there to its last live row. `max` is NaN if a NaN is among the values. `min` is null if every value is null or NaN,
and `max` if every value is null. If no bound of the values is known, both are the widest bounds of the type; in a file
of the reference both are null or NaN, and the counts leave room for values. The schema's metadata holds
`rows_per_zone`, and `null_bitmap`: the number of the global buffer with the addresses of the nulls (see
`row_address_tree`). Older files do not have the latter.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyroaring import BitMap, FrozenBitMap

from lance_ops.core.addresses import row_addrs
from lance_ops.core.arrow import array_of_numbers, array_of_truths, numbers_of, scalar, truths_of
from lance_ops.core.errors import CorruptFile, LanceOpsError, UnsupportedFeature
from lance_ops.core.ndarrays import BoolArray, Uint64Array
from lance_ops.core.records import dataclass
from lance_ops.core.schema import Schema
from lance_ops.core.versions import FileVersion
from lance_ops.file import FileReader, FileWriter
from lance_ops.indices.sort_keys import Key
from lance_ops.indices.zonemap.zones import Zone, bound_keys, widest_bounds
from lance_ops.store import Store
from lance_ops.table import IndexFile
from lance_ops.table.rows import decode_address_tree, encode_address_tree

__all__ = ["DEFAULT_ROWS_PER_ZONE", "ZONEMAP", "ZoneTable", "read_zones", "write_zones"]

ZONEMAP = "zonemap.lance"
DEFAULT_ROWS_PER_ZONE = 8192

_MIN, _MAX, _NULL_COUNT, _NAN_COUNT = "min", "max", "null_count", "nan_count"
_FRAGMENT_ID, _ZONE_START, _ZONE_LENGTH = "fragment_id", "zone_start", "zone_length"
_ROWS_PER_ZONE, _NULL_BITMAP = "rows_per_zone", "null_bitmap"
_MAX_OFFSET = 1 << 32


@dataclass(frozen=True, eq=False)
class ZoneTable:
    """Zones in the order of their rows, and the offsets of the nulls by fragment; None if these are unknown."""

    rows: pa.RecordBatch
    nulls: Mapping[int, BitMap] | None
    rows_per_zone: int

    @classmethod
    def of(
        cls,
        zones: Sequence[Zone],
        nulls: Mapping[int, BitMap] | None,
        value_type: pa.DataType,
        rows_per_zone: int,
    ) -> ZoneTable:
        """Return the table of zones that are in the order of their rows."""
        zones = [_bounded(zone, value_type) for zone in zones]
        columns = [
            _bounds([_least(zone, value_type) for zone in zones], value_type),
            _bounds([_greatest(zone) for zone in zones], value_type),
            pa.array(np.array([zone.null_count for zone in zones], np.uint32)),
            pa.array(np.array([zone.nan_count for zone in zones], np.uint32)),
            pa.array(np.array([zone.fragment_id for zone in zones], np.uint64)),
            pa.array(np.array([zone.start for zone in zones], np.uint64)),
            pa.array(np.array([zone.stop - zone.start for zone in zones], np.uint64)),
        ]
        batch = pa.RecordBatch.from_arrays(columns, schema=_schema(value_type))
        return cls(batch, nulls, rows_per_zone)

    @classmethod
    def concatenated(cls, tables: Sequence[ZoneTable]) -> ZoneTable:
        """Return the zones of all tables, which have different rows and the first one's type."""
        rows = pa.Table.from_batches([table.rows for table in tables]).combine_chunks().to_batches()
        batch = rows[0] if rows else tables[0].rows
        nulls: dict[int, BitMap] | None = None
        if all(table.nulls is not None for table in tables):
            nulls = {}
            for fragment_id, bitmap in (item for table in tables for item in (table.nulls or {}).items()):
                nulls[fragment_id] = nulls[fragment_id] | bitmap if fragment_id in nulls else bitmap
        return cls(batch, nulls, tables[0].rows_per_zone)._in_order()

    @property
    def value_type(self) -> pa.DataType:
        """The type of the indexed values."""
        return self.rows.schema.field(_MIN).type

    @property
    def mins(self) -> pa.Array:
        """The least value of each zone; see the module's text."""
        return self.rows.column(_MIN)

    @property
    def maxs(self) -> pa.Array:
        """The greatest value of each zone; see the module's text."""
        return self.rows.column(_MAX)

    @property
    def null_counts(self) -> Uint64Array:
        """The number of nulls in each zone."""
        return self._numbers(_NULL_COUNT)

    @property
    def nan_counts(self) -> Uint64Array:
        """The number of NaNs in each zone."""
        return self._numbers(_NAN_COUNT)

    @property
    def fragment_ids(self) -> Uint64Array:
        """The fragment of each zone."""
        return self._numbers(_FRAGMENT_ID)

    @property
    def starts(self) -> Uint64Array:
        """The offset of each zone's first row."""
        return self._numbers(_ZONE_START)

    @property
    def lengths(self) -> Uint64Array:
        """The number of physical rows of each zone."""
        return self._numbers(_ZONE_LENGTH)

    @property
    def start_addrs(self) -> Uint64Array:
        """The address of each zone's first row."""
        return row_addrs(0, self.starts) + (self.fragment_ids << np.uint64(32))

    @property
    def memory_bytes(self) -> int:
        """About how many bytes of memory the zones and the nulls take."""
        nulls = sum(len(bitmap) // 8 for bitmap in (self.nulls or {}).values())
        return int(self.rows.nbytes) + nulls

    def of_fragments(self, fragments: Collection[int] | BitMap | FrozenBitMap | None) -> ZoneTable:
        """Return the zones of these fragments; all of them for None."""
        if fragments is None:
            return self
        kept = np.isin(self.fragment_ids, np.fromiter(fragments, np.uint64))
        nulls = None if self.nulls is None else {key: self.nulls[key] for key in self.nulls if key in fragments}
        return ZoneTable(self.rows.filter(array_of_truths(kept)), nulls, self.rows_per_zone)

    def numbered(self, start: int, stop: int) -> ZoneTable:
        """Return the zones from number `start` to `stop` (exclusive), with the nulls of their rows."""
        part = ZoneTable(self.rows.slice(start, stop - start), None, self.rows_per_zone)
        if self.nulls is None:
            return part
        own: dict[int, BitMap] = {}
        for fragment_id in np.unique(part.fragment_ids).tolist():
            if fragment_id in self.nulls:
                own[fragment_id] = self.nulls[fragment_id] & _all_rows(part, fragment_id)
        return replace(part, nulls=own)

    @property
    def has_short_neighbours(self) -> bool:
        """Whether one zone has room for the rows of two that follow each other in a fragment."""
        spans = self.starts[1:] + self.lengths[1:] - self.starts[:-1]
        return bool(((np.diff(self.fragment_ids) == 0) & (spans <= self.rows_per_zone)).any())

    def zones(self) -> Iterable[Zone]:
        """Yield the zones one by one."""
        numbers = [self.fragment_ids, self.starts, self.lengths, self.null_counts, self.nan_counts]
        bounds = (_known_keys(self.mins), _known_keys(self.maxs))
        for lower, upper, fragment, start, length, nulls, nans in zip(
            *bounds, *(column.tolist() for column in numbers), strict=True
        ):
            has_values = lower is not None or upper is not None or nulls + nans < length
            yield Zone(fragment, start, start + length, lower, upper, nulls, nans, has_values)

    def may_have_values(self) -> BoolArray:
        """Return which zones may have values that are neither null nor NaN."""
        is_bounded = pc.or_(pc.is_valid(_known(self.mins)), pc.is_valid(_known(self.maxs)))
        mask: BoolArray = truths_of(is_bounded) | (self.null_counts + self.nan_counts < self.lengths)
        return mask

    def _numbers(self, name: str) -> Uint64Array:
        numbers: Uint64Array = numbers_of(self.rows.column(name)).astype(np.uint64)
        return numbers

    def _in_order(self) -> ZoneTable:
        order = np.argsort(self.start_addrs, kind="stable")
        if (np.diff(order) == 1).all():
            return self
        return ZoneTable(self.rows.take(array_of_numbers(order)), self.nulls, self.rows_per_zone)


def write_zones(table: ZoneTable, store: Store) -> tuple[IndexFile, ...]:
    """Write the file of an index; a failure leaves no file behind. It is not synced."""
    schema = Schema.from_arrow(table.rows.schema.with_metadata({_ROWS_PER_ZONE: str(table.rows_per_zone)}))
    try:
        with FileWriter(store, ZONEMAP, schema, durable=False) as writer:
            writer.write_batch(table.rows)
            if table.nulls is not None:
                buffer = writer.add_global_buffer(encode_address_tree(table.nulls))
                writer.metadata[_NULL_BITMAP] = str(buffer)
    except BaseException:
        # the store may have stored the file although its answer was lost
        with suppress(LanceOpsError):  # clean-up will delete the file; the first error is the one to report
            store.delete(ZONEMAP)
        raise
    return (IndexFile(ZONEMAP, writer.finish().size_bytes),)


def read_zones(store: Store, size_bytes: int | None) -> ZoneTable:
    """Read the file of an index, of the recorded size.

    Raises `CorruptFile` for zones that cannot be, and `UnsupportedFeature` for a file of version 0.1.
    """
    file = FileReader(store, ZONEMAP, size_bytes, verifies=True, whole=True)
    if file.version is FileVersion.V0_1:  # such files have no nulls, so a null bound looks like a 0
        raise UnsupportedFeature("a zone map in a file of version 0.1 (build the index again)", file.path)
    found = file.schema.to_arrow_storage()
    value_type = found.field(_MIN).type if _MIN in found.names else pa.null()
    expected = _schema(value_type)
    for column in expected:
        if column.name not in found.names or found.field(column.name).type != column.type:
            raise CorruptFile(file.path, "schema", f"no column {column.name!r} of type {column.type}")
    read = file.read(file.schema.project(expected.names)).combine_chunks()
    for column in expected:
        if not column.nullable and read.column(column.name).null_count:
            raise CorruptFile(file.path, column.name, "a zone has no number")
    batches = read.select(expected.names).cast(expected).to_batches()
    rows = (
        batches[0] if batches else pa.RecordBatch.from_arrays([pa.nulls(0, f.type) for f in expected], schema=expected)
    )
    table = ZoneTable(rows, None, _rows_per_zone(file))
    if (table.fragment_ids >= _MAX_OFFSET).any() or (table.starts >= _MAX_OFFSET).any():
        raise CorruptFile(file.path, _ZONE_START, "a zone begins beyond the last row that a fragment can have")
    if ((table.lengths > _MAX_OFFSET) | (table.starts + table.lengths > _MAX_OFFSET)).any():
        raise CorruptFile(file.path, _ZONE_LENGTH, "a zone ends beyond the last row that a fragment can have")
    return _with_nulls(table, file)._in_order()


def _schema(value_type: pa.DataType) -> pa.Schema:
    numbers = [(_NULL_COUNT, pa.uint32()), (_NAN_COUNT, pa.uint32())]
    numbers += [(name, pa.uint64()) for name in (_FRAGMENT_ID, _ZONE_START, _ZONE_LENGTH)]
    return pa.schema(
        [
            pa.field(_MIN, value_type),
            pa.field(_MAX, value_type),
            *(pa.field(name, kind, nullable=False) for name, kind in numbers),
        ]
    )


def _rows_per_zone(file: FileReader) -> int:
    text = file.schema_metadata.get(_ROWS_PER_ZONE, str(DEFAULT_ROWS_PER_ZONE))
    if not text.isdecimal() or not int(text):
        raise CorruptFile(file.path, _ROWS_PER_ZONE, f"{text!r} is not a number of rows")
    return int(text)


def _with_nulls(table: ZoneTable, file: FileReader) -> ZoneTable:
    """Return the zones with the nulls of the file, if it has them."""
    text = file.schema_metadata.get(_NULL_BITMAP)
    if text is None:
        return table
    if not text.isdecimal() or int(text) >= len(file.global_buffers):
        raise CorruptFile(file.path, _NULL_BITMAP, f"there is no global buffer {text!r}")
    found = decode_address_tree(memoryview(file.global_buffer(int(text))), file.path, _NULL_BITMAP)
    return replace(table, nulls={key: _all_rows(table, key) if rows is None else rows for key, rows in found.items()})


def _all_rows(table: ZoneTable, fragment_id: int) -> BitMap:
    rows = BitMap()
    of_fragment = np.flatnonzero(table.fragment_ids == np.uint64(fragment_id))
    for start, length in zip(table.starts[of_fragment].tolist(), table.lengths[of_fragment].tolist(), strict=True):
        rows.add_range(start, start + length)
    return rows


def _bounded(zone: Zone, value_type: pa.DataType) -> Zone:
    """Give a zone without bounds the widest ones if it may have values, so that no reader skips it.

    Without a bound, only the counts would say that it has some. Those of a part of a zone may be too high.
    """
    if zone.has_values and zone.lower is None and zone.upper is None:
        lower, upper = widest_bounds(value_type)
        return replace(zone, lower=lower, upper=upper)
    return zone


def _least(zone: Zone, value_type: pa.DataType) -> Key | None:
    """Return what the file holds as a zone's least value. A zero is -0.0: a reader may order it before 0.0."""
    return -0.0 if pa.types.is_floating(value_type) and zone.lower == 0 else zone.lower


def _greatest(zone: Zone) -> Key | None:
    """Return what the file holds as a zone's greatest value. A zero is 0.0, and NaN is above all numbers."""
    if zone.nan_count:
        return math.nan
    return 0.0 if isinstance(zone.upper, float) and zone.upper == 0 else zone.upper


def _bounds(keys: Sequence[Key | None], value_type: pa.DataType) -> pa.Array:
    key_type = bound_keys(pa.nulls(0, value_type)).type
    values = pa.array(keys, key_type, from_pandas=False)
    if key_type == value_type:
        return values
    return values.view(value_type) if pa.types.is_temporal(value_type) else values.cast(value_type)


def _known(values: pa.Array) -> pa.Array:
    """Return the bounds that are known, in the form of `bound_keys`: a NaN does not bound the numbers."""
    keys = bound_keys(values)
    if pa.types.is_floating(keys.type):
        return pc.if_else(pc.is_nan(keys), scalar(None, keys.type), keys)
    return keys


def _known_keys(values: pa.Array) -> list[Key | None]:
    keys: list[Key | None] = _known(values).to_pylist()
    return keys
