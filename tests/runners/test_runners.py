"""Runners: the order of outcomes, the number of threads, progress, failing tasks and interrupts."""

import os
import threading
import time
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor

import pytest

from lance_ops.core.threads import available_cores
from lance_ops.runners import InThreads, Job, JobProgress


def times_ten(task: int) -> int:
    return task * 10


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


@pytest.mark.parametrize("workers", [1, 2])
def test_a_failed_task_discards_the_other_outcomes_and_raises(workers: int) -> None:
    discarded: list[int] = []
    ran: list[int] = []

    def fail_at_two(task: int) -> int:
        ran.append(task)
        if task == 2:
            raise ValueError("task 2")
        time.sleep(0.001)  # all tasks take seconds, and the second one fails
        return task

    with pytest.raises(ValueError, match="task 2"):
        InThreads(workers).map(fail_at_two, range(1, 10_000), discard=discarded.append)
    assert discarded == [task for task in sorted(ran) if task != 2]
    assert len(ran) < 9_999  # the tasks that had not begun were dropped


def test_of_several_errors_that_of_the_first_task_is_raised() -> None:
    together = threading.Barrier(3)

    def fail(task: int) -> int:
        together.wait(timeout=60)
        raise ValueError(f"task {task}")

    with pytest.raises(ValueError, match="task 0"):
        InThreads(3).map(fail, range(3))


def test_an_error_is_raised_only_when_no_task_runs_any_more() -> None:
    both_run = threading.Barrier(2)
    ended: list[int] = []

    def fail_first(task: int) -> int:
        both_run.wait(timeout=60)
        if task == 0:
            raise ValueError("task 0")
        time.sleep(0.05)
        ended.append(task)
        return task

    with pytest.raises(ValueError, match="task 0"):
        InThreads(2).map(fail_first, [0, 1])
    assert ended == [1]


@pytest.mark.parametrize("workers", [1, 2])
def test_an_interrupt_drops_the_tasks_that_have_not_begun_and_discards_the_others(workers: int) -> None:
    discarded: list[int] = []
    ran: list[int] = []

    def run(task: int) -> int:
        ran.append(task)
        time.sleep(0.001)  # all tasks take seconds, and the interrupt comes after three
        return task

    def interrupt(progress: JobProgress) -> None:
        if progress.num_done == 3:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        InThreads(workers, interrupt).map(run, range(10_000), discard=discarded.append)
    assert discarded == sorted(ran) and 3 <= len(ran) < 10_000


def test_an_interrupt_while_tasks_are_handed_over_discards_those_that_ran(monkeypatch: pytest.MonkeyPatch) -> None:
    discarded: list[int] = []
    ran = threading.Event()
    submit = ThreadPoolExecutor.submit

    def interrupted_submit(pool: ThreadPoolExecutor, function: Callable[[int], int], index: int) -> Future[int]:
        if index == 1:
            assert ran.wait(timeout=60)
            raise KeyboardInterrupt
        return submit(pool, function, index)

    def run(task: int) -> int:
        ran.set()
        return task

    monkeypatch.setattr(ThreadPoolExecutor, "submit", interrupted_submit)
    with pytest.raises(KeyboardInterrupt):
        InThreads(2).map(run, [10, 20, 30], discard=discarded.append)
    assert discarded == [10]


@pytest.mark.parametrize("workers", [1, 2])
def test_progress_counts_every_task_and_says_for_what_it_runs(workers: int) -> None:
    seen: list[JobProgress] = []
    job = Job.on("compact", "s3://lake/flights.lance/", 41)
    assert InThreads(workers, seen.append).map(times_ten, [1, 2, 3], job) == [10, 20, 30]
    assert [(each.num_done, each.num_tasks) for each in seen] == [(1, 3), (2, 3), (3, 3)]
    assert {str(each.job) for each in seen} == {"compact flights v41"}
    assert seen[-1].seconds_left == 0


@pytest.mark.parametrize("workers", [1, 2])
def test_progress_weighs_the_tasks_of_a_job_with_weights(workers: int) -> None:
    seen: list[JobProgress] = []
    job = Job.on("compact", "s3://lake/flights.lance/", weights=(100, 20, 3), unit="bytes")
    assert InThreads(workers, seen.append).map(times_ten, [1, 2, 3], job) == [10, 20, 30]
    weights = [each.done_weight or 0 for each in seen]
    assert weights == sorted(weights) and weights[-1] == seen[-1].weight == 123
    if workers == 1:
        assert weights == [100, 120, 123]


def test_the_time_left_is_that_of_tasks_like_those_before() -> None:
    assert JobProgress(None, 0, 8, 3.0).seconds_left is None
    assert JobProgress(None, 2, 8, 3.0).seconds_left == 9.0


def test_the_time_left_follows_the_weights_where_there_are_some() -> None:
    job = Job.on("compact", "s3://lake/flights.lance/", weights=(900, 50, 50), unit="bytes")
    progress = JobProgress(job, 1, 3, 9.0, 900)
    assert (progress.rate, progress.seconds_left) == (100.0, 1.0)
    assert JobProgress(job, 3, 3, 10.0, 1000).seconds_left == 0


def test_tasks_whose_files_state_no_sizes_are_equal() -> None:
    job = Job.on("add columns to", "memory://t.lance", 3)
    assert job.in_bytes([0, 0]) == job
    assert (job.in_bytes([0, 2]).weights, job.in_bytes([0, 2]).unit) == ((0, 2), "bytes")


def test_a_job_on_a_new_dataset_has_no_version() -> None:
    assert str(Job.on("ingest into", "memory://flights")) == "ingest into flights"
