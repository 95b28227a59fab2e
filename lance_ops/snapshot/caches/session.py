"""`Session`: the caches that handles share, of one dataset or of several.

Data files and index files never change, so an entry is right for every version that names its file. What a version
alone needs, its deletion vectors and row ids, belongs to its handle.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NoReturn, TypeAlias
from uuid import UUID

from pyroaring import FrozenBitMap

from lance_ops.core.errors import InvalidInput, UnsupportedFeature, WrongType
from lance_ops.snapshot.caches.bounded_cache import BoundedCache
from lance_ops.snapshot.caches.open_file_cache import OpenFiles
from lance_ops.table import IndexMetadata

if TYPE_CHECKING:
    from lance_ops.indices import IndexQuery, LoadedIndex

__all__ = ["Session"]

_METADATA_BYTES = 256 << 20
"""Memory for the metadata of some 4,000 small data files, or of 64 files of a gigabyte."""

_INDEX_BYTES = 1 << 30
"""Memory for the lookup tables of indices over some ten billion rows."""

_Segment: TypeAlias = tuple[str, UUID, FrozenBitMap | None]
"""A dataset's root, an index segment, and the fragments that it covers: a later version may cover fewer of them."""


class Session:
    """Caches of data files' metadata and of opened indices, each bounded by about this many bytes of memory.

    Handles that are given the same session share it, and so do the versions that are opened from one handle. A handle
    without a session has one of its own. Entries of several datasets compete for the bounds. A cached file is read with
    the credentials of the handle that opened it, and counted there: give one session only to handles that may read the
    same files. A session belongs to its process, and a pickled handle begins a new one.

    `index_cache_size_bytes` is 1 GiB by default, `metadata_cache_size_bytes` 256 MiB. A bound of 0 keeps no index, and
    one data file. Raises `InvalidInput` for a negative size, `WrongType` for what is no number, and
    `UnsupportedFeature` for a backend.
    """

    def __init__(
        self,
        index_cache_size_bytes: int | None = None,
        metadata_cache_size_bytes: int | None = None,
        index_cache_backend: Any = None,
        metadata_cache_backend: Any = None,
    ) -> None:
        if index_cache_backend is not None or metadata_cache_backend is not None:
            raise UnsupportedFeature("a cache backend other than this process's memory")
        self.open_files = OpenFiles(_checked("metadata_cache_size_bytes", metadata_cache_size_bytes, _METADATA_BYTES))
        self._indices: BoundedCache[_Segment, LoadedIndex[IndexQuery]] = BoundedCache(
            _checked("index_cache_size_bytes", index_cache_size_bytes, _INDEX_BYTES), lambda index: index.memory_bytes
        )

    def index(
        self, root_uri: str, metadata: IndexMetadata, load: Callable[[], LoadedIndex[IndexQuery]]
    ) -> LoadedIndex[IndexQuery]:
        """Return the cached index segment of the dataset at `root_uri`, or load it and cache it."""
        return self._indices.get((root_uri, metadata.uuid, metadata.fragment_bitmap), load)

    def size_bytes(self) -> int:
        """Return about how many bytes of memory the entries take."""
        return self.open_files.memory_bytes + self.index_cache_size_bytes()

    def index_cache_size_bytes(self) -> int:
        """Return about how many bytes of memory the opened indices take."""
        return self._indices.memory_bytes

    def is_same_as(self, other: Session) -> bool:
        """Return whether both are one session."""
        return self is other

    def __repr__(self) -> str:
        index, metadata = self.index_cache_size_bytes(), self.open_files.memory_bytes
        return f"Session(index_cache_size_bytes={index}, metadata_cache_size_bytes={metadata})"

    def __reduce__(self) -> NoReturn:
        raise WrongType("a Session cannot be pickled: it holds the caches of one process")


def _checked(name: str, given: Any, default: int) -> int:
    if given is not None and not isinstance(given, int):
        raise WrongType(f"{name} must be a number of bytes, not {given!r}")
    if given is not None and given < 0:
        raise InvalidInput(f"{name} must not be negative, not {given}")
    return default if given is None else int(given)
