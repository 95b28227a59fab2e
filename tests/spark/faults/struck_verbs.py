"""Strike a task of verbs that change a table: a merge, a compaction, the build of an index, a computed column."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Generic, TypeVar

import pyarrow as pa

import lance_ops
from lance_ops.core.records import dataclass
from lance_ops.maintenance.indexing import TaskSizes, create_scalar_index
from lance_ops.runners import Job, JobProgress
from lance_ops.spark import OnSpark

__all__ = ["FAULTS_OF_VERBS", "VERBS", "strike_verb"]

T = TypeVar("T")
R = TypeVar("R")

Fault = Callable[[Callable[[Any], Any], Any], Any]

FRAGMENTS, ROWS = 8, 40
_SMALL = TaskSizes(least_bytes=1, task_bytes=200)


@dataclass(frozen=True)
class Verb:
    """A verb on a table of `x` and `y`, 0 to 39; the fault strikes the first task of the job that begins with `job`."""

    job: str
    run: Callable[[lance_ops.LanceDataset, OnSpark], object]
    after: Mapping[str, Sequence[int]]
    num_fragments: int = FRAGMENTS
    num_indices: int = 0
    version: int = 2


def _merge(dataset: lance_ops.LanceDataset, runner: OnSpark) -> None:
    changes = runner.session.range(38, 44).selectExpr("id AS x", "-id AS y")
    dataset.merge_insert("x").when_matched_update_all().when_not_matched_insert_all().execute(changes, runner=runner)


_NUMBERS = range(ROWS)
VERBS = {
    "merge": Verb(
        "merge (rows)",
        _merge,
        {"x": range(44), "y": [*range(38), *range(-38, -44, -1)]},
        num_fragments=FRAGMENTS + 1,
    ),
    "compaction": Verb(
        "compact",
        lambda dataset, runner: dataset.optimize.compact_files(target_rows_per_fragment=10, runner=runner),
        {"x": _NUMBERS, "y": _NUMBERS},
        num_fragments=FRAGMENTS // 2,
        version=3,  # ids of fragments are reserved first
    ),
    "index": Verb(
        "index",
        lambda dataset, runner: create_scalar_index(dataset.snapshot, "x", "BTREE", runner=runner, sizes=_SMALL),
        {"x": _NUMBERS, "y": _NUMBERS},
        num_indices=1,
    ),
    "column": Verb(
        "add columns",
        lambda dataset, runner: dataset.add_columns({"z": "x * 2"}, runner=runner),
        {"x": _NUMBERS, "y": _NUMBERS, "z": range(0, 2 * ROWS, 2)},
    ),
}

FAULTS_OF_VERBS = [
    *((verb, fault) for verb in VERBS for fault in ("the store throttles at first", "a task runs twice")),
    *((verb, "the job is cancelled") for verb in VERBS),
    ("compaction", "an executor is killed"),
]


@dataclass(frozen=True)
class _StruckTask(Generic[T, R]):
    """A task function that a fault strikes at the first task, at its first attempt."""

    function: Callable[[T], R]
    strike: Fault
    marks: str

    def __call__(self, numbered: tuple[int, T]) -> R:
        number, task = numbered
        if number or os.listdir(self.marks):
            return self.function(task)
        Path(self.marks, "begun").touch()
        outcome: R = self.strike(self._run, task)
        return outcome

    def _run(self, task: T) -> R:
        outcome = self.function(task)
        Path(self.marks, "done").touch()
        return outcome


@dataclass(frozen=True)
class _Striking(OnSpark):
    """`OnSpark` with a fault in one of its jobs."""

    struck_job: str = ""
    strike: Fault | None = None
    marks: str = ""

    def map(
        self,
        function: Callable[[T], R],
        tasks: Sequence[T],
        job: Job | None = None,
        discard: Callable[[R], None] | None = None,
    ) -> list[R]:
        if job is None or self.strike is None or not str(job).startswith(self.struck_job):
            return super().map(function, tasks, job, discard)
        struck = _StruckTask(function, self.strike, self.marks)
        return super().map(struck, list(enumerate(tasks)), job, discard)


def strike_verb(runner: OnSpark, name: str, strike: Fault, folder: Path) -> dict[str, Any]:
    """Run a verb under a fault, and say what came of it; it is cancelled when the struck task has done its work."""
    verb, marks = VERBS[name], folder / "marks"
    marks.mkdir(parents=True)
    uri = str(folder / "t.lance")
    table = pa.table({name: pa.array(_NUMBERS, pa.int64()) for name in ("x", "y")})
    dataset = lance_ops.write_dataset(table, uri, max_rows_per_file=ROWS // FRAGMENTS)

    def cancel_if_it_runs_on(progress: JobProgress) -> None:
        if strike.__name__ == "run_on" and (marks / "done").exists():
            raise KeyboardInterrupt

    striking = _Striking(
        runner.session,
        on_progress=cancel_if_it_runs_on,
        least_bytes=0,
        struck_job=verb.job,
        strike=strike,
        marks=str(marks),
    )
    try:
        verb.run(dataset, striking)
        error = None
    except (Exception, KeyboardInterrupt) as raised:  # noqa: BLE001 - it is what the test compares
        error = f"{type(raised).__name__}: {raised}"
    return {"error": error, "struck": (marks / "begun").exists(), **_look(uri, verb)}


def _look(uri: str, verb: Verb) -> dict[str, Any]:
    """Say what the table holds, and which files stay that no version names, before and after a clean-up."""
    dataset = lance_ops.dataset(uri)
    held = dataset.to_table().sort_by("x").to_pydict()
    shape = (len(dataset.get_fragments()), len(dataset.list_indices()))
    before = held == {"x": [*_NUMBERS], "y": [*_NUMBERS]} and shape == (FRAGMENTS, 0)
    after = held == {key: [*values] for key, values in verb.after.items()}
    after = after and shape == (verb.num_fragments, verb.num_indices)
    left_over = _unnamed(dataset)
    dataset.cleanup_old_versions(retain_versions=99, delete_unverified=True)
    return {
        "version": dataset.version,
        "state": "before" if before else "after" if after else f"{shape}: {held}",
        "left over": left_over,
        "stayed": _unnamed(dataset),
    }


def _unnamed(dataset: lance_ops.LanceDataset) -> int:
    """Return how many files of data and indices no version names."""
    root = Path(dataset.uri)
    stored = {str(path.relative_to(root)) for name in ("data", "_indices") for path in root.glob(f"{name}/**/*.*")}
    return len(stored - set(dataset.tracked_files().read_all()["path"].to_pylist()))
