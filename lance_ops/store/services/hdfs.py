"""HDFS, through pyarrow and Hadoop's own client: its rename never replaces a file, which serves as exclusive create.

An object is written under a temporary name and gets its own name by a rename, which the name node decides atomically.
Replacing an object takes two steps, between which it does not exist. A dataset relies on no object that is replaced.
"""

from __future__ import annotations

import os
import shutil
import uuid
from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import Any, Self

from lance_ops.core.errors import InvalidInput
from lance_ops.store.paths import TEMPORARY_PREFIX
from lance_ops.store.services.contract import Service, without_client

__all__ = ["Hdfs"]


class Hdfs(Service):
    """Options (`user`, `kerb_ticket`, `replication`) go to pyarrow unchanged; host and port come from the URI.

    The probe would detect a rename that overwrites, as it detects a server that ignores a condition.
    """

    schemes = ("hdfs",)
    package = "pyarrow with Hadoop's libhdfs"
    replaces_at_once = False
    well_known = False  # its URIs name the host to connect to
    credential_variables = ("hadoop_", "krb5")

    def protocol(self, scheme: str) -> str:
        return "hdfs"

    def bucket(self, authority: str) -> str:
        return ""

    def rooted(self, key: str) -> str:
        return f"/{key}"

    def arguments(self, authority: str, options: Mapping[str, object]) -> dict[str, Any]:
        host, _, port = authority.partition(":")
        if port and not port.isdecimal():
            raise InvalidInput(f"hdfs://{authority}: the port is a number")
        return {**({"host": host} if host else {}), **({"port": int(port)} if port else {}), **without_client(options)}

    def connect(self, kind: Callable[..., Any], authority: str, options: Mapping[str, object]) -> Any:
        return kind(**self.arguments(authority, options), skip_instance_cache=True)

    def create(self, fs: Any, key: str, data: bytes) -> None:
        staged = _staged(key)
        fs.pipe_file(staged, data)
        try:
            fs.mv(staged, key)
        except OSError as error:
            if not fs.exists(staged):  # the rename was done and its answer lost: the caller reads the bytes to find out
                raise
            fs.rm_file(staged)
            if fs.exists(key):
                raise FileExistsError(key) from error
            raise

    def put(self, fs: Any, key: str, data: bytes) -> None:
        with _StagedFile(fs, key) as file:
            file.write(data)

    def open_writer(self, fs: Any, key: str) -> Any:
        return _StagedFile(fs, key)

    def get_range(self, fs: Any, key: str, start: int, end: int) -> bytes:
        with fs.open(key, "rb", seekable=True) as file:  # `cat_file` cannot seek if a range starts at 0
            size = file.seek(0, os.SEEK_END)
            file.seek(min(start, size))
            return bytes(file.read(min(end, size) - min(start, size)))

    def copy(self, fs: Any, source: str, target: str) -> None:
        with fs.open(source, "rb") as read, _StagedFile(fs, target) as file:
            shutil.copyfileobj(read, file)


class _StagedFile:
    """A file being written under a temporary name, with the methods that `FsspecStore` uses of fsspec's files."""

    def __init__(self, fs: Any, key: str) -> None:
        self._fs = fs
        self._key = key
        self._staged = _staged(key)
        self._file = fs.open(self._staged, "wb")

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: object, error: object, trace: object) -> None:
        if kind is None:
            self.close()
        else:
            self.discard()

    def write(self, data: Any) -> None:
        self._file.write(data)

    def close(self) -> None:
        """Give the file its name."""
        self._file.close()
        with suppress(FileNotFoundError):
            self._fs.rm_file(self._key)
        self._fs.mv(self._staged, self._key)

    def discard(self) -> None:
        """Leave nothing behind."""
        self._file.close()
        with suppress(FileNotFoundError):
            self._fs.rm_file(self._staged)


def _staged(key: str) -> str:
    return f"{key.rpartition('/')[0]}/{TEMPORARY_PREFIX}{uuid.uuid4().hex}"
