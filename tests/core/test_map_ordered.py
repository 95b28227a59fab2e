"""`map_ordered`: results in order, and iterators that a forked child takes over."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from collections.abc import Generator

import pytest

from lance_ops.core.threads import map_ordered
from tests.forked import run_in_child

pytestmark = pytest.mark.filterwarnings("ignore:.*fork:DeprecationWarning")  # the tests fork while threads run

COUNT = 20


def squares(workers: int, ahead: int = 4, started: list[int] | None = None) -> Generator[int, None, None]:
    def square(number: int) -> int:
        if started is not None:
            started.append(number)
        return number * number

    return map_ordered(square, range(COUNT), workers, ahead)


@pytest.mark.parametrize("workers", [1, 3])
def test_results_come_in_the_order_of_the_items(workers: int) -> None:
    assert list(squares(workers)) == [number * number for number in range(COUNT)]


@pytest.mark.parametrize(("num_items", "uses_threads"), [(0, False), (1, False), (2, True)])
def test_a_single_item_needs_no_thread(num_items: int, uses_threads: bool) -> None:
    here = threading.get_ident()
    threads = [*map_ordered(lambda _: threading.get_ident(), range(num_items), 3, 4)]
    assert len(threads) == num_items
    assert (here not in threads) if uses_threads else {*threads} <= {here}


def test_a_closed_iterator_computes_no_more_than_it_was_to_read_ahead() -> None:
    started: list[int] = []
    results = squares(2, ahead=3, started=started)
    next(results)
    results.close()
    assert max(started) <= 4


@pytest.mark.parametrize("workers", [1, 3])
@pytest.mark.parametrize("taken", [0, 1, 7, COUNT])
def test_a_child_and_its_parent_both_yield_what_was_left_at_the_fork(workers: int, taken: int) -> None:
    results = squares(workers)
    left = [number * number for number in range(COUNT)][taken:]
    for _ in range(taken):
        next(results)
    assert run_in_child(lambda: list(results)) == left
    assert list(results) == left


def test_a_child_does_not_wait_for_a_call_that_its_parent_is_making() -> None:
    may_end = threading.Event()
    parent = os.getpid()

    def wait_in_the_parent(number: int) -> int:
        if number and os.getpid() == parent:
            assert may_end.wait(60)
        return number

    results = map_ordered(wait_in_the_parent, range(5), 2, 4)
    assert next(results) == 0
    assert run_in_child(lambda: list(results)) == [1, 2, 3, 4]
    may_end.set()
    assert list(results) == [1, 2, 3, 4]


def test_a_child_may_close_an_iterator_and_exit() -> None:
    results = squares(3)
    next(results)

    def close() -> str:
        results.close()
        return "closed"

    assert run_in_child(close) == "closed"
    assert next(results) == 1


_ENDING = """
import atexit, threading
from lance_ops.core.threads import map_ordered
from lance_ops.runners import InThreads
from lance_ops.store.process_resources import PROCESS_RESOURCES

begun = map_ordered(str, range(6), 2, 2)
print(next(begun))


def work(name):
    print(name, *map_ordered(str, range(4), 2, 2), InThreads(2).map(abs, [-1, -2, -3]))
    print(*PROCESS_RESOURCES.threads().map(abs, [-4, -5]))
    failed = PROCESS_RESOURCES.threads().submit(int, "no number")
    print(type(failed.exception()).__name__)


def go_on_when_the_main_thread_has_ended():
    threading.main_thread().join()
    work("thread")


atexit.register(lambda: print("begun before:", *begun))
atexit.register(work, "at exit")
threading.Thread(target=go_on_when_the_main_thread_has_ended).start()
"""


def test_work_goes_on_while_the_process_ends() -> None:
    run = subprocess.run([sys.executable, "-c", _ENDING], check=False, capture_output=True, text=True, timeout=120)
    assert run.stderr == ""
    work = ["0 1 2 3 [1, 2, 3]", "4 5", "ValueError"]
    first, *others = work
    expected = ["0", f"thread {first}", *others, f"at exit {first}", *others, "begun before: 1 2 3 4 5"]
    assert run.stdout.splitlines() == expected
