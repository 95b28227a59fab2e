"""Remap row addresses through the fragment-reuse index, which compactions with a deferred index remap leave."""

from __future__ import annotations

from lance_ops.core.ndarrays import Uint64Array
from lance_ops.snapshot import Snapshot
from lance_ops.table import FRAGMENT_REUSE_INDEX, ExternalFile, decode_reuse_content, decode_reuse_details
from lance_ops.table.rows import RowAddressMap

__all__ = ["remap_addresses"]


def remap_addresses(snapshot: Snapshot, addresses: Uint64Array) -> Uint64Array | None:
    """Return the present addresses of rows by their earlier ones, `TOMBSTONE_ROW` for a row that a compaction dropped.

    None if the table has no fragment-reuse index. Addresses in fragments that it does not list stay the same. Raises
    `InvalidInput` for a row that a compacted fragment never had.
    """
    maps = _address_maps(snapshot)
    if maps is None:
        return None
    for address_map in maps:
        addresses = address_map.remap(addresses)
    return addresses


def _address_maps(snapshot: Snapshot) -> tuple[RowAddressMap, ...] | None:
    index = next((index for index in snapshot.manifest.indices if index.name == FRAGMENT_REUSE_INDEX), None)
    if index is None or index.details is None:
        return None
    content = decode_reuse_details(index.details.value, snapshot.manifest_uri)
    if not isinstance(content, ExternalFile):
        return content
    root, path = snapshot.index_root(index), f"{index.directory}/{content.path}"
    data = root.get_range(path, content.offset, content.offset + content.size)
    return decode_reuse_content(data.to_pybytes(), root.uri_of(path))
