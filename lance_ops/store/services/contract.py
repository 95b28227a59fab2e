"""The interface of a service behind fsspec: its options, exclusive create, listing and clock.

A service is stateless; `fs` is an fsspec file system and `key` a path in its terms (`bucket/name`).
"""

from __future__ import annotations

import uuid
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from datetime import datetime
from importlib import import_module
from typing import Any

from lance_ops.core.errors import StoreError, UnsupportedFeature
from lance_ops.core.records import dataclass
from lance_ops.store.paths import TEMPORARY_PREFIX
from lance_ops.store.services.credential_sources import digest_of_sources
from lance_ops.store.services.modification_times import modified_of

__all__ = [
    "CLIENT_OPTION",
    "GENERAL_ALIASES",
    "ListedObject",
    "Service",
    "proxies_of",
    "when_written",
    "without_client",
]

CLIENT_OPTION = "store_client"
"""The storage option that names the client; see `choice.py`."""

GENERAL_ALIASES: Mapping[str, tuple[str, ...]] = {
    "allow_http": ("allow_http", "aws_allow_http"),
    "allow_invalid_certificates": ("allow_invalid_certificates",),
    "connect_timeout": ("connect_timeout",),
    "request_timeout": ("request_timeout", "timeout"),
    "max_retries": ("client_max_retries",),
    "retry_timeout": ("client_retry_timeout",),
    "download_retries": ("download_retry_count",),
    "proxy": ("proxy_url",),
    "proxy_certificate": ("proxy_ca_certificate",),
    "proxy_excludes": ("proxy_excludes",),
    "client": (CLIENT_OPTION,),
    # Accepted without effect, so that options written for the reference can be used.
    "ignored": ("user_agent",),
}


@dataclass(frozen=True, slots=True)
class ListedObject:
    """One object of a listing, by its full key."""

    key: str
    size_bytes: int
    modified: datetime
    tag: str | None = None


class Service(ABC):
    """One kind of remote store."""

    schemes: tuple[str, ...]
    package: str
    """The package to install for it."""
    extra: str | None = None
    """The extra of lance-ops that installs the package."""
    needs_proof = True
    replaces_at_once = True
    deleted_at_once = 1
    """How many objects `delete_several` takes."""
    ranges_at_once = 1
    """The most ranges of one call of `get_ranges`. A client that takes several requests them at the same time."""
    well_known = True
    """Whether a manifest of another writer may name it."""
    takes_time_limits = False
    """Whether its options may say for how long a request is waited for and repeated."""
    credential_variables: tuple[str, ...] = ()
    """How the lower-case names of the environment variables begin from which credentials may come."""

    @abstractmethod
    def protocol(self, scheme: str) -> str:
        """Return fsspec's name of the file system."""

    @abstractmethod
    def arguments(self, authority: str, options: Mapping[str, object]) -> dict[str, Any]:
        """Return the file system's keyword arguments. Raises `InvalidInput` for options it does not know."""

    @abstractmethod
    def create(self, fs: Any, key: str, data: bytes) -> None:
        """Create an object in one conditional request. Raises `FileExistsError` if there is one.

        Raises `UnsafeStore` if the service, or its package, has no such request.
        """

    def load(self, scheme: str) -> Callable[..., Any]:
        """Return the class of the file system, for `connect`. Raises `ImportError` if its package is not installed.

        Raises `ValueError` for a scheme that fsspec does not know. The package is imported here, on first use: fsspec
        imports asyncio and ssl, which no local dataset needs.
        """
        kind: Callable[..., Any] = import_module("fsspec").get_filesystem_class(self.protocol(scheme))
        return kind

    def connect(self, kind: Callable[..., Any], authority: str, options: Mapping[str, object]) -> Any:
        """Make a file system of fsspec's class `kind` that caches no listings and is shared with nobody."""
        return kind(**self.arguments(authority, options), use_listings_cache=False, skip_instance_cache=True)

    def account(self, authority: str) -> str:
        """Return the part of a URI's authority that selects the client: buckets with the same part share a client."""
        return authority

    def credential_files(self, options: Mapping[str, object]) -> Iterable[str]:
        """Return the paths of the files from which credentials may come."""
        return ()

    def identity(self, options: Mapping[str, object]) -> bytes:
        """Return a digest of the sources of credentials besides `options`. It is a part of a shared client's key."""
        return digest_of_sources(self.credential_variables, self.credential_files(options))

    def bucket(self, authority: str) -> str:
        """Return the first component of every key."""
        return authority

    def rooted(self, key: str) -> str:
        """Return a key in the form that the file system takes."""
        return key

    def lists_in_order(self, authority: str, options: Mapping[str, object]) -> bool:
        """Return whether listings ascend, so that one request returns the first names."""
        return False

    def is_refusal(self, error: Exception) -> bool:
        """Return whether an error is the service's answer that it did not and will not do a write."""
        return isinstance(error, PermissionError)

    def size(self, fs: Any, key: str) -> int:
        """Return an object's length in bytes. Raises `FileNotFoundError` if there is none, or if it is a directory."""
        info = fs.info(key)
        if info["type"] != "file":
            raise FileNotFoundError(key)
        return int(info["size"])

    def put(self, fs: Any, key: str, data: bytes) -> None:
        """Write or replace an object."""
        fs.pipe_file(key, data)

    def open_writer(self, fs: Any, key: str) -> Any:
        """Return a file with `write`, `close`, which makes the object visible, and `discard`, which does not."""
        return fs.open(key, "wb")

    def remove(self, fs: Any, key: str) -> None:
        """Remove an object; do nothing or raise `FileNotFoundError` if there is none."""
        fs.rm_file(key)

    def delete_several(self, fs: Any, keys: Sequence[str]) -> list[str]:
        """Delete objects in one request; return the keys that were not deleted. Without such a request it fails."""
        raise NotImplementedError

    def copy(self, fs: Any, source: str, target: str) -> None:
        """Copy an object, replacing the target."""
        fs.cp_file(source, target)

    def get(self, fs: Any, key: str) -> bytes | memoryview:
        """Read a whole object."""
        return bytes(fs.cat_file(key))

    def get_range(self, fs: Any, key: str, start: int, end: int) -> bytes | memoryview:
        """Read a range of an object. If the object ends before, return fewer bytes or raise an error."""
        return bytes(fs.cat_file(key, start=start, end=end))

    def get_ranges(self, fs: Any, key: str, ranges: Sequence[tuple[int, int]]) -> Sequence[bytes | memoryview]:
        """Read ranges of an object, at most `ranges_at_once`; each as `get_range` does."""
        return [self.get_range(fs, key, start, end) for start, end in ranges]

    def walk(self, fs: Any, directory: str) -> Iterator[ListedObject]:
        """Yield every object beneath a directory, ascending by key."""
        for key, info in sorted(fs.find(directory, detail=True).items()):
            if info["type"] == "file" and key.lstrip("/") != directory.lstrip("/"):
                yield ListedObject(key.lstrip("/"), int(info["size"]), when_written(info))

    def names(self, fs: Any, directory: str, limit: int | None) -> Mapping[str, str | None]:
        """Return the names of the objects directly in a directory, ascending, at most `limit` if listings ascend.

        Each comes with the object's entity tag if the listing states it.
        """
        with suppress(FileNotFoundError):
            found = fs.ls(directory, detail=True)
            files = (info["name"].lstrip("/") for info in found if info["type"] == "file")
            names = sorted(name.rpartition("/")[2] for name in files if name != directory.lstrip("/"))
            return dict.fromkeys(names[:limit])
        return {}

    def folders(self, fs: Any, directory: str) -> list[str]:
        """Return the names of the directories directly in a directory, ascending."""
        with suppress(FileNotFoundError):
            found = fs.ls(directory, detail=True)
            paths = {info["name"].strip("/") for info in found if info["type"] == "directory"}
            return sorted(path.rpartition("/")[2] for path in paths if path != directory.strip("/"))
        return []

    def now(self, fs: Any, directory: str) -> datetime:
        """Return the time by the service's clock. This default writes an object and returns its time."""
        key = f"{directory}/{TEMPORARY_PREFIX}clock.{uuid.uuid4().hex}"
        try:
            fs.pipe_file(key, b"now")
            return when_written(fs.info(key))
        finally:
            with suppress(FileNotFoundError):
                fs.rm_file(key)


def proxies_of(found: Mapping[str, str]) -> dict[str, str]:
    """Return the proxies by scheme; empty if no proxy is given."""
    for name in ("proxy_certificate", "proxy_excludes"):
        if name in found:
            raise UnsupportedFeature(
                f"{name} among storage_options; let the environment say it (NO_PROXY, SSL_CERT_FILE)"
            )
    return dict.fromkeys(("http", "https"), found["proxy"]) if "proxy" in found else {}


def without_client(options: Mapping[str, object]) -> dict[str, object]:
    """Return the options for a package that takes them all, so without the one that names the client."""
    return {name: value for name, value in options.items() if name.lower() != CLIENT_OPTION}


def when_written(info: Mapping[str, Any]) -> datetime:
    """Return when an object was written, from an fsspec info; raise `StoreError` if that does not say it."""
    modified = modified_of(info)
    if modified is None:
        raise StoreError(f"{info.get('name')}: the file system does not say when an object was written")
    return modified
