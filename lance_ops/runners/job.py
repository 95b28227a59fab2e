"""What the tasks of one call do together, and how far they are, for people who watch."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import field, replace
from typing import Literal

from lance_ops.core.records import dataclass

__all__ = ["Job", "JobProgress", "ReportProgress"]


@dataclass(frozen=True)
class Job:
    """What tasks do together; its text is such as "compact flights v41".

    `weights` has one number for each task: how much work it is, in `unit` ("bytes", "rows", or None for something that
    people do not count). Without it, tasks are equal. `size_bytes` is about how many bytes all tasks read together, if
    the plan knows; a runner of a cluster may run few here.

    A runner whose tasks may end without an outcome gives the job's data files a token (`file_names_of_job`). When the
    job has failed and no task runs any more, the runner calls `remove_files` with the token.
    """

    verb: str
    dataset: str
    version: int | None = None
    weights: tuple[int, ...] = ()
    remove_files: Callable[[str], None] | None = field(default=None, repr=False, compare=False)
    size_bytes: int | None = None
    unit: Literal["bytes", "rows"] | None = None

    @classmethod
    def on(
        cls,
        verb: str,
        uri: str,
        version: int | None = None,
        weights: tuple[int, ...] = (),
        remove_files: Callable[[str], None] | None = None,
        size_bytes: int | None = None,
        unit: Literal["bytes", "rows"] | None = None,
    ) -> Job:
        """Return a job on the dataset at a URI, which is named by the last part of its path."""
        name = uri.rstrip("/").rpartition("/")[2].removesuffix(".lance")
        return cls(verb, name, version, weights, remove_files, size_bytes, unit)

    def with_removal(self, remove_files: Callable[[str], None]) -> Job:
        """Return the job with a function that removes its files by their token."""
        return replace(self, remove_files=remove_files)

    def in_bytes(self, weights: Iterable[int]) -> Job:
        """Return the job with tasks weighed by bytes: of the files that hold their rows, or that they read.

        Old tables state no sizes; then the tasks are equal.
        """
        sizes = tuple(weights)
        return replace(self, weights=sizes, unit="bytes") if any(sizes) else self

    @property
    def known_bytes(self) -> int | None:
        """The job's `size_bytes`, or else its weights in bytes together, which may be more than tasks read."""
        if self.size_bytes is not None:
            return self.size_bytes
        return sum(self.weights) if self.unit == "bytes" else None

    def __str__(self) -> str:
        return f"{self.verb} {self.dataset}" + ("" if self.version is None else f" v{self.version}")


@dataclass(frozen=True)
class JobProgress:
    """How many of a job's tasks are done, `seconds` after the first began.

    `done_weight` is the weight of these tasks together, if the job has weights; see `Job.weights`.
    """

    job: Job | None
    num_done: int
    num_tasks: int
    seconds: float
    done_weight: int | None = None

    @property
    def weight(self) -> int:
        """The weight of all tasks together; 0 if the job has no weights."""
        return sum(self.job.weights) if self.job is not None else 0

    @property
    def rate(self) -> float | None:
        """The weight that is done in a second, in the job's unit; None without weights or before any time passed."""
        return self.done_weight / self.seconds if self.done_weight is not None and self.seconds else None

    @property
    def seconds_left(self) -> float | None:
        """The time that the rest takes if it goes on as before, by weight where there are weights.

        None before the first task is done.
        """
        if self.num_done == self.num_tasks:
            return 0.0
        done, total = (
            (self.done_weight, self.weight) if self.done_weight and self.weight else (self.num_done, self.num_tasks)
        )
        return self.seconds / done * (total - done) if done else None


ReportProgress = Callable[[JobProgress], None]
"""Is told how far a job is. It may be called more than once with the same number of tasks."""
