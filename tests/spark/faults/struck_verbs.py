"""Strike a task of each verb that changes a table by tasks."""

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

__all__ = ["ALL_FAULTS_OF_VERBS", "FAULTS_OF_VERBS", "VERBS", "strike_verb"]

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


def _replace_values(dataset: lance_ops.LanceDataset, runner: OnSpark) -> None:
    rows = pa.array([1, 2, 7 << 32 | 4], pa.uint64())
    dataset.update_columns(pa.table({"_rowaddr": rows, "y": pa.array([-1, -2, -39], pa.int64())}), runner=runner)


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
    "deletion": Verb(
        "delete",
        lambda dataset, runner: dataset.delete("y % 2 = 1", runner=runner),
        {"x": range(0, ROWS, 2), "y": range(0, ROWS, 2)},
    ),
    "deletion by keys": Verb(
        "merge into",
        lambda dataset, runner: dataset.delete_by_keys(pa.table({"x": [*range(5, ROWS)]}), "x", runner=runner),
        {"x": range(5), "y": range(5)},
        num_fragments=1,
    ),
    "update": Verb(
        "update",
        lambda dataset, runner: dataset.update({"y": "-y"}, where="x >= 38", runner=runner),
        {"x": _NUMBERS, "y": [*range(38), -38, -39]},
        num_fragments=FRAGMENTS + 1,
    ),
    "values by row": Verb("replace values", _replace_values, {"x": _NUMBERS, "y": [0, -1, -2, *range(3, 39), -39]}),
    "zone map": Verb(
        "index",
        lambda dataset, runner: create_scalar_index(dataset.snapshot, "x", "ZONEMAP", runner=runner, sizes=_SMALL),
        {"x": _NUMBERS, "y": _NUMBERS},
        num_indices=1,
    ),
    "sort": Verb(
        "cluster, sort",
        lambda dataset, runner: dataset.optimize.compact_files(cluster_by=["y"], runner=runner),
        {"x": _NUMBERS, "y": _NUMBERS},
        num_fragments=1,
        version=3,
    ),
    "migration": Verb(
        "migrate",
        lambda dataset, runner: dataset.optimize.migrate_files("2.1", runner=runner),
        {"x": _NUMBERS, "y": _NUMBERS},
        version=3,
    ),
}

_FEW = ("merge", "compaction", "index", "column")
_PASSING = ("the store throttles at first", "a task runs twice")
FAULTS_OF_VERBS = [
    *((verb, fault) for verb in _FEW for fault in (*_PASSING, "the job is cancelled")),
    ("compaction", "an executor is killed"),
]
_WITHOUT_FILES = ("deletion", "deletion by keys", "zone map")  # tasks of these write none
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
class _Striking(OnSpark):
    """`OnSpark` with a fault in one of its jobs."""

    struck_job: str = ""
    strike: Fault | None = None
    marks: str = ""
    stays: bool = False

    def map(
        self,
        function: Callable[[T], R],
        tasks: Sequence[T],
        job: Job | None = None,
        discard: Callable[[R], None] | None = None,
    ) -> list[R]:
        if job is None or self.strike is None or not str(job).startswith(self.struck_job):
            return super().map(function, tasks, job, discard)
        struck = _StruckTask(function, self.strike, self.marks, self.stays)
        return super().map(struck, list(enumerate(tasks)), job, discard)


def strike_verb(runner: OnSpark, name: str, strike: Fault, folder: Path, *, stays: bool) -> dict[str, Any]:
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
        stays=stays,
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
    after = held == {key: [*values] for key, values in verb.after.items()}
    left_over = _unnamed(dataset)
    removed = dataset.cleanup_old_versions(retain_versions=99, delete_unverified=True)
    return {
        "version": dataset.version,
        "before": held == {"x": [*_NUMBERS], "y": [*_NUMBERS]} and shape == (FRAGMENTS, 0),
        "after": after and shape == (verb.num_fragments, verb.num_indices),
        "left over": left_over,
        "removed": removed.data_files_removed + removed.deletion_files_removed + removed.index_files_removed,
        "stayed": _unnamed(dataset),
    }


def _unnamed(dataset: lance_ops.LanceDataset) -> int:
    """Return how many files of data, deletions and indices no version names."""
    root, folders = Path(dataset.uri), ("data", "_deletions", "_indices")
    stored = {str(path.relative_to(root)) for name in folders for path in root.glob(f"{name}/**/*.*")}
    return len(stored - set(dataset.tracked_files().read_all()["path"].to_pylist()))
