"""Runners: the order of outcomes, the number of threads, and failing tasks; and ordered work ahead of its reader."""

import os
import threading
import time
from collections.abc import Iterator

import pytest

from lance_ops.core.cores import available_cores
from lance_ops.core.map_ordered import map_ordered
from lance_ops.writing.runners import InThreads, run_all_or_discard


def test_outcomes_have_the_order_of_the_tasks() -> None:
    def slow_first(task: int) -> int:
        time.sleep(0.02 if task == 0 else 0)
        return task * 10

    assert InThreads(4).map(slow_first, [0, 1, 2, 3]) == [0, 10, 20, 30]
    assert InThreads().map(slow_first, []) == []


@pytest.mark.skipif(not hasattr(os, "sched_setaffinity"), reason="this system pins no process to cores")
def test_process_pinned_to_one_core_runs_tasks_in_the_calling_thread() -> None:
    allowed = os.sched_getaffinity(0)
    try:
        os.sched_setaffinity(0, [min(allowed)])
        assert available_cores() == 1
        names = InThreads().map(lambda _: threading.current_thread().name, [1, 2, 3])
    finally:
        os.sched_setaffinity(0, allowed)
    assert set(names) == {threading.current_thread().name}


def test_failed_task_discards_the_other_outcomes_and_raises() -> None:
    discarded: list[int] = []

    def fail_at_two(task: int) -> int:
        if task == 2:
            raise ValueError("task 2")
        return task

    with pytest.raises(ValueError, match="task 2"):
        run_all_or_discard(InThreads(2), fail_at_two, [1, 2, 3], discarded.append)
    assert discarded == [1, 3]


def test_map_ordered_returns_results_in_order() -> None:
    started: list[int] = []
    lock = threading.Lock()

    def work(item: int) -> int:
        with lock:
            started.append(item)
        time.sleep(0.001 * (5 - item % 5))
        return item

    assert list(map_ordered(work, range(20), workers=4, ahead=6)) == list(range(20))


def test_map_ordered_closed_early_stops_reading_items() -> None:
    asked: list[int] = []

    def items() -> Iterator[int]:
        for item in range(1000):
            asked.append(item)
            yield item

    results = map_ordered(lambda item: item, items(), workers=2, ahead=3)
    assert next(results) == 0
    results.close()  # a generator
    assert len(asked) < 10
