"""Cut each side of a merge by tasks into parts: a task reads the rows of one.

A part has some fragments, or a range of the rows of one large fragment. Parts follow each other by row address, so the
first address of each says which part a row is in.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterator, Sequence
from dataclasses import replace
from itertools import pairwise

import numpy as np

from lance_ops.core.addresses import row_addr
from lance_ops.core.ndarrays import Uint64Array
from lance_ops.core.records import dataclass
from lance_ops.core.schema import Schema
from lance_ops.reading import ScanRequest
from lance_ops.snapshot import Snapshot, projected_sizes
from lance_ops.table import Fragment

__all__ = ["Part", "TaskSizes", "cut_into_parts", "first_addresses"]

_LARGE_PART_FACTOR = 2
"""A fragment is cut into parts of at least this many times the limits of `TaskSizes`, and only into two or more."""

_MOST_PARTS = 1 << 13
"""A side has at most about twice as many parts. What the steps exchange grows with the parts times the buckets."""


@dataclass(frozen=True)
class TaskSizes:
    """How much one task reads. The bytes are those that the files take, so they are less than the memory."""

    rows_per_bucket: int = 1 << 20
    bytes_per_bucket: int = 32 << 20
    rows_per_part: int = 1 << 20
    bytes_per_part: int = 64 << 20
    fragments_per_part: int = 64

    def times(self, number: int) -> TaskSizes:
        """Return sizes with which a part has this many times as much."""
        return replace(
            self,
            rows_per_part=self.rows_per_part * number,
            bytes_per_part=self.bytes_per_part * number,
            fragments_per_part=self.fragments_per_part * number,
        )


@dataclass(frozen=True)
class Part:
    """Fragments of one side for one task; with `rows`, only these physical offsets of the one fragment."""

    fragment_ids: tuple[int, ...]
    num_rows: int
    size_bytes: int
    rows: range | None = None

    @property
    def first_row(self) -> int:
        """The physical offset, in its fragment, of the first row."""
        return self.rows.start if self.rows else 0

    def request(self, request: ScanRequest) -> ScanRequest:
        """Return the request for the part's rows alone."""
        ranges = tuple((fragment_id, self.rows.start, self.rows.stop) for fragment_id in self.fragment_ids if self.rows)
        return replace(request, fragment_ids=self.fragment_ids, row_ranges=ranges)

    def rows_of(self, fragment: Fragment) -> range:
        """Return the physical offsets of one of its fragments that the part has."""
        return self.rows or range(fragment.physical_rows)

    def with_next(self, other: Part, sizes: TaskSizes) -> Part | None:
        """Return the part with the fragments of another one besides; None if these are too many for one task."""
        joined = Part(
            self.fragment_ids + other.fragment_ids, self.num_rows + other.num_rows, self.size_bytes + other.size_bytes
        )
        fits = (
            len(joined.fragment_ids) <= sizes.fragments_per_part
            and joined.num_rows <= sizes.rows_per_part
            and joined.size_bytes <= sizes.bytes_per_part
        )
        return joined if fits else None

    def cut(self, sizes: TaskSizes) -> list[Part]:
        """Cut a part of one whole fragment into large parts, if it is worth several."""
        worth = max(self.num_rows // sizes.rows_per_part, self.size_bytes // sizes.bytes_per_part)
        num_parts = min(worth // _LARGE_PART_FACTOR, self.num_rows)
        if num_parts <= 1:
            return [self]
        ends = [self.num_rows * number // num_parts for number in range(num_parts + 1)]
        return [
            Part(self.fragment_ids, stop - first, self.size_bytes * (stop - first) // self.num_rows, range(first, stop))
            for first, stop in pairwise(ends)
        ]


def first_addresses(parts: Sequence[Part], *, whole_fragments: bool = False) -> Uint64Array:
    """Return the first row address of each part.

    With `whole_fragments`, the parts of one fragment count as one: however many tasks read a fragment's rows, one
    task writes its deletion file, and one the file of its columns.
    """
    chosen = (part for part in parts if not whole_fragments or part.first_row == 0)
    return np.array([row_addr(part.fragment_ids[0], part.first_row) for part in chosen], np.uint64)


def cut_into_parts(
    snapshot: Snapshot, columns: Schema, sizes: TaskSizes, chosen: Collection[int] | None = None
) -> tuple[Part, ...]:
    """Cut a side's fragments, ascending by id, into parts of limited rows, of limited bytes of these columns.

    With `chosen`, only the fragments of these ids are in parts. The parts of a very large side have larger limits.
    """
    kept = (each for each in snapshot.fragments if chosen is None or each.id in chosen)
    fragments = sorted(kept, key=lambda fragment: fragment.id)
    size_bytes = projected_sizes(snapshot, fragments, columns) if fragments else {}
    wholes = [Part((each.id,), each.physical_rows, size_bytes[each.id]) for each in fragments]
    wanted = (
        len(wholes) / sizes.fragments_per_part
        + sum(part.num_rows for part in wholes) / sizes.rows_per_part
        + sum(part.size_bytes for part in wholes) / sizes.bytes_per_part
    )
    return tuple(_joined(wholes, sizes.times(max(1, math.ceil(wanted / _MOST_PARTS)))))


def _joined(wholes: Sequence[Part], sizes: TaskSizes) -> Iterator[Part]:
    """Yield parts of several small fragments, and several parts of a large one, in order."""
    last: Part | None = None
    for whole in wholes:
        pieces = whole.cut(sizes)
        joined = last.with_next(whole, sizes) if last is not None and len(pieces) == 1 else None
        if joined is None and last is not None:
            yield last
        if len(pieces) > 1:
            yield from pieces
            last = None
        else:
            last = joined or whole
    if last is not None:
        yield last
