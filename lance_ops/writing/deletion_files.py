"""Write deletion files that mark more rows of some fragments as deleted."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import chain

from pyroaring import BitMap

from lance_ops.core.file_names import new_deletion_file_id
from lance_ops.core.map_ordered import map_ordered
from lance_ops.core.records import dataclass
from lance_ops.snapshot import Snapshot
from lance_ops.table import Fragment, encode_deletion_vector
from lance_ops.transactions import PendingFiles, PendingFilesBuilder

__all__ = ["WrittenDeletions", "write_deletion_files"]

_WRITTEN_AHEAD = 16
_PARTS_PER_WORKER, _MOST_TOGETHER = 4, 16
"""Handing a short file to a thread costs much of what writing it does, so a thread gets several files at once."""


@dataclass(frozen=True)
class WrittenDeletions:
    """Fragments with a larger deletion vector, the ids of fragments without a live row, and the deletion files."""

    updated_fragments: tuple[Fragment, ...]
    removed_fragment_ids: tuple[int, ...]
    pending: PendingFiles


def write_deletion_files(snapshot: Snapshot, offsets: Mapping[int, BitMap]) -> WrittenDeletions:
    """Write a deletion file for each fragment: its deleted rows so far, and the rows at the physical `offsets`.

    The files are not durable yet. When one cannot be written, all are deleted.
    """
    files = PendingFilesBuilder(snapshot.store, durable=False)

    def write_one(fragment_id: int) -> Fragment | None:
        fragment = snapshot.fragments_by_id[fragment_id]
        vector = snapshot.deletion_vector(fragment) | offsets[fragment_id]
        if len(vector) == fragment.physical_rows:
            return None
        deletion_file, data = encode_deletion_vector(vector, snapshot.version, new_deletion_file_id())
        updated = replace(fragment, deletion_file=deletion_file)
        assert updated.deletion_path is not None
        files.add(updated.deletion_path)
        snapshot.store.put(updated.deletion_path, data, durable=False)
        return updated

    def write_several(fragment_ids: Sequence[int]) -> list[Fragment | None]:
        return [write_one(fragment_id) for fragment_id in fragment_ids]

    ids = sorted(offsets)
    workers = min(snapshot.calls_at_once, len(ids))
    together = max(1, min(len(ids) // (_PARTS_PER_WORKER * max(workers, 1)), _MOST_TOGETHER))
    parts = [ids[at : at + together] for at in range(0, len(ids), together)]
    with files.abandoned_on_failure():
        written = chain.from_iterable(map_ordered(write_several, parts, workers, _WRITTEN_AHEAD))
        outcomes = dict(zip(ids, written, strict=True))
    return WrittenDeletions(
        updated_fragments=tuple(fragment for fragment in outcomes.values() if fragment is not None),
        removed_fragment_ids=tuple(fragment_id for fragment_id, fragment in outcomes.items() if fragment is None),
        pending=files.build(),
    )
