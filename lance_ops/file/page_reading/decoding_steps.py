"""Run decoders written as generators: each yields the byte ranges that it needs and receives their bytes.

A generator yields the byte ranges that it needs next, is sent the bytes, and returns its result. It does no I/O, so
its runner can merge the ranges of many generators into few reads. A mapped file needs no ranges: the runner sends the
whole map, and flat pages go to Arrow without a copy.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Sequence
from typing import Any, TypeAlias, TypeVar

from lance_ops.core.threads import ThreadPool
from lance_ops.file.page_reading.source import FileSource, Ranges, SourceBytes
from lance_ops.store import View

__all__ = ["Steps", "combine_steps", "run_all", "run_steps", "shift_steps"]

T = TypeVar("T")

Steps: TypeAlias = Generator[Ranges, SourceBytes, T]

_BYTES_WORTH_THREADS = 2 << 20
"""Decoding fewer bytes takes no longer than starting threads."""

_NO_RANGES = Ranges.of()


def run_all(source: FileSource, tasks: Sequence[Steps[T]], threads: int = 1) -> list[T]:
    """Run steps to their ends and return their results in order; each round of reads is one fetch.

    Rounds of many bytes are decoded in `threads` threads: kernels, numpy and Arrow release the interpreter's lock.
    """
    is_small = min(threads, len(tasks)) <= 1 or source.size_bytes < _BYTES_WORTH_THREADS
    view = source.view() if tasks and is_small else None
    if view is not None:
        return _run_in_place(source, view, tasks)
    return run_steps(combine_steps(tasks, threads), source.fetch_in_rounds())


def _run_in_place(source: FileSource, view: View, tasks: Sequence[Steps[T]]) -> list[T]:
    """Run steps one after the other over a mapped file, after announcing the first ranges of all of them."""
    results: dict[int, T] = {}
    waiting = [_advance(task, None, index, results) for index, task in enumerate(tasks)]
    asked = [ranges for ranges in waiting if ranges is not None]
    whole = source.read_in_place(view, Ranges.concat(asked) if asked else _NO_RANGES)
    for index, task in enumerate(tasks):
        ranges = waiting[index] and _advance(task, whole, index, results)
        while ranges is not None:
            source.read_in_place(view, ranges)
            ranges = _advance(task, whole, index, results)
    return [results[index] for index in range(len(tasks))]


def run_steps(task: Steps[T], fetch: Callable[[Ranges], SourceBytes]) -> T:
    """Run steps to their end, reading the ranges that they ask for with `fetch`, and return their result."""
    try:
        wanted = next(task)
        while True:
            wanted = task.send(fetch(wanted))
    except StopIteration as end:
        result: T = end.value
        return result


def shift_steps(task: Steps[T], distance: int) -> Steps[T]:
    """Return steps that ask for each position of `task` plus `distance`, as if the file began there."""
    try:
        wanted = next(task)
        while True:
            fetched = yield Ranges(wanted.starts + distance, wanted.stops + distance)
            wanted = task.send(fetched.shifted(distance))
    except StopIteration as end:
        result: T = end.value
        return result


def combine_steps(tasks: Sequence[Steps[T]], threads: int = 1) -> Steps[list[T]]:
    """Return one generator for several: each round asks for the ranges of all of them; its result is their results."""
    if len(tasks) == 1:
        return [(yield from tasks[0])]
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

        workers = min(threads, len(asked))
        if workers > 1 and wanted.num_bytes >= _BYTES_WORTH_THREADS:
            # The pool ends with each round, so that a fork between rounds meets no threads.
            with ThreadPool(workers, "lance-ops-decode") as pool:
                waiting = dict(zip(asked, pool.map(advance, asked), strict=True))
        else:
            waiting = dict(zip(asked, map(advance, asked), strict=True))


def _advance(task: Steps[T], fetched: SourceBytes | None, index: int, results: dict[int, T]) -> Ranges | None:
    """Run one task up to the next ranges that it asks for; at its end, store its result and return None."""
    try:
        return next(task) if fetched is None else task.send(fetched)
    except StopIteration as end:
        value: Any = end.value
        results[index] = value
        return None
