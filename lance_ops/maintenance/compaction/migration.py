"""Rewrite the data files of a table in another file version, and make it the version of the table's new files."""

from __future__ import annotations

from functools import partial

from lance_ops.core.errors import UnsupportedFeature
from lance_ops.core.records import dataclass
from lance_ops.core.versions import FileVersion
from lance_ops.maintenance.compaction.compaction_plan import RewriteTask, SourceSize
from lance_ops.maintenance.compaction.index_remap import needs_remap
from lance_ops.maintenance.compaction.rewriting import (
    CompactionMetrics,
    commit_rewrites,
    discard_rewrite,
    execute_rewrite,
)
from lance_ops.refs import pinned_if_at_risk
from lance_ops.runners import InThreads, Job, Runner
from lance_ops.snapshot import Snapshot, SnapshotReference, check_rows_are_stored
from lance_ops.transactions import Rewrite, remove_files_of_job
from lance_ops.writing import MAX_BYTES_PER_FILE, commit_operation, retry_conflicts

__all__ = ["MigrationPlan", "migrate_files", "plan_migration"]

_CONFLICT_RETRIES = 10


@dataclass(frozen=True)
class MigrationPlan:
    """The fragments of `read_version` that have files of another version than `file_version`, a task for each."""

    uri: str
    read_version: int
    file_version: FileVersion
    tasks: tuple[RewriteTask, ...]

    @property
    def job(self) -> Job:
        """What the tasks do together, each weighed by the bytes that it reads."""
        weights = tuple(task.size_bytes for task in self.tasks)
        return Job.on(f"migrate to {self.file_version.value},", self.uri, self.read_version, weights, unit="bytes")


def plan_migration(snapshot: Snapshot, file_version: FileVersion) -> MigrationPlan:
    """Plan one task for each fragment with a file of another version; each becomes one fragment again.

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
        RewriteTask(
            reference,
            (fragment.id,),
            max(fragment.physical_rows, 1),
            MAX_BYTES_PER_FILE,
            file_version,
            SourceSize.of(snapshot, [fragment]).size_bytes,
        )
        for fragment in old
    )
    return MigrationPlan(snapshot.uri, snapshot.version, file_version, tasks)


def migrate_files(
    snapshot: Snapshot,
    file_version: FileVersion,
    runner: Runner | None = None,
    *,
    conflict_retries: int = _CONFLICT_RETRIES,
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
            rewrites = (runner or InThreads()).map(
                execute_rewrite, plan.tasks, job, partial(discard_rewrite, current.store)
            )
            return commit_rewrites(current, rewrites, runner=runner, file_version=file_version)

    return retry_conflicts(snapshot, attempt, conflict_retries)
