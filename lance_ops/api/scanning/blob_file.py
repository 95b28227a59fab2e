"""`BlobFile`: one blob as a file object, under the reference's names."""

from __future__ import annotations

import io
from collections.abc import Sequence
from typing import Any

from lance_ops import blobs
from lance_ops.core.errors import InvalidInput

__all__ = ["DEFAULT_BLOB_BUFFER_SIZE", "BlobFile"]

DEFAULT_BLOB_BUFFER_SIZE = 512 * 1024


class BlobFile(io.BufferedReader):
    """A blob that is read on demand. `read_range` and `read_ranges` do not move the file position."""

    def __init__(self, place: blobs.BlobLocation, buffer_size: int = DEFAULT_BLOB_BUFFER_SIZE) -> None:
        if buffer_size < 0:
            raise InvalidInput(f"buffer_size must not be negative, not {buffer_size}")
        super().__init__(_RawBlob(place), max(buffer_size, 1))
        self._place = place

    def size(self) -> int:
        """Return the blob's length in bytes."""
        return self._place.size

    def readall(self) -> bytes:
        """Return the bytes from the position to the end."""
        return self.read()

    def read_range(self, offset: int, length: int) -> bytes:
        """Return `length` bytes from `offset` on; raise `InvalidInput` if the blob is shorter."""
        if self.closed:
            raise ValueError("read of closed file")
        if offset < 0 or length < 0 or offset + length > self.size():
            raise InvalidInput(f"{length} bytes at {offset} of a blob of {self.size()}")
        return self._place.read(offset, offset + length)

    def read_ranges(self, ranges: Sequence[tuple[int, int]]) -> list[bytes]:
        """Return the bytes of each (offset, length)."""
        return [self.read_range(offset, length) for offset, length in ranges]

    def __repr__(self) -> str:
        return f"<BlobFile size={self.size()}>"


class _RawBlob(io.RawIOBase):
    def __init__(self, place: blobs.BlobLocation) -> None:
        self._place = place
        self._at = 0

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        base = {io.SEEK_SET: 0, io.SEEK_CUR: self._at, io.SEEK_END: self._place.size}[whence]
        if base + offset < 0:
            raise ValueError(f"negative seek value {base + offset}")
        self._at = base + offset
        return self._at

    def tell(self) -> int:
        return self._at

    def readinto(self, buffer: Any) -> int:
        start = min(self._at, self._place.size)
        data = self._place.read(start, min(start + len(buffer), self._place.size))
        buffer[: len(data)] = data
        self._at += len(data)
        return len(data)
