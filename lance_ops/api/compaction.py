"""`Compaction`: plan, run and commit a compaction in steps, under the reference's names.

A scheduler plans once, sends each task to a worker as a pickle or as JSON, and commits the results together. Tasks and
results name only a version, so they hold no URI and no secret; `execute` and `commit` take the dataset.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, fields
from typing import Any, Literal, TypedDict, TypeVar, cast

from lance_ops.api.version_handle import Handle
from lance_ops.core.errors import InvalidInput, UnsupportedFeature, WrongType
from lance_ops.core.records import dataclass
from lance_ops.core.versions import FileVersion
from lance_ops.maintenance import compaction
from lance_ops.runners import InThreads, Runner
from lance_ops.snapshot import Snapshot, SnapshotReference
from lance_ops.table import Fragment

__all__ = [
    "Compaction",
    "CompactionOptions",
    "CompactionPlan",
    "CompactionTask",
    "RewriteResult",
    "checked_options",
    "compact",
]

T = TypeVar("T")


class CompactionOptions(TypedDict, total=False):
    """Options of a compaction.

    An option that is missing or None takes its value from the table's configuration key `lance.compaction.<option>`. If
    the table has no such key, the option takes its default.

    `max_rows_per_group`, `batch_size`, `io_buffer_size` and `binary_copy_read_batch_bytes` bound the reference's memory
    and have no effect here, where blocks are bounded by bytes.

    `max_commits`, `max_seconds` and `worst_first` are this library's own: several commits, of which a conflict loses
    one; a time after which no more work begins; the groups first that take away most fragments and deleted rows.
    `cluster_by` sorts the rows of all fragments by these columns, or along a Z curve through them (`cluster_order`).
    """

    target_rows_per_fragment: int | None
    max_rows_per_group: int | None
    max_bytes_per_file: int | None
    materialize_deletions: bool | None
    materialize_deletions_threshold: float | None
    num_threads: int | None
    batch_size: int | None
    io_buffer_size: int | None
    compaction_mode: Literal["reencode", "try_binary_copy", "force_binary_copy"] | None
    binary_copy_read_batch_bytes: int | None
    defer_index_remap: bool | None
    max_source_fragments: int | None
    max_source_rows: int | None
    max_source_bytes: int | None
    excluded_fragment_ids: list[int] | None
    data_storage_version: str | None
    max_commits: int | None
    max_seconds: float | None
    worst_first: bool | None
    cluster_by: Sequence[str] | None
    cluster_order: Literal["linear", "z_order"] | None


@dataclass(frozen=True)
class RewriteResult:
    """The outcome of a task: the fragments read, and those written, which no version names before the commit."""

    read_version: int
    original_fragments: tuple[Fragment, ...]
    new_fragments: tuple[Fragment, ...]

    @property
    def metrics(self) -> compaction.CompactionMetrics:
        """What the commit of this result alone would change."""
        return compaction.CompactionMetrics.of(self.original_fragments, self.new_fragments)

    def json(self) -> str:
        """Return the result as JSON text."""
        return json.dumps(
            {
                "metrics": asdict(self.metrics),
                "new_fragments": [fragment.to_json() for fragment in self.new_fragments],
                "read_version": self.read_version,
                "original_fragments": [fragment.to_json() for fragment in self.original_fragments],
            }
        )

    @staticmethod
    def from_json(json: str) -> RewriteResult:
        """Read the text of `json`, or of the reference's; raise `InvalidInput` for any other text."""
        return _parsed(json, "a result of a compaction's task", _result_of)


@dataclass(frozen=True)
class CompactionTask:
    """Neighbouring fragments of one version to rewrite together, and how."""

    read_version: int
    fragments: tuple[Fragment, ...]
    target_rows_per_fragment: int
    max_bytes_per_file: int
    data_storage_version: str

    def execute(self, dataset: Handle) -> RewriteResult:
        """Write the fragments' live rows as new fragments, on any machine; the files belong to the caller.

        Raises `InvalidInput` if the dataset's version has other fragments, and `VersionNotFound` if it was cleaned up.
        """
        snapshot = dataset.snapshot.at(self.read_version)
        _check_fragments(snapshot, self.fragments)
        outcome = compaction.execute_rewrite(
            compaction.RewriteTask(
                SnapshotReference.of(snapshot),
                tuple(fragment.id for fragment in self.fragments),
                self.target_rows_per_fragment,
                self.max_bytes_per_file,
                FileVersion.parse(self.data_storage_version),
            )
        )
        snapshot.store.make_durable(*(path for fragment in outcome.new_fragments for path in fragment.data_paths()))
        return RewriteResult(outcome.read_version, outcome.old_fragments, outcome.new_fragments)

    def json(self) -> str:
        """Return the task as JSON text."""
        return json.dumps(
            {
                "task": {"fragments": [fragment.to_json() for fragment in self.fragments]},
                "read_version": self.read_version,
                "options": {name: getattr(self, name) for name in _OPTIONS_OF_TASK},
            }
        )

    @staticmethod
    def from_json(json: str) -> CompactionTask:
        """Read the text of `json`; raise `InvalidInput` for any other text."""
        return _parsed(json, "a compaction's task", _task_of)


_OPTIONS_OF_TASK = ("target_rows_per_fragment", "max_bytes_per_file", "data_storage_version")


@dataclass(frozen=True)
class CompactionPlan:
    """What a compaction of `read_version` would rewrite."""

    read_version: int
    tasks: tuple[CompactionTask, ...]

    def num_tasks(self) -> int:
        """Return the number of tasks."""
        return len(self.tasks)

    def json(self) -> str:
        """Return the plan as JSON text."""
        return json.dumps(
            {"tasks": [json.loads(task.json()) for task in self.tasks], "read_version": self.read_version}
        )

    @staticmethod
    def from_json(json: str) -> CompactionPlan:
        """Read the text of `json`; raise `InvalidInput` for any other text."""
        return _parsed(json, "a compaction's plan", _plan_of)


class Compaction:
    """A compaction in steps, for a caller that runs the tasks itself, or at once by `execute`."""

    @staticmethod
    def plan(dataset: Handle, options: CompactionOptions) -> CompactionPlan:
        """Choose the fragments to rewrite; nothing is written."""
        snapshot = dataset.snapshot
        plan = compaction.plan_compaction(snapshot, checked_options(snapshot, options))
        tasks = (
            CompactionTask(
                plan.read_version,
                tuple(snapshot.fragments_by_id[key] for key in task.fragment_ids),
                task.target_rows_per_fragment,
                task.max_bytes_per_file,
                task.file_version.value,
            )
            for task in plan.tasks
        )
        return CompactionPlan(plan.read_version, tuple(tasks))

    @staticmethod
    def execute(dataset: Handle, options: CompactionOptions) -> compaction.CompactionMetrics:
        """Plan, rewrite and commit in this process, and move the handle; see `DatasetOptimizer.compact_files`."""
        snapshot, metrics = compact(dataset.snapshot, options)
        dataset._committed(snapshot)
        return metrics

    @staticmethod
    def commit(
        dataset: Handle, rewrites: Sequence[RewriteResult], options: CompactionOptions | None = None
    ) -> compaction.CompactionMetrics:
        """Commit the results of one plan's tasks, all or some, as one version, and move the handle to it.

        The indices of the newest version are remapped, and rows deleted since the plan stay deleted. If the commit
        fails, the results' files stay, as in the reference: clean-up removes them if no version names them. Raises
        `RetryableConflict` when another writer rewrote the fragments: plan again. Raises `InvalidInput` for results of
        several versions.
        """
        checked_options(dataset.snapshot, options or {})
        if not rewrites:
            return compaction.CompactionMetrics()
        versions = sorted({rewrite.read_version for rewrite in rewrites})
        if len(versions) > 1:
            raise InvalidInput(f"the results are of versions {versions}: commit those of each plan on their own")
        planned = dataset.snapshot.at(versions[0])
        outcomes = [_outcome_of(planned, rewrite) for rewrite in rewrites]
        snapshot, metrics = compaction.commit_rewrites(planned, outcomes, keep_files=True)
        dataset._committed(snapshot)
        return metrics


def compact(
    snapshot: Snapshot, options: Mapping[str, Any], runner: Runner | None = None
) -> tuple[Snapshot, compaction.CompactionMetrics]:
    """Compact at once, and return the newest version and what changed.

    `runner` executes the tasks, by default in `num_threads` threads. Raises as `checked_options` does.
    """
    checked = checked_options(snapshot, options)
    return compaction.compact_files(snapshot, checked, runner or InThreads(options.get("num_threads") or None))


def checked_options(snapshot: Snapshot, options: Mapping[str, Any]) -> compaction.CompactionOptions:
    """Check the caller's options, and return them completed from the table's configuration and the defaults.

    Raises `InvalidInput` for an unknown option or a value that cannot be used, and `WrongType` for a value of another
    type. Raises `UnsupportedFeature` for a value that only the reference has.
    """
    given = {name: value for name, value in options.items() if value is not None}
    for name, value in given.items():
        _check(name, value)
    mode = given.get("compaction_mode", "reencode")
    if mode not in _MODES:
        raise InvalidInput(f"compaction_mode {mode!r} is none of {', '.join(_MODES)}")
    if mode == "force_binary_copy":
        raise UnsupportedFeature("compaction_mode='force_binary_copy' (pages are always encoded again)", snapshot.uri)
    if "data_storage_version" in given:
        FileVersion.parse(given["data_storage_version"])
    known = {field.name for field in fields(compaction.CompactionOptions)}
    merged: dict[str, Any] = compaction.configured_options(snapshot.manifest.config) | {
        name: given[name] for name in known & given.keys()
    }
    if merged.get("materialize_deletions_threshold", 0.0) >= 1:  # no fragment has that many deleted rows
        merged |= {"materialize_deletions": False, "materialize_deletions_threshold": 1.0}
    merged["cluster_by"] = tuple(given.get("cluster_by", ()))
    merged["excluded_fragment_ids"] = tuple(given.get("excluded_fragment_ids", ()))
    return compaction.CompactionOptions(**cast(Any, merged))


_MODES = ("reencode", "try_binary_copy", "force_binary_copy")
_FLAGS = {"materialize_deletions", "defer_index_remap", "worst_first"}
_FRACTIONS = {"materialize_deletions_threshold", "max_seconds"}
_TEXTS = {"cluster_order", "compaction_mode", "data_storage_version"}
_LISTS = {"cluster_by", "excluded_fragment_ids"}


def _check(name: str, value: object) -> None:
    """Raise unless an option exists and its value has the right type."""
    if name not in CompactionOptions.__annotations__:
        raise InvalidInput(
            f"{name!r} is no option of a compaction: it has {', '.join(CompactionOptions.__annotations__)}"
        )
    if name in _FLAGS:
        fits = isinstance(value, bool)
    elif name in _TEXTS:
        fits = isinstance(value, str)
    elif name in _LISTS:
        fits = isinstance(value, Iterable) and not isinstance(value, str | bytes)
    else:
        fits = isinstance(value, float if name in _FRACTIONS else int) and not isinstance(value, bool)
        fits = fits or (name in _FRACTIONS and type(value) is int)
        if fits and cast(float, value) < 0:
            raise InvalidInput(f"{name} must not be negative, not {value!r}")
    if not fits:
        raise WrongType(f"{name}={value!r}: a {type(value).__name__} is not what this option takes")


def _check_fragments(snapshot: Snapshot, expected: Iterable[Fragment]) -> None:
    """Raise `InvalidInput` unless the version has these fragments, with the same files."""
    for fragment in expected:
        found = snapshot.fragments_by_id.get(fragment.id)
        if found is None or (found.files, found.deletion_file) != (fragment.files, fragment.deletion_file):
            raise InvalidInput(
                f"{snapshot.uri}: fragment {fragment.id} of version {snapshot.version} is another one, or missing: the "
                "task was planned on another dataset"
            )


def _outcome_of(planned: Snapshot, rewrite: RewriteResult) -> compaction.RewriteOutcome:
    """Return a result in the form of `lance_ops.maintenance`, with the rows that were deleted when it was made."""
    _check_fragments(planned, rewrite.original_fragments)
    deleted = tuple(planned.deletion_vector(fragment).serialize() for fragment in rewrite.original_fragments)
    return compaction.RewriteOutcome(planned.version, rewrite.original_fragments, deleted, rewrite.new_fragments)


def _parsed(text: str, what: str, make: Callable[[Any], T]) -> T:
    try:
        return make(json.loads(text))
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        raise InvalidInput(f"not {what} in JSON: {error!r}") from error


def _number(value: Any) -> int:
    """Return a version or a bound; raise `ValueError` for anything but a positive integer."""
    if type(value) is not int or value < 1:
        raise ValueError(f"{value!r} is no positive integer")
    return value


def _fragments_of(values: Iterable[Any]) -> tuple[Fragment, ...]:
    return tuple(Fragment.from_json(json.dumps(value)) for value in values)


def _result_of(values: Any) -> RewriteResult:
    return RewriteResult(
        _number(values["read_version"]),
        _fragments_of(values["original_fragments"]),
        _fragments_of(values["new_fragments"]),
    )


def _task_of(values: Any) -> CompactionTask:
    options = values["options"]
    return CompactionTask(
        _number(values["read_version"]),
        _fragments_of(values["task"]["fragments"]),
        _number(options["target_rows_per_fragment"]),
        _number(options["max_bytes_per_file"]),
        FileVersion.parse(options["data_storage_version"]).value,
    )


def _plan_of(values: Any) -> CompactionPlan:
    return CompactionPlan(_number(values["read_version"]), tuple(map(_task_of, values["tasks"])))
