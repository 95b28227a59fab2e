"""Split the rows that a verb looks at among tasks.

A task opens the version again, maybe in another process, and may write files of its own. So a task has many rows, and
small fragments share one. A large table has as many tasks as a large cluster has cores; `OnSpark` sends them in a few
groups for each core, so a small cluster starts no more of them. They have about equally much to do, so that they end
together: a fragment that is far larger than a task is cut into ranges of rows. Indices are searched once, before the
split: no task gets a fragment in which they found no row.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from itertools import groupby, pairwise
from operator import itemgetter
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from lance_ops.core.predicate import Predicate
from lance_ops.core.records import dataclass
from lance_ops.core.schema import Schema
from lance_ops.indices import RowAddressSet
from lance_ops.reading import IndexLookup, ScanRequest, in_task, look_up
from lance_ops.snapshot import Snapshot, check_rows_are_stored
from lance_ops.table import Fragment

__all__ = ["TaskShare", "share_fragments", "share_rows"]

_FRAGMENTS_PER_TASK = 16
_ROWS_PER_TASK = 1 << 18
_BYTES_PER_TASK = 16 << 20

_LARGE_TASK = 8
"""A task with this many times these rows or bytes may have fewer fragments than a small one must have, or a part of
one."""

_MAX_TASKS = 1 << 14
"""A driver holds a plan and an outcome for each task: some 20 MB for as many tasks as this."""

_MAX_MESSAGE_BYTES = 512 << 20
"""Of what tasks send or get besides rows and names: half of what Spark allows the outcomes of a job by default."""

_TASKS_AT_LEAST = 64
"""A plan may have this many tasks, however long their messages are."""


class _Part(NamedTuple):
    """Some of the `num_rows` rows of a fragment that tasks look at: from place `first` to the one before `last`.

    Places count all physical rows, or those that indices found. `stored_bytes` is the size of the fragment's files.
    """

    fragment: Fragment
    first: int
    last: int
    num_rows: int
    stored_bytes: int

    @classmethod
    def of(cls, fragment: Fragment, num_rows: int) -> _Part:
        """Return the part that is the whole of the fragment's rows that tasks look at."""
        return cls(fragment, 0, num_rows, num_rows, sum([file.file_size_bytes for file in fragment.files]))

    @property
    def is_whole(self) -> bool:
        """Whether no other part has rows of the fragment."""
        return self.last - self.first == self.num_rows

    @property
    def size_bytes(self) -> int:
        """About how many bytes of the fragment's files hold the rows."""
        return self.stored_bytes * (self.last - self.first) // max(self.fragment.physical_rows, 1)

    @property
    def work(self) -> float:
        """How many tasks the rows are worth."""
        return max((self.last - self.first) / _ROWS_PER_TASK, self.size_bytes / _BYTES_PER_TASK)

    def cut(self) -> list[_Part]:
        """Cut a whole fragment into parts that are each worth a large task, if it is worth several."""
        num_parts = min(int(self.work / _LARGE_TASK), self.num_rows, _MAX_TASKS)
        if num_parts <= 1:
            return [self]
        ends = [self.num_rows * part // num_parts for part in range(num_parts + 1)]
        return [self._replace(first=first, last=last) for first, last in pairwise(ends)]


@dataclass(frozen=True)
class TaskShare:
    """Fragments for one task to scan, and the rows in them that indices found; None means all rows, or `row_ranges`.

    `remainder` is the predicate that must still be tested on these rows. `size_bytes` is about how many bytes of the
    data files hold them, whatever columns are read. `row_ranges` has each fragment of which the task
    scans a part: its id, the first physical row, and the one after the last.
    """

    fragment_ids: tuple[int, ...]
    rows: RowAddressSet | None
    remainder: Predicate | None
    size_bytes: int
    row_ranges: tuple[tuple[int, int, int], ...] = ()

    def request(self, snapshot: Snapshot, schema: Schema) -> ScanRequest:
        """Return the request for the matching rows of the version, with the columns of `schema`."""
        request = ScanRequest(
            schema,
            self.remainder,
            fragment_ids=self.fragment_ids,
            rows=self.rows,
            row_ranges=self.row_ranges,
            use_scalar_index=False,
        )
        return in_task(snapshot, request)


def share_rows(
    snapshot: Snapshot,
    predicate: Predicate | None,
    *,
    message_bytes: int = 0,
    writes_fragments: bool = False,
    in_threads: bool = True,
) -> list[TaskShare]:
    """Return shares that together have every row which matches the predicate; without a predicate, every row.

    `message_bytes` is what each task gets or sends back however few rows it has. There are fewer tasks if their
    messages were too long together. If each task `writes_fragments` of its own, beyond 64 of them a task looks at eight
    times as many rows: few matches among many rows would leave a tiny fragment for each task. Such a task holds the
    pages that it writes. So if these tasks run `in_threads`, and share the memory of one process, each has about
    sixteen fragments or more, however large they are, and never a part of one. Otherwise a large fragment is cut for
    them, too.

    Raises `ReadTooLarge` as `check_rows_are_stored` does: no task sees how many rows the others have.
    """
    lookup = None if predicate is None else look_up(snapshot, predicate)
    found: list[_Part] = []
    if lookup is None:
        scanned = [_Part.of(fragment, fragment.physical_rows) for fragment in snapshot.fragments]
    else:
        fragments, bitmaps = snapshot.fragments_by_id, lookup.rows.bitmaps
        chosen = [(fragments[key], len(bitmaps[key])) for key in fragments if key in bitmaps]
        found = [_Part.of(fragment, num_rows) for fragment, num_rows in chosen]
        unindexed = [fragments[key] for key in fragments if key not in lookup.covered]
        scanned = [_Part.of(fragment, fragment.physical_rows) for fragment in unindexed]
    parts = [*found, *scanned]
    check_rows_are_stored(snapshot, sum(part.num_rows for part in parts), (part.fragment for part in parts))

    def tasks_of(parts: Sequence[_Part]) -> Iterator[list[_Part]]:
        return _split(parts, _max_tasks(message_bytes), writes_fragments, writes_fragments and in_threads)

    shares = [_scanning(task, predicate) for task in tasks_of(scanned)]
    return shares if lookup is None else [*(_finding(task, lookup) for task in tasks_of(found)), *shares]


def share_fragments(fragments: Sequence[Fragment]) -> list[tuple[int, ...]]:
    """Return the ids of the fragments for each task of a verb that writes a file, or a fragment, for each fragment.

    A task has one fragment. If there are more fragments than a plan may have tasks, a task has several neighbours.
    """
    if len(fragments) <= _MAX_TASKS:
        return [(fragment.id,) for fragment in fragments]
    parts = [_Part.of(fragment, fragment.physical_rows) for fragment in fragments]
    shared = _evenly(parts, np.array([part.work for part in parts]), _MAX_TASKS)
    return [tuple(part.fragment.id for part in neighbours) for neighbours in shared]


def _scanning(parts: Sequence[_Part], predicate: Predicate | None) -> TaskShare:
    """Return a share of physical rows."""
    ranges = tuple((part.fragment.id, part.first, part.last) for part in parts if not part.is_whole)
    size_bytes = sum(part.size_bytes for part in parts)
    return TaskShare(tuple(part.fragment.id for part in parts), None, predicate, size_bytes, ranges)


def _finding(parts: Sequence[_Part], lookup: IndexLookup) -> TaskShare:
    """Return a share of rows that indices found."""
    found = lookup.rows.bitmaps
    bitmaps = {part.fragment.id: found[part.fragment.id][part.first : part.last] for part in parts}
    rows = RowAddressSet(bitmaps, lookup.rows.exact)
    return TaskShare(tuple(bitmaps), rows, lookup.remainder, sum(part.size_bytes for part in parts))


def _split(
    parts: Sequence[_Part], max_tasks: int, writes_fragments: bool, shares_memory: bool
) -> Iterator[list[_Part]]:
    """Yield the parts of each task, in order, each of a different fragment."""
    if not shares_memory:
        parts = [piece for part in parts for piece in part.cut()]
    work = np.array([part.work for part in parts])
    full_tasks, most = float(work.sum()), float(max_tasks)
    if writes_fragments:
        most = min(most, max(_TASKS_AT_LEAST, full_tasks / _LARGE_TASK))
    if shares_memory:
        most = min(most, len(parts) / _FRAGMENTS_PER_TASK)
    num_tasks = _num_tasks(full_tasks, len(parts), most)
    yield from map(_joined, _evenly(parts, work, num_tasks))


def _evenly(parts: Sequence[_Part], work: npt.NDArray[np.float64], num_tasks: int) -> Iterator[list[_Part]]:
    """Yield at most `num_tasks` runs of neighbours that are worth about equally much, by the `work` of each part."""
    middles = (np.cumsum(work) - work / 2) / (work.sum() or 1)
    tasks = np.minimum((num_tasks * middles).astype(int), num_tasks - 1).tolist()
    for _, task in groupby(zip(tasks, parts, strict=True), key=itemgetter(0)):
        yield [part for _, part in task]


def _joined(parts: Iterable[_Part]) -> list[_Part]:
    """Return the parts with neighbours in one fragment joined."""
    joined: list[_Part] = []
    for part in parts:
        if joined and joined[-1].fragment.id == part.fragment.id:
            joined[-1] = joined[-1]._replace(last=part.last)
        else:
            joined.append(part)
    return joined


def _num_tasks(full_tasks: float, num_parts: int, max_tasks: float) -> int:
    """Return a power of two: on 2, 4, 8 or more such cores, no core waits for the last task.

    It is the nearest one, so a task may have fewer or more parts and rows than `wanted` gives it, by half.
    """
    most = max(num_parts / _FRAGMENTS_PER_TASK, full_tasks / _LARGE_TASK)
    wanted = min(full_tasks, most, num_parts, max_tasks)
    return 1 << round(math.log2(max(wanted, 1)))


def _max_tasks(message_bytes: int) -> int:
    """Return the largest power of two that is allowed for tasks with such messages."""
    allowed = min(_MAX_MESSAGE_BYTES // max(message_bytes, 1), _MAX_TASKS)
    return 1 << max(allowed, _TASKS_AT_LEAST).bit_length() - 1
