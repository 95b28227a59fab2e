"""A runner that sends tasks and outcomes through pickles, as a cluster does, and remembers how large they were."""

from __future__ import annotations

import os
import pickle
from collections.abc import Callable, Sequence
from contextlib import chdir, nullcontext
from dataclasses import dataclass, field
from typing import TypeVar

from lance_ops.runners import InThreads, Job

__all__ = ["PicklingRunner"]

T = TypeVar("T")
R = TypeVar("R")


@dataclass
class PicklingRunner:
    """Runs pickled tasks one after another; `jobs`, `task_bytes` and `outcome_bytes` record what went through it.

    With a `folder`, tasks run in it, as those of another process do.
    """

    jobs: list[tuple[str, int]] = field(default_factory=list)
    task_bytes: list[int] = field(default_factory=list)
    outcome_bytes: list[int] = field(default_factory=list)
    folder: str | os.PathLike[str] | None = None

    def map(
        self,
        function: Callable[[T], R],
        tasks: Sequence[T],
        job: Job | None = None,
        discard: Callable[[R], None] | None = None,
    ) -> list[R]:
        """Call `function` with each task; see `Runner.map`."""
        self.jobs.append(("" if job is None else job.verb, len(tasks)))
        sent = pickle.dumps(function)

        def run(task: bytes) -> bytes:
            with nullcontext() if self.folder is None else chdir(self.folder):
                return pickle.dumps(pickle.loads(sent)(pickle.loads(task)))

        pickled = [pickle.dumps(task) for task in tasks]
        self.task_bytes += map(len, pickled)
        outcomes = InThreads(1).map(
            run, pickled, job, None if discard is None else lambda one: discard(pickle.loads(one))
        )
        self.outcome_bytes += map(len, outcomes)
        return [pickle.loads(outcome) for outcome in outcomes]
