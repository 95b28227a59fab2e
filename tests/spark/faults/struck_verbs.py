"""Strike a task of each verb that works by tasks, or let the driver die around its commit."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import replace
from pathlib import Path
from typing import Any, Generic, TypeVar
from unittest.mock import patch

import pyarrow as pa
from pyspark import TaskContext
from pyspark.sql import DataFrame

import lance_ops
from lance_ops.committers import CommitOutcome
from lance_ops.committers.put_if_absent import PutIfAbsentCommitter
from lance_ops.core.errors import DatasetNotFound
from lance_ops.core.records import dataclass
from lance_ops.runners import Job, JobProgress, ReportProgress
from lance_ops.spark import OnSpark, frame_write
from lance_ops.spark.running import map_rows
from lance_ops.spark.sql_access.row_changes import changed_rows
from tests.spark.faults.verbs import FRAGMENTS, ROWS, TABLE, VERBS, Verb

__all__ = ["ALL_FAULTS_OF_VERBS", "DEATHS", "FAULTS_OF_VERBS", "VERBS", "die_around_commit", "strike_verb"]

T = TypeVar("T")
R = TypeVar("R")

Fault = Callable[[Callable[[Any], Any], Any], Any]

_FEW = ("merge", "compaction", "index", "column")
_PASSING = ("the store throttles at first", "a task runs twice")
FAULTS_OF_VERBS = [
    *((verb, fault) for verb in _FEW for fault in (*_PASSING, "the job is cancelled")),
    ("compaction", "an executor is killed"),
    ("deep clone", "a task runs twice"),
    ("deep clone", "the job is cancelled"),
    ("clean-up", "a task runs twice"),
    ("verification", "the store throttles at first"),
    ("duplicates", "the job is cancelled"),
    ("index extension", "a task runs twice"),
    ("index remap", "the job is cancelled"),
    ("UPDATE", "the job is cancelled"),
    ("DELETE", "the store throttles at first"),
    ("MERGE", "a disk stays full"),
    ("stage of a merge", "the job is cancelled"),
]
_WITHOUT_FILES = (  # tasks of these write none
    *("deletion", "deletion by keys", "zone map"),
    *("clean-up", "verification", "duplicates", "DELETE", "search for an erasure"),
)
ALL_FAULTS_OF_VERBS = [
    *(
        (verb, fault)
        for verb in VERBS
        for fault in (*_PASSING, "the job is cancelled", "an executor is killed", "the store goes on throttling")
    ),
    *(
        (verb, fault)
        for verb in VERBS
        for fault in ("a disk is full at first", "a disk stays full")
        if verb not in _WITHOUT_FILES
    ),
]
"""Each takes seconds, so they are for the tests that take minutes."""

DEATHS = [(verb, moment) for verb in ("merge", "compaction") for moment in ("before", "after")]
"""A verb, and when the driver dies, seen from the commit."""


@dataclass(frozen=True)
class _StruckTask(Generic[T, R]):
    """A task function that a fault strikes at the first task, at its first attempt or at each one."""

    function: Callable[[T], R]
    strike: Fault
    marks: str
    stays: bool

    def __call__(self, numbered: tuple[int, T]) -> R:
        number, task = numbered
        if number or (os.listdir(self.marks) and not self.stays):
            return self.function(task)
        Path(self.marks, "begun").touch()
        outcome: R = self.strike(self._run, task)
        return outcome

    def _run(self, task: T) -> R:
        outcome = self.function(task)
        Path(self.marks, "done").touch()
        return outcome


@dataclass(frozen=True)
class _StruckRows(Generic[R]):
    """The same for a function of the rows of a partition, which may be read once alone."""

    struck: _StruckTask[list[pa.RecordBatch], R]

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> R:
        context = TaskContext.get()
        assert context is not None
        return self.struck((context.partitionId(), list(batches)))


@dataclass(frozen=True)
class _OfBatches(Generic[R]):
    """Passes a list of batches on as the iterator that a function takes."""

    function: Callable[[Iterator[pa.RecordBatch]], R]

    def __call__(self, batches: list[pa.RecordBatch]) -> R:
        return self.function(iter(batches))


@dataclass(frozen=True)
class _Strike:
    """A fault in the jobs of a verb that begin with a text."""

    job: str
    fault: Fault
    marks: str
    stays: bool

    def on(self, job: Job | None) -> bool:
        """Return whether it strikes this job."""
        return job is not None and str(job).startswith(self.job)

    def task(self, function: Callable[[T], R]) -> _StruckTask[T, R]:
        """Return the struck function of a task."""
        return _StruckTask(function, self.fault, self.marks, self.stays)

    @contextmanager
    def in_row_jobs(self) -> Iterator[None]:
        """Strike the jobs that begin with the rows of a DataFrame, too, which no runner maps."""

        def struck(
            frame: DataFrame,
            function: Callable[[Iterator[pa.RecordBatch]], R],
            job: Job,
            discard: Callable[[R], None] | None = None,
            on_progress: ReportProgress | None = None,
        ) -> list[R]:
            used = _StruckRows(self.task(_OfBatches(function))) if self.on(job) else function
            return map_rows(frame, used, job, discard, on_progress)

        with ExitStack() as stack:
            for module in (frame_write, changed_rows):
                stack.enter_context(patch.object(module, "map_rows", struck))
            yield


@dataclass(frozen=True)
class _Striking(OnSpark):
    """`OnSpark` with a fault in one of its jobs."""

    strike: _Strike | None = None

    def map(
        self,
        function: Callable[[T], R],
        tasks: Sequence[T],
        job: Job | None = None,
        discard: Callable[[R], None] | None = None,
    ) -> list[R]:
        if self.strike is None or not self.strike.on(job):
            return super().map(function, tasks, job, discard)
        return super().map(self.strike.task(function), list(enumerate(tasks)), job, discard)


def strike_verb(runner: OnSpark, name: str, fault: Fault, folder: Path, *, stays: bool) -> dict[str, Any]:
    """Run a verb under a fault, and say what came of it; it is cancelled when the struck task has done its work."""
    verb, marks = VERBS[name], folder / "marks"
    marks.mkdir(parents=True)
    dataset = _table(verb, folder)
    begin = _Seen.of(dataset)

    def cancel_if_it_runs_on(progress: JobProgress) -> None:
        if fault.__name__ == "run_on" and (marks / "done").exists():
            raise KeyboardInterrupt

    strike = _Strike(verb.job, fault, str(marks), stays)
    striking = _Striking(runner.session, on_progress=cancel_if_it_runs_on, least_bytes=0, strike=strike)
    try:
        with strike.in_row_jobs():
            verb.run(dataset, striking)
        error = None
    except (Exception, KeyboardInterrupt) as raised:  # noqa: BLE001 - it is what the test compares
        error = f"{type(raised).__name__}: {raised}"
    return {"error": error, "struck": (marks / "begun").exists(), **_look(folder, verb, begin)}


class _DriverIsDeadError(BaseException):
    """Ends a verb in the process that goes on after the driver's death."""


@dataclass(frozen=True)
class _DyingAroundCommit(OnSpark):
    """`OnSpark` whose driver dies when the tasks of a job are done.

    A child process goes on with the verb. It dies at once, or when it has committed this version. `look` is called
    then, before the verb ends in this process and tidies up.
    """

    job: str = ""
    version: int | None = None
    look: Callable[[], None] = lambda: None

    def map(
        self,
        function: Callable[[T], R],
        tasks: Sequence[T],
        job: Job | None = None,
        discard: Callable[[R], None] | None = None,
    ) -> list[R]:
        outcomes = super().map(function, tasks, job, discard)
        if not str(job).startswith(self.job):
            return outcomes
        child = os.fork()
        if child:
            os.waitpid(child, 0)
            self.look()
            raise _DriverIsDeadError
        if self.version is None:
            os.kill(os.getpid(), signal.SIGKILL)
        commit = PutIfAbsentCommitter.commit

        def commit_and_die(committer: PutIfAbsentCommitter, version: int, *args: Any, **named: Any) -> CommitOutcome:
            outcome = commit(committer, version, *args, **named)
            if version == self.version:
                os.kill(os.getpid(), signal.SIGKILL)
            return outcome

        PutIfAbsentCommitter.commit = commit_and_die  # type: ignore[method-assign, assignment]  # this process ends
        return outcomes


def die_around_commit(runner: OnSpark, name: str, moment: str, folder: Path) -> dict[str, Any]:
    """Let the driver of a verb die before or after its commit; say what it left."""
    verb = VERBS[name]
    folder.mkdir(parents=True)
    dataset = _table(verb, folder)
    begin, found = _Seen.of(dataset), dict[str, Any]()
    dying = _DyingAroundCommit(
        runner.session,
        least_bytes=0,
        job=verb.job,
        version=verb.version if moment == "after" else None,
        look=lambda: found.update(_look(folder, verb, begin)),
    )
    with suppress(_DriverIsDeadError):
        verb.run(dataset, dying)
    return found


def _table(verb: Verb, folder: Path) -> lance_ops.LanceDataset:
    """Make the table of a verb, and bring it to where the verb begins."""
    columns = {
        name: pa.array(values, pa.bool_() if name == "current" else pa.int64()) for name, values in verb.before.items()
    }
    dataset = lance_ops.write_dataset(pa.table(columns), str(folder / TABLE), max_rows_per_file=ROWS // FRAGMENTS)
    verb.prepare(dataset)
    return lance_ops.dataset(dataset.uri)


@dataclass(frozen=True)
class _Seen:
    """What a table holds."""

    version: int
    rows: dict[str, list[Any]]
    num_fragments: int
    num_indices: int

    @classmethod
    def of(cls, dataset: lance_ops.LanceDataset) -> _Seen:
        rows = dataset.to_table()
        order = [(name, "ascending") for name in ("x", "valid_from") if name in rows.column_names]
        num_fragments, num_indices = len(dataset.get_fragments()), len(dataset.list_indices())
        return cls(dataset.version, rows.sort_by(order).to_pydict(), num_fragments, num_indices)


def _look(folder: Path, verb: Verb, begin: _Seen) -> dict[str, Any]:
    """Say what the table holds, and which files stay that no version names, before and after a clean-up."""
    try:
        dataset = lance_ops.dataset(str(folder / verb.looks_at))
    except DatasetNotFound:  # of what the verb would have made
        stayed = sum(path.is_file() for path in (folder / verb.looks_at).glob("**/*"))
        return {
            "version": None,
            "before": not stayed,
            "after": False,
            "left over": stayed,
            "removed": 0,
            "stayed": stayed,
        }
    seen = _Seen.of(dataset)
    after = _Seen(
        verb.version, {key: [*values] for key, values in verb.after.items()}, verb.num_fragments, verb.num_indices
    )
    left_over = _unnamed(dataset)
    removed = dataset.cleanup_old_versions(retain_versions=99, delete_unverified=True)
    return {
        "version": seen.version,
        "before": seen == replace(begin, version=begin.version + verb.reserves_first),
        "after": seen == after,
        "seen": str(seen),
        "left over": left_over,
        "removed": removed.data_files_removed + removed.deletion_files_removed + removed.index_files_removed,
        "stayed": _unnamed(dataset),
    }


def _unnamed(dataset: lance_ops.LanceDataset) -> int:
    """Return how many files of data, deletions and indices no version names."""
    root, folders = Path(dataset.uri), ("data", "_deletions", "_indices")
    stored = {str(path.relative_to(root)) for name in folders for path in root.glob(f"{name}/**/*.*")}
    return len(stored - set(dataset.tracked_files().read_all()["path"].to_pylist()))
