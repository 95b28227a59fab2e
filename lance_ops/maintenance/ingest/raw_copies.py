"""Copy raw files of a store to a local file: whole, as much as tells their schema, or a range.

Parquet, Arrow IPC   the footer, at its place in a sparse file of the same length
CSV, JSON            the first bytes, with a request that says so
others               the whole file, and also a short one, and one of a web server, which may ignore a range

A range, such as that of some row groups, also goes to its place in a sparse file.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import replace
from typing import IO, Any

from lance_ops.core.errors import RawFileNotAsListed
from lance_ops.core.records import dataclass
from lance_ops.maintenance.ingest.decoding import CUT_BYTES, DecodingRefused, RawLimits, RawRequest
from lance_ops.maintenance.ingest.raw_locations import CHANGED, StatedFile, failures_of_store, remote_file_system
from lance_ops.maintenance.ingest.raw_names import shown_uri

__all__ = ["StoredFile"]

_COPIED_BYTES = 4 * 1024**2
_RANGE_BYTES = 16 * 1024**2
_START_BYTES = 4 * CUT_BYTES
"""No encoding takes more than four bytes for a character of ASCII, and compressed text is shorter."""

_TAIL_BYTES = 1024**2
_LONGEST_FOOTER = 64 * 1024**2
_END_BYTES = {"parquet": (4, b"PAR1"), "ipc": (4, b"ARROW1")}
"""After a footer come its length, as a little-endian integer of this many bytes, and these bytes."""


@dataclass(frozen=True)
class StoredFile:
    """A file in a file system of fsspec, and the length that its listing stated.

    Its methods raise `DecodingRefused` for a file beyond the limit, and what `failures_of_store` raises.
    """

    uri: str
    size_bytes: int
    storage_options: Mapping[str, str]

    def copy_whole(self, target: IO[bytes], limits: RawLimits) -> None:
        """Copy all bytes, however long the file is by then."""
        with failures_of_store(self.uri, self.storage_options):
            filesystem, path = remote_file_system(self.uri, self.storage_options)
            source = filesystem.open(path, "rb")
        with source:
            size_bytes = 0
            while True:
                with failures_of_store(self.uri, self.storage_options):
                    block = source.read(_COPIED_BYTES)
                size_bytes += len(block)
                _check_size(size_bytes, limits)
                if not block:
                    break
                target.write(block)
        target.flush()

    def check_is(self, stated: StatedFile | None) -> None:
        """Raise `RawFileNotAsListed` if the store states something else of the file by now: a copy may be of that.

        If it had stated nothing, nothing is checked.
        """
        if stated is None:
            return
        with failures_of_store(self.uri, self.storage_options):
            filesystem, path = remote_file_system(self.uri, self.storage_options)
            now = StatedFile.of(filesystem.info(path))
        if not stated.may_be_same(now):
            raise RawFileNotAsListed(shown_uri(self.uri), CHANGED)

    @property
    def takes_ranges(self) -> bool:
        """Whether parts of the file can be asked for; a web server may ignore a range."""
        return not self.uri.lower().startswith(("http:", "https:"))

    def copy_range(self, target: IO[bytes], start: int, stop: int) -> None:
        """Copy some of the file's bytes to their place."""
        stop = min(stop, self.size_bytes)
        for at in range(max(start, 0), stop, _RANGE_BYTES):
            os.pwrite(target.fileno(), self._bytes(at, min(at + _RANGE_BYTES, stop)), at)

    def copy_schema(self, target: IO[bytes], request: RawRequest, limits: RawLimits) -> RawRequest:
        """Copy the bytes that tell the schema, and return the request with which to read them."""
        _check_size(self.size_bytes, limits)
        if self.takes_ranges and request.kind in ("csv", "json") and self.size_bytes > _START_BYTES:
            self.copy_range(target, 0, _START_BYTES)
            return replace(request, is_cut=True)
        has_footer = self.takes_ranges and request.kind in _END_BYTES and self.size_bytes > _TAIL_BYTES
        if not (has_footer and self._copy_footer(target, request.kind)):
            self.copy_whole(target, limits)
        return request

    def copy_long_rows(self, target: IO[bytes], limits: RawLimits) -> None:
        """Copy more of a text of which `copy_schema` has copied the first bytes, so that its first rows end there."""
        self.copy_range(target, _START_BYTES, _START_BYTES + limits.row_bytes)

    def _copy_footer(self, target: IO[bytes], kind: str) -> bool:
        """Copy the footer; return whether there seems to be one, of a length that fits into memory."""
        width, magic = _END_BYTES[kind]
        tail = self._bytes(self.size_bytes - _TAIL_BYTES, self.size_bytes)
        stated = tail.removesuffix(magic)[-width:]
        length = int.from_bytes(stated, "little") + width + len(magic)
        if not tail.endswith(magic) or length > min(self.size_bytes, _LONGEST_FOOTER):
            return False
        if length > len(tail):
            tail = self._bytes(self.size_bytes - length, self.size_bytes)
        os.ftruncate(target.fileno(), self.size_bytes)
        os.pwrite(target.fileno(), tail, self.size_bytes - len(tail))
        return True

    def _bytes(self, start: int, stop: int) -> bytes:
        with failures_of_store(self.uri, self.storage_options):
            filesystem, path = remote_file_system(self.uri, self.storage_options)
            found: Any = filesystem.cat_file(path, start=start, end=stop)
            return bytes(found)


def _check_size(size_bytes: int, limits: RawLimits) -> None:
    if size_bytes > limits.file_bytes:
        raise DecodingRefused(f"it has more than {limits.file_bytes:,} bytes", "file_bytes")
