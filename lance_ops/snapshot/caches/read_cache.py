"""What has been read of a dataset and may be needed again: deletion vectors, and the session's files and indices.

A snapshot never changes, and neither do the files that it names, so an entry is right for every version that names its
file. Two threads that miss the same entry both read it, and the last one to finish is cached.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import field
from uuid import UUID

from pyroaring import BitMap

from lance_ops.core.records import dataclass
from lance_ops.snapshot.caches.session import Session
from lance_ops.table import DeletionFile, Fragment, Manifest

__all__ = ["ReadCache"]


@dataclass(frozen=True, eq=False)
class ReadCache:
    """The deletion vectors of one version by fragment, and the session that its handle shares.

    `has_index_files` tells measures of index segments, by base id and id, whether their files are there. Versions made
    from one snapshot share it, so a list of versions asks the stores once for each segment.
    """

    session: Session = field(default_factory=Session)
    _deletion_vectors: dict[int, tuple[DeletionFile, BitMap]] = field(default_factory=dict)
    has_index_files: dict[tuple[int | None, UUID], bool] = field(default_factory=dict)

    def deletion_vector(self, fragment: Fragment, read: Callable[[], BitMap]) -> BitMap:
        """Return the cached deletion vector of a fragment that has a deletion file, or read it and cache it."""
        cached = self._deletion_vectors.get(fragment.id)
        if cached is not None and cached[0] == fragment.deletion_file:
            return cached[1]
        vector = read()
        self.keep_deletion_vector(fragment, vector)
        return vector

    def keep_deletion_vector(self, fragment: Fragment, vector: BitMap) -> None:
        """Cache the deletion vector of a fragment that has a deletion file."""
        assert fragment.deletion_file is not None
        self._deletion_vectors[fragment.id] = fragment.deletion_file, vector

    def has_deletion_vector(self, fragment: Fragment) -> bool:
        """Return whether the deletion vector of a fragment is cached."""
        cached = self._deletion_vectors.get(fragment.id)
        return cached is not None and cached[0] == fragment.deletion_file

    def for_version(self, manifest: Manifest) -> ReadCache:
        """Return a cache for another version: the same session, and the vectors whose files the manifest names.

        Only fragments with a cached vector are decoded. Other threads may add entries meanwhile, so a copy is used.
        """
        cached = self._deletion_vectors.copy()
        named = manifest.fragments.having(cached)
        vectors = {each.id: cached[each.id] for each in named if cached[each.id][0] == each.deletion_file}
        return ReadCache(self.session, vectors, self.has_index_files)
