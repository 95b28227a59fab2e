"""Files beneath one directory that share its store: `LanceFileSession`, with the API of the reference."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping

import pyarrow as pa

from lance_ops.core.errors import InvalidInput, ObjectNotFound, StoreError
from lance_ops.core.records import dataclass
from lance_ops.file.reference_api import LanceFileReader, LanceFileWriter, PlacedFile, refuse_namespaces
from lance_ops.store import Store, open_store

__all__ = ["LanceFileSession", "ListResult"]

_COPIED_BYTES = 8 << 20
_Names = list[str]  # inside a class with a method `list` the builtin has no name


@dataclass
class ListResult:
    """What is directly in a directory: the directories in it, and the files. Both are relative to the session."""

    common_prefixes: list[str]
    objects: list[str]


class LanceFileSession:
    """Readers, writers and files beneath a directory. One connection to its store serves all of them.

    Paths are relative to the directory. Every method raises `UnsafePath` for a path that leaves it.
    """

    def __init__(
        self,
        base_path: str | os.PathLike[str],
        storage_options: Mapping[str, str] | None = None,
        namespace_client: object | None = None,
        table_id: Iterable[str] | None = None,
    ) -> None:
        """Open the store of a directory's path or URI. The directory need not exist yet."""
        refuse_namespaces(namespace_client, table_id)
        self._store: Store = open_store(base_path, storage_options)

    def open_reader(self, path: str, columns: Iterable[str] | None = None) -> LanceFileReader:
        """Open a data file, to read all columns or the named ones."""
        return LanceFileReader(PlacedFile(self._store, path), columns=columns)

    def open_writer(
        self,
        path: str,
        *,
        schema: pa.Schema | None = None,
        data_cache_bytes: int | None = None,
        version: str | None = None,
        keep_original_array: bool | None = None,
        max_page_bytes: int | None = None,
    ) -> LanceFileWriter:
        """Start a data file; see `LanceFileWriter`. `keep_original_array` has no effect, because nothing is copied."""
        return LanceFileWriter(
            PlacedFile(self._store, path),
            schema,
            data_cache_bytes=data_cache_bytes,
            version=version,
            max_page_bytes=max_page_bytes,
        )

    def contains(self, path: str) -> bool:
        """Return whether there is a file at `path`. A directory is no file."""
        return self._store.exists(path)

    def list(self, path: str | None = None) -> _Names:
        """Return the paths of all files beneath a directory, at any depth, in order."""
        return sorted(info.path for info in self._store.list(path or ""))

    def list_with_delimiter(self, path: str | None = None) -> ListResult:
        """Return the files and directories that are directly in a directory."""
        directory = (path or "").removesuffix("/")
        start = len(directory) + 1 if directory else 0
        inside = [(name, name.find("/", start)) for name in self.list(directory)]
        directories = sorted({name[:end] for name, end in inside if end >= 0})
        return ListResult(directories, [name for name, end in inside if end < 0])

    def read_range(self, path: str, offset: int, length: int) -> bytes:
        """Return `length` bytes of a file, from `offset` on.

        Raises `ObjectNotFound` for a missing file, `StoreError` if the file ends before the range does, and
        `InvalidInput` for a negative number.
        """
        if offset < 0 or length < 0:
            raise InvalidInput(f"{length} bytes at {offset} of {self._store.uri_of(path)}: neither may be negative")
        size = self._store.size(path)
        if offset + length > size:
            raise StoreError(f"{self._store.uri_of(path)}: {length} bytes at {offset} of a file of {size} bytes")
        return bytes(self._store.get_range(path, offset, offset + length))

    def delete_file(self, path: str) -> None:
        """Remove a file; raise `ObjectNotFound` if there is none."""
        if not self._store.exists(path):
            raise ObjectNotFound(self._store.uri_of(path))
        self._store.delete(path)

    def upload_file(self, local_path: str | os.PathLike[str], remote_path: str) -> None:
        """Copy a file of this machine into the directory, replacing one of that path."""
        with open(local_path, "rb") as source, self._store.open_writer(remote_path) as target:
            while data := source.read(_COPIED_BYTES):
                target.write(data)

    def download_file(self, remote_path: str, local_path: str | os.PathLike[str]) -> None:
        """Copy a file of the directory to this machine, replacing one of that path."""
        size = self._store.size(remote_path)
        ranges = ((start, min(start + _COPIED_BYTES, size)) for start in range(0, size, _COPIED_BYTES))
        with open(local_path, "wb") as target:
            target.writelines(self._store.get_range(remote_path, start, end) for start, end in ranges)
