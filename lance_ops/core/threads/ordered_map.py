"""Map a function over items in threads, ahead of the caller, and yield the results in order."""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Callable, Generator, Iterable
from concurrent.futures import Future
from contextvars import copy_context
from itertools import chain, islice
from typing import TypeVar

from lance_ops.core.threads.thread_pool import ThreadPool

__all__ = ["map_ordered"]

T = TypeVar("T")
R = TypeVar("R")


def map_ordered(function: Callable[[T], R], items: Iterable[T], workers: int, ahead: int) -> Generator[R, None, None]:
    """Yield `function(item)` for each item, in order, computing at most `ahead` results before they are asked for.

    Closing the iterator cancels the calls that have not started, so a scan that stops at its `limit` waits only for the
    calls in progress.

    Each call runs in a copy of the caller's context. With one worker, or for a single item, no thread is started: the
    caller computes a result when it asks for it. `ahead` is at least 1.

    After a fork both the parent and the child may go on with the iterator: each yields all results that were not
    yielded before. The threads exist only in the parent, so the child calls the function itself, also for results in
    progress.
    """
    process = os.getpid()
    waiting = iter(items)
    first_two = [*islice(waiting, 2)] if workers > 1 else []
    waiting = chain(first_two, waiting)
    if len(first_two) < 2:
        yield from map(function, waiting)
        return
    pool = ThreadPool(workers, thread_name_prefix="lance-ops-scan")
    running: deque[tuple[T, Future[R]]] = deque()
    try:
        running.extend((item, pool.submit(copy_context().run, function, item)) for item in islice(waiting, ahead))
        while running:
            result = running.popleft()[1].result()
            running.extend((item, pool.submit(copy_context().run, function, item)) for item in islice(waiting, 1))
            yield result
            if os.getpid() != process:
                yield from map(function, chain([item for item, _ in running], waiting))
                return
    finally:
        if os.getpid() == process:  # in a child, a lock of the pool or of a result may be held forever
            for _, future in running:
                future.cancel()
            pool.shutdown()
