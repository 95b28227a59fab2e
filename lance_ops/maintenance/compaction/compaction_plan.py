"""Plan a compaction: choose the groups of fragments to rewrite together.

A fragment is a candidate when it is small (fewer live rows than the target) or when enough of its rows are deleted.
Neighbouring candidates are rewritten together, their rows in order; a group never mixes fragments that different
indices cover, so that an index covers a new fragment wholly or not at all. One task rewrites a group. So a group ends
when its rows are enough for a fragment, or its bytes for a task.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import pairwise
from typing import Self
from uuid import UUID

from lance_ops.core.errors import InvalidInput, UnsupportedFeature
from lance_ops.core.records import dataclass
from lance_ops.core.versions import FileVersion
from lance_ops.maintenance.compaction.index_remap import needs_remap
from lance_ops.runners import Job
from lance_ops.snapshot import Snapshot, SnapshotReference, check_rows_are_stored
from lance_ops.table import Fragment
from lance_ops.writing import MAX_BYTES_PER_FILE

__all__ = [
    "CompactionOptions",
    "CompactionPlan",
    "RewriteTask",
    "SourceSize",
    "coverage",
    "is_small",
    "plan_compaction",
]

_BYTES_OF_TASK = 16 << 30
"""A group with this many bytes is full. In usual tables, with rows below 16 KB, the target of rows comes first."""

CLUSTER_ORDERS = ("linear", "z_order")
_NOT_WITH_CLUSTERS = ("max_commits", "max_seconds", "worst_first")


@dataclass(frozen=True)
class CompactionOptions:
    """The reference's options, with its defaults, and those of this library.

    If a group does not fit into the `max_source_*` limits, neighbours among its fragments that fit are rewritten, as
    far as they are worth it. The plan passes over other fragments, and goes on. `worst_first` orders the groups by the
    fragments and then the deleted rows that they take away. No task begins after `max_seconds`, except the first.
    `max_commits` cuts the groups into that many commits: each is there when its tasks are done, and a conflict loses
    only the groups of its commit.

    `only_fragment_ids` leaves all other fragments alone, also those that others add before a plan is made again.

    `cluster_by` sorts the rows of all fragments within the limits by these columns, or along a Z curve through them
    (`cluster_order`), instead of merging small fragments. It is one commit of several stages, without a time limit.
    """

    target_rows_per_fragment: int = 1024 * 1024
    max_bytes_per_file: int | None = None
    materialize_deletions: bool = True
    materialize_deletions_threshold: float = 0.1
    max_source_fragments: int | None = None
    max_source_rows: int | None = None
    max_source_bytes: int | None = None
    excluded_fragment_ids: tuple[int, ...] = ()
    only_fragment_ids: frozenset[int] | None = None
    data_storage_version: str | None = None
    defer_index_remap: bool = False
    max_commits: int = 1
    max_seconds: float | None = None
    worst_first: bool = False
    cluster_by: tuple[str, ...] = ()
    cluster_order: str = "linear"

    def __post_init__(self) -> None:
        if self.target_rows_per_fragment <= 0:
            raise InvalidInput(f"target_rows_per_fragment must be positive, not {self.target_rows_per_fragment}")
        if not 0 <= self.materialize_deletions_threshold <= 1:
            raise InvalidInput(
                f"materialize_deletions_threshold is a fraction, 0 to 1, not {self.materialize_deletions_threshold}"
            )
        for name in ("max_source_fragments", "max_source_rows", "max_source_bytes"):
            limit = getattr(self, name)
            if limit is not None and limit < 1:
                raise InvalidInput(f"{name} must be positive, or None for no limit, not {limit}")
        if self.max_commits < 1:
            raise InvalidInput(f"max_commits must be at least 1, not {self.max_commits}")
        if self.max_seconds is not None and not self.max_seconds >= 0:
            raise InvalidInput(f"max_seconds must not be negative, not {self.max_seconds}")
        if self.cluster_order not in CLUSTER_ORDERS:
            raise InvalidInput(f"cluster_order {self.cluster_order!r} is none of {', '.join(CLUSTER_ORDERS)}")
        for name in _NOT_WITH_CLUSTERS if self.cluster_by else ():
            if getattr(self, name) != getattr(type(self), name):
                raise InvalidInput(f"{name} does not go with cluster_by: all rows are committed at once")
        if self.defer_index_remap:
            raise UnsupportedFeature("defer_index_remap (a fragment-reuse index)")

    def leaves_alone(self, fragment: Fragment) -> bool:
        """Return whether the caller has ruled the fragment out."""
        is_other = self.only_fragment_ids is not None and fragment.id not in self.only_fragment_ids
        return is_other or fragment.id in self.excluded_fragment_ids


@dataclass(frozen=True)
class RewriteTask:
    """Fragments of one version to rewrite as one sequence of rows; `size_bytes` in their files weigh the task."""

    snapshot: SnapshotReference
    fragment_ids: tuple[int, ...]
    target_rows_per_fragment: int
    max_bytes_per_file: int
    file_version: FileVersion
    size_bytes: int = 0


@dataclass(frozen=True)
class CompactionPlan:
    """What a compaction of `read_version` of the dataset at `uri` would rewrite."""

    uri: str
    read_version: int
    options: CompactionOptions
    tasks: tuple[RewriteTask, ...]

    @property
    def num_tasks(self) -> int:
        """The number of groups."""
        return len(self.tasks)

    @property
    def job(self) -> Job:
        """What the tasks do together, each weighed by the bytes that it reads."""
        return self.job_of(self.tasks)

    def job_of(self, tasks: Sequence[RewriteTask]) -> Job:
        """What some of the tasks do together."""
        return Job.on("compact", self.uri, self.read_version, tuple(task.size_bytes for task in tasks), unit="bytes")

    def tasks_by_commit(self) -> Iterator[tuple[RewriteTask, ...]]:
        """Yield the tasks of each commit: `max_commits` groups, or as many as there are tasks."""
        num_commits = min(self.options.max_commits, self.num_tasks)
        bounds = [number * self.num_tasks // num_commits for number in range(num_commits + 1)] if num_commits else []
        for first, end in pairwise(bounds):
            yield self.tasks[first:end]


def plan_compaction(snapshot: Snapshot, options: CompactionOptions) -> CompactionPlan:
    """Return the groups worth rewriting, in the fragments' order or the worst first, within the `max_source_*` limits.

    Raises `UnsupportedFeature`, before anything is written, for an index on the rows that cannot be remapped; see
    `needs_remap`. Raises `ReadTooLarge` as `check_rows_are_stored` does.
    """
    if options.cluster_by:
        raise InvalidInput("cluster_by sorts in several stages, which compact_files runs: it has no single plan")
    version = FileVersion.parse(options.data_storage_version) if options.data_storage_version else snapshot.file_version
    tasks: list[RewriteTask] = []
    total = SourceSize()
    groups: Iterable[list[Fragment]] = _groups(snapshot, options)
    if options.worst_first:
        groups = sorted(groups, key=lambda group: _badness(snapshot, group, options), reverse=True)
    for group in groups:
        for fitting, size in _fitting(snapshot, group, total, options):
            total += size
            tasks.append(
                RewriteTask(
                    SnapshotReference.of(snapshot),
                    tuple(fragment.id for fragment in fitting),
                    options.target_rows_per_fragment,
                    options.max_bytes_per_file or MAX_BYTES_PER_FILE,
                    version,
                    size.size_bytes,
                )
            )
        if not (total + SourceSize(fragments=1)).fits(options):
            break
    moving = [fragment_id for task in tasks for fragment_id in task.fragment_ids]
    _check_indices(snapshot, moving)
    fragments = [snapshot.fragments_by_id[fragment_id] for fragment_id in moving]
    check_rows_are_stored(snapshot, sum(each.physical_rows for each in fragments), fragments)
    return CompactionPlan(snapshot.uri, snapshot.version, options, tuple(tasks))


def is_small(snapshot: Snapshot, fragment: Fragment, rows: int, max_bytes_per_file: int | None = None) -> bool:
    """Return whether a fragment has fewer live rows than `rows`, and so few bytes that a compaction may merge it.

    A rewrite of a fragment at its byte limit gains nothing, and of one that fills a task very little.
    """
    return snapshot.num_live_rows(fragment) < rows and _stored_bytes(fragment) < (max_bytes_per_file or _BYTES_OF_TASK)


def _check_indices(snapshot: Snapshot, moving: list[int]) -> None:
    for index in snapshot.manifest.indices:
        if not index.is_system and index.covers(moving):
            needs_remap(snapshot, index)


def _groups(snapshot: Snapshot, options: CompactionOptions) -> Iterator[list[Fragment]]:
    group: list[Fragment] = []
    rows = size_bytes = 0
    covered_by: frozenset[UUID] | None = None
    most_bytes = max(_BYTES_OF_TASK, options.max_bytes_per_file or 0)
    for fragment in snapshot.fragments:
        candidate = _is_candidate(snapshot, fragment, options)
        covering = coverage(snapshot, fragment)
        full = rows >= options.target_rows_per_fragment and _makes_fewer(group, rows, options)
        full = full or (size_bytes >= most_bytes and _is_worth_rewriting(snapshot, group, rows, options))
        if not candidate or covering != covered_by or full:
            if _is_worth_rewriting(snapshot, group, rows, options):
                yield group
            group, rows, size_bytes = [], 0, 0
        if candidate:
            group.append(fragment)
            rows += snapshot.num_live_rows(fragment)
            size_bytes += _stored_bytes(fragment)
            covered_by = covering
    if _is_worth_rewriting(snapshot, group, rows, options):
        yield group


def _fitting(
    snapshot: Snapshot, group: list[Fragment], taken: SourceSize, options: CompactionOptions
) -> Iterator[tuple[list[Fragment], SourceSize]]:
    """Yield neighbours in a group that fit beside what is taken and yielded, if a rewrite of them gains anything."""
    first = 0
    while first < len(group):
        end, size = first, SourceSize()
        while end < len(group):
            larger = size + SourceSize.of(snapshot, [group[end]])
            if not (taken + larger).fits(options):
                break
            end, size = end + 1, larger
        if _is_worth_rewriting(snapshot, group[first:end], size.rows, options):
            yield group[first:end], size
            taken += size
            first = end
        else:
            first += 1


def _is_candidate(snapshot: Snapshot, fragment: Fragment, options: CompactionOptions) -> bool:
    if options.leaves_alone(fragment):
        return False
    small = is_small(snapshot, fragment, options.target_rows_per_fragment, options.max_bytes_per_file)
    return small or _has_deletions_to_materialize(snapshot, fragment, options)


def _has_deletions_to_materialize(snapshot: Snapshot, fragment: Fragment, options: CompactionOptions) -> bool:
    deleted = fragment.physical_rows - snapshot.num_live_rows(fragment)
    return options.materialize_deletions and deleted > options.materialize_deletions_threshold * fragment.physical_rows


def _is_worth_rewriting(snapshot: Snapshot, group: list[Fragment], rows: int, options: CompactionOptions) -> bool:
    return _makes_fewer(group, rows, options) or any(
        _has_deletions_to_materialize(snapshot, fragment, options) for fragment in group
    )


def _makes_fewer(group: list[Fragment], rows: int, options: CompactionOptions) -> bool:
    """Return whether a rewrite makes fewer fragments; two nearly full ones would only be cut at another row."""
    return -(-rows // options.target_rows_per_fragment) < len(group)


def _stored_bytes(fragment: Fragment) -> int:
    return sum(file.file_size_bytes for file in fragment.files)


def _badness(snapshot: Snapshot, group: list[Fragment], options: CompactionOptions) -> tuple[int, int]:
    """Return how many fragments, and how many deleted rows, a rewrite of the group takes away."""
    live = sum(snapshot.num_live_rows(fragment) for fragment in group)
    physical = sum(fragment.physical_rows for fragment in group)
    return len(group) + live // -options.target_rows_per_fragment, physical - live


def coverage(snapshot: Snapshot, fragment: Fragment) -> frozenset[UUID]:
    """Return the index segments that cover a fragment."""
    bitmaps = ((index.uuid, index.fragment_bitmap) for index in snapshot.manifest.indices)
    return frozenset(uuid for uuid, bitmap in bitmaps if bitmap is not None and fragment.id in bitmap)


@dataclass(frozen=True)
class SourceSize:
    """How much a rewrite reads."""

    fragments: int = 0
    rows: int = 0
    size_bytes: int = 0

    @classmethod
    def of(cls, snapshot: Snapshot, fragments: Sequence[Fragment]) -> Self:
        """Return how much a rewrite of these fragments reads."""
        return cls(
            len(fragments),
            sum(snapshot.num_live_rows(fragment) for fragment in fragments),
            sum(map(_stored_bytes, fragments)),
        )

    def __add__(self, other: SourceSize) -> SourceSize:
        return SourceSize(self.fragments + other.fragments, self.rows + other.rows, self.size_bytes + other.size_bytes)

    def fits(self, options: CompactionOptions) -> bool:
        """Return whether this is within the `max_source_*` options."""
        limits = (options.max_source_fragments, options.max_source_rows, options.max_source_bytes)
        sizes = (self.fragments, self.rows, self.size_bytes)
        return all(limit is None or size <= limit for size, limit in zip(sizes, limits, strict=True))
