"""Decide whether work on an index is shared among tasks, and what each of them reads.

A task costs a cluster seconds when its workers are cold, so little work stays in the process that asked for it. Work is
measured in bytes: those that the column takes in the data files, and a row address for each row.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from lance_ops.core.records import dataclass
from lance_ops.core.schema import Field
from lance_ops.maintenance.indexing.training_rows import RowRange
from lance_ops.snapshot import Snapshot, projected_sizes
from lance_ops.table import IndexMetadata

__all__ = ["IndexWork", "TaskSizes", "cut_entries", "cut_fragments", "entry_bytes", "measure"]

_ADDRESS_BYTES = 8
_FEW_ROUNDS = 4


@dataclass(frozen=True)
class TaskSizes:
    """Work below `least_bytes` is not shared. A task has about `task_bytes`, or more if there were over `max_tasks`.

    Each task of the second round may read a slice of each file of the first, so files, requests and the driver's plan
    grow with the square of the tasks. `max_tasks` is the root of a million slices, for which a driver needs some
    hundreds of megabytes.

    A remap is shared from `least_remap_bytes` on: it sorts nothing, so one process remaps tens of millions of rows a
    second.
    """

    least_bytes: int = 256 << 20
    least_remap_bytes: int = 4 << 30
    task_bytes: int = 64 << 20
    max_tasks: int = 1024

    def each(self, total_bytes: int, num_slots: int) -> int:
        """Return the bytes of each task for work of a size that `num_slots` tasks do at once.

        Work of a few rounds is cut into as many tasks as fill the last round, too: otherwise most slots wait in it.
        """
        each = max(self.task_bytes, -(-total_bytes // self.max_tasks), 1)
        num_tasks = -(-total_bytes // each)
        if not num_slots < num_tasks < _FEW_ROUNDS * num_slots:
            return each
        rounds = min(-(-num_tasks // num_slots), self.max_tasks // num_slots)
        return -(-total_bytes // (rounds * num_slots))


@dataclass(frozen=True)
class IndexWork:
    """Fragments to read, by id: their physical rows and the bytes to sort."""

    fragments: tuple[tuple[int, int, int], ...]

    @property
    def size_bytes(self) -> int:
        """The bytes of all fragments."""
        return sum(size for _, _, size in self.fragments)

    @property
    def num_rows(self) -> int:
        """The physical rows of all fragments."""
        return sum(num_rows for _, num_rows, _ in self.fragments)


def measure(snapshot: Snapshot, field: Field, fragment_ids: Sequence[int]) -> IndexWork:
    """Return how much work an index on a column of these fragments is."""
    fragments = [snapshot.fragments_by_id[each] for each in fragment_ids]
    schema = snapshot.schema.project([snapshot.schema.path_of(field.id)])
    stored = projected_sizes(snapshot, fragments, schema) if fragments else {}
    return IndexWork(
        tuple(
            (each.id, each.physical_rows, stored[each.id] + _ADDRESS_BYTES * each.physical_rows) for each in fragments
        )
    )


def entry_bytes(segment: IndexMetadata, num_entries: int) -> int:
    """Return how much work all entries of a segment are."""
    return sum(file.size_bytes or 0 for file in segment.files) + _ADDRESS_BYTES * num_entries


def cut_fragments(work: IndexWork, task_bytes: int) -> Iterator[tuple[tuple[RowRange, ...], int]]:
    """Yield ranges of rows of `task_bytes` or a little more together, with their bytes; large fragments are cut."""
    ranges: list[RowRange] = []
    filled = 0
    for fragment_id, num_rows, size in work.fragments:
        start = 0
        while start < num_rows:
            room = max(1, -(-(task_bytes - filled) * num_rows // max(size, 1)))
            stop = min(num_rows, start + room)
            ranges.append((fragment_id, start, stop))
            filled += (stop - start) * size // num_rows
            start = stop
            if start < num_rows or filled >= task_bytes:
                yield tuple(ranges), filled
                ranges, filled = [], 0
    if ranges:
        yield tuple(ranges), filled


def cut_entries(num_entries: int, size_bytes: int, task_bytes: int) -> Iterator[tuple[int, int]]:
    """Yield ranges of a segment's entries of about `task_bytes` each, but never an empty one."""
    num_tasks = max(1, round(size_bytes / task_bytes))
    step = max(1, -(-num_entries // num_tasks))
    step = -(-step // _ENTRY_STEP) * _ENTRY_STEP
    for start in range(0, num_entries, step):
        yield start, min(start + step, num_entries)


_ENTRY_STEP = 4096
"""Ranges of entries have whole pages of most B-trees. If no row is left out, what the tasks copy needs no merge."""
