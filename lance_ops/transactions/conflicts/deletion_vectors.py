"""Read and write the deletion files that a rebase needs, each at most once."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from dataclasses import field
from typing import TypeVar

from pyroaring import BitMap

from lance_ops.core.errors import LanceOpsError
from lance_ops.core.file_names import new_deletion_file_id
from lance_ops.core.records import dataclass
from lance_ops.core.threads import ThreadPool
from lance_ops.store import Store
from lance_ops.table import DeletionFile, Fragment, decode_deletion_vector, encode_deletion_vector
from lance_ops.table.manifest import FileLocations

__all__ = ["DeletionVectors"]

T = TypeVar("T")

_AT_ONCE = 16


@dataclass
class DeletionVectors:
    """The deletion vectors of one table during one commit: each is read once, and written again only if it changed.

    `locations` tell where to read them. They are written to the table's own `store`; the committer makes them durable.
    """

    store: Store
    locations: FileLocations
    _cached: dict[str, BitMap] = field(default_factory=dict)
    _written: dict[int, tuple[BitMap, Fragment]] = field(default_factory=dict)

    def read(self, fragment: Fragment) -> BitMap:
        """Return a fragment's deleted offsets, which the caller must not change. Raises `ObjectNotFound`."""
        if fragment.deletion_file is None:
            return BitMap()
        place = self.locations.deletion_file(fragment)
        vector = self._cached.get(place.uri)
        if vector is None:
            data = place.store.get(place.path)
            vector = decode_deletion_vector(fragment.deletion_file, data, fragment.physical_rows, place.uri)
            self._cached[place.uri] = vector
        return vector

    def read_ahead(self, fragments: Iterable[Fragment]) -> None:
        """Read the vectors of many fragments concurrently."""
        _for_each(self.read, [fragment for fragment in fragments if fragment.deletion_file is not None])

    def write(self, vectors: Mapping[int, BitMap], read_version: int) -> dict[int, DeletionFile]:
        """Write the vectors, by fragment, and return their deletion files.

        A file of an earlier call stays if its vector is the same, and is removed otherwise. So an attempt after a lost
        race has little left to write.
        """
        stale = [one for key, (vector, one) in self._written.items() if vectors.get(key) != vector]
        for fragment in stale:
            del self._written[fragment.id]
        self._remove(stale)
        _for_each(
            lambda fragment_id: self._write(fragment_id, vectors[fragment_id], read_version),
            [fragment_id for fragment_id in vectors if fragment_id not in self._written],
        )
        files = {fragment_id: fragment.deletion_file for fragment_id, (_, fragment) in self._written.items()}
        return {fragment_id: file for fragment_id, file in files.items() if file is not None}

    @property
    def written_paths(self) -> list[str]:
        """The deletion files written here, which may not be durable yet."""
        return [_path(fragment) for _, fragment in self._written.values()]

    def remove_written(self) -> None:
        """Remove the files written here, which no version will name."""
        self._remove([fragment for _, fragment in self._written.values()])
        self._written.clear()

    def _write(self, fragment_id: int, vector: BitMap, read_version: int) -> None:
        deletion_file, data = encode_deletion_vector(vector, read_version, new_deletion_file_id())
        fragment = Fragment(fragment_id, (), deletion_file=deletion_file)
        # Before the put, because a put that fails may still have written the file.
        self._written[fragment_id] = vector, fragment
        self.store.put(_path(fragment), data, durable=False)

    def _remove(self, fragments: Iterable[Fragment]) -> None:
        for fragment in fragments:
            with suppress(LanceOpsError):  # clean-up removes what cannot be deleted now
                self.store.delete(_path(fragment))


def _path(fragment: Fragment) -> str:
    path = fragment.deletion_path
    assert path is not None  # the files written here are under the table's root
    return path


def _for_each(action: Callable[[T], object], items: list[T]) -> None:
    if len(items) < 2:
        for item in items:
            action(item)
        return
    with ThreadPool(min(_AT_ONCE, len(items)), "deletion-vectors") as pool:
        for done in [pool.submit(action, item) for item in items]:
            done.result()
