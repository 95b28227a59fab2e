"""Find rows by stable row id: which address has the live row of an id.

Ids were given in the rows' order and fragments keep most of them so, and what is missing was deleted: live rows fall
into runs of consecutive ids at consecutive addresses. The index is the list of those runs by their first id, and a
lookup one binary search. Where runs are so short that a table with a place for every id is smaller, it is that table.

A row that was updated leaves its id behind in the fragment it moved out of, hidden by the deletion vector, so an id may
stand in several fragments. Deleted rows are left out here, and each id must then be there once.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
from pyroaring import BitMap

from lance_ops.core.addresses import TOMBSTONE_ROW, row_addr
from lance_ops.core.errors import CorruptFile
from lance_ops.core.ndarrays import Uint64Array
from lance_ops.table.rows.roaring import offsets_in
from lance_ops.table.rows.row_lineage import RowIds

__all__ = ["RowIdIndex", "RowIdRuns", "RowIdTable", "build_row_id_index"]


_RUN_WORDS = 3  # that a run takes, where a table takes one for each id
_SORT_FROM = 256  # needles: in an index beyond the caches as many are found faster in order, and then put back
_LARGE = 1 << 16  # runs


class RowIdIndex(ABC):
    """Where the live rows of one version are, by row id."""

    @property
    @abstractmethod
    def size_bytes(self) -> int:
        """How much memory it takes."""

    @abstractmethod
    def find(self, row_ids: Uint64Array) -> Uint64Array:
        """Return the addresses of live rows, shape as asked: `TOMBSTONE_ROW` for an id that no live row has."""


@dataclass(frozen=True, eq=False)
class RowIdRuns(RowIdIndex):
    """Runs of rows, ascending and disjoint: ids `starts` to `ends` (exclusive) are at id plus `shifts`, modulo 2^64."""

    starts: Uint64Array
    ends: Uint64Array
    shifts: Uint64Array

    @property
    def size_bytes(self) -> int:
        return self.starts.nbytes + self.ends.nbytes + self.shifts.nbytes

    def find(self, row_ids: Uint64Array) -> Uint64Array:
        if not len(self.starts):
            return np.full(len(row_ids), TOMBSTONE_ROW, np.uint64)
        if len(row_ids) < _SORT_FROM or len(self.starts) < _LARGE:
            return self._find(row_ids)
        order = np.argsort(row_ids)
        found = np.empty(len(row_ids), np.uint64)
        found[order] = self._find(row_ids[order])
        return found

    def _find(self, row_ids: Uint64Array) -> Uint64Array:
        after = np.searchsorted(self.starts, row_ids, side="right")
        runs = np.maximum(after, 1) - 1
        found: Uint64Array = row_ids + self.shifts[runs]
        found[(after == 0) | (row_ids >= self.ends[runs])] = TOMBSTONE_ROW
        return found


@dataclass(frozen=True, eq=False)
class RowIdTable(RowIdIndex):
    """The address of every id from `base` on, `TOMBSTONE_ROW` where there is none."""

    base: int
    addresses: Uint64Array

    @property
    def size_bytes(self) -> int:
        return self.addresses.nbytes

    def find(self, row_ids: Uint64Array) -> Uint64Array:
        places = row_ids - np.uint64(self.base)  # wraps around below the base
        beyond = places >= len(self.addresses)
        places[beyond] = 0
        found: Uint64Array = self.addresses[places]
        found[beyond] = TOMBSTONE_ROW
        return found


def build_row_id_index(fragments: Iterable[tuple[int, RowIds, BitMap]], path: str) -> RowIdIndex:
    """Build from each fragment's id, row ids and deletion vector; `path` names the manifest in errors.

    Raises `CorruptFile` if two live rows have the same id.
    """
    live = [
        _Live(row_addr(number, 0), ids.without(offsets_in(deleted)) if deleted else ids)
        for number, ids, deleted in fragments
    ]
    starts = _joined([part.row_ids.starts for part in live])
    lengths = _joined([part.row_ids.lengths for part in live])
    if len(starts):
        base, last = int(starts.min()), int((starts + (lengths - np.uint64(1))).max())
        if last - base < _RUN_WORDS * len(starts):
            return _table(live, base, last, path)
    origins = np.array([part.first_addr for part in live], np.uint64)
    shifts = np.repeat(origins, [len(part.row_ids.starts) for part in live])
    shifts += _joined([part.row_ids.rows for part in live]) - starts
    return _runs(starts, starts + lengths, shifts, path)


@dataclass(frozen=True, eq=False, slots=True)
class _Live:
    """The live rows of a fragment and the address of its row 0."""

    first_addr: int
    row_ids: RowIds


def _runs(starts: Uint64Array, ends: Uint64Array, shifts: Uint64Array, path: str) -> RowIdRuns:
    if not (starts[1:] > starts[:-1]).all():
        order = np.argsort(starts)
        starts, ends, shifts = starts[order], ends[order], shifts[order]
    twice = np.flatnonzero(starts[1:] < ends[:-1])
    if len(twice):
        raise _repeated(path, int(starts[1:][twice[0]]))
    return RowIdRuns(starts, ends, shifts)


def _table(live: list[_Live], base: int, last: int, path: str) -> RowIdTable:
    """Fill in fragment by fragment: all their rows at once would take several times the table."""
    addresses = np.full(last - base + 1, TOMBSTONE_ROW, np.uint64)
    for part in live:
        ids, rows = part.row_ids.expand()
        addresses[ids - np.uint64(base)] = rows + np.uint64(part.first_addr)
    if np.count_nonzero(addresses != TOMBSTONE_ROW) < sum(int(part.row_ids.lengths.sum()) for part in live):
        all_ids, times = np.unique(_joined([part.row_ids.expand()[0] for part in live]), return_counts=True)
        raise _repeated(path, int(all_ids[times > 1][0]))
    return RowIdTable(base, addresses)


def _repeated(path: str, row_id: int) -> CorruptFile:
    return CorruptFile(path, "row id sequence", f"two live rows have the id {row_id}")


def _joined(parts: list[Uint64Array]) -> Uint64Array:
    return np.concatenate(parts) if parts else np.empty(0, np.uint64)
