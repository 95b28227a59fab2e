"""Plan a verification: cut a version into tasks for fragments, an index, index entries, row ids or the manifest."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import field
from itertools import pairwise
from typing import ClassVar, TypeAlias
from uuid import UUID

from lance_ops.core.errors import InvalidInput, VersionNotFound
from lance_ops.core.records import dataclass
from lance_ops.maintenance.verification.checks import RowSpan, has_comparable_entries
from lance_ops.maintenance.verification.findings import DamageKind, Finding, FindingCollector
from lance_ops.maintenance.verification.report import VerificationLevel
from lance_ops.runners import Job
from lance_ops.snapshot import Snapshot, SnapshotReference
from lance_ops.table import ExternalFile, Fragment, IndexMetadata, RowSequence

__all__ = [
    "FragmentsTask",
    "IndexEntriesTask",
    "IndexTask",
    "RowIdsTask",
    "RowsTask",
    "TableTask",
    "VerificationOptions",
    "VerificationPlan",
    "VerificationTask",
    "plan_verification",
]

_MAX_FRAGMENT_ROWS = 1 << 32

_LARGE_TASK = 4
"""The rows of a fragment are shared among tasks that each decode this many times `max_bytes_per_task`, if there are
several: a page on the border of two ranges is decoded twice."""


@dataclass(frozen=True)
class VerificationOptions:
    """How thoroughly to verify, and how much one task does.

    `all_versions` includes the other retained versions of the branch. A task checks fragments of about
    `max_bytes_per_task`, or decodes some rows of a large one. A task compares at most `max_entries_per_task` rows of an
    index, which it holds in memory. To compare row ids it holds about `max_row_id_runs_per_task` runs of them.

    `max_bytes` bounds a verification: it checks fragments, then index segments, of at most this many bytes, but at
    least one part. It begins at part `first_part`, and after the last part it goes on with the first.
    `VerificationPlan.next_part` is where another verification continues. What the manifest itself says is always
    checked.
    """

    level: VerificationLevel = VerificationLevel.FULL
    all_versions: bool = False
    max_bytes_per_task: int = 256 * 1024**2
    max_fragments_per_task: int = 256
    max_entries_per_task: int = 1 << 21
    max_row_id_runs_per_task: int = 1 << 21
    max_bytes: int | None = None
    first_part: int = 0

    def __post_init__(self) -> None:
        for name in (
            "max_bytes_per_task",
            "max_fragments_per_task",
            "max_entries_per_task",
            "max_row_id_runs_per_task",
        ):
            if getattr(self, name) < 1:
                raise InvalidInput(f"{name} must be at least 1, not {getattr(self, name)}")
        if self.max_bytes is not None and (self.max_bytes < 1 or self.all_versions):
            raise InvalidInput(f"max_bytes must be at least 1 and without all_versions, not {self.max_bytes}")

    @property
    def decode(self) -> bool:
        """Whether to check and decode all bytes."""
        return self.level is VerificationLevel.FULL


@dataclass(frozen=True)
class FragmentsTask:
    """Check fragments, by their positions in the manifest: a damaged manifest may have two of one id.

    With `skip_rows`, this task does not decode the rows: other tasks do.
    """

    what: ClassVar[str] = "data files, deletion files and rows of fragments"
    snapshot: SnapshotReference
    positions: tuple[int, ...]
    decode: bool
    size_bytes: int
    skip_rows: bool = False


@dataclass(frozen=True)
class RowsTask:
    """Decode the physical rows from `start` to `stop` of a large fragment; blobs are left to its `FragmentsTask`."""

    what: ClassVar[str] = "rows of large fragments"
    snapshot: SnapshotReference
    position: int
    start: int
    stop: int
    size_bytes: int


@dataclass(frozen=True)
class IndexTask:
    """Check the files of an index segment."""

    what: ClassVar[str] = "files of index segments"
    snapshot: SnapshotReference
    uuid: UUID
    decode: bool
    size_bytes: int


@dataclass(frozen=True)
class IndexEntriesTask:
    """Compare the entries of an index segment with rows of the fragments that it covers."""

    what: ClassVar[str] = "index entries, compared with rows"
    snapshot: SnapshotReference
    uuid: UUID
    spans: tuple[RowSpan, ...]
    size_bytes: int


@dataclass(frozen=True)
class RowIdsTask:
    """Find live rows that share a stable row id in `[start, stop)`."""

    what: ClassVar[str] = "stable row ids"
    snapshot: SnapshotReference
    start: int
    stop: int
    max_runs: int
    size_bytes: int


@dataclass(frozen=True)
class TableTask:
    """Check the manifest; with `references`, also the hint, tags and branches."""

    what: ClassVar[str] = "manifest, tags and branches"
    snapshot: SnapshotReference
    references: bool
    size_bytes: int = 0


_CHECKS = [each.what for each in (TableTask, RowIdsTask, FragmentsTask, RowsTask, IndexTask, IndexEntriesTask)]
VerificationTask: TypeAlias = FragmentsTask | RowsTask | IndexTask | IndexEntriesTask | RowIdsTask | TableTask


@dataclass(frozen=True)
class VerificationPlan:
    """The tasks that verify a version and perhaps others, the largest first; and manifests that cannot be read.

    `next_part` is where a verification of bounded size continues, None if this one checks all parts.
    """

    uri: str
    version: int
    options: VerificationOptions
    tasks: tuple[VerificationTask, ...]
    versions: tuple[int, ...]
    findings: tuple[Finding, ...] = ()
    next_part: int | None = None

    @property
    def num_tasks(self) -> int:
        """The number of tasks."""
        return len(self.tasks)

    @property
    def checks(self) -> Mapping[str, tuple[int, int]]:
        """What is checked, each with the number of tasks and of the bytes that they look at."""
        found: dict[str, tuple[int, int]] = {}
        for task in sorted(self.tasks, key=lambda task: _CHECKS.index(task.what)):
            num_tasks, size = found.get(task.what, (0, 0))
            found[task.what] = num_tasks + 1, size + task.size_bytes
        return found

    def files(self, snapshot: Snapshot) -> Mapping[str, int]:
        """The data files and files of indices that are checked, with their recorded sizes.

        `snapshot` must be the one that was planned: positions are looked up in it. A path follows its base, if any.
        """
        manifest = snapshot.manifest
        indices = {index.uuid: index for index in manifest.indices}
        found: dict[str, int] = {}
        for task in self.tasks:
            match task:
                case FragmentsTask(of, positions) if of.version == self.version:
                    for position in positions:
                        for file in manifest.fragments[position].files:
                            found[_path_in(file.base_id, file.path)] = file.file_size_bytes
                case IndexTask(of, uuid, _, _) if of.version == self.version:
                    base = indices[uuid].base_id
                    found |= {_path_in(base, f"{uuid}/{file.path}"): file.size_bytes for file in indices[uuid].files}
        return found

    @property
    def job(self) -> Job:
        """What the tasks do together, each weighed by the bytes that it reads."""
        return Job.on("verify", self.uri, self.version).in_bytes(task.size_bytes for task in self.tasks)


def plan_verification(snapshot: Snapshot, options: VerificationOptions | None = None) -> VerificationPlan:
    """Return the tasks that verify a version; with `all_versions`, also the parts that only other versions have.

    No file is read except the manifests of the other versions. A manifest that cannot be decoded is a finding.
    """
    options = options or VerificationOptions()
    planned, next_part = _left_out(snapshot, options)
    tasks: list[VerificationTask] = []
    versions: list[int] = []
    found = FindingCollector(snapshot.version)
    others = [version for version in snapshot.committer.versions() if version != snapshot.version]
    for version in [snapshot.version, *(reversed(others) if options.all_versions else ())]:
        manifest = snapshot.store.uri_of(snapshot.committer.location(version))
        with found.of_version(version).errors_as(DamageKind.MANIFEST, manifest):
            try:
                opened = snapshot.at(version)
            except VersionNotFound:  # a concurrent clean-up removed it
                continue
            versions.append(version)
            tasks += _tasks_of(opened, options, planned, references=version == snapshot.version)
    largest_first = sorted(tasks, key=lambda task: task.size_bytes, reverse=True)
    return VerificationPlan(
        snapshot.uri, snapshot.version, options, tuple(largest_first), tuple(versions), tuple(found.findings), next_part
    )


@dataclass
class _PlannedParts:
    """Fragments and index segments that need no task: versions share most of theirs, and others are left out."""

    fragments: set[Fragment] = field(default_factory=set)
    indices: set[IndexMetadata] = field(default_factory=set)


def _left_out(snapshot: Snapshot, options: VerificationOptions) -> tuple[_PlannedParts, int | None]:
    """Return the parts that `max_bytes` leaves out, and the number of the first of them; None if there are none.

    The number of a fragment is its id. Index segments are numbered from the highest id on.
    """
    if options.max_bytes is None:
        return _PlannedParts(), None
    fragments = sorted(snapshot.manifest.fragments, key=lambda fragment: fragment.id)
    beyond = fragments[-1].id + 1 if fragments else 0
    parts: list[tuple[int, Fragment | IndexMetadata, int]] = [
        *((fragment.id, fragment, _fragment_bytes(fragment)) for fragment in fragments),
        *((beyond + at, index, _index_bytes(index)) for at, index in enumerate(snapshot.manifest.indices)),
    ]
    first = next((at for at, (number, *_) in enumerate(parts) if number >= options.first_part), 0)
    parts = parts[first:] + parts[:first]
    num_taken = size = 0
    for _, _, its_bytes in parts:
        size += its_bytes
        if num_taken and size > options.max_bytes:
            break
        num_taken += 1
    left = parts[num_taken:]
    out = _PlannedParts(
        {part for _, part, _ in left if isinstance(part, Fragment)},
        {part for _, part, _ in left if isinstance(part, IndexMetadata)},
    )
    return out, left[0][0] if left else None


def _tasks_of(
    snapshot: Snapshot, options: VerificationOptions, planned: _PlannedParts, *, references: bool
) -> Iterator[VerificationTask]:
    """Yield the tasks of a version's parts that are not planned yet."""
    reference = SnapshotReference(snapshot.uri, snapshot.version, dict(snapshot.storage_options))
    yield TableTask(reference, references)
    if snapshot.manifest.uses_stable_row_ids:
        yield from _row_id_tasks(reference, snapshot, options)
    new = [(at, each) for at, each in enumerate(snapshot.manifest.fragments) if each not in planned.fragments]
    planned.fragments.update(fragment for _, fragment in new)
    cut = {at: ranges for at, fragment in new if (ranges := _row_ranges(snapshot, fragment, options))}
    yield from _fragment_tasks(reference, (each for each in new if each[0] not in cut), options)
    for at, fragment in (each for each in new if each[0] in cut):
        size = _fragment_bytes(fragment)
        yield FragmentsTask(reference, (at,), options.decode, size, skip_rows=True)
        for start, stop in cut[at]:
            yield RowsTask(reference, at, start, stop, size * (stop - start) // fragment.physical_rows)
    for index in snapshot.manifest.indices:
        if index not in planned.indices:
            planned.indices.add(index)
            yield IndexTask(reference, index.uuid, options.decode, _index_bytes(index))
            if options.decode and has_comparable_entries(snapshot, index):
                yield from _entry_tasks(reference, snapshot, index, options)


def _row_ranges(snapshot: Snapshot, fragment: Fragment, options: VerificationOptions) -> list[tuple[int, int]]:
    """Return the ranges of rows for the tasks that decode a large fragment; none if one task does.

    Some early writers stated no count of rows, or a wrong one: their fragments are not cut.
    """
    worth = _fragment_bytes(fragment) // (_LARGE_TASK * options.max_bytes_per_task)
    num_tasks = min(worth, fragment.physical_rows)
    if num_tasks < 2 or not options.decode or snapshot.manifest.writer_version is None:
        return []
    return list(pairwise(fragment.physical_rows * number // num_tasks for number in range(num_tasks + 1)))


def _fragment_tasks(
    reference: SnapshotReference, fragments: Iterable[tuple[int, Fragment]], options: VerificationOptions
) -> Iterator[FragmentsTask]:
    positions: list[int] = []
    size = 0
    for at, fragment in fragments:
        its_bytes = _fragment_bytes(fragment)
        is_full = size + its_bytes > options.max_bytes_per_task or len(positions) == options.max_fragments_per_task
        if positions and is_full:
            yield FragmentsTask(reference, tuple(positions), options.decode, size)
            positions, size = [], 0
        positions.append(at)
        size += its_bytes
    if positions:
        yield FragmentsTask(reference, tuple(positions), options.decode, size)


def _entry_tasks(
    reference: SnapshotReference, snapshot: Snapshot, index: IndexMetadata, options: VerificationOptions
) -> Iterator[IndexEntriesTask]:
    """Yield tasks of at most this many rows, and with entries of at most this many bytes."""
    covered = index.covers(snapshot.manifest.fragments.ids)
    fragments = [fragment for fragment in snapshot.manifest.fragments if fragment.id in covered]
    num_rows = sum(fragment.physical_rows for fragment in fragments)
    by_bytes = num_rows * options.max_bytes_per_task // max(_index_bytes(index), 1)
    limit = max(1, min(options.max_entries_per_task, by_bytes or options.max_entries_per_task))
    spans: list[RowSpan] = []
    room = limit
    for span in _cut(fragments, limit):
        if span.stop - span.start > room and spans:
            yield IndexEntriesTask(reference, index.uuid, tuple(spans), _index_bytes(index))
            spans, room = [], limit
        spans.append(span)
        room -= span.stop - span.start
    if spans:
        yield IndexEntriesTask(reference, index.uuid, tuple(spans), _index_bytes(index))


def _row_id_tasks(
    reference: SnapshotReference, snapshot: Snapshot, options: VerificationOptions
) -> Iterator[RowIdsTask]:
    """Yield tasks of equal ranges of ids, so many that the runs of each fit in memory if runs are spread evenly.

    A run takes at least a byte of a stored sequence, and each deleted row cuts one run in two.
    """
    fragments = snapshot.manifest.fragments
    size = sum(_sequence_bytes(fragment.row_ids) for fragment in fragments)
    num_runs = size + sum(fragment.num_deletions for fragment in fragments)
    num_ids = max(snapshot.manifest.next_row_id, 1)
    num_tasks = min(-(-num_runs // options.max_row_id_runs_per_task) or 1, num_ids)
    width = -(-num_ids // num_tasks)
    for start in range(0, num_ids, width):
        stop = min(start + width, num_ids)
        yield RowIdsTask(reference, start, stop, options.max_row_id_runs_per_task, size // num_tasks)


def _sequence_bytes(sequence: RowSequence) -> int:
    match sequence:
        case ExternalFile(size=size):
            return size
        case bytes():
            return len(sequence)
        case _:
            return 0


def _path_in(base_id: int | None, path: str) -> str:
    return path if base_id is None else f"base {base_id}: {path}"


def _cut(fragments: Iterable[Fragment], limit: int) -> Iterator[RowSpan]:
    for fragment in fragments:
        if not fragment.physical_rows:  # an old writer stated none
            yield RowSpan(fragment.id, 0, _MAX_FRAGMENT_ROWS)
        for start in range(0, fragment.physical_rows, limit):
            yield RowSpan(fragment.id, start, min(start + limit, fragment.physical_rows))


def _fragment_bytes(fragment: Fragment) -> int:
    return sum(file.file_size_bytes for file in fragment.files)


def _index_bytes(index: IndexMetadata) -> int:
    return sum(file.size_bytes for file in index.files)
