"""A service whose requests obstore makes. Options, credentials and addresses are those of the service behind fsspec.

`fs` is an `ObjectStore` of obstore for one bucket or container; the bucket is left out of the keys that it is given.
"""

from __future__ import annotations

import uuid
from abc import abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from importlib import import_module
from typing import Any

from lance_ops.core.errors import StoreError
from lance_ops.store.paths import TEMPORARY_PREFIX
from lance_ops.store.services.contract import ListedObject, Service, proxies_of
from lance_ops.store.services.obstore.directory_marks import is_object
from lance_ops.store.services.obstore.errors import RequestFailed, translating
from lance_ops.store.services.obstore.listing import (
    list_beneath,
    list_directly,
    list_folders,
    list_in_order,
    tag_of,
)
from lance_ops.store.services.obstore.unsigned_head import time_of_server
from lance_ops.store.storage_options import read_bool, read_count, read_seconds

__all__ = ["ObstoreService"]

_PART_BYTES = 16 << 20  # S3 takes 10,000 parts, so an object has at most 160 GB
_CONCURRENT_PARTS = 4  # a writer holds this many parts in memory
# The whole time of a request is bounded only loosely, because a large object takes long. A stalled one ends sooner.
_REQUEST_SECONDS = 3600
_STALLED_SECONDS = 60.0
_RETRY_SECONDS = 180
_BAD_REQUEST = 400
# As behind fsspec: a timeout (408), a concurrent request (409) and throttling (429) leave the outcome unknown.
_REFUSALS = frozenset({400, 401, 403, 404, 405, 411, 413, 501})


class ObstoreService(Service):
    """A service of object stores through obstore.

    `plain` is the service behind fsspec for the same schemes.
    """

    package = "obstore"
    extra = "obstore"
    ranges_at_once = 8  # obstore sends at most 10 requests at once for one call
    store_class: str
    """The name of the class in `obstore.store`."""
    cuts_listings = False
    """Whether the service lists in order and from any name on, so that parts of a listing can be asked for at once."""

    def __init__(self, plain: Service) -> None:
        self.plain = plain
        self.schemes = plain.schemes
        self.credential_variables = plain.credential_variables

    @abstractmethod
    def given(self, authority: str, options: Mapping[str, object]) -> dict[str, str]:
        """Return the options by the names that `plain` gives them, completed from the environment."""

    def serves(self, options: Mapping[str, object]) -> bool:
        """Return whether obstore can do all that a store needs with these options."""
        return True

    @abstractmethod
    def config(self, authority: str, options: Mapping[str, object]) -> dict[str, Any]:
        """Return the arguments of the store's class that are not the same for all services."""

    @abstractmethod
    def address(self, config: Mapping[str, str]) -> str:
        """Return the URL of the bucket or container, from the configuration of a client."""

    @abstractmethod
    def is_taken(self, error: RequestFailed) -> bool:
        """Return whether an error of a conditional create says that the object exists."""

    def protocol(self, scheme: str) -> str:
        return self.plain.protocol(scheme)

    def load(self, scheme: str) -> Callable[..., Any]:
        kind: Callable[..., Any] = getattr(import_module("obstore.store"), self.store_class)
        return kind

    def account(self, authority: str) -> str:
        return authority  # a client is for one bucket

    def bucket(self, authority: str) -> str:
        return self.plain.bucket(authority)

    def credential_files(self, options: Mapping[str, object]) -> Iterable[str]:
        return self.plain.credential_files(options)

    def lists_in_order(self, authority: str, options: Mapping[str, object]) -> bool:
        return self.plain.lists_in_order(authority, options)

    def arguments(self, authority: str, options: Mapping[str, object]) -> dict[str, Any]:
        self.plain.arguments(authority, options)  # reports wrong options; a forked child needs these arguments
        found = self.given(authority, options)
        return {"client_options": _network(found), "retry_config": _retries(found)}

    def connect(self, kind: Callable[..., Any], authority: str, options: Mapping[str, object]) -> Any:
        with translating():
            return kind(
                self.bucket(authority),
                **self.config(authority, options),
                **self.arguments(authority, options),
            )

    def create(self, fs: Any, key: str, data: bytes) -> None:
        try:
            with translating():
                fs.put(_name(key), data, mode="create", use_multipart=False)
        except RequestFailed as error:
            if self.is_taken(error):
                raise FileExistsError(key) from error
            raise

    def is_refusal(self, error: Exception) -> bool:
        return isinstance(error, FileNotFoundError) or getattr(error, "status", None) in _REFUSALS

    def size(self, fs: Any, key: str) -> int:
        with translating():
            found = int(fs.head(_name(key))["size"])
        if not found and not is_object(fs, _name(key)):
            raise FileNotFoundError(key)
        return found

    def put(self, fs: Any, key: str, data: bytes) -> None:
        with translating():
            fs.put(_name(key), data)

    def open_writer(self, fs: Any, key: str) -> Any:
        return _Upload(fs, _name(key))

    def remove(self, fs: Any, key: str) -> None:
        with translating():
            fs.delete(_name(key))

    def delete_several(self, fs: Any, keys: Sequence[str]) -> list[str]:
        with translating():
            fs.delete([_name(key) for key in keys])
        return []  # for an object that is not deleted obstore raises an error

    def copy(self, fs: Any, source: str, target: str) -> None:
        try:
            with translating():
                fs.copy(_name(source), _name(target))
        except RequestFailed as error:
            if error.status != _BAD_REQUEST:
                raise
            _copy_in_parts(fs, _name(source), _name(target))  # S3 does not copy an object over 5 GB at once

    def get(self, fs: Any, key: str) -> memoryview:
        with translating():
            return memoryview(fs.get(_name(key)).bytes())

    def get_range(self, fs: Any, key: str, start: int, end: int) -> memoryview:
        with translating():
            return memoryview(fs.get_range(_name(key), start=start, end=end))

    def get_ranges(self, fs: Any, key: str, ranges: Sequence[tuple[int, int]]) -> Sequence[memoryview]:
        if len(ranges) == 1:
            return [self.get_range(fs, key, *ranges[0])]
        starts, ends = zip(*ranges, strict=True)
        with translating():
            return [memoryview(data) for data in fs.get_ranges(_name(key), starts=starts, ends=ends, coalesce=0)]

    def walk(self, fs: Any, directory: str) -> Iterator[ListedObject]:
        bucket, _, prefix = directory.partition("/")
        may_cut = self.cuts_listings and self.lists_in_order(bucket, {})
        listed = list_in_order(fs, prefix) if may_cut else list_beneath(fs, prefix)
        for found in listed:
            yield ListedObject(
                f"{bucket}/{found['path']}", int(found["size"]), found["last_modified"].astimezone(UTC), tag_of(found)
            )

    def names(self, fs: Any, directory: str, limit: int | None) -> Mapping[str, str | None]:
        prefix = directory.partition("/")[2]
        start = f"{prefix}/" if prefix else ""
        if limit is None:
            return {each["path"][len(start) :]: tag_of(each) for each in list_directly(fs, prefix)}
        names: dict[str, str | None] = {}
        for each in list_beneath(fs, prefix, chunk=limit):  # obstore bounds no listing with a delimiter
            name = each["path"][len(start) :]
            if "/" not in name:
                names[name] = tag_of(each)
                if len(names) == limit:
                    break
        return names

    def folders(self, fs: Any, directory: str) -> list[str]:
        return list_folders(fs, directory.partition("/")[2])

    def now(self, fs: Any, directory: str) -> datetime:
        network = fs.client_options or {}
        proxy = network.get("proxy_url")
        stated = time_of_server(
            self.address(fs.config),
            dict.fromkeys(("http", "https"), proxy) if proxy else {},
            verifies=str(network.get("allow_invalid_certificates")).lower() != "true",
        )
        return stated or self._time_of_an_object(fs, directory)

    def _time_of_an_object(self, fs: Any, directory: str) -> datetime:
        name = f"{_name(directory)}/{TEMPORARY_PREFIX}clock.{uuid.uuid4().hex}".lstrip("/")
        try:
            with translating():
                fs.put(name, b"now")
                modified: datetime = fs.head(name)["last_modified"]
        finally:
            with suppress(FileNotFoundError), translating():
                fs.delete(name)
        return modified.astimezone(UTC)


class _Upload:
    """An object that obstore sends in parts. It appears when it is closed."""

    __slots__ = ("_file",)

    def __init__(self, fs: Any, name: str) -> None:
        with translating():
            self._file = import_module("obstore").open_writer(
                fs, name, buffer_size=_PART_BYTES, max_concurrency=_CONCURRENT_PARTS
            )

    def write(self, data: bytes | bytearray | memoryview) -> None:
        with translating():
            self._file.write(data)

    def close(self) -> None:
        with translating():
            self._file.close()

    def discard(self) -> None:
        """Tell the server to forget the parts. The file has no method for that, but leaving it by an error does it."""
        reason = StoreError("the upload is discarded")
        with translating():
            self._file.__exit__(type(reason), reason, None)


def _name(key: str) -> str:
    """Return a key without its bucket."""
    return key.partition("/")[2]


def _copy_in_parts(fs: Any, source: str, target: str) -> None:
    upload = _Upload(fs, target)
    try:
        with translating():
            pieces = iter(fs.get(source).stream(min_chunk_size=_PART_BYTES))
        while True:
            with translating():
                piece = next(pieces, None)
            if piece is None:
                break
            upload.write(memoryview(piece))
        upload.close()
    except BaseException:
        with suppress(OSError):
            upload.discard()
        raise


def _network(found: Mapping[str, str]) -> dict[str, Any]:
    """Return obstore's `client_options`."""
    options: dict[str, Any] = {
        "allow_http": read_bool(found, "allow_http"),
        "allow_invalid_certificates": read_bool(found, "allow_invalid_certificates"),
        "timeout": timedelta(seconds=_REQUEST_SECONDS),
        "read_timeout": timedelta(seconds=read_seconds(found, "request_timeout") or _STALLED_SECONDS),
    }
    connecting = read_seconds(found, "connect_timeout")
    if connecting is not None:
        options["connect_timeout"] = timedelta(seconds=connecting)
    proxies = proxies_of(found)
    if proxies:
        options["proxy_url"] = proxies["https"]
    return options


def _retries(found: Mapping[str, str]) -> dict[str, Any]:
    """Return obstore's `retry_config`; it waits longer before each retry."""
    retries = read_count(found, "max_retries")
    seconds = read_seconds(found, "retry_timeout") or _RETRY_SECONDS
    config: dict[str, Any] = {"retry_timeout": timedelta(seconds=seconds)}
    if retries is not None:
        config["max_retries"] = retries
    return config
