"""Share the rows that a read looks at among Spark's tasks: fragments in their order, and parts of large ones.

A task costs Spark tens of milliseconds however small it is, so small fragments share one, and a fragment is cut only
into parts of some size. Sizes count the columns that are read, and no others.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import TypeVar

from pyspark.sql.datasource import InputPartition

from lance_ops.core.records import dataclass
from lance_ops.core.schema import Schema
from lance_ops.reading import Block
from lance_ops.snapshot import Snapshot, projected_sizes

__all__ = ["FragmentGroup", "group_evenly", "share_blocks"]

K = TypeVar("K")

_BYTES_PER_PARTITION = 128 * 1024**2  # the target of Spark's own file sources
_LEAST_BYTES_PER_CUT = 16 * 1024**2
_TASKS_PER_CORE = 3

RowRange = tuple[int, int, int]
"""A fragment's id, and its first physical row and the one after its last."""


@dataclass(frozen=True)
class FragmentGroup(InputPartition):
    """What one Spark task reads: ranges of physical rows, in their order. A fragment may be in several groups."""

    row_ranges: tuple[RowRange, ...]

    @property
    def fragment_ids(self) -> tuple[int, ...]:
        """The fragments, in the order of their rows."""
        return tuple(fragment_id for fragment_id, _, _ in self.row_ranges)


def share_blocks(
    snapshot: Snapshot,
    blocks: Sequence[Block],
    schema: Schema,
    num_partitions: int | None,
    num_slots: int | None = None,
) -> tuple[list[FragmentGroup], int]:
    """Return groups that together have every row of the blocks, and about how many bytes their columns take.

    The blocks are in the order of their rows, and a fragment may have several. `schema` has the columns to read. There
    are at most `num_partitions` groups; if it is None, as many as keep all cores busy and each group below the size of
    a partition. A given number is reached by cutting fragments, however small.

    `num_slots` is how many tasks the cluster runs at once; its cores count as long as each group is worth a cut. It is
    None where no session can be asked, as in the process that plans a read of `format("lance")`: the cores of this
    machine stand for the cluster's there.
    """
    blocks = [block for block in blocks if len(block)]
    whole = projected_sizes(snapshot, [block.fragment for block in blocks], schema)
    sizes = [_share(whole[block.fragment.id], block) for block in blocks]
    total = sum(sizes)
    num_groups = num_partitions or max(_busy_groups(total, num_slots), -(-total // _BYTES_PER_PARTITION))
    cut = max(total // num_groups, 1 if num_partitions else _LEAST_BYTES_PER_CUT)
    parts: dict[RowRange, int] = {}
    for block, size in zip(blocks, sizes, strict=True):
        pieces = _cut(block, min(max((size + cut // 2) // cut, 1), len(block)))
        parts.update((piece, max(size // len(pieces), 1)) for piece in pieces)
    return [FragmentGroup(_joined(group)) for group in group_evenly(parts, num_groups)], total


def _busy_groups(total_bytes: int, num_slots: int | None) -> int:
    """Return how many groups keep all cores busy; a small read needs no more than the cores of this machine do."""
    here = _TASKS_PER_CORE * (os.cpu_count() or 1)
    if num_slots is None:
        return here
    return min(_TASKS_PER_CORE * num_slots, max(here, total_bytes // _LEAST_BYTES_PER_CUT))


def group_evenly(sizes: Mapping[K, int], num_groups: int) -> list[tuple[K, ...]]:
    """Cut a list of parts into at most `num_groups` runs of about equal size.

    A part belongs to the run that holds its middle, so no part is split and no run is empty.
    """
    total = sum(sizes.values())
    groups: dict[int, list[K]] = {}
    before = 0
    for part, size in sizes.items():
        groups.setdefault((2 * before + size) * num_groups // (2 * total), []).append(part)
        before += size
    return [tuple(group) for group in groups.values()]


def _share(size_bytes: int, block: Block) -> int:
    return max(size_bytes * len(block) // max(block.fragment.physical_rows, 1), 1)


def _cut(block: Block, num_pieces: int) -> list[RowRange]:
    """Return ranges of physical rows, each with about as many rows of the block."""
    inner = [len(block) * piece // num_pieces for piece in range(1, num_pieces)]
    ends = [block.start + row if block.chosen is None else block.chosen[row] for row in inner]
    starts = [block.start, *ends]
    return [(block.fragment.id, start, end) for start, end in zip(starts, [*ends, block.stop], strict=True)]


def _joined(ranges: Sequence[RowRange]) -> tuple[RowRange, ...]:
    """Return the ranges with neighbours in one fragment joined."""
    joined: list[RowRange] = []
    for fragment_id, start, end in ranges:
        if joined and joined[-1][0] == fragment_id:
            joined[-1] = (fragment_id, joined[-1][1], end)
        else:
            joined.append((fragment_id, start, end))
    return tuple(joined)
