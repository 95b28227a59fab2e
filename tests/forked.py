"""Run a function in a forked child, perhaps while another thread holds a lock, and fail if the child does not end."""

from __future__ import annotations

import faulthandler
import os
import pickle
import select
import signal
import threading
import time
import traceback
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import TypeVar

__all__ = ["held_by_a_thread", "run_in_child"]

T = TypeVar("T")

_SECONDS = 200
"""How long a child may take; tests end after 300 seconds."""


@contextmanager
def held_by_a_thread(lock: AbstractContextManager[object], seconds: float) -> Iterator[None]:
    """Let another thread hold a lock for some time from the block's start; the block ends when the thread has ended."""
    held = threading.Event()

    def hold() -> None:
        with lock:
            held.set()
            time.sleep(seconds)

    holder = threading.Thread(target=hold)
    holder.start()
    assert held.wait(60)
    try:
        yield
    finally:
        holder.join()


def run_in_child(function: Callable[[], T]) -> T:
    """Return the result of `function` in a forked child, with its iterators, handles and open files as they are now.

    Raises `AssertionError` with the child's traceback if it failed, and when it does not answer in time; then the child
    is killed.
    """
    reading, writing = os.pipe()
    child = os.fork()
    if not child:
        os.close(reading)
        _answer(function, writing)
    os.close(writing)
    try:
        answer = _read_all(reading)
    finally:
        os.close(reading)
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
    is_result, value = pickle.loads(answer)
    assert is_result, f"the child failed:\n{value}"
    result: T = value
    return result


def _answer(function: Callable[[], object], writing: int) -> None:
    try:
        _show_where_it_hangs()
        try:
            answer = pickle.dumps((True, function()))
        except BaseException:  # noqa: BLE001 # the parent raises it
            answer = pickle.dumps((False, traceback.format_exc()))
        with open(writing, "wb") as pipe:
            pipe.write(answer)
    finally:
        os._exit(0)


def _show_where_it_hangs() -> None:
    """Print the stacks of all threads shortly before the parent gives up.

    A timer of the system does it: `faulthandler.dump_traceback_later` waits, in the child of a child, for a thread that
    only the parent has.
    """
    faulthandler.register(signal.SIGALRM)
    signal.setitimer(signal.ITIMER_REAL, _SECONDS - 20)


def _read_all(descriptor: int) -> bytes:
    parts: list[bytes] = []
    while True:
        ready, _, _ = select.select([descriptor], [], [], _SECONDS)
        assert ready, f"the child hangs: no answer in {_SECONDS} seconds"
        part = os.read(descriptor, 1 << 20)
        if not part:
            return b"".join(parts)
        parts.append(part)
