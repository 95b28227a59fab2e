"""Measure a scan while it runs: rows, bytes, calls and time of its steps.

A scan that nobody measures pays for one look at a context variable. The caller of `traced` may use several iterators at
the same time, because the trace is set only while its own iterator is advanced.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import field
from time import perf_counter_ns
from typing import TypeVar

from lance_ops.core.records import dataclass
from lance_ops.store import IoCounters, counted_in

__all__ = ["ScanTrace", "Step", "current_trace", "traced"]

T = TypeVar("T")


@dataclass
class Step:
    """The figures of one step so far. I/O of a step inside another one counts for the inner one alone."""

    elapsed_ns: int = 0
    num_rows: int = 0
    io: IoCounters = field(default_factory=IoCounters)

    @contextmanager
    def measured(self) -> Iterator[None]:
        """Count the time and the I/O of a block."""
        started = perf_counter_ns()
        try:
            with counted_in(self.io):
                yield
        finally:
            self.elapsed_ns += perf_counter_ns() - started

    def advancing(self, found: Iterator[T], rows_of: Callable[[T], int]) -> Iterator[T]:
        """Yield what is found, count its rows, and measure the time and the I/O that it takes to find it."""
        while True:
            with self.measured():
                item = next(found, None)
            if item is None:
                return
            self.num_rows += rows_of(item)
            yield item


@dataclass
class ScanTrace:
    """The figures of one scan: the search of indices, and the reading of rows."""

    index: Step = field(default_factory=Step)
    read: Step = field(default_factory=Step)
    indices_loaded: int = 0
    indices_cached: int = 0
    fragments_scanned: int = 0
    blocks_scanned: int = 0
    rows_scanned: int = 0

    def add_plan(self, num_fragments: int, num_blocks: int, num_rows: int) -> None:
        """Count what a plan reads; a sorted scan with a limit has two plans."""
        self.fragments_scanned += num_fragments
        self.blocks_scanned += num_blocks
        self.rows_scanned += num_rows


def current_trace() -> ScanTrace | None:
    """Return the trace of the scan that is being advanced, None if it is not measured."""
    return _TRACE.get()


def traced(found: Iterator[T], trace: ScanTrace) -> Iterator[T]:
    """Yield what a scan finds, and collect its figures in `trace`."""
    while True:
        token = _TRACE.set(trace)
        try:
            item = next(found, None)
        finally:
            _TRACE.reset(token)
        if item is None:
            return
        yield item


_TRACE: ContextVar[ScanTrace | None] = ContextVar("_TRACE", default=None)
