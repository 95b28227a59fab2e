"""Rewrite the data files of a table in another file version, and make it the version of the table's new files."""

from __future__ import annotations

from collections.abc import Iterable
from functools import partial

from lance_ops.core.errors import UnsupportedFeature
from lance_ops.core.records import dataclass
from lance_ops.core.versions import FileVersion
from lance_ops.maintenance.compaction.compaction_plan import RewriteTask, SourceSize
from lance_ops.maintenance.compaction.index_remap import needs_remap
from lance_ops.maintenance.compaction.rewriting import (
    CompactionMetrics,
    RewriteOutcome,
    commit_rewrites,
    discard_rewrite,
    execute_rewrite,
)
from lance_ops.refs import pinned_if_at_risk
from lance_ops.runners import InThreads, Job, Runner
from lance_ops.snapshot import Snapshot, SnapshotReference, check_rows_are_stored
from lance_ops.store import Store
from lance_ops.transactions import Rewrite, remove_files_of_job
from lance_ops.writing import CONFLICT_RETRIES, MAX_BYTES_PER_FILE, commit_operation, retry_conflicts, share_fragments

__all__ = ["MigrationPlan", "MigrationTask", "execute_migration", "migrate_files", "plan_migration"]


@dataclass(frozen=True)
class MigrationTask:
    """Fragments of one version to rewrite, each as one fragment; `size_bytes` in their files weigh the task."""

    snapshot: SnapshotReference
    fragment_ids: tuple[int, ...]
    file_version: FileVersion
    size_bytes: int


@dataclass(frozen=True)
class MigrationPlan:
    """The tasks for all fragments of `read_version` that have files of another version than `file_version`."""

    uri: str
    read_version: int
    file_version: FileVersion
    tasks: tuple[MigrationTask, ...]

    @property
    def job(self) -> Job:
        """What the tasks do together, each weighed by the bytes that it reads."""
        weights = tuple(task.size_bytes for task in self.tasks)
        return Job.on(f"migrate to {self.file_version.value},", self.uri, self.read_version, weights, unit="bytes")


def plan_migration(snapshot: Snapshot, file_version: FileVersion) -> MigrationPlan:
    """Plan the rewrite of each fragment with a file of another version; each becomes one fragment again.

    A task writes whole fragments, one if there are not very many: the rows of one fragment go to one file.

    Raises `UnsupportedFeature` for version 0.1, whose files no table mixes with others, and as `plan_compaction` does.
    """
    if FileVersion.V0_1 in (file_version, snapshot.file_version):
        raise UnsupportedFeature("migrating files of version 0.1 (copy the table with write_dataset)", snapshot.uri)
    old = [
        fragment
        for fragment in snapshot.fragments
        if any(file.numbers != file_version.data_file for file in fragment.files)
    ]
    moving = [fragment.id for fragment in old]
    for index in snapshot.manifest.indices:
        if not index.is_system and index.covers(moving):
            needs_remap(snapshot, index)
    check_rows_are_stored(snapshot, sum(fragment.physical_rows for fragment in old), old)
    reference = SnapshotReference.of(snapshot)
    tasks = tuple(
        MigrationTask(
            reference,
            fragment_ids,
            file_version,
            SourceSize.of(snapshot, [snapshot.fragments_by_id[each] for each in fragment_ids]).size_bytes,
        )
        for fragment_ids in share_fragments(old)
    )
    return MigrationPlan(snapshot.uri, snapshot.version, file_version, tasks)


def execute_migration(task: MigrationTask) -> tuple[RewriteOutcome, ...]:
    """Rewrite the task's fragments one after the other; on an error the new files of all are deleted."""
    snapshot = task.snapshot.open()
    outcomes: list[RewriteOutcome] = []
    try:
        for fragment in (snapshot.fragments_by_id[fragment_id] for fragment_id in task.fragment_ids):
            num_rows = max(fragment.physical_rows, 1)
            rewrite = RewriteTask(task.snapshot, (fragment.id,), num_rows, MAX_BYTES_PER_FILE, task.file_version)
            outcomes += [execute_rewrite(rewrite)]
    except BaseException:
        _discard(snapshot.store, outcomes)
        raise
    return tuple(outcomes)


def _discard(store: Store, outcomes: Iterable[RewriteOutcome]) -> None:
    for outcome in outcomes:
        discard_rewrite(store, outcome)


def migrate_files(
    snapshot: Snapshot,
    file_version: FileVersion,
    runner: Runner | None = None,
    *,
    conflict_retries: int = CONFLICT_RETRIES,
) -> tuple[Snapshot, CompactionMetrics]:
    """Rewrite what `plan_migration` finds, and commit once; nothing is committed if there is nothing to change.

    Fragments that others append meanwhile keep their version. After a conflict the plan is made again. Raises
    `TooManyConcurrentWriters` when every attempt met one, and as `plan_migration` does.
    """

    def attempt(current: Snapshot) -> tuple[Snapshot, CompactionMetrics]:
        plan = plan_migration(current, file_version)
        if not plan.tasks:
            if current.file_version is file_version:
                return current, CompactionMetrics()
            return commit_operation(current, Rewrite(()), file_version=file_version), CompactionMetrics()
        job = plan.job.with_removal(partial(remove_files_of_job, current.store))
        with pinned_if_at_risk(current, snapshot):
            outcomes = (runner or InThreads()).map(execute_migration, plan.tasks, job, partial(_discard, current.store))
            rewrites = [rewrite for of_task in outcomes for rewrite in of_task]
            return commit_rewrites(current, rewrites, runner=runner, file_version=file_version)

    return retry_conflicts(snapshot, attempt, conflict_retries)
