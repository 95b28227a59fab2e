"""The bytes of one file, and the steps in which a reader asks for them.

Decoding is written as *steps*: a generator that yields the byte ranges it needs next, is sent the bytes, and returns
its result. It does no I/O itself, so whoever drives many of them can merge their ranges into few reads, and a file
that is mapped needs no ranges at all: the whole map is sent, and a flat page goes to Arrow without a copy.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any, Self, TypeAlias, TypeVar

import numpy as np
import pyarrow as pa

from lance_ops.core.errors import CorruptFile
from lance_ops.core.ndarrays import Int64Array, Uint8Array
from lance_ops.store import (
    Store,
    View,
    merge_touching,
)

__all__ = ["FileSource", "Ranges", "SourceBytes", "Steps", "drive", "join", "merged", "moved", "run"]


T = TypeVar("T")

_BYTES_WORTH_THREADS = 2 << 20
"""Decoding less takes no longer than starting threads and handing things to them."""

_WHOLE = np.zeros(1, np.int64)
"""Where a mapped file begins, in the file and in its map."""


@dataclass(frozen=True, slots=True, eq=False)
class Ranges:
    """Byte ranges of a file, each from its start to before its stop."""

    starts: Int64Array
    stops: Int64Array

    @classmethod
    def of(cls, *ranges: tuple[int, int]) -> Self:
        """Make ranges from pairs."""
        pairs = np.array(ranges, dtype=np.int64).reshape(-1, 2)
        return cls(pairs[:, 0], pairs[:, 1])

    @property
    def num_bytes(self) -> int:
        """The bytes of all ranges, those in several counted for each."""
        return int((self.stops - self.starts).sum())

    @classmethod
    def concat(cls, parts: Sequence[Ranges]) -> Self:
        """Join ranges; their order and overlaps do not matter."""
        return cls(np.concatenate([part.starts for part in parts]), np.concatenate([part.stops for part in parts]))


_NOTHING = Ranges.of()


@dataclass(frozen=True, slots=True, eq=False)
class SourceBytes:
    """Bytes of a file by their position in it: pieces of the file, end to end in `data`.

    Piece `i` holds the file's bytes from `origins[i]` on and begins at `data[bases[i]]`; origins ascend.
    """

    data: Uint8Array
    origins: Int64Array
    bases: Int64Array

    def locate(self, positions: Int64Array) -> Int64Array:
        """Return where in `data` the bytes at these positions of the file are; the driver was asked for them."""
        if len(self.origins) == 1:
            shift = int(self.bases[0]) - int(self.origins[0])
            return positions + shift if shift else positions
        piece = self.origins.searchsorted(positions, side="right") - 1
        return positions - self.origins[piece] + self.bases[piece]

    def moved(self, distance: int) -> SourceBytes:
        """Return the same bytes by positions that are less by so much."""
        return SourceBytes(self.data, self.origins - distance, self.bases)

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


Steps: TypeAlias = Generator[Ranges, SourceBytes, T]


class FileSource:
    """One immutable file in a store."""

    def __init__(self, store: Store, path: str, size_bytes: int | None = None, *, actual: int | None = None) -> None:
        """Find a file. A `size_bytes` of 0 is not known; `actual` is the size of what the store was seen to have."""
        self._store = store
        self._path = path
        self.name = store.uri_of(path)
        if actual is None:
            actual = store.view(path).buffer.size if store.reads_in_place else size_bytes or store.size(path)
        self.size_bytes = size_bytes or actual
        self._check_size(actual)
        self._held: View | None = None

    @classmethod
    def with_tail(cls, store: Store, path: str, size_bytes: int | None, tail_bytes: int) -> tuple[Self, bytes]:
        """Find a file and read so many of its last bytes, at once where it is mapped.

        The bytes of a remote file that is no longer are kept, so that nobody asks for them again.
        """
        if store.reads_in_place:
            view = store.view(path)
            source = cls(store, path, size_bytes, actual=view.buffer.size)
            start = max(0, source.size_bytes - tail_bytes)
            view.will_need(np.array([start]), np.array([source.size_bytes]))
            return source, view.buffer.slice(start).to_pybytes()
        source = cls(store, path, size_bytes)
        tail = source.read(max(0, source.size_bytes - tail_bytes), source.size_bytes)
        if len(tail) == source.size_bytes:
            source._held = View(pa.py_buffer(tail))
        return source, tail

    @property
    def is_in_place(self) -> bool:
        """Whether the file's bytes can be looked at where they are."""
        return self._store.reads_in_place

    def view(self) -> View | None:
        """Return all bytes of a file that is mapped or held; None of one that is read range by range."""
        if self._store.reads_in_place:
            # asked for anew each time: who holds the map of a file holds its disk space too
            view = self._store.view(self._path)
            self._check_size(view.buffer.size)
            return view
        return self._held

    def read(self, start: int, stop: int) -> bytes:
        """Return the bytes of one range that lies in the file."""
        return self.fetch(Ranges.of((start, stop))).view(start, stop).tobytes()

    def fetch(self, ranges: Ranges) -> SourceBytes:
        """Return the bytes of ranges that lie in the file; neighbours are read together."""
        view = self.view()
        if view is not None:
            return _lent(view, ranges)
        starts, stops = merged(ranges)
        buffers = self._store.get_ranges(self._path, list(zip(starts.tolist(), stops.tolist(), strict=True)))
        sizes = stops - starts
        for buffer, size in zip(buffers, sizes.tolist(), strict=True):
            if buffer.size != size:
                raise CorruptFile(self.name, "read", f"the store gave {buffer.size} bytes of a range of {size}")
        parts = [np.frombuffer(buffer, dtype=np.uint8) for buffer in buffers]
        data = parts[0] if len(parts) == 1 else np.concatenate([np.empty(0, np.uint8), *parts])
        return SourceBytes(data, starts, np.cumsum(sizes) - sizes)

    def _check_size(self, actual: int) -> None:
        if actual != self.size_bytes:
            reason = f"the file has {actual} bytes where {self.size_bytes} are recorded"
            raise CorruptFile(self.name, "size", reason)


def run(source: FileSource, tasks: Sequence[Steps[T]], threads: int = 1) -> list[T]:
    """Drive steps to their ends and return their results in order; each round of reads is one fetch.

    What they do with many bytes, they do in `threads` threads: kernels, numpy and Arrow let go of the interpreter.
    """
    is_small = min(threads, len(tasks)) <= 1 or source.size_bytes < _BYTES_WORTH_THREADS
    view = source.view() if tasks and is_small else None
    if view is not None:
        return _drive_in_place(view, tasks)
    return drive(join(tasks, threads), source.fetch)


def _drive_in_place(view: View, tasks: Sequence[Steps[T]]) -> list[T]:
    """Drive steps one after the other over a mapped file, once the disk was asked for what each needs first."""
    results: dict[int, T] = {}
    waiting = [_advance(task, None, index, results) for index, task in enumerate(tasks)]
    asked = [ranges for ranges in waiting if ranges is not None]
    whole = _lent(view, Ranges.concat(asked) if asked else _NOTHING)
    for index, task in enumerate(tasks):
        ranges = waiting[index] and _advance(task, whole, index, results)
        while ranges is not None:
            view.will_need(ranges.starts, ranges.stops)
            ranges = _advance(task, whole, index, results)
    return [results[index] for index in range(len(tasks))]


def _lent(view: View, ranges: Ranges) -> SourceBytes:
    """Return all bytes, of which these ranges will be looked at."""
    view.will_need(ranges.starts, ranges.stops)
    return SourceBytes(np.frombuffer(view.buffer, dtype=np.uint8), _WHOLE, _WHOLE)


def drive(task: Steps[T], fetch: Callable[[Ranges], SourceBytes]) -> T:
    """Drive steps to their end, reading by `fetch` what they ask for, and return their result."""
    try:
        wanted = next(task)
        while True:
            wanted = task.send(fetch(wanted))
    except StopIteration as end:
        found: T = end.value
        return found


def moved(task: Steps[T], distance: int) -> Steps[T]:
    """Make of steps that ask by positions in their file steps that ask by positions greater by so much."""
    try:
        wanted = next(task)
        while True:
            fetched = yield Ranges(wanted.starts + distance, wanted.stops + distance)
            wanted = task.send(fetched.moved(distance))
    except StopIteration as end:
        found: T = end.value
        return found


def join(tasks: Sequence[Steps[T]], threads: int = 1) -> Steps[list[T]]:
    """Make one of several steps: it asks in one go for what all of them need next, and returns all their results."""
    results: dict[int, T] = {}
    waiting = {index: _advance(task, None, index, results) for index, task in enumerate(tasks)}
    while True:
        asked = {index: ranges for index, ranges in waiting.items() if ranges is not None}
        if not asked:
            return [results[index] for index in range(len(tasks))]
        wanted = Ranges.concat(list(asked.values()))
        fetched = yield wanted

        def advance(index: int, fetched: SourceBytes = fetched) -> Ranges | None:
            return _advance(tasks[index], fetched, index, results)

        workers = min(threads, len(asked)) if wanted.num_bytes >= _BYTES_WORTH_THREADS else 1
        if workers > 1:
            with ThreadPoolExecutor(workers, "lance-ops-decode") as pool:  # it ends here, so no fork meets its threads
                waiting = dict(zip(asked, pool.map(advance, asked), strict=True))
        else:
            waiting = dict(zip(asked, map(advance, asked), strict=True))


def _advance(task: Steps[T], fetched: SourceBytes | None, index: int, results: dict[int, T]) -> Ranges | None:
    """Run one task up to the ranges it asks for; at its end, put its result away."""
    try:
        return next(task) if fetched is None else task.send(fetched)
    except StopIteration as end:
        value: Any = end.value
        results[index] = value
        return None


def merged(ranges: Ranges) -> tuple[Int64Array, Int64Array]:
    """Sort ranges and merge those that overlap or touch; empty ones go."""
    starts, stops = merge_touching(ranges.starts, ranges.stops)
    return (starts, stops) if len(starts) else (np.zeros(1, np.int64), np.zeros(1, np.int64))
