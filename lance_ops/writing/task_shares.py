"""Split the rows that a verb looks at among tasks.

A task opens the version again, maybe in another process, and may write files of its own. So a task has many rows, and
small fragments share one. A large table has as many tasks as a large cluster has cores; `OnSpark` sends them in a few
groups for each core, so a small cluster starts no more of them. They have about equally much to do, so that they end
together. Indices are searched once, before the split: no task gets a fragment in which they found no row.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from itertools import groupby
from operator import itemgetter
from typing import TypeAlias

import numpy as np

from lance_ops.core.predicate import Predicate
from lance_ops.core.records import dataclass
from lance_ops.core.schema import Schema
from lance_ops.indices import RowAddressSet
from lance_ops.reading import ScanRequest, in_task, look_up
from lance_ops.snapshot import Snapshot, check_rows_are_stored
from lance_ops.table import Fragment

__all__ = ["TaskShare", "share_rows"]

_FRAGMENTS_PER_TASK = 16
_ROWS_PER_TASK = 1 << 18
_BYTES_PER_TASK = 16 << 20

_LARGE_TASK = 8
"""A task with this many times these rows or bytes may have fewer fragments than a small one must have."""

_MAX_TASKS = 1 << 14
"""A driver holds a plan and an outcome for each task: some 20 MB for as many tasks as this."""

_MAX_MESSAGE_BYTES = 512 << 20
"""Of what tasks send or get besides rows and names: half of what Spark allows the outcomes of a job by default."""

_TASKS_AT_LEAST = 64
"""A plan may have this many tasks, however long their messages are."""

_Part: TypeAlias = tuple[Fragment, int]
"""A fragment, and how many of its rows a task looks at."""


@dataclass(frozen=True)
class TaskShare:
    """Fragments for one task to scan, and the rows in them that indices found; None means all rows.

    `remainder` is the predicate that must still be tested on these rows. `size_bytes` is about how many bytes of the
    data files hold them, whatever columns are read.
    """

    fragment_ids: tuple[int, ...]
    rows: RowAddressSet | None
    remainder: Predicate | None
    size_bytes: int

    def request(self, snapshot: Snapshot, schema: Schema) -> ScanRequest:
        """Return the request for the matching rows of the version, with the columns of `schema`."""
        request = ScanRequest(
            schema, self.remainder, fragment_ids=self.fragment_ids, rows=self.rows, use_scalar_index=False
        )
        return in_task(snapshot, request)


def share_rows(
    snapshot: Snapshot, predicate: Predicate | None, *, message_bytes: int = 0, writes_fragments: bool = False
) -> list[TaskShare]:
    """Return shares that together have every row which matches the predicate; without a predicate, every row.

    `message_bytes` is what each task gets or sends back however few rows it has. There are fewer tasks if their
    messages were too long together. If each task `writes_fragments` of its own, beyond 64 of them a task looks at eight
    times as many rows: few matches among many rows would leave a tiny fragment for each task. Such a task has sixteen
    fragments also where they are large, because it holds the pages that it writes.

    Raises `ReadTooLarge` as `check_rows_are_stored` does: no task sees how many rows the others have.
    """
    lookup = None if predicate is None else look_up(snapshot, predicate)
    found: list[_Part] = []
    if lookup is None:
        scanned = [(fragment, fragment.physical_rows) for fragment in snapshot.fragments]
    else:
        fragments, bitmaps = snapshot.fragments_by_id, lookup.rows.bitmaps
        found = [(fragments[key], len(bitmaps[key])) for key in fragments if key in bitmaps]
        scanned = [(fragments[key], fragments[key].physical_rows) for key in fragments if key not in lookup.covered]
    parts, max_tasks = [*found, *scanned], _max_tasks(message_bytes)
    check_rows_are_stored(snapshot, sum(rows for _, rows in parts), (fragment for fragment, _ in parts))
    shares = [
        TaskShare(ids, None, predicate, size_bytes) for ids, size_bytes in _split(scanned, max_tasks, writes_fragments)
    ]
    if lookup is None:
        return shares
    chosen = lookup.rows
    indexed = (
        TaskShare(
            ids, RowAddressSet({each: chosen.bitmaps[each] for each in ids}, chosen.exact), lookup.remainder, size_bytes
        )
        for ids, size_bytes in _split(found, max_tasks, writes_fragments)
    )
    return [*indexed, *shares]


def _split(parts: Sequence[_Part], max_tasks: int, writes_fragments: bool) -> Iterator[tuple[tuple[int, ...], int]]:
    """Yield the fragment ids and the bytes of each task, in order."""
    sizes = [
        sum(file.file_size_bytes for file in fragment.files) * rows // max(fragment.physical_rows, 1)
        for fragment, rows in parts
    ]
    rows_and_bytes = zip((rows for _, rows in parts), sizes, strict=True)
    work = np.array([max(rows / _ROWS_PER_TASK, size / _BYTES_PER_TASK) for rows, size in rows_and_bytes])
    full_tasks = float(work.sum())
    if writes_fragments:
        most = min(max_tasks, len(parts) / _FRAGMENTS_PER_TASK, max(_TASKS_AT_LEAST, full_tasks / _LARGE_TASK))
    else:
        most = max_tasks
    num_tasks = _num_tasks(full_tasks, len(parts), most)
    middles = (np.cumsum(work) - work / 2) / (work.sum() or 1)
    tasks = np.minimum((num_tasks * middles).astype(int), num_tasks - 1).tolist()
    for _, task in groupby(zip(tasks, parts, sizes, strict=True), key=itemgetter(0)):
        _, its_parts, its_sizes = zip(*task, strict=True)
        yield tuple(fragment.id for fragment, _ in its_parts), sum(its_sizes)


def _num_tasks(full_tasks: float, num_fragments: int, max_tasks: float) -> int:
    """Return a power of two: on 2, 4, 8 or more such cores, no core waits for the last task.

    It is the nearest one, so a task may have fewer or more fragments and rows than `wanted` gives it, by half.
    """
    most = max(num_fragments / _FRAGMENTS_PER_TASK, full_tasks / _LARGE_TASK)
    wanted = min(full_tasks, most, num_fragments, max_tasks)
    return 1 << round(math.log2(max(wanted, 1)))


def _max_tasks(message_bytes: int) -> int:
    """Return the largest power of two that is allowed for tasks with such messages."""
    allowed = min(_MAX_MESSAGE_BYTES // max(message_bytes, 1), _MAX_TASKS)
    return 1 << max(allowed, _TASKS_AT_LEAST).bit_length() - 1
