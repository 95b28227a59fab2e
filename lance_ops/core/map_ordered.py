"""Map a function over items in threads, ahead of the caller, and yield the results in order."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from itertools import islice
from typing import TypeVar

__all__ = ["map_ordered"]

T = TypeVar("T")
R = TypeVar("R")


def map_ordered(function: Callable[[T], R], items: Iterable[T], workers: int, ahead: int) -> Iterator[R]:
    """Yield `function(item)` for each item, in order, computing at most `ahead` results before they are asked for.

    Closing the iterator cancels the calls that have not started, so a scan that stops at its `limit` waits only for the
    calls in progress.
    """
    if workers <= 1:
        yield from map(function, items)
        return
    waiting = iter(items)
    with ThreadPoolExecutor(workers, thread_name_prefix="lance-ops-scan") as pool:
        running: deque[Future[R]] = deque(pool.submit(function, item) for item in islice(waiting, ahead))
        try:
            while running:
                result = running.popleft().result()
                running.extend(pool.submit(function, item) for item in islice(waiting, 1))
                yield result
        finally:
            for future in running:
                future.cancel()
