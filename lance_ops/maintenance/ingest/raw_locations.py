"""Find the store of a raw file, and open local ones without leaving the folder that they were listed in.

    s3://bucket/in/a.csv, memory://in/a.csv     an fsspec file system, opened by the scheme and the authority alone
    /in/a.csv, file:///in/a.csv, in/a.csv       a local file

What follows the authority is a name and is read literally: fsspec would take `::` for a chain of URLs, and
`?versionId=` for a query.

Between listing and reading, somebody else may replace a local file, or a folder above it, by a symbolic link. A file
that was listed is therefore opened folder by folder, none of them through a link, and compared with what was listed.
"""

from __future__ import annotations

import errno
import hashlib
import os
import re
import stat
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from datetime import datetime
from operator import itemgetter
from typing import Any

import pyarrow as pa
from fsspec import get_filesystem_class

from lance_ops import store
from lance_ops.core.errors import (
    InvalidInput,
    LanceOpsError,
    ObjectNotFound,
    RawFileNotAsListed,
    RawFileRefused,
    StoreError,
    StoreUnreachable,
)
from lance_ops.core.records import dataclass
from lance_ops.core.redaction import raise_alone, redact, secret_values, secrets_in
from lance_ops.maintenance.ingest.raw_names import shown_uri

__all__ = [
    "CHANGED",
    "ListedFile",
    "StatedFile",
    "absolute_uri",
    "batch_token",
    "check_is_as_listed",
    "content_token",
    "etag_of",
    "failures_of_store",
    "local_path",
    "open_local",
    "remote_file_system",
]

_STORE = re.compile(r"(?P<scheme>[A-Za-z][A-Za-z0-9+.-]*)://[^/]*")
_LOCAL = ("file", "local")
_LINKED = (errno.ELOOP, errno.ENOTDIR, errno.EMLINK)
CHANGED = "it changed after it was listed; the next listing takes it as it is then"


@dataclass(frozen=True)
class ListedFile:
    """A local file as a listing of `folder` found it, at `path` beneath that folder.

    Inodes and devices are compared if the reader sees the same folder as the lister did. A worker on another machine
    may number them differently, and compares size and modification time alone.
    """

    folder: str
    path: str
    folder_inode: tuple[int, int]
    inode: tuple[int, int]
    size_bytes: int
    modified_ns: int
    follow_links: bool = False

    @classmethod
    def of(
        cls, folder: str, folder_status: os.stat_result, path: str, status: os.stat_result, *, follow_links: bool
    ) -> ListedFile:
        """Return what identifies a file, from the status of the folder and of the file."""
        return cls(
            folder, path, _inode(folder_status), _inode(status), status.st_size, status.st_mtime_ns, follow_links
        )


@dataclass(frozen=True)
class StatedFile:
    """What a store states of a file: its length, when it was modified, and its ETag; None is what it does not state."""

    size_bytes: int | None
    modified: datetime | None
    etag: str | None

    @classmethod
    def of(cls, info: Mapping[str, Any]) -> StatedFile:
        """Return what a file system of fsspec states."""
        size_bytes = info.get("size")
        return cls(None if size_bytes is None else int(size_bytes), store.modified_of(info), etag_of(info))

    def may_be_same(self, other: StatedFile) -> bool:
        """Return False if the sizes differ, or the ETags, or else the times; True where neither side tells.

        A listing may state fractions of a second that another request leaves out. Then they are compared without them.
        """
        if self.size_bytes != other.size_bytes:
            return False
        if self.etag and other.etag:
            return self.etag == other.etag
        if self.modified is None or other.modified is None:
            return True
        if self.modified.microsecond and other.modified.microsecond:
            return self.modified == other.modified
        return self.modified.replace(microsecond=0) == other.modified.replace(microsecond=0)


def local_path(uri: str) -> str | None:
    """Return the local path that a URI or a path means, literally; None for a URI of another store.

    Raises `InvalidInput` for a chain of URLs.
    """
    found = _STORE.match(uri)
    if found is None:
        if "://" in uri and not uri.startswith("/"):
            raise InvalidInput(
                f"{shown_uri(uri)}: neither a path nor a URI such as s3://bucket/in; chains are not read"
            )
        return uri
    return uri[len(found["scheme"]) + len("://") :] if found["scheme"].lower() in _LOCAL else None


def absolute_uri(uri: str) -> str:
    """Return a URI that names the same file in every process: a relative path begins in this process's folder."""
    try:
        path = local_path(uri)
    except InvalidInput:  # whoever reads the file is told
        return uri
    return uri if path is None or os.path.isabs(path) else os.path.join(os.getcwd(), path)


def remote_file_system(uri: str, storage_options: Mapping[str, object], *, looks_anew: bool = True) -> tuple[Any, str]:
    """Return the fsspec file system of a URI, which the scheme and the authority alone decide, and the path in it.

    A process shares file systems, and many answer from what they listed before: this one has forgotten it, unless
    `looks_anew` is false. Raises `InvalidInput` for a text that is no URI of a store.
    """
    found = _STORE.match(uri)
    if found is None:
        raise InvalidInput(f"{shown_uri(uri)}: not a URI of a store, such as s3://bucket/in")
    kind = get_filesystem_class(found["scheme"])
    options = {**kind._get_kwargs_from_urls(found[0]), **storage_options}
    filesystem = kind(**options)
    if looks_anew:
        filesystem.invalidate_cache()
    return filesystem, kind._strip_protocol(uri)


def content_token(size_bytes: int, modified: datetime, etag: str | None) -> str:
    """Return an identity of a file's content: the store's ETag, or else size and modification time."""
    return etag or f"{size_bytes}-{modified.timestamp():.6f}"


def batch_token(files: Iterable[tuple[str, str]]) -> str:
    """Return a digest of the names and the tokens of a batch's files, which are given as pairs of URI and token."""
    digest = hashlib.sha256()
    for uri, token in sorted(files, key=itemgetter(0)):
        digest.update(f"{uri.rsplit('/', 1)[-1]}\0{token}\0".encode())
    return digest.hexdigest()[:32]


def etag_of(info: Mapping[str, Any]) -> str | None:
    """Return the ETag that a file system of fsspec states of a file, if it states one."""
    for name in ("ETag", "etag"):
        if value := info.get(name):
            return str(value).strip('"')
    return None


@contextmanager
def failures_of_store(uri: str, storage_options: Mapping[str, str]) -> Iterator[None]:
    """Turn the errors of an fsspec file system into errors without secrets: `ObjectNotFound`, `StoreError`.

    Its packages have errors of all classes, and many quote the URL of a request with its signature. A failure that the
    user can mend is told in one sentence, without the package's own errors behind it.
    """
    try:
        yield
    except (LanceOpsError, pa.ArrowException):
        raise
    except Exception as error:  # noqa: BLE001 - as above
        secrets = secret_values(storage_options) | secrets_in(uri)
        name = shown_uri(uri)
        if isinstance(error, FileNotFoundError) and not store.is_missing_bucket(error):
            raise_alone(ObjectNotFound(name), error, secrets)
        known = store.known_failure(error)
        text = f"{name}: {known or redact(f'{type(error).__name__}: {error}', secrets)}"
        kind = StoreUnreachable if store.gives_no_answer(error) else StoreError
        raise_alone(kind(text), None if known else error, secrets)


def open_local(path: str, listed: ListedFile | None) -> int:
    """Open a local file for reading and return its descriptor.

    Raises `RawFileRefused` if it is no regular file, or if it is reached through a link that may not be followed, and
    `RawFileNotAsListed` if it is not the file that was listed.
    """
    try:
        descriptor = os.open(path, _FILE) if listed is None or listed.follow_links else _open_beneath(listed)
    except OSError as error:
        if listed is not None and error.errno in _LINKED:
            raise RawFileRefused(path, f"a link took its place after it was listed ({error.strerror})") from error
        raise
    try:
        status = os.fstat(descriptor)
        if not stat.S_ISREG(status.st_mode):
            raise RawFileRefused(path, "not a regular file; remove it")
        check_is_as_listed(path, listed, descriptor)
    except BaseException:
        os.close(descriptor)
        raise
    return descriptor


_FILE = os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK  # a named pipe would wait for a writer
_FOLDER = os.O_RDONLY | os.O_CLOEXEC | os.O_DIRECTORY


def _open_beneath(listed: ListedFile) -> int:
    *folders, name = listed.path.split("/")
    current = os.open(listed.folder, _FOLDER)
    try:
        for folder in folders:
            below = os.open(folder, _FOLDER | os.O_NOFOLLOW, dir_fd=current)
            os.close(current)
            current = below
        return os.open(name, _FILE | os.O_NOFOLLOW, dir_fd=current)
    finally:
        os.close(current)


def check_is_as_listed(path: str, listed: ListedFile | None, descriptor: int) -> None:
    """Raise `RawFileNotAsListed` if an open file is another one than was listed, or changed since.

    A file that was not listed is not checked.
    """
    if listed is None:
        return
    status = os.fstat(descriptor)
    is_same = (status.st_size, status.st_mtime_ns) == (listed.size_bytes, listed.modified_ns)
    try:
        folder = os.stat(listed.folder)
    except FileNotFoundError as error:
        raise RawFileNotAsListed(path, CHANGED) from error
    if is_same and _inode(folder) == listed.folder_inode:
        is_same = _inode(status) == listed.inode
    if not is_same:
        raise RawFileNotAsListed(path, CHANGED)


def _inode(status: os.stat_result) -> tuple[int, int]:
    return status.st_dev, status.st_ino
