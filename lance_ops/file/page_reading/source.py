"""One data file as a source of bytes: byte ranges go in, their bytes come out.

A source with checks verifies the blocks that hold a range before it returns the range. A block of a file that is in
place is verified once by a source; a block that is fetched is verified each time.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import partial
from typing import NamedTuple, Self

import numpy as np
import pyarrow as pa

from lance_ops.core.errors import CorruptFile
from lance_ops.core.ndarrays import BoolArray, Int64Array, Uint8Array
from lance_ops.core.records import changed_copy, dataclass
from lance_ops.file.checksums import BlockChecks
from lance_ops.store import READ_WHOLE_BYTES, IoCounters, Store, View, merge_touching

__all__ = ["Extent", "FileSource", "Ranges", "SourceBytes", "merge_ranges"]

_ZERO = np.zeros(1, np.int64)
"""Where a file that is in place begins, in the file and in its buffer."""


_WHOLE_BYTES = 1 << 20
"""A remote file up to this size is kept whole once a large part of it has been read, which spares later requests."""

_LARGE_PART = 3
"""A third of a file, counting what a store reads between ranges, is a large part of it."""


class Extent(NamedTuple):
    """One run of bytes in a file."""

    position: int
    size: int

    @classmethod
    def of_pairs(cls, pairs: Iterable[tuple[int, int]]) -> tuple[Extent, ...]:
        """Return (position, size) pairs as extents. `Extent._make` does so too, in Python for each pair."""
        return tuple(map(partial(tuple.__new__, cls), pairs))

    @property
    def end(self) -> int:
        return self.position + self.size


@dataclass(frozen=True, slots=True, eq=False)
class Ranges:
    """Byte ranges of a file: range `i` holds the bytes in `[starts[i], stops[i])`."""

    starts: Int64Array
    stops: Int64Array

    @classmethod
    def of(cls, *ranges: tuple[int, int]) -> Self:
        """Make ranges from (start, stop) pairs."""
        pairs = np.array(ranges, dtype=np.int64).reshape(-1, 2)
        return cls(pairs[:, 0], pairs[:, 1])

    @property
    def num_bytes(self) -> int:
        """The sum of all sizes; a byte in several ranges counts for each."""
        return int((self.stops - self.starts).sum())

    @classmethod
    def concat(cls, parts: Sequence[Ranges]) -> Self:
        """Put ranges into one list; they may overlap and need not be sorted."""
        return cls(np.concatenate([part.starts for part in parts]), np.concatenate([part.stops for part in parts]))


@dataclass(frozen=True, slots=True, eq=False)
class SourceBytes:
    """Bytes of a file, found by their position in it: pieces of the file, end to end in `data`.

    Piece `i` holds the file's bytes from `origins[i]` on and begins at `data[bases[i]]`; `origins` ascend.
    """

    data: Uint8Array
    origins: Int64Array
    bases: Int64Array

    def locate(self, positions: Int64Array) -> Int64Array:
        """Return where in `data` the bytes at these file positions are; the positions were in the fetched ranges."""
        if len(self.origins) == 1:
            shift = int(self.bases[0]) - int(self.origins[0])
            return positions + shift if shift else positions
        piece = self.origins.searchsorted(positions, side="right") - 1
        return positions - self.origins[piece] + self.bases[piece]

    def shifted(self, distance: int) -> SourceBytes:
        """Return the same bytes under positions that are lower by `distance`."""
        return SourceBytes(self.data, self.origins - distance, self.bases)

    def holds(self, starts: Int64Array, stops: Int64Array) -> BoolArray:
        """Return for each range whether all its bytes are in one piece."""
        ends = self.origins + np.diff(self.bases, append=len(self.data))
        piece = self.origins.searchsorted(starts, side="right") - 1
        held: BoolArray = (piece >= 0) & (stops <= ends[piece])
        return held

    def view(self, start: int, stop: int) -> Uint8Array:
        """Return the bytes of one range, without a copy."""
        if start == stop:
            return self.data[:0]
        if len(self.origins) == 1:
            shift = int(self.bases[0]) - int(self.origins[0])
        else:
            piece = int(self.origins.searchsorted(start, side="right")) - 1
            shift = int(self.bases[piece]) - int(self.origins[piece])
        return self.data[start + shift : stop + shift]


class _KeptBytes:
    """The last bytes of a remote file, and all bytes of a small one once they were read; copies of a source share them.

    Ranges in `tail` are not requested again. They are verified as if they had been.
    """

    __slots__ = ("tail", "view")

    def __init__(self) -> None:
        self.view: View | None = None
        self.tail: pa.Buffer = pa.py_buffer(b"")


class FileSource:
    """One immutable file in a store."""

    def __init__(self, store: Store, path: str, size_bytes: int | None = None, *, actual: int | None = None) -> None:
        """Find a file. `size_bytes` is the recorded size, 0 if none is recorded; `actual` is the size in the store.

        Raises `CorruptFile` if the two differ. The store is asked for `actual` only if the caller does not know it.
        """
        self._store = store
        self._path = path
        self.name = store.uri_of(path)
        if actual is None:
            actual = store.view(path).buffer.size if store.reads_in_place else size_bytes or store.size(path)
        self.size_bytes = size_bytes or actual
        self._check_size(actual)
        self._kept = _KeptBytes()
        self._checks: BlockChecks | None = None

    @classmethod
    def with_tail(
        cls,
        store: Store,
        path: str,
        size_bytes: int | None,
        tail_bytes: int,
        view: View | None = None,
        *,
        whole: bool = False,
    ) -> tuple[Self, bytes]:
        """Find a file and read its last `tail_bytes` bytes; `view` has its bytes if the caller has read them in place.

        The last bytes of a remote file are kept, so that no later read asks the store for them again. If `whole`, all
        bytes of a small remote file are read and kept.
        """
        if store.reads_in_place:
            view = store.view(path) if view is None else view
            source = cls(store, path, size_bytes, actual=view.buffer.size)
            start = max(0, source.size_bytes - tail_bytes)
            view.will_need(np.array([start]), np.array([source.size_bytes]))
            return source, view.buffer.slice(start).to_pybytes()
        source = cls(store, path, size_bytes)
        num_bytes = source.size_bytes if whole and source.size_bytes <= _WHOLE_BYTES else tail_bytes
        last = source.read(max(0, source.size_bytes - num_bytes), source.size_bytes)
        if len(last) == source.size_bytes:
            source._kept.view = View(pa.py_buffer(last))
        else:
            source._kept.tail = pa.py_buffer(last)
        return source, last[-tail_bytes:]

    def with_checks_of(self, other: FileSource) -> Self:
        """Return this file as a source that verifies what it reads, given another source of the same bytes.

        It verifies each block again; without checks it is returned as it is.
        """
        return self if other._checks is None else self.with_checks(other._checks.anew(self.name))

    def with_checks(self, checks: BlockChecks) -> Self:
        """Return the same file as a source that verifies what it reads."""
        return changed_copy(self, _checks=checks)

    def verifying_anew(self) -> Self:
        """Return the same source, which verifies each block again; itself if it has no checks."""
        return self.with_checks_of(self)

    @property
    def has_checks(self) -> bool:
        """Whether the source verifies what it reads."""
        return self._checks is not None

    @property
    def is_in_place(self) -> bool:
        """Whether the file is mapped or in memory, so that its bytes are read without a copy."""
        return self._store.reads_in_place

    def view(self, read: View | None = None) -> View | None:
        """Return all bytes of a file that is in place or kept; None for a file that is read range by range.

        `read` has the bytes if the caller has just read them in place. Raises `CorruptFile` if they are not as many as
        when the file was opened.
        """
        if self._store.reads_in_place:
            # The map is not kept: it would keep a removed file's disk space in use.
            view = self._store.view(self._path) if read is None else read
            self._check_size(view.buffer.size)
            return view
        return self._kept.view

    @property
    def kept_bytes(self) -> int:
        """How many bytes of the file may be kept in memory once it has been read."""
        is_kept_whole = not self._store.reads_in_place and self.size_bytes <= _WHOLE_BYTES
        return self.size_bytes if is_kept_whole else self._kept.tail.size

    def read(self, start: int, stop: int) -> bytes:
        """Return the bytes of one range that lies in the file."""
        return self.fetch(Ranges.of((start, stop))).view(start, stop).tobytes()

    def fetch(self, ranges: Ranges, known: SourceBytes | None = None) -> SourceBytes:
        """Return the bytes of ranges that lie in the file; ranges that touch are read together.

        The store is not asked for bytes that are `known`.
        """
        view = self.view()
        if view is None and self._is_read_whole(ranges):
            view = self._kept.view = View(self._store.get_range(self._path, 0, self.size_bytes))
        if view is not None:
            return self.read_in_place(view, ranges)
        if self._checks is None:
            return self._fetch(ranges, known)
        blocks = self._checks.blocks_of(ranges.starts, ranges.stops)
        found = self._fetch(Ranges.concat([ranges, Ranges(blocks.starts, blocks.stops)]), known)
        self._checks.verify(blocks, found.data, found.locate(blocks.starts), self.read)
        return found

    def fetch_in_rounds(self) -> Callable[[Ranges], SourceBytes]:
        """Return `fetch` for the rounds of one read, which does not request the bytes of the round before again.

        A round often asks for a part of the blocks that the round before verified.
        """
        before: SourceBytes | None = None

        def fetch(ranges: Ranges) -> SourceBytes:
            nonlocal before
            before = self.fetch(ranges, before)
            return before

        return fetch

    def read_in_place(self, view: View, ranges: Ranges) -> SourceBytes:
        """Return all bytes of this file, after verifying ranges and telling the system that they will be read."""
        data = np.frombuffer(view.buffer, dtype=np.uint8)
        if self._checks is None:
            view.will_need(ranges.starts, ranges.stops)
        else:
            blocks = self._checks.unverified(ranges.starts, ranges.stops)
            needed = Ranges.concat([ranges, Ranges(blocks.starts, blocks.stops)])
            view.will_need(needed.starts, needed.stops)
            self._checks.verify(blocks, data, blocks.starts, partial(self._bytes_in_place, view))
        return SourceBytes(data, _ZERO, _ZERO)

    def copy_in_place(self, view: View, ranges: Ranges, out: Uint8Array, places: Int64Array) -> None:
        """Copy each range of this file, whose bytes are in `view`, to its place in `out`; verify as `read_in_place`.

        Of a long file that is not verified, system calls copy the ranges: to touch a page of a map for the first time
        takes longer. They find the file by its name, as `view` does. If they cannot, the map is copied. Raises
        `CorruptFile` if the file was cut short since it was viewed: to touch its map would end the process.
        """
        data = self.read_in_place(view, ranges).data
        sizes = (ranges.stops - ranges.starts).tolist()
        parts = list(zip(ranges.starts.tolist(), sizes, places.tolist(), strict=True))
        if self._checks is None and self.size_bytes > READ_WHOLE_BYTES:
            uncounted = self._store.counted_by(IoCounters())  # `read_in_place` has counted the ranges
            found = uncounted.read_parts([self._path], [parts], memoryview(out))  # type: ignore[arg-type]  # a buffer
            if found == sizes:
                return
            for asked, given in zip(sizes, found or (), strict=False):
                self._check_range(asked, given)
        for start, size, place in parts:
            out[place : place + size] = data[start : start + size]

    def _bytes_in_place(self, view: View, start: int, stop: int) -> bytes:
        """Return the bytes of one range of this file, verified."""
        return self.read_in_place(view, Ranges.of((start, stop))).view(start, stop).tobytes()

    def _is_read_whole(self, ranges: Ranges) -> bool:
        """Return whether a large part of a small file is read: then the next read will need the rest."""
        if self.size_bytes > _WHOLE_BYTES:
            return False
        starts, stops = merge_touching(ranges.starts, ranges.stops + self._store.gap_bytes)
        num_bytes = int((stops - starts).sum()) - len(starts) * self._store.gap_bytes
        return _LARGE_PART * num_bytes >= self.size_bytes

    def _fetch(self, ranges: Ranges, known: SourceBytes | None) -> SourceBytes:
        starts, stops = merge_ranges(ranges)
        tail = self._kept.tail
        held = (starts >= self.size_bytes - tail.size) & (tail.size > 0)
        is_known = np.zeros_like(held) if known is None else known.holds(starts, stops) & ~held
        asked = np.flatnonzero(~(held | is_known))
        wanted = list(zip(starts[asked].tolist(), stops[asked].tolist(), strict=True))
        requested = iter(self._store.get_ranges(self._path, wanted) if wanted else ())
        parts = []
        for start, stop, from_tail, from_known in zip(
            starts.tolist(), stops.tolist(), held.tolist(), is_known.tolist(), strict=True
        ):
            if from_known and known is not None:
                part = known.view(start, stop)
            elif from_tail:
                part = np.frombuffer(tail, np.uint8)[start - self.size_bytes :][: stop - start]
            else:
                part = np.frombuffer(next(requested), np.uint8)
            self._check_range(stop - start, len(part))
            parts.append(part)
        data = parts[0] if len(parts) == 1 else np.concatenate([np.empty(0, np.uint8), *parts])
        sizes = stops - starts
        return SourceBytes(data, starts, np.cumsum(sizes) - sizes)

    def _check_range(self, size: int, actual: int) -> None:
        if actual != size:
            raise CorruptFile(self.name, "read", f"the store gave {actual} bytes of a range of {size}")

    def _check_size(self, actual: int) -> None:
        if actual != self.size_bytes:
            reason = f"the file has {actual} bytes where {self.size_bytes} are recorded"
            raise CorruptFile(self.name, "size", reason)


def merge_ranges(ranges: Ranges) -> tuple[Int64Array, Int64Array]:
    """Sort ranges, merge those that overlap or touch and drop empty ones; return one empty range if none is left."""
    starts, stops = merge_touching(ranges.starts, ranges.stops)
    return (starts, stops) if len(starts) else (np.zeros(1, np.int64), np.zeros(1, np.int64))
