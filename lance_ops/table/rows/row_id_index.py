"""The index from stable row ids to the addresses of live rows.

Ids are given out in the order of rows, and fragments mostly keep that order; ids are missing where rows were deleted.
So live rows form runs of consecutive ids at consecutive addresses. The index is the list of these runs, sorted by their
first id, and a lookup is one binary search. If the runs are so short that an array with an entry for every id is
smaller, the index is that array.

An update writes a row to another fragment under the same id. The old fragment still lists the id, and its deletion
vector hides the row. So an id may occur in several fragments, but only once among live rows.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable

import numpy as np
from pyroaring import BitMap

from lance_ops.core.addresses import TOMBSTONE_ROW, row_addr
from lance_ops.core.errors import CorruptFile
from lance_ops.core.ndarrays import Uint64Array
from lance_ops.core.records import dataclass
from lance_ops.table.rows.roaring import offsets_in
from lance_ops.table.rows.row_id_runs import RowIds

__all__ = ["RowIdIndex", "RowIdRuns", "RowIdTable", "build_row_id_index"]


_RUN_WORDS = 3  # the size of a run; a table takes one word for each id
_SORT_FROM = 256  # ids; in an index larger than the CPU caches, this many are found faster in sorted order
_LARGE = 1 << 16  # runs


class RowIdIndex(ABC):
    """Maps the row ids of one version to the addresses of its live rows."""

    @property
    @abstractmethod
    def size_bytes(self) -> int:
        """The memory that the index takes."""

    @abstractmethod
    def find(self, row_ids: Uint64Array) -> Uint64Array:
        """Return the address for each id, shape (n,): `TOMBSTONE_ROW` for an id that no live row has."""


@dataclass(frozen=True, eq=False)
class RowIdRuns(RowIdIndex):
    """Disjoint runs, ascending by id: the row with an id from `starts` to `ends` (exclusive) is at id + `shifts`.

    The addition is modulo 2^64.
    """

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
    """The address for every id from `base` on, `TOMBSTONE_ROW` for an id without a live row."""

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
        _LiveRows(row_addr(number, 0), ids.without(offsets_in(deleted)) if deleted else ids)
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
class _LiveRows:
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


def _table(live: list[_LiveRows], base: int, last: int, path: str) -> RowIdTable:
    """Build the array fragment by fragment: expanding all rows at once would take several times its memory."""
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
