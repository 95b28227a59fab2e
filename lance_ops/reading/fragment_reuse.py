"""Follow rows through compactions that left the indices to be remapped later."""

from __future__ import annotations

from lance_ops.core.ndarrays import Uint64Array
from lance_ops.snapshot import Snapshot
from lance_ops.table import FRAGMENT_REUSE_INDEX, ExternalFile, decode_reuse_content, decode_reuse_details
from lance_ops.table.rows import RowAddressMap

__all__ = ["remap_addresses"]


def remap_addresses(snapshot: Snapshot, addresses: Uint64Array) -> Uint64Array | None:
    """Return where rows are by where they were, `TOMBSTONE_ROW` for one that a compaction dropped.

    None if no compaction left a note. An address that none of the notes has stays as it is. Raises `InvalidInput` for a
    row that a compacted fragment never had.
    """
    maps = _maps(snapshot)
    if maps is None:
        return None
    for moves in maps:
        addresses = moves.remap(addresses)
    return addresses


def _maps(snapshot: Snapshot) -> tuple[RowAddressMap, ...] | None:
    index = next((index for index in snapshot.manifest.indices if index.name == FRAGMENT_REUSE_INDEX), None)
    if index is None or index.details is None:
        return None
    found = decode_reuse_details(index.details.value, snapshot.manifest_uri)
    if not isinstance(found, ExternalFile):
        return found
    root, path = snapshot.file_locations.dataset_root(index.base_id, "an index"), f"{index.directory}/{found.path}"
    data = root.get_range(path, found.offset, found.offset + found.size)
    return decode_reuse_content(data.to_pybytes(), root.uri_of(path))
