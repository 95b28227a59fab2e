"""How many bytes each field takes in data files."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping

from lance_ops.core.versions import FileVersion
from lance_ops.file import FileReader
from lance_ops.snapshot.ordered import map_ordered
from lance_ops.snapshot.snapshot import Snapshot
from lance_ops.table import TOMBSTONED, DataFile

__all__ = ["field_sizes"]


def field_sizes(snapshot: Snapshot) -> Mapping[int, int]:
    """Return the bytes of each field's pages over all fragments, 0 for one that has no column of its own.

    Files of 0.1 do not tell, and count for nothing.
    """
    files = [file for fragment in snapshot.manifest.fragments for file in fragment.files]
    sizes: Counter[int] = Counter({node.id: 0 for node in snapshot.schema.walk()})
    at_once = min(snapshot.calls_at_once, len(files))
    for part in map_ordered(lambda file: _sizes(snapshot, file), files, at_once, at_once):
        for field_id in part.keys() & sizes.keys():
            sizes[field_id] += part[field_id]
    return sizes


def _sizes(snapshot: Snapshot, file: DataFile) -> Mapping[int, int]:
    if not file.column_indices:
        return {}
    place = snapshot.bases.data_file(file.base_id, file.path)
    reader = FileReader(place.store, place.path, file.file_size_bytes)
    if reader.version is FileVersion.V0_1:
        return {}
    columns = zip(file.fields, file.column_indices, strict=True)
    return {field: reader.column(at).size_bytes for field, at in columns if field != TOMBSTONED and at >= 0}
