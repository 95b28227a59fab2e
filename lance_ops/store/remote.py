"""Store objects remotely: S3, Google Cloud Storage, Azure, HDFS, and other file systems of fsspec without commits."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from contextvars import copy_context
from dataclasses import field
from datetime import datetime
from itertools import chain
from typing import Any, TypeVar

import pyarrow as pa

from lance_ops.core.errors import (
    CorruptFile,
    InvalidInput,
    LanceOpsError,
    MissingPackage,
    ObjectNotFound,
    StoreError,
    StoreUnreachable,
    UnsupportedFeature,
    WriteRefused,
)
from lance_ops.core.records import dataclass
from lance_ops.core.redaction import environment_secrets, public_uri, raise_alone, redact, secret_values, shown_key
from lance_ops.store import services
from lance_ops.store.contract import Buffers, ByteRange, BytesLike, ObjectInfo, PutOutcome, Store, StoreWriter
from lance_ops.store.io_counters import IoCounters
from lance_ops.store.paths import check_directory, check_path, is_temporary
from lance_ops.store.process_resources import PROCESS_RESOURCES
from lance_ops.store.ranges import MergedRange, check_ranges, group_reads, merge_ranges, slice_ranges
from lance_ops.store.services import Service, chosen_service, service_of

__all__ = ["FsspecStore"]

T = TypeVar("T")

# s3fs does about 370 small requests or 140 MB a second, so a request costs as much as about 380 KB. Reading
# every gap below that size would multiply the bytes of a look-up, so only the first 56 KiB of each gap are free.
_MAX_GAP_BYTES = 256 << 10
_FREE_GAP_BYTES = 56 << 10
_MAX_READ_BYTES = 8 << 20
_ONE_REQUEST_BYTES = 4 << 20  # a writer's object up to this size is sent in one request; a multipart upload takes more
_URI = re.compile(r"([a-z][a-z0-9+.-]*)://([^/]*)/?(.*)", re.DOTALL | re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class FsspecStore(Store):
    """Objects beneath a URI that fsspec understands. Its requests are made by fsspec, or by a client that is chosen.

    `storage_options` may hold secrets. A pickle contains them, because a worker needs them; nothing else does. No
    connection is made before the first use.
    """

    root: str
    storage_options: tuple[tuple[str, object], ...] = field(default=(), repr=False)
    counters: IoCounters = field(default_factory=IoCounters, repr=False, compare=False)

    def __init__(
        self, root: str, storage_options: Mapping[str, object] | None = None, counters: IoCounters | None = None
    ) -> None:
        object.__setattr__(self, "counters", counters or IoCounters())
        scheme, authority, path = _parse(root)
        if public_uri(root) != root:  # a store shows its root, and manifests name it
            raise InvalidInput(
                f"a {scheme}:// URI with a password, token or signature in it: pass credentials in storage_options"
            )
        trimmed = check_directory(path) if path else ""
        object.__setattr__(self, "root", f"{scheme}://{authority}/{trimmed}".removesuffix("/"))
        options = dict(storage_options or {})
        for name, value in options.items():
            if not isinstance(value, str | int | float):
                raise InvalidInput(
                    f"storage_options: {shown_key(name)} is text, a number or a switch, not a {type(value).__name__}"
                )
        object.__setattr__(self, "storage_options", tuple(sorted(options.items())))
        self._service.arguments(authority, self._options)  # reports wrong options at once

    def counted_by(self, counters: IoCounters) -> FsspecStore:
        return FsspecStore(self.root, self._options, counters)

    @property
    def uri(self) -> str:
        return self.root

    @property
    def lists_in_order(self) -> bool:
        return self._service.lists_in_order(_parse(self.root)[1], self._options)

    @property
    def replaces_at_once(self) -> bool:
        return self._service.replaces_at_once

    @property
    def needs_proof(self) -> bool:
        return self._service.needs_proof

    @property
    def proof_scope(self) -> object:
        scheme, authority, _ = _parse(self.root)
        # A digest, because what is kept by this value must not keep secrets.
        return scheme, authority, hashlib.sha256(repr(self.storage_options).encode()).digest()

    def begin_call(self, call: Callable[[], T]) -> Callable[[], T]:
        return PROCESS_RESOURCES.threads().submit(copy_context().run, call).result

    @property
    def gap_bytes(self) -> int:  # type: ignore[override] # slots have no class variables
        return _FREE_GAP_BYTES

    def child(self, prefix: str) -> FsspecStore:
        return FsspecStore(f"{self.root}/{check_path(prefix)}", self._options, self.counters)

    def get(self, path: str) -> pa.Buffer:
        key = self._key(path)
        with self._asking("read", path) as (service, fs):
            data = pa.py_buffer(service.get(fs, key))
        self.counters.add_reads(1, data.size)
        return data

    def get_ranges(self, path: str, ranges: Sequence[ByteRange]) -> Buffers:
        check_ranges(path, ranges)
        key = self._key(path)
        reads = merge_ranges(ranges, _MAX_GAP_BYTES, _MAX_READ_BYTES, _FREE_GAP_BYTES)
        found = [_EMPTY] * len(ranges)
        if not reads:
            return found
        with self._translating("read", path):
            service, fs = self._connected()

        def read(group: Sequence[MergedRange]) -> Sequence[pa.Buffer]:
            wanted = [(merged.start, merged.end) for merged in group]
            return self._read_group(path, wanted, lambda: service.get_ranges(fs, key, wanted))

        groups = group_reads(reads, service.ranges_at_once, _MAX_READ_BYTES)
        parts = map(read, groups) if len(groups) <= 1 else PROCESS_RESOURCES.threads().map(read, groups)
        for merged, data in zip(reads, chain.from_iterable(parts), strict=True):
            members = [ranges[index] for index in merged.members]
            for index, piece in zip(
                merged.members, slice_ranges(self.uri_of(path), data, members, merged.start), strict=True
            ):
                found[index] = piece
        self.counters.add_reads(len(reads), sum(merged.end - merged.start for merged in reads))
        return found

    def size(self, path: str) -> int:
        key = self._key(path)
        with self._asking("read", path) as (service, fs):
            return service.size(fs, key)

    def exists(self, path: str) -> bool:
        try:
            self.size(path)
        except ObjectNotFound:
            return False
        return True

    def put(self, path: str, data: BytesLike, *, durable: bool = True) -> None:
        key = self._key(path)
        with self._asking("write", path) as (service, fs):
            service.put(fs, key, _bytes(data))
        self.counters.add_write(memoryview(data).nbytes)

    def put_if_absent(self, path: str, data: BytesLike, *, after: Iterable[str] = ()) -> PutOutcome:
        key = self._key(path)
        with self._asking("write", path) as (service, fs):
            try:
                service.create(fs, key, _bytes(data))
            except FileExistsError:
                return PutOutcome.EXISTS
        self.counters.add_write(memoryview(data).nbytes)
        return PutOutcome.CREATED

    def make_durable(self, *paths: str) -> None:
        """Do nothing: an object store shows no object before it is durable."""
        for path in paths:
            self._key(path)

    def open_writer(self, path: str, *, durable: bool = True) -> StoreWriter:
        return _RemoteWriter(self, path, self._key(path))

    def list(self, prefix: str = "") -> Iterator[ObjectInfo]:
        return self._walk(prefix, lambda path: not is_temporary(path))

    def list_temporary(self, prefix: str = "") -> Iterator[ObjectInfo]:
        return self._walk(prefix, is_temporary)

    def list_names(self, directory: str, limit: int | None = None) -> Sequence[str]:
        return list(self.list_tags(directory, limit))

    def list_folders(self, directory: str) -> Sequence[str]:
        key = self._directory_key(directory)
        with self._asking("list", directory) as (service, fs):
            return service.folders(fs, key)

    def list_tags(self, directory: str, limit: int | None = None) -> Mapping[str, str | None]:
        key = self._directory_key(directory)
        with self._asking("list", directory) as (service, fs):
            asked = limit if self.lists_in_order else None
            names = service.names(fs, key, asked)
            found = [item for item in names.items() if not is_temporary(item[0])]
            if asked is not None and len(found) < len(names) == asked:  # temporary names sort before others
                names = service.names(fs, key, None)
                found = [item for item in names.items() if not is_temporary(item[0])][:asked]
        return dict(found)

    def delete(self, path: str) -> None:
        key = self._key(path)
        with self._asking("delete", path) as (service, fs), suppress(FileNotFoundError):
            service.remove(fs, key)

    @property
    def deleted_at_once(self) -> int:
        return self._service.deleted_at_once

    def delete_several(self, paths: Sequence[str]) -> set[str]:
        keys = {self._key(path): path for path in paths}
        if len(keys) > 1 and self.deleted_at_once > 1:
            with suppress(StoreError), self._asking("delete", paths[0]) as (service, fs):
                return {keys[key] for key in service.delete_several(fs, list(keys))}
        return Store.delete_several(self, paths)

    def copy(self, source: str, target: str) -> None:
        source_key, target_key = self._key(source), self._key(target)
        if source_key == target_key:  # S3 refuses to copy an object onto itself
            self.size(source)
            return
        with self._asking("read", source) as (service, fs):
            service.copy(fs, source_key, target_key)

    def now(self) -> datetime:
        with self._asking("ask the time of", "") as (service, fs):
            return service.now(fs, self._directory_key(""))

    @property
    def _options(self) -> dict[str, object]:
        return dict(self.storage_options)

    @property
    def _service(self) -> Service:
        return chosen_service(_parse(self.root)[0], self._options)

    def _key(self, path: str) -> str:
        return f"{self._directory_key('')}/{check_path(path)}"

    def _directory_key(self, directory: str) -> str:
        scheme, authority, root = _parse(self.root)
        service = service_of(scheme)
        parts = (service.bucket(authority), root, check_directory(directory))
        return service.rooted("/".join(part for part in parts if part))

    def _connected(self) -> tuple[Service, Any]:
        """Return the service and its client. This reads the environment, so an operation does it once."""
        scheme, authority, _ = _parse(self.root)
        service, options = self._service, self._options
        # The options alone do not say whose credentials the client uses: the environment and files may hold them.
        key = (service.package, scheme, service.account(authority), self.storage_options, service.identity(options))
        return service, PROCESS_RESOURCES.client(key, lambda: self._connect(service, scheme, authority))

    def _connect(self, service: Service, scheme: str, authority: str) -> Any:
        try:
            kind = service.load(scheme)
        except ImportError as error:
            raise MissingPackage(f"{scheme}://", service.package, service.extra, str(error)) from error
        except ValueError as error:
            raise UnsupportedFeature(f"the scheme {scheme}://", self.root) from error
        return service.connect(kind, authority, self._options)

    def _read_group(
        self, path: str, ranges: Sequence[ByteRange], read: Callable[[], Sequence[bytes | memoryview]]
    ) -> Sequence[pa.Buffer]:
        """Return the bytes of ranges that one call of the client, `read`, reads."""
        try:
            with self._translating("read", path):
                found = read()
        except ObjectNotFound:
            raise
        except StoreError:
            size = self.size(path)
            if all(end <= size for _, end in ranges):
                raise
            found = [b""] * len(ranges)  # servers answer 416 to a range that starts past the end
            ranges = [(start, end) for start, end in ranges if end > size]
        for (start, end), data in zip(ranges, found, strict=False):
            if len(data) != end - start:
                raise CorruptFile(self.uri_of(path), f"bytes {start} to {end}", "the file ends before")
        return [pa.py_buffer(data) for data in found]

    def _walk(self, prefix: str, wanted: Callable[[str], bool]) -> Iterator[ObjectInfo]:
        start = f"{self._directory_key('')}/".lstrip("/")
        directory = self._directory_key(prefix)
        with self._asking("list", prefix) as (service, fs), suppress(FileNotFoundError):
            for found in service.walk(fs, directory):
                path = found.key.removeprefix(start)
                if wanted(path):
                    yield ObjectInfo(path, found.size_bytes, found.modified, found.tag)

    @contextmanager
    def _asking(self, verb: str, path: str) -> Iterator[tuple[Service, Any]]:
        """Give the service and its client to a block whose errors are translated."""
        with self._translating(verb, path):
            yield self._connected()

    @contextmanager
    def _translating(self, verb: str, path: str) -> Iterator[None]:
        """Turn the errors of any package into `StoreError`s without secrets.

        A failure that the user can mend is told in one sentence, without the client's own errors behind it.
        """
        try:
            yield
        except LanceOpsError:
            raise
        except Exception as error:  # noqa: BLE001 - every package and every HTTP client has its own errors
            secrets = secret_values(self._options) | environment_secrets(self._service.credential_variables)
            known = services.known_failure(error)
            told = known or redact(f"{type(error).__name__}: {error}", secrets)
            raise_alone(self._translated(verb, path, error, told), None if known else error, secrets)

    def _translated(self, verb: str, path: str, error: Exception, told: str) -> StoreError:
        name = self.uri_of(path) if path else self.root
        if verb == "read" and isinstance(error, FileNotFoundError):
            return ObjectNotFound(name)
        text = f"cannot {verb} {name}: {told}"
        if verb == "write" and self._service.is_refusal(error):
            return WriteRefused(text)
        return StoreUnreachable(text) if services.gives_no_answer(error) else StoreError(text)


class _RemoteWriter(StoreWriter):
    """Sends a small object in one request, and a larger one through fsspec's file, which sends parts."""

    def __init__(self, store: FsspecStore, path: str, key: str) -> None:
        self._store = store
        self._path = path
        self._key = key
        self._kept = bytearray()
        self._file: Any = None
        self._num_bytes = 0
        self._is_open = True

    def write(self, data: BytesLike) -> None:
        if not self._is_open:
            raise ValueError("write to a closed writer")
        view = memoryview(data).cast("B")
        if self._file is None and self._num_bytes + view.nbytes <= _ONE_REQUEST_BYTES:
            self._kept += view
        else:
            with self._store._translating("write", self._path):
                if self._file is None:
                    service, fs = self._store._connected()
                    self._file = service.open_writer(fs, self._key)
                    self._file.write(self._kept)
                    self._kept = bytearray()
                self._file.write(view)
        self._num_bytes += view.nbytes

    def tell(self) -> int:
        return self._num_bytes

    def close(self) -> None:
        if self._is_open:
            self._is_open = False
            self._finish()

    def begin_close(self) -> Callable[[], object]:
        if not self._is_open or self._file is not None:
            return super().begin_close()
        self._is_open = False
        return self._store.begin_call(self._finish)

    def _finish(self) -> None:
        try:
            with self._store._translating("write", self._path):
                if self._file is None:
                    service, fs = self._store._connected()
                    service.put(fs, self._key, bytes(self._kept))
                else:
                    self._file.close()
        except BaseException:
            self._discard()
            raise
        self._store.counters.add_write(self._num_bytes)

    def abort(self) -> None:
        if self._is_open:
            self._is_open = False
            self._discard()

    def _discard(self) -> None:
        if self._file is not None:
            with suppress(StoreError), self._store._translating("discard", self._path):
                self._file.discard()
            self._forget()

    def __del__(self) -> None:
        self._forget()

    def _forget(self) -> None:
        """Mark fsspec's file as closed, or the garbage collector closes it and so uploads the incomplete object."""
        with suppress(AttributeError):  # no file, or one of a kind that does not upload when it is collected
            self._file.closed = True


def _parse(uri: str) -> tuple[str, str, str]:
    match = _URI.fullmatch(uri)
    if match is None:
        raise InvalidInput(f"{uri!r} is not a URI such as s3://bucket/path")
    scheme, authority, path = match.groups()
    return scheme.lower(), authority, path


def _bytes(data: BytesLike) -> bytes:
    return data if isinstance(data, bytes) else bytes(data)


_EMPTY = pa.py_buffer(b"")
