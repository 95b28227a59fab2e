"""Classify retained versions by what a clean-up does with them, and collect what they name and what they ingested.

    classify_versions(snapshot, …) -> ClassifiedVersions     in the calling process, or by tasks
    ClassifyTask(range) -> ClassifiedVersions                the versions of a range

Tasks leave out the files of fragments that the newest version has unchanged: clean-up keeps these files anyway.
"""

from __future__ import annotations

from collections.abc import Container, Mapping
from collections.abc import Set as AbstractSet
from contextlib import suppress
from dataclasses import field, replace
from datetime import datetime
from typing import NamedTuple

from lance_ops.core.errors import VersionNotFound
from lance_ops.core.records import dataclass
from lance_ops.maintenance.batch_ledger import BatchEvent, batch_event
from lance_ops.maintenance.cleanup.cleanup_options import CleanupOptions
from lance_ops.maintenance.cleanup.named_files import NamedFiles
from lance_ops.maintenance.cleanup.shared_work import CleanupTasks, cut
from lance_ops.runners import Job
from lance_ops.snapshot import Snapshot, SnapshotReference
from lance_ops.transactions import CommittedVersion, read_version, versions_newest_first

__all__ = ["ClassifiedVersions", "ClassifyTask", "VersionRange", "classify_versions"]


@dataclass(frozen=True)
class ClassifiedVersions:
    """Versions, newest first, by what clean-up does with them, and what they name and recorded.

    `old` are removed. `old_but_held` would be, but for a tag or a pin. `recent` are all others.
    """

    old_files: NamedFiles
    kept_files: NamedFiles
    old: list[int] = field(default_factory=list)
    old_but_held: list[int] = field(default_factory=list)
    recent: list[int] = field(default_factory=list)
    batch_events: list[BatchEvent] = field(default_factory=list)

    @property
    def numbers(self) -> set[int]:
        """The versions that were read."""
        return {*self.old, *self.old_but_held, *self.recent}

    def extend(self, older: ClassifiedVersions) -> None:
        """Add versions that are all older."""
        self.old_files.update(older.old_files)
        self.kept_files.update(older.kept_files)
        self.old.extend(older.old)
        self.old_but_held.extend(older.old_but_held)
        self.recent.extend(older.recent)
        self.batch_events.extend(older.batch_events)


class VersionRange(NamedTuple):
    """The retained versions from `oldest` to `newest`; `rank` retained versions are newer than all of them.

    `written` has when the manifest of each was written, by the store's clock.
    """

    oldest: int
    newest: int
    rank: int
    written: Mapping[int, datetime]


@dataclass(frozen=True)
class ClassifyTask:
    """Classifies versions up to the snapshot's; one that a branch began with (`branch_starts`) counts as recent.

    With `is_brief` it leaves out files of fragments that the snapshot has unchanged.
    """

    snapshot: SnapshotReference
    options: CleanupOptions
    now: datetime
    held: Container[int]
    branch_starts: frozenset[int]
    is_brief: bool = False

    def __call__(self, part: VersionRange) -> ClassifiedVersions:
        """Read the manifests and transactions of a range, a few at a time: they can be large."""
        snapshot = self.snapshot.open()
        found = ClassifiedVersions(NamedFiles(snapshot.uri), NamedFiles(snapshot.uri))
        if self.is_brief:
            found.old_files.leave_out(snapshot.manifest)
            found.kept_files.leave_out(snapshot.manifest)
        after = _version_after(snapshot, part.newest)
        past_versions = versions_newest_first(
            snapshot.store, snapshot.committer, down_to=part.oldest, up_to=part.newest, to_the_end=True
        )
        for rank, committed in enumerate(past_versions, part.rank):
            event = batch_event(snapshot, committed, after)
            if event is not None:
                found.batch_events.append(event)
            after, past = committed, committed.manifest
            written = part.written.get(past.version)
            is_old = self.options.may_remove(past.version, rank, written, self.now)
            if past.version in self.branch_starts or not is_old:
                found.recent.append(past.version)
                found.kept_files.add(past)
            elif past.version in self.held:
                found.old_but_held.append(past.version)
                found.kept_files.add(past)
            else:
                found.old.append(past.version)
                found.old_files.add(past, is_kept=False)
        return found


def classify_versions(
    snapshot: Snapshot,
    options: CleanupOptions,
    now: datetime,
    written: Mapping[int, datetime],
    held: Container[int],
    branch_starts: frozenset[int],
    tasks: CleanupTasks | None = None,
) -> ClassifiedVersions:
    """Classify all retained versions up to the snapshot's, which is the newest.

    `written` is as in `VersionRange`. The versions that are `held` are kept at any age.
    """
    task = ClassifyTask(SnapshotReference.of(snapshot), options, now, held, branch_starts)
    listed = [] if tasks is None else [n for n in snapshot.committer.versions()[::-1] if n <= snapshot.version]
    if tasks is None or len(listed) <= tasks.versions_per_task:
        return task(VersionRange(1, snapshot.version, 0, written))
    found = ClassifiedVersions(NamedFiles(snapshot.uri), NamedFiles(snapshot.uri))
    found.kept_files.add(snapshot.manifest)
    size = tasks.versions_per_task
    ranges = [
        VersionRange(
            part[-1], part[0], at * size, {version: written[version] for version in part if version in written}
        )
        for at, part in enumerate(cut(listed, size))
    ]
    job = Job.on("read versions to clean up", snapshot.uri, snapshot.version)
    for part in tasks.runner.map(replace(task, is_brief=True), ranges, job):
        found.extend(part)
    if _ranks_are_wrong(listed, found.numbers, options):
        return classify_versions(snapshot, options, now, written, held, branch_starts, tasks)
    return found


def _ranks_are_wrong(listed: list[int], read: AbstractSet[int], options: CleanupOptions) -> bool:
    """Return whether one of the newest versions vanished after the listing, so that others must be kept for it."""
    return not set(listed[: options.retain_versions or 1]) <= read


def _version_after(snapshot: Snapshot, version: int) -> CommittedVersion | None:
    """Return the retained version after another one; None after the snapshot's."""
    if version >= snapshot.version:
        return None
    for newer in snapshot.committer.versions():
        if version < newer <= snapshot.version:
            with suppress(VersionNotFound):  # another clean-up removed it
                return read_version(snapshot.store, snapshot.committer, newer)
    return None
