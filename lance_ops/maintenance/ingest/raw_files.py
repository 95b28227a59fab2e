"""Read raw files of a landing folder as Arrow batches.

A raw file's URI names a local file, or a file in a file system of fsspec; `storage_options` here are fsspec's options.
"""

from __future__ import annotations

import os
import stat
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import field, replace
from datetime import UTC, datetime
from functools import partial
from types import TracebackType
from typing import IO, Any, Self

import pyarrow as pa

from lance_ops.core.errors import (
    InvalidInput,
    LanceOpsError,
    ObjectNotFound,
    RawFileNotAsListed,
    RawFileRefused,
    RawFileTooLarge,
    StoreError,
)
from lance_ops.core.records import dataclass
from lance_ops.core.redaction import public_uri
from lance_ops.maintenance.ingest.decoding import (
    MACHINE,
    START_BYTES,
    DecodingProcess,
    DecodingRefused,
    RawLimits,
    RawRequest,
    RowGroups,
    TextReading,
    decode,
    lacks_resources,
)
from lance_ops.maintenance.ingest.raw_copies import StoredFile
from lance_ops.maintenance.ingest.raw_locations import (
    ListedFile,
    StatedFile,
    absolute_uri,
    batch_token,
    check_is_as_listed,
    content_token,
    etag_of,
    failures_of_store,
    local_path,
    open_local,
    remote_file_system,
)
from lance_ops.maintenance.ingest.raw_names import TEXT_FORMATS, raw_format, shown_uri
from lance_ops.store import moment_of

__all__ = ["IngestBatch", "RawFile", "RawReader", "RawReading", "found_file"]

_IS_FOLDER = "it is a folder: name each of its files"
_IS_GONE = "it is not there any more; put it back, or leave it out"
_NO_MOMENT = datetime.fromtimestamp(0, UTC)
"""Stands for the modification time of a local file that is no date."""


@dataclass(frozen=True)
class RawFile:
    """A file in a landing folder. `token` changes with its content: an ETag, or size and modification time.

    A relative path is made absolute here, because a task may read the file in a process with another folder.
    """

    uri: str
    size_bytes: int
    token: str
    listed: ListedFile | None = field(default=None, compare=False, repr=False)
    """How a local file was listed. The reader refuses another file, a changed one, and a link not to be followed."""
    stated: StatedFile | None = field(default=None, compare=False, repr=False)
    """What a store stated of the file; the reader refuses the rows of a file of which it states something else."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "uri", absolute_uri(self.uri))

    def __repr__(self) -> str:
        return f"RawFile({public_uri(self.uri)!r}, {self.size_bytes}, {self.token!r})"


@dataclass(frozen=True)
class IngestBatch:
    """Raw files that become rows together, exactly once, under a key."""

    key: str
    files: tuple[RawFile, ...]

    def __post_init__(self) -> None:
        if not self.key:
            raise InvalidInput("an ingestion batch needs a key")
        if not self.files:
            raise InvalidInput(f"ingestion batch {self.key!r} has no files")

    @property
    def token(self) -> str:
        """A digest of the files' names and tokens."""
        return batch_token((file.uri, file.token) for file in self.files)


@dataclass(frozen=True)
class RawReading:
    """How raw files are read: within which limits, whether in a process of its own that a file may end, and text."""

    limits: RawLimits = field(default_factory=RawLimits)
    isolated: bool = True
    text: TextReading = field(default_factory=TextReading)

    def __post_init__(self) -> None:
        if flaw := self.text.flaw():
            raise InvalidInput(f"raw text files: {flaw}")
        if flaw := self.limits.flaw():
            raise InvalidInput(f"limits of raw files: {flaw}")


class RawReader:
    """Reads raw files, one after the other, in one thread. Its process, if it has one, starts with the first file.

    Every method raises `RawFileRefused` for a file that cannot be read in its ending's format, `RawFileNotAsListed` for
    one that is gone or changed, and `RawFileTooLarge` for one beyond a limit. A failure of this machine, such as a full
    disk, says nothing about the file: it is a `StoreError`.
    """

    def __init__(self, storage_options: Mapping[str, str], reading: RawReading | None = None) -> None:
        reading = reading or RawReading()
        self._storage_options = storage_options
        self._limits = reading.limits
        self._text = reading.text
        self._process = DecodingProcess() if reading.isolated else None

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._process is not None:
            self._process.close()

    def batches(
        self,
        file: RawFile,
        lead: Callable[[RawRequest, pa.Schema | None], RawRequest] | None = None,
        groups: RowGroups | None = None,
    ) -> Iterator[pa.RecordBatch]:
        """Yield the rows of a file, or of some of its row groups.

        Raises `RawFileRefused` if the file is not as it was listed, also after the last row.

        Of a text file, `lead` gets the request and the schema that the first rows have by inference, or None if they
        agree on none. It returns the request with the types to read, by which bad rows are named.
        """
        asked = replace(self.request(file), groups=groups)
        with self._refusals(file), self._opened(file, asked, only_schema=False) as (descriptor, request):
            if lead is not None and request.kind in TEXT_FORMATS:
                request = lead(request, self._inferred(descriptor, request))
            yield from self._decoded(descriptor, request)

    def schema(self, file: RawFile, names: Sequence[str] | None = None) -> pa.Schema:
        """Return the schema of a file's rows, without metadata; a CSV file without a header has columns of `names`."""
        return self.look(file, names)[0]

    def look(self, file: RawFile, names: Sequence[str] | None = None) -> tuple[pa.Schema, int | None]:
        """Return what `schema` does, and the number of rows that the footer states: of Parquet and ORC, else None."""
        request = self.request(file)
        if request.kind == "csv" and not self._text.header and names is not None:
            request = replace(request, names=tuple(names))
        with self._refusals(file), self._opened(file, request, only_schema=True) as (descriptor, looked):
            schema, num_rows = self._look(descriptor, looked)
            return schema.remove_metadata(), num_rows

    def guessed_schema(self, file: RawFile, guess: Callable[[bytes, bool], TextReading]) -> pa.Schema:
        """Return the schema of a file that is opened once; `guess` says how text is read.

        `guess` gets the first bytes of a text file, decompressed, and whether they are the whole file.
        """
        asked = self.request(file)
        with self._refusals(file), self._opened(file, asked, only_schema=True) as (descriptor, request):
            if request.kind in TEXT_FORMATS:
                start = self._start(descriptor, request)
                request = replace(request, text=guess(start, len(start) < START_BYTES))
            return self._look(descriptor, request)[0].remove_metadata()

    def request(self, file: RawFile) -> RawRequest:
        """Return what to ask of the decoder for a file, by its ending; raise `RawFileRefused` for an unknown one."""
        kind, compression = raw_format(file.uri)
        return RawRequest(kind, compression, self._text)

    def row_group_ranges(self, file: RawFile, range_bytes: int) -> list[tuple[RowGroups, int]]:
        """Return ranges of a file's adjacent row groups, and about how many of its bytes each has.

        A range of several row groups has about `range_bytes` at most. A file that is read whole has no ranges.
        """
        request = self.request(file)
        if not self._has_parts(file, request):
            return []
        asked = replace(request, kind=f"{request.kind}_groups", num_ranges=max(file.size_bytes // range_bytes, 1))
        with self._refusals(file), self._opened(file, request, only_schema=True) as (descriptor, _):
            stops, weights = zip(*self._numbers(descriptor, asked), strict=True)
        total = max(sum(weights), 1)
        return [
            (RowGroups(start, stop, stops[-1]), file.size_bytes * weight // total)
            for start, stop, weight in zip((0, *stops), stops, weights, strict=False)
        ]

    def _has_parts(self, file: RawFile, request: RawRequest) -> bool:
        if request.kind in TEXT_FORMATS:
            return False
        stored = StoredFile(file.uri, file.size_bytes, self._storage_options)
        return local_path(file.uri) is not None or (request.kind == "parquet" and stored.takes_ranges)

    def _decoded(self, descriptor: int, request: RawRequest) -> Iterator[pa.RecordBatch]:
        if self._process is not None:
            yield from self._process.batches(descriptor, request, self._limits)
        else:
            yield from decode(descriptor, request, self._limits).batches

    def _numbers(self, descriptor: int, request: RawRequest) -> list[tuple[int, ...]]:
        """Return rows of numbers that tell about a file."""
        return [
            row
            for batch in self._decoded(descriptor, request)
            for row in zip(*(column.to_pylist() for column in batch.columns), strict=True)
        ]

    def _start(self, descriptor: int, request: RawRequest) -> bytes:
        batches = list(self._decoded(descriptor, RawRequest("start", request.compression)))
        return b"".join(batch.column(0)[0].as_py() for batch in batches)

    def _inferred(self, descriptor: int, request: RawRequest) -> pa.Schema | None:
        try:
            return self._look(descriptor, request)[0]
        except DecodingRefused as refusal:
            if refusal.limit is not None or request.kind != "json":
                raise
            return None

    def _look(self, descriptor: int, request: RawRequest) -> tuple[pa.Schema, int | None]:
        if request.kind == "json":  # its decoder checks all that it may read before it parses the first row
            request = replace(request, is_cut=True)
        if self._process is not None:
            return self._process.schema(descriptor, request, self._limits)
        found = decode(descriptor, request, self._limits)
        return found.schema, found.num_rows

    @contextmanager
    def _refusals(self, file: RawFile) -> Iterator[None]:
        """Name the file in refusals and in errors of the system."""
        name = shown_uri(file.uri)
        try:
            yield
        except DecodingRefused as refusal:
            if refusal.limit is None:
                raise RawFileRefused(name, refusal.reason) from refusal
            if refusal.limit == MACHINE:
                raise _failure_of_machine(name, refusal.reason) from refusal
            allowed = getattr(self._limits, refusal.limit)
            raise RawFileTooLarge(name, refusal.reason, refusal.limit, allowed) from refusal
        except ObjectNotFound as error:
            raise RawFileNotAsListed(name, _IS_GONE) from error
        except LanceOpsError:
            raise
        except OSError as error:  # of the local copy, or of the process that decodes
            raise _failure_of_machine(name, str(error)) from error

    @contextmanager
    def _opened(self, file: RawFile, request: RawRequest, *, only_schema: bool) -> Iterator[tuple[int, RawRequest]]:
        """Open a file for reading, by descriptor; also yield the request with which to read it.

        A file of a store is first copied to a temporary file without a name: whole, or with `only_schema` and for some
        row groups as much as is needed.
        """
        path = local_path(file.uri)
        if path is None:
            stored = StoredFile(file.uri, file.size_bytes, self._storage_options)
            with tempfile.TemporaryFile() as copy:
                if only_schema:
                    request = stored.copy_schema(copy, request, self._limits)
                    rows = replace(request, kind=f"{request.kind}_rows")
                    if request.is_cut and self._numbers(copy.fileno(), rows) == [(0,)]:
                        stored.copy_long_rows(copy, self._limits)
                else:
                    with _checked_after(partial(stored.check_is, file.stated)):
                        self._copy_rows(stored, copy, request)
                yield copy.fileno(), request
            return
        descriptor = _descriptor_of(path, file)
        try:
            listed = None if only_schema else file.listed
            with _checked_after(partial(check_is_as_listed, path, listed, descriptor)):
                yield descriptor, request
        finally:
            os.close(descriptor)

    def _copy_rows(self, stored: StoredFile, copy: IO[bytes], request: RawRequest) -> None:
        """Copy what a request for rows reads."""
        if request.groups is None:
            stored.copy_whole(copy, self._limits)
        else:
            stored.copy_schema(copy, request, self._limits)
            [(start, stop)] = self._numbers(copy.fileno(), replace(request, kind="parquet_range"))
            stored.copy_range(copy, start, stop)


@contextmanager
def _checked_after(check: Callable[[], None]) -> Iterator[None]:
    """Check that a file is as it was listed when it has been read, also before its bytes are refused.

    Bytes of a changed file say nothing about the file that was listed.
    """
    try:
        yield
    except DecodingRefused:
        check()
        raise
    check()


def _descriptor_of(path: str, file: RawFile) -> int:
    try:
        return open_local(path, file.listed)
    except FileNotFoundError as error:
        kind = RawFileRefused if file.listed is None else RawFileNotAsListed
        raise kind(shown_uri(file.uri), f"{_IS_GONE} ({error.strerror})") from error
    except OSError as error:
        if lacks_resources(error):
            raise
        raise RawFileRefused(shown_uri(file.uri), f"{error}; repair or remove the file") from error


def _failure_of_machine(name: str, reason: str) -> StoreError:
    return StoreError(f"raw file {name}: this machine could not read it, whatever is in it: {reason}; try again")


def found_file(
    uri: str,
    storage_options: Mapping[str, str],
    beneath: str | None = None,
    *,
    entry: Mapping[str, Any] | None = None,
) -> RawFile:
    """Return a raw file that a path or a URI names, with its size and a token of its content.

    The token is the ETag of an object store, or the size and the time of its modification, as in a landing folder. With
    `beneath`, a local file must be in that folder and be no link; `RawReader` refuses a link on the way when it opens
    the file. In both, `~` is the home folder then. `entry` is the file's in a listing of its store that the caller
    has just made: with an ETag it is enough, and the store is not asked again.

    Raises `RawFileRefused` for a folder, for a local file that cannot be looked at, and for one whose store does not
    say how long it is or when it changes; and `ObjectNotFound` or `StoreError` for another one of a store.
    """
    path = local_path(uri)
    if path is not None:
        path = os.path.abspath(path if beneath is None else os.path.expanduser(path))
        try:
            if beneath is None:
                status, folder = os.stat(path), os.path.dirname(path)
                listed = ListedFile.of(folder, os.stat(folder), os.path.basename(path), status, follow_links=True)
            else:
                status = os.lstat(path)
                listed = _listed(path, status, os.path.abspath(os.path.expanduser(beneath)))
        except OSError as error:
            raise RawFileRefused(shown_uri(uri), f"{error.strerror}") from error
        if stat.S_ISDIR(status.st_mode):
            raise RawFileRefused(shown_uri(uri), _IS_FOLDER)
        token = content_token(status.st_size, moment_of(status.st_mtime) or _NO_MOMENT, None)
        return RawFile(path, status.st_size, token, listed)
    with failures_of_store(uri, storage_options):
        filesystem, path = remote_file_system(uri, storage_options, looks_anew=entry is None)
        # Without an ETag the token is of a time, and a listing may state other fractions of a second than a look-up.
        if entry is None or etag_of(entry) is None or entry.get("size") is None:
            entry = filesystem.info(path)
    if entry.get("type") == "directory":
        raise RawFileRefused(shown_uri(uri), _IS_FOLDER)
    stated = StatedFile.of(entry)
    if stated.size_bytes is None:
        raise RawFileRefused(shown_uri(uri), "its store does not say how long it is; copy it elsewhere")
    if stated.modified is None and stated.etag is None:
        raise RawFileRefused(shown_uri(uri), "its store states no ETag and no time, so a change of it is not seen")
    token = content_token(stated.size_bytes, stated.modified or _NO_MOMENT, stated.etag)
    return RawFile(uri, stated.size_bytes, token, stated=stated)


def _listed(path: str, status: os.stat_result, folder: str) -> ListedFile:
    """Return the identity of a file beneath a folder; raise `RawFileRefused` for a link, and for a file elsewhere."""
    inside = os.path.relpath(path, folder)
    if inside == os.pardir or inside.startswith(f"{os.pardir}{os.sep}"):
        raise RawFileRefused(shown_uri(path), f"it is not in {folder}")
    if stat.S_ISLNK(status.st_mode):
        raise RawFileRefused(shown_uri(path), "it is a symbolic link; copy the file here")
    return ListedFile.of(folder, os.stat(folder), inside, status, follow_links=False)
