"""Run tasks in threads of this process."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from concurrent.futures import Future, as_completed
from dataclasses import field
from typing import TypeVar

from lance_ops.core.records import dataclass
from lance_ops.core.threads import ThreadPool, available_cores
from lance_ops.runners.job import Job, JobProgress, ReportProgress

__all__ = ["InThreads"]

T = TypeVar("T")
R = TypeVar("R")


@dataclass(frozen=True)
class InThreads:
    """Runs tasks in a thread pool of this process; `max_workers` defaults to `available_cores`.

    `on_progress` is called after each task, in the thread that called `map`.
    """

    max_workers: int | None = None
    on_progress: ReportProgress | None = field(default=None, repr=False)

    def map(
        self,
        function: Callable[[T], R],
        tasks: Sequence[T],
        job: Job | None = None,
        discard: Callable[[R], None] | None = None,
    ) -> list[R]:
        """Call `function` with each task, at most `max_workers` at a time; see `Runner.map`."""
        report = self._reporter(job, len(tasks))
        workers = min(self.max_workers or available_cores(), len(tasks))
        finished: dict[int, R] = {}
        try:
            if workers <= 1:
                for index, task in enumerate(tasks):
                    finished[index] = function(task)
                    report(index)
            else:
                _run_in_pool(function, tasks, workers, finished, report)
        except BaseException:
            for index in sorted(finished):
                if discard is not None:
                    discard(finished[index])
            raise
        return [finished[index] for index in range(len(tasks))]

    def _reporter(self, job: Job | None, num_tasks: int) -> Callable[[int], None]:
        """Return what is told the index of each task that is done."""
        on_progress, begin = self.on_progress, time.monotonic()
        if on_progress is None:
            return lambda index: None
        weights = job.weights if job is not None else ()
        num_done = done_weight = 0

        def report(index: int) -> None:
            nonlocal num_done, done_weight
            num_done += 1
            done_weight += weights[index] if weights else 0
            seconds = time.monotonic() - begin
            on_progress(JobProgress(job, num_done, num_tasks, seconds, done_weight if weights else None))

        return report


def _run_in_pool(
    function: Callable[[T], R],
    tasks: Sequence[T],
    workers: int,
    finished: dict[int, R],
    report: Callable[[int], None],
) -> None:
    """Put each task's outcome into `finished` under the task's index; raise the first error in the tasks' order.

    The thread that runs a task puts its outcome there, so none is lost when this thread is interrupted, wherever it is.
    """

    def run(index: int) -> int:
        finished[index] = function(tasks[index])
        return index

    futures: list[Future[int]] = []
    with ThreadPool(workers, thread_name_prefix="lance-ops") as pool:
        try:
            futures += [pool.submit(run, index) for index in range(len(tasks))]
            for future in as_completed(futures):
                if future.exception() is not None:
                    break
                report(future.result())
        finally:
            pool.shutdown(cancel_futures=True)  # which waits for the tasks that run
    for future in futures:
        if not future.cancelled():
            future.result()
