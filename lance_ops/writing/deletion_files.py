"""Write deletion files that mark more rows of some fragments as deleted."""

from __future__ import annotations

import time
from collections.abc import Mapping

from pyroaring import BitMap

from lance_ops.core.file_names import new_deletion_file_id
from lance_ops.core.map_ordered import map_ordered
from lance_ops.core.records import dataclass
from lance_ops.snapshot import Snapshot
from lance_ops.table import Fragment, encode_deletion_vector, with_deletion_file
from lance_ops.transactions import PendingFiles, PendingFilesBuilder

__all__ = ["WrittenDeletions", "write_deletion_files"]

_WRITTEN_AHEAD = 16

_TIMED_FILES = 8
_SLOW_SECONDS = 0.002
_SLOW_WRITERS = 16
"""Threads that write if the first files of a local root take this long each, because a server stores them."""


@dataclass(frozen=True)
class WrittenDeletions:
    """Fragments with a larger deletion vector, the ids of fragments without a live row, and the deletion files."""

    updated_fragments: tuple[Fragment, ...]
    removed_fragment_ids: tuple[int, ...]
    pending: PendingFiles


def write_deletion_files(snapshot: Snapshot, offsets: Mapping[int, BitMap]) -> WrittenDeletions:
    """Write a deletion file for each fragment: its deleted rows so far, and the rows at the physical `offsets`.

    The files are not durable yet. When one cannot be written, all are deleted.

    Beneath a local root this thread writes all of them unless the first ones are slow: threads would wait for each
    other far longer than writing a file takes.
    """
    files = PendingFilesBuilder(snapshot.store, durable=False)

    def write_one(fragment_id: int) -> Fragment | None:
        fragment = snapshot.fragments_by_id[fragment_id]
        vector = snapshot.deletion_vector(fragment) | offsets[fragment_id]
        if len(vector) == fragment.physical_rows:
            return None
        deletion_file, data = encode_deletion_vector(vector, snapshot.version, new_deletion_file_id())
        updated = with_deletion_file(fragment, deletion_file)
        path = updated.deletion_path
        assert path is not None
        files.add(path)
        snapshot.store.put(path, data, durable=False)
        return updated

    ids = sorted(offsets)
    with files.abandoned_on_failure():
        written: list[Fragment | None] = []
        workers = min(snapshot.calls_at_once, len(ids))
        if snapshot.store.reads_in_place:
            begun = time.perf_counter()
            written += map(write_one, ids[:_TIMED_FILES])
            is_slow = time.perf_counter() - begun > _SLOW_SECONDS * len(written)
            workers = _SLOW_WRITERS if is_slow else 1
        written += map_ordered(write_one, ids[len(written) :], workers, _WRITTEN_AHEAD)
        outcomes = dict(zip(ids, written, strict=True))
    return WrittenDeletions(
        updated_fragments=tuple(fragment for fragment in outcomes.values() if fragment is not None),
        removed_fragment_ids=tuple(fragment_id for fragment_id, fragment in outcomes.items() if fragment is None),
        pending=files.build(),
    )
