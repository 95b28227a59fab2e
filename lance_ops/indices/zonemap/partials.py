"""Zones in the messages of tasks: a task summarizes or copies some zones, and the driver puts all of them together.

A message holds some 50 bytes and two bounds for each zone, and the bitmaps of the nulls. So tasks write no files.
"""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa
from pyroaring import BitMap, FrozenBitMap

from lance_ops.core.errors import UnsupportedFeature
from lance_ops.indices.distributed import PartialIndex
from lance_ops.indices.zonemap.layout import ZoneTable
from lance_ops.indices.zonemap.moved_zones import moved_nulls, moved_zones
from lance_ops.indices.zonemap.zones import joined_zones
from lance_ops.table.rows import RowAddressMap, decode_address_tree, encode_address_tree

__all__ = ["joined_table", "joined_table_of", "kept_zones", "remapped_zones", "to_partial"]

_ROWS_PER_ZONE, _NULLS = b"rows_per_zone", b"nulls"


def to_partial(table: ZoneTable) -> PartialIndex:
    """Return the message of a task."""
    metadata = {_ROWS_PER_ZONE: str(table.rows_per_zone).encode()}
    if table.nulls is not None:
        metadata[_NULLS] = encode_address_tree(table.nulls)
    summary = table.rows.replace_schema_metadata(metadata)
    return PartialIndex(table.rows.num_rows, summary, decoded_bytes=table.memory_bytes)


def joined_table_of(partials: Sequence[PartialIndex], value_type: pa.DataType, rows_per_zone: int) -> ZoneTable:
    """Return the zones of all messages; those of a fragment that several tasks had are joined where they are short."""
    tables = [_from_partial(partial) for partial in partials]
    return joined_table(ZoneTable.concatenated(tables or [ZoneTable.of((), {}, value_type, rows_per_zone)]))


def kept_zones(table: ZoneTable, start: int, stop: int, fragments: BitMap | FrozenBitMap | None) -> ZoneTable:
    """Return the zones from number `start` to `stop` (exclusive) that are of these fragments; of all for None."""
    return table.numbered(start, stop).of_fragments(fragments)


def remapped_zones(table: ZoneTable, address_map: RowAddressMap) -> ZoneTable:
    """Return zones where their rows are after a rewrite.

    Raises `UnsupportedFeature` if the rewrite changed the order of the rows.
    """
    if not address_map.keeps_order:
        raise UnsupportedFeature(
            "moving the zones of rows that changed their order (build the index again)", "zone map"
        )
    nulls = None if table.nulls is None else moved_nulls(table.nulls, address_map)
    moved = sorted(moved_zones(table.zones(), address_map, nulls), key=lambda zone: (zone.fragment_id, zone.start))
    return ZoneTable.of(moved, nulls, table.value_type, table.rows_per_zone)


def joined_table(table: ZoneTable) -> ZoneTable:
    """Return the table with neighbouring zones joined where one zone has room for the rows of both."""
    if not table.has_short_neighbours:
        return table
    zones = list(joined_zones(table.zones(), table.rows_per_zone))
    return ZoneTable.of(zones, table.nulls, table.value_type, table.rows_per_zone)


def _from_partial(partial: PartialIndex) -> ZoneTable:
    metadata = partial.summary.schema.metadata
    rows = partial.summary.replace_schema_metadata(None)
    nulls: dict[int, BitMap] | None = None
    if _NULLS in metadata:
        found = decode_address_tree(metadata[_NULLS], "the message of a task", "nulls")
        nulls = {fragment_id: bitmap for fragment_id, bitmap in found.items() if bitmap is not None}
    return ZoneTable(rows, nulls, int(metadata[_ROWS_PER_ZONE]))
