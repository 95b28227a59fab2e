"""Read the short deletion files of several fragments together."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import accumulate

from pyroaring import BitMap

from lance_ops.core.file_names import DELETIONS_DIR
from lance_ops.store import Store
from lance_ops.table import DeletionFile, Fragment, decode_deletion_vectors

__all__ = ["is_short", "read_short_deletion_files"]

_SHORT_VECTOR = 900
"""The most deleted rows of a short file. Its offsets are not compressed."""

_OTHER_BYTES = 2048
"""More than what a short file holds besides its offsets."""


def is_short(file: DeletionFile) -> bool:
    """Return whether the file states few enough deleted rows to be decoded by its pattern."""
    return 0 < file.num_deleted_rows <= _SHORT_VECTOR


def read_short_deletion_files(
    store: Store, fragments: Sequence[Fragment], files: Sequence[DeletionFile]
) -> list[BitMap] | None:
    """Return the deletion vectors of fragments. Their deletion files must be short and beneath one root.

    Returns None if a file must be read by itself. Raises as `decode_deletion_vector` does.
    """
    paths = [f"{DELETIONS_DIR}/{file.name(fragment.id)}" for fragment, file in zip(fragments, files, strict=True)]
    rooms = [4 * file.num_deleted_rows + _OTHER_BYTES for file in files]
    places = list(accumulate(rooms, initial=0))
    out = bytearray(places.pop())
    parts = [[(0, room, place)] for room, place in zip(rooms, places, strict=True)]
    found = store.read_parts(paths, parts, memoryview(out))
    if found is None or any(size == room for size, room in zip(found, rooms, strict=True)):
        return None
    data = [bytes(out[place : place + size]) for place, size in zip(places, found, strict=True)]
    num_rows = [fragment.physical_rows for fragment in fragments]
    return decode_deletion_vectors(files, data, num_rows, [store.uri_of(path) for path in paths])
