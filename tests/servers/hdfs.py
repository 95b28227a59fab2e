"""A file system on a local disk with HDFS's rename, which never replaces a file.

HDFS itself comes from no package registry. This one is reached as it is, through fsspec's wrapper of
a file system of pyarrow's.
"""

from __future__ import annotations

import errno
import uuid
from pathlib import Path
from typing import Any

import fsspec
from fsspec.implementations.arrow import ArrowFSWrapper
from pyarrow import fs

from lance_ops.store import FsspecStore
from lance_ops.store.local.exclusive_name import link_if_absent

_FOLDERS: dict[str, Path] = {}


class _Files:
    """What `ArrowFSWrapper` asks of a file system of pyarrow's, beneath a folder of this machine."""

    type_name = "hdfs"

    def __init__(self, folder: Path) -> None:
        self._fs = fs.SubTreeFileSystem(str(folder), fs.LocalFileSystem())
        self._folder = folder

    def __getattr__(self, name: str) -> Any:
        return getattr(self._fs, name)

    def open_input_file(self, path: str) -> Any:
        return self._fs.open_input_file(self._checked(path))

    def open_input_stream(self, path: str, **how: Any) -> Any:
        return self._fs.open_input_stream(self._checked(path), **how)

    def delete_file(self, path: str) -> None:
        self._fs.delete_file(self._checked(path))

    def open_output_stream(self, path: str, **how: Any) -> Any:
        self._local(path).parent.mkdir(parents=True, exist_ok=True)
        return self._fs.open_output_stream(path, **how)

    def move(self, source: str, target: str) -> None:
        self._local(target).parent.mkdir(parents=True, exist_ok=True)
        if not link_if_absent(str(self._local(source)), str(self._local(target))):
            raise OSError(errno.EIO, "rename answered false", target)
        self._local(source).unlink(missing_ok=True)

    def _checked(self, path: str) -> str:
        if not self._local(path).is_file():
            raise FileNotFoundError(errno.ENOENT, "Path is not a file", path)
        return path

    def _local(self, path: str) -> Path:
        return self._folder / path.lstrip("/")


class RenamingFileSystem(ArrowFSWrapper):  # type: ignore[misc]  # fsspec ships no types
    """To be registered with fsspec as `hdfs`; its host names a folder of this process's."""

    protocol = "hdfs"

    def __init__(self, host: str = "default", port: int = 0, **options: Any) -> None:
        super().__init__(fs=_Files(_FOLDERS[host]), **options)


def renaming_store(folder: Path) -> FsspecStore:
    """Return a store at a URI of HDFS's; its objects are in `folder`."""
    fsspec.register_implementation("hdfs", RenamingFileSystem, clobber=True)
    folder.mkdir(parents=True)
    host = uuid.uuid4().hex
    _FOLDERS[host] = folder
    return FsspecStore(f"hdfs://{host}:8020/data")
