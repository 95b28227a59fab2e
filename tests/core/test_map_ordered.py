"""`map_ordered`: results in order, and iterators that a forked child takes over."""

from __future__ import annotations

import os
import threading
from collections.abc import Generator

import pytest

from lance_ops.core.map_ordered import map_ordered
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
