"""Map a function over items in threads, ahead of the caller, and yield the results in order.

`ThreadPool` is the pool of threads for all work of this library.
"""

from __future__ import annotations

import os
import threading
from collections import deque
from collections.abc import Callable, Generator, Iterable
from concurrent.futures import Future, ThreadPoolExecutor
from contextvars import copy_context
from itertools import chain, islice
from typing import ParamSpec, TypeVar

__all__ = ["ThreadPool", "map_ordered"]

T = TypeVar("T")
R = TypeVar("R")
P = ParamSpec("P")


class ThreadPool(ThreadPoolExecutor):
    """A pool that serves its caller also while the process ends.

    When the main thread has ended, Python starts no more work in pools. Functions that were registered with `atexit`,
    and threads that are no daemons, still run then. The pool makes their calls in the thread that submits them.
    """

    def submit(self, fn: Callable[P, R], /, *args: P.args, **kwargs: P.kwargs) -> Future[R]:
        if threading.main_thread().is_alive():
            return super().submit(fn, *args, **kwargs)
        done: Future[R] = Future()
        try:
            done.set_result(fn(*args, **kwargs))
        except Exception as error:  # noqa: BLE001 - the future raises it
            done.set_exception(error)
        return done


def map_ordered(function: Callable[[T], R], items: Iterable[T], workers: int, ahead: int) -> Generator[R, None, None]:
    """Yield `function(item)` for each item, in order, computing at most `ahead` results before they are asked for.

    Closing the iterator cancels the calls that have not started, so a scan that stops at its `limit` waits only for the
    calls in progress.

    The threads run in the context of the caller, whose context variables they see.

    A forked child may take the iterator over, and so may its parent: each yields all results that it has not yielded
    yet. The threads exist only in the parent, so the child calls the function itself, also for results in progress.
    """
    if workers <= 1:
        yield from map(function, items)
        return
    process = os.getpid()
    waiting = iter(items)
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
