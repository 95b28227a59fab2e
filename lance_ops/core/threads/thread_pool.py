"""A thread pool that still works while the process ends."""

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from typing import ParamSpec, TypeVar

__all__ = ["ThreadPool"]

R = TypeVar("R")
P = ParamSpec("P")


class ThreadPool(ThreadPoolExecutor):
    """A pool that serves its caller also while the process ends.

    When the main thread has ended, Python starts no more work in pools. Functions that were registered with `atexit`,
    and threads that are no daemons, still run then. During this time `submit` calls the function in the calling thread.
    """

    def submit(self, fn: Callable[P, R], /, *args: P.args, **kwargs: P.kwargs) -> Future[R]:
        """Start the call, or make it here if the process ends."""
        try:
            return super().submit(fn, *args, **kwargs)
        except RuntimeError:
            if threading.main_thread().is_alive():
                raise
        done: Future[R] = Future()
        try:
            done.set_result(fn(*args, **kwargs))
        except Exception as error:  # noqa: BLE001 - the future raises it
            done.set_exception(error)
        return done
