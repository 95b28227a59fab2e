"""What has been read of a dataset and may be needed again: open data files, deletion vectors and opened indices.

A snapshot never changes, and neither do the files that it names, so an entry is right for every version that names its
file. Two threads that miss the same entry both read it, and the last one to finish is cached.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import TypeAlias
from uuid import UUID

from pyroaring import BitMap

from lance_ops.indices import IndexQuery, LoadedIndex
from lance_ops.snapshot.open_file_cache import OpenFiles
from lance_ops.table import Fragment, Manifest

__all__ = ["ReadCache"]

_OPEN_FILES_BYTES = 256 << 20
"""Memory for the metadata of some 4,000 small data files, or of 64 files of a gigabyte."""

_DeletionFile: TypeAlias = tuple[int | None, str]
"""The base and the name of a deletion file."""


@dataclass(frozen=True, eq=False)
class ReadCache:
    """Entries for the files of one version, and the data files that all versions share."""

    open_files: OpenFiles = field(default_factory=lambda: OpenFiles(_OPEN_FILES_BYTES))
    _deletion_vectors: dict[_DeletionFile, BitMap] = field(default_factory=dict)
    _indices: dict[UUID, LoadedIndex[IndexQuery]] = field(default_factory=dict)

    def deletion_vector(self, fragment: Fragment, read: Callable[[], BitMap]) -> BitMap:
        """Return the cached deletion vector of a fragment that has a deletion file, or read it and cache it."""
        file = _deletion_file(fragment)
        assert file is not None
        vector = self._deletion_vectors.get(file)
        if vector is None:
            vector = self._deletion_vectors[file] = read()
        return vector

    def index(self, uuid: UUID, load: Callable[[], LoadedIndex[IndexQuery]]) -> LoadedIndex[IndexQuery]:
        """Return the cached index segment, or load it and cache it."""
        index = self._indices.get(uuid)
        if index is None:
            index = self._indices[uuid] = load()
        return index

    def with_open_files_bytes(self, size_bytes: int) -> ReadCache:
        """Return the same cache with open files of its own, which take about `size_bytes` of memory."""
        return replace(self, open_files=OpenFiles(size_bytes))

    def for_version(self, manifest: Manifest) -> ReadCache:
        """Return a cache for another version: the same open files, and the entries whose files the manifest names.

        Other threads may add entries meanwhile, so copies are iterated.
        """
        uuids = {index.uuid for index in manifest.indices}
        indices = {uuid: index for uuid, index in self._indices.copy().items() if uuid in uuids}
        vectors: dict[_DeletionFile, BitMap] = {}
        if self._deletion_vectors:
            files = {_deletion_file(fragment) for fragment in manifest.fragments}
            vectors = {file: vector for file, vector in self._deletion_vectors.copy().items() if file in files}
        return ReadCache(self.open_files, vectors, indices)


def _deletion_file(fragment: Fragment) -> _DeletionFile | None:
    file = fragment.deletion_file
    return None if file is None else (file.base_id, file.name(fragment.id))
