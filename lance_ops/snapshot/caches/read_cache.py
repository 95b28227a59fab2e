"""What has been read of a dataset and may be needed again: deletion vectors, and the session's files and indices.

A snapshot never changes, and neither do the files that it names, so an entry is right for every version that names its
file. Two threads that miss the same entry both read it, and the last one to finish is cached.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TypeAlias

from pyroaring import BitMap

from lance_ops.snapshot.caches.session import Session
from lance_ops.table import Fragment, Manifest

__all__ = ["ReadCache"]

_DeletionFile: TypeAlias = tuple[int | None, str]
"""The base and the name of a deletion file."""


@dataclass(frozen=True, eq=False)
class ReadCache:
    """The deletion vectors of one version, and the session that its handle shares."""

    session: Session = field(default_factory=Session)
    _deletion_vectors: dict[_DeletionFile, BitMap] = field(default_factory=dict)

    def deletion_vector(self, fragment: Fragment, read: Callable[[], BitMap]) -> BitMap:
        """Return the cached deletion vector of a fragment that has a deletion file, or read it and cache it."""
        file = _deletion_file(fragment)
        assert file is not None
        vector = self._deletion_vectors.get(file)
        if vector is None:
            vector = self._deletion_vectors[file] = read()
        return vector

    def for_version(self, manifest: Manifest) -> ReadCache:
        """Return a cache for another version: the same session, and the vectors whose files the manifest names.

        Other threads may add entries meanwhile, so a copy is iterated.
        """
        vectors: dict[_DeletionFile, BitMap] = {}
        if self._deletion_vectors:
            files = {_deletion_file(fragment) for fragment in manifest.fragments}
            vectors = {file: vector for file, vector in self._deletion_vectors.copy().items() if file in files}
        return ReadCache(self.session, vectors)


def _deletion_file(fragment: Fragment) -> _DeletionFile | None:
    file = fragment.deletion_file
    return None if file is None else (file.base_id, file.name(fragment.id))
