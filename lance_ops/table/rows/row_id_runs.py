"""The stable row ids and the versions of a fragment's rows, in memory, as runs of rows.

In a run of ids the ids count up; in a run of versions all rows have the same version. An appended fragment is one run,
however many rows it has. A deleted row ends a run and leaves a gap.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import pairwise

import numpy as np

from lance_ops.core.ndarrays import BoolArray, Int64Array, Uint32Array, Uint64Array
from lance_ops.core.records import dataclass

__all__ = ["RowIds", "RowVersions"]


_ONE = np.uint64(1)


@dataclass(frozen=True, eq=False)
class RowIds:
    """The ids of rows of a fragment: run `i` counts up from `starts[i]`, for the `lengths[i]` rows from `rows[i]` on.

    `rows` ascends. If some rows are left out, there are gaps between the runs.
    """

    starts: Uint64Array
    rows: Uint64Array
    lengths: Uint64Array

    @classmethod
    def of(cls, row_ids: Uint64Array) -> RowIds:
        """Return the runs of the ids of rows 0, 1, …"""
        cuts = _run_starts(row_ids[1:] - row_ids[:-1] != _ONE, len(row_ids))
        return cls(row_ids[cuts], cuts.astype(np.uint64), _lengths(cuts, len(row_ids)))

    @classmethod
    def counting_from(cls, start: int, count: int) -> RowIds:
        """Return the ids from `start` on, as those of rows 0, 1, …"""
        some = min(count, 1)
        return cls(*(np.array([value] * some, np.uint64) for value in (start, 0, count)))

    @classmethod
    def between(cls, starts: Uint64Array, ends: Uint64Array) -> RowIds:
        """Return the ids from each start to before its end, as those of rows 0, 1, …"""
        some = starts < ends
        lengths = (ends - starts)[some]
        return cls(starts[some], np.cumsum(lengths) - lengths, lengths)

    @classmethod
    def joined(cls, parts: Iterable[RowIds]) -> RowIds:
        """Return the rows of all parts as rows 0, 1, …"""
        runs = [(part.starts, part.lengths) for part in parts]
        starts, lengths = (_concatenate(column) for column in (zip(*runs, strict=True) if runs else ((), ())))
        return cls(starts, np.cumsum(lengths) - lengths, lengths)

    @property
    def num_rows(self) -> int:
        """The number of rows."""
        return int(self.lengths.sum())

    @property
    def end(self) -> int:
        """The number after the highest id; 0 if there is no id."""
        return int((self.starts + (self.lengths - _ONE)).max()) + 1 if len(self.starts) else 0

    def at(self, offsets: Uint64Array) -> Uint64Array:
        """Return the ids of the rows at physical offsets, which must be among its rows."""
        runs = np.searchsorted(self.rows, offsets, side="right") - 1
        ids: Uint64Array = self.starts[runs] + (offsets - self.rows[runs])
        return ids

    def find(self, row_ids: Uint64Array) -> tuple[Int64Array, Uint64Array]:
        """Return the positions of those `row_ids`, which ascend, that occur here, and the rows' offsets."""
        first = np.searchsorted(row_ids, self.starts)
        counts = np.searchsorted(row_ids, self.starts + (self.lengths - _ONE), side="right") - first
        before = np.cumsum(counts) - counts
        found = np.repeat(first - before, counts) + np.arange(counts.sum())
        return found, row_ids[found] + np.repeat(self.rows - self.starts, counts)

    def expand(self) -> tuple[Uint64Array, Uint64Array]:
        """Return every id and its row."""
        num_rows = self.num_rows
        if num_rows == len(self.starts):
            return self.starts, self.rows
        counts = self.lengths.astype(np.int64)
        within = np.arange(num_rows, dtype=np.uint64) - np.repeat(np.cumsum(self.lengths) - self.lengths, counts)
        return np.repeat(self.starts, counts) + within, np.repeat(self.rows, counts) + within

    def only(self, offsets: Uint32Array) -> RowIds:
        """Return the rows at these offsets, ascending, which must be among its rows."""
        rows = offsets.astype(np.uint64)
        ids = self.at(rows)
        apart = (ids[1:] - ids[:-1] != _ONE) | (rows[1:] - rows[:-1] != _ONE)
        cuts = _run_starts(apart, len(rows))
        return RowIds(ids[cuts], rows[cuts], _lengths(cuts, len(rows)))

    def without(self, deleted: Uint32Array) -> RowIds:
        """Return the ids without the rows at ascending offsets; these must be all the ids of a fragment."""
        if not len(deleted):
            return self
        num_rows = self.num_rows
        gone = np.zeros(num_rows, np.bool_)
        gone[deleted[deleted < num_rows]] = True
        cut = np.ones(num_rows, np.bool_)
        np.not_equal(gone[1:], gone[:-1], out=cut[1:])
        cut[self.rows] = True
        cuts = np.flatnonzero(cut)
        live = ~gone[cuts]
        rows = cuts[live].astype(np.uint64)
        return RowIds(self.at(rows), rows, _lengths(cuts, num_rows)[live])

    def cut_at(self, offsets: Uint64Array) -> RowIds:
        """Return the same rows with runs also cut at these ascending offsets, where there are rows."""
        if not len(self.rows):
            return self
        runs = np.maximum(np.searchsorted(self.rows, offsets, side="right"), 1) - 1
        within = offsets - self.rows[runs]  # wraps around before the first row
        inside = (within > 0) & (within < self.lengths[runs])
        if not inside.any():
            return self
        new, places = offsets[inside], runs[inside] + 1
        rows = np.insert(self.rows, places, new)
        ends = np.insert(self.rows + self.lengths, places, (self.rows + self.lengths)[runs[inside]])
        return RowIds(self.at(rows), rows, np.minimum(ends, np.append(rows[1:], ends[-1])) - rows)

    def split(self, counts: Sequence[int]) -> list[RowIds]:
        """Split the ids of a whole fragment into fragments with these numbers of rows."""
        bounds = np.cumsum([0, *counts]).astype(np.uint64)
        whole = self.cut_at(bounds[1:-1])
        places = np.searchsorted(whole.rows, bounds).tolist()
        return [
            RowIds(whole.starts[start:stop], whole.rows[start:stop] - bound, whole.lengths[start:stop])
            for bound, (start, stop) in zip(bounds[:-1], pairwise(places), strict=True)
        ]


@dataclass(frozen=True, eq=False)
class RowVersions:
    """The version of each row: rows from the previous end up to `ends[i]` (exclusive) have `versions[i]`."""

    versions: Uint64Array
    ends: Uint64Array

    @classmethod
    def of(cls, versions: Uint64Array) -> RowVersions:
        """Return the runs of the versions of rows 0, 1, …"""
        cuts = _run_starts(versions[1:] != versions[:-1], len(versions))
        return cls(versions[cuts], np.append(cuts[1:], len(versions))[: len(cuts)].astype(np.uint64))

    @classmethod
    def uniform(cls, version: int, num_rows: int) -> RowVersions:
        """Return one version for all rows."""
        return cls(np.array([version], np.uint64), np.array([num_rows], np.uint64))

    @classmethod
    def joined(cls, parts: Iterable[RowVersions]) -> RowVersions:
        """Return the versions of the rows of all parts, as rows 0, 1, …"""
        runs = [(part.versions, part.lengths) for part in parts]
        versions, lengths = (_concatenate(column) for column in (zip(*runs, strict=True) if runs else ((), ())))
        return cls(versions, np.cumsum(lengths))

    @property
    def lengths(self) -> Uint64Array:
        """The number of rows in each run."""
        return np.diff(self.ends, prepend=np.uint64(0))

    @property
    def num_rows(self) -> int:
        """The number of rows."""
        return int(self.ends[-1]) if len(self.ends) else 0

    def at(self, offsets: Uint64Array) -> Uint64Array:
        """Return the versions of the rows at physical offsets."""
        if len(self.versions) == 1:
            return np.full(len(offsets), self.versions[0])
        found: Uint64Array = self.versions[np.searchsorted(self.ends, offsets, side="right")]
        return found

    def expand(self) -> Uint64Array:
        """Return the version of every row."""
        return np.repeat(self.versions, self.lengths.astype(np.int64))

    def without(self, deleted: Uint32Array) -> RowVersions:
        """Return the versions without the rows at ascending offsets."""
        return RowVersions(self.versions, self.ends - np.searchsorted(deleted, self.ends).astype(np.uint64))

    def split(self, counts: Sequence[int]) -> list[RowVersions]:
        """Split the versions into fragments with these numbers of rows."""
        bounds = np.cumsum([0, *counts]).astype(np.uint64)
        first = np.searchsorted(self.ends, bounds[:-1], side="right").tolist()
        last = np.searchsorted(self.ends, bounds[1:]).tolist()
        return [
            RowVersions(self.versions[start : stop + 1], np.minimum(self.ends[start : stop + 1], end) - begin)
            for start, stop, begin, end in zip(first, last, bounds[:-1], bounds[1:], strict=True)
        ]


def _run_starts(breaks: BoolArray, num_rows: int) -> Int64Array:
    """Return the first row of each run: row 0, if there is one, and the row after each break between neighbours."""
    return np.concatenate((np.zeros(min(num_rows, 1), np.int64), np.flatnonzero(breaks) + 1))


def _lengths(cuts: Int64Array, num_rows: int) -> Uint64Array:
    return np.diff(cuts, append=num_rows).astype(np.uint64)


def _concatenate(parts: Sequence[Uint64Array]) -> Uint64Array:
    return np.concatenate(parts) if parts else np.empty(0, np.uint64)
