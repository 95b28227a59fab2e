"""Which rows were inserted, updated and deleted between two versions of a table of stable row ids.

Both versions are laid out as runs of live rows that have consecutive ids, lie one after the other and were last changed
by the same version. Cut where a run of either begins or ends, every part of the ids is in one, the other, or both:

    only in the later    inserted
    only in the earlier  deleted
    in both              updated, if another version changed it last

No value is read for this, and of a fragment that both versions have only the rows that one of them has deleted are
looked at. Rows that moved, as in a compaction, kept their ids and versions. A restore brings rows and versions of the
past back: it is seen for what it changes.

Of an earlier version that was cleaned up nothing is left to compare. What was inserted or updated since is then told by
the versions that the later one states of its rows, which know nothing of restores; what was deleted cannot be told.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from pyroaring import BitMap

from lance_ops.core.addresses import row_addr
from lance_ops.core.errors import InvalidInput, VersionNotFound
from lance_ops.core.ndarrays import BoolArray, Uint64Array
from lance_ops.indices import RowAddressSet
from lance_ops.snapshot import Snapshot
from lance_ops.table import Fragment
from lance_ops.table.rows import RowIds, offsets_in

__all__ = ["Changes", "changes_between"]


_LONG = 64  # rows of a run: a bitmap takes it as a range, shorter ones row by row all at once


@dataclass(frozen=True, eq=False)
class Changes:
    """Rows of the later version by address, and the ids of those it has not, ascending; None if they cannot be told."""

    inserted: RowAddressSet
    updated: RowAddressSet
    deleted: Uint64Array | None


def changes_between(begin_version: int, end: Snapshot) -> Changes:
    """Compare a version (0 is the empty table before the first) with a later one.

    Raises `InvalidInput` if it is not earlier, or if there are no stable row ids.
    """
    if not end.manifest.uses_stable_row_ids:
        raise InvalidInput(f"{end.uri}: changes between versions are told by stable row ids, which the table lacks")
    if begin_version > end.version:
        raise InvalidInput(f"begin version {begin_version} is newer than end version {end.version}")
    if begin_version == 0:
        return _compare(_Runs.joined([]), _all_runs(end))
    try:
        begin = end.at(begin_version)
    except VersionNotFound:
        return _told_by_versions(begin_version, end)
    before, after = begin.fragments_by_id, end.fragments_by_id
    kept = {key for key in before.keys() & after.keys() if _is_same(before[key], after[key])}
    thinned = [key for key in kept if before[key].deletion_file != after[key].deletion_file]
    begin.read_deletion_vectors([before[key] for key in (*thinned, *(before.keys() - kept))])
    end.read_deletion_vectors([after[key] for key in (*thinned, *(after.keys() - kept))])
    lost, found = [], []
    for key in thinned:
        was, now = begin.deletion_vector(before[key]), end.deletion_vector(after[key])
        lost.append(_runs_of(end, after[key], now - was))
        found.append(_runs_of(begin, before[key], was - now))
    lost += [_live_runs(begin, fragment) for key, fragment in before.items() if key not in kept]
    found += [_live_runs(end, fragment) for key, fragment in after.items() if key not in kept]
    return _compare(_Runs.joined(lost), _Runs.joined(found))


@dataclass(frozen=True, eq=False)
class _Runs:
    """Runs of rows, by ascending id: ids `starts` to `ends` (exclusive), from `addresses` on."""

    starts: Uint64Array
    ends: Uint64Array
    addresses: Uint64Array
    created_at: Uint64Array
    updated_at: Uint64Array

    @classmethod
    def joined(cls, parts: Sequence[tuple[Uint64Array, ...]]) -> _Runs:
        """Return the runs of some fragments, each given as the columns of this."""
        if not parts:
            return cls(*[np.empty(0, np.uint64)] * 5)
        columns = [np.concatenate(column) for column in zip(*parts, strict=True)]
        if (columns[0][1:] > columns[0][:-1]).all():
            return cls(*columns)
        order = np.argsort(columns[0])
        return cls(*(column[order] for column in columns))

    def at(self, row_ids: Uint64Array) -> tuple[BoolArray, npt.NDArray[np.intp]]:
        """Return which ids are in a run, and in which."""
        if not len(self.starts):
            return np.zeros(len(row_ids), np.bool_), np.zeros(len(row_ids), np.intp)
        after = np.searchsorted(self.starts, row_ids, side="right")
        runs = np.maximum(after, 1) - 1
        return (after > 0) & (row_ids < self.ends[runs]), runs

    def meet(self, others: _Runs) -> BoolArray:
        """Return which runs share an id with one of the others."""
        first = np.searchsorted(self.ends, others.starts, side="right")
        after = np.searchsorted(self.starts, others.ends)
        places = len(self.starts) + 1
        steps = np.bincount(first, minlength=places) - np.bincount(after, minlength=places)
        met: BoolArray = np.cumsum(steps)[:-1] > 0
        return met

    def chosen(self, which: BoolArray) -> _Runs:
        """Return some of the runs."""
        if which.all():
            return self
        columns = (self.starts, self.ends, self.addresses, self.created_at, self.updated_at)
        return _Runs(*(column[which] for column in columns))

    def rows(self) -> RowAddressSet:
        """Return the rows of all runs."""
        lengths = self.ends - self.starts
        long = lengths >= _LONG
        bitmaps: dict[int, BitMap] = {}
        for address, length in zip(self.addresses[long].tolist(), lengths[long].tolist(), strict=True):
            offset = address & 0xFFFF_FFFF
            bitmaps.setdefault(address >> 32, BitMap()).add_range(offset, offset + length)
        short = self.addresses[~long]
        few = RowAddressSet.from_addresses(_expanded(short, short + lengths[~long]))
        return RowAddressSet.union((RowAddressSet.from_bitmaps(bitmaps), few))

    def row_ids(self) -> Uint64Array:
        """Return the ids of all rows, ascending."""
        return _expanded(self.starts, self.ends)


def _all_runs(snapshot: Snapshot) -> _Runs:
    snapshot.read_deletion_vectors(snapshot.fragments)
    return _Runs.joined([_live_runs(snapshot, fragment) for fragment in snapshot.fragments])


def _live_runs(snapshot: Snapshot, fragment: Fragment) -> tuple[Uint64Array, ...]:
    deleted = offsets_in(snapshot.deletion_vector(fragment))
    return _columns(snapshot, fragment, snapshot.lineage(fragment).row_ids.without(deleted))


def _runs_of(snapshot: Snapshot, fragment: Fragment, rows: BitMap) -> tuple[Uint64Array, ...]:
    offsets = offsets_in(rows)
    return _columns(snapshot, fragment, snapshot.lineage(fragment).row_ids.only(offsets))


def _columns(snapshot: Snapshot, fragment: Fragment, rows: RowIds) -> tuple[Uint64Array, ...]:
    lineage = snapshot.lineage(fragment)
    created, updated = lineage.created_at_versions, lineage.last_updated_at_versions
    runs = rows.cut_at(created.ends).cut_at(updated.ends)
    return (
        runs.starts,
        runs.starts + runs.lengths,
        runs.rows + np.uint64(row_addr(fragment.id, 0)),
        created.at(runs.rows),
        updated.at(runs.rows),
    )


def _is_same(before: Fragment, after: Fragment) -> bool:
    """Return whether the fragment has the same rows, deleted or not, in the same state."""
    return (before.row_ids, before.last_updated_at_versions) == (after.row_ids, after.last_updated_at_versions)


def _compare(earlier: _Runs, later: _Runs) -> Changes:
    """Compare runs that share ids part by part; the others were inserted or deleted whole."""
    gone, new = ~earlier.meet(later), ~later.meet(earlier)
    lost, found = earlier.chosen(gone), later.chosen(new)
    inserted, updated, deleted = _compare_parts(earlier.chosen(~gone), later.chosen(~new))
    return Changes(
        inserted=found.rows() | inserted.rows(),
        updated=updated.rows(),
        deleted=np.sort(np.concatenate((lost.row_ids(), deleted))),
    )


def _compare_parts(earlier: _Runs, later: _Runs) -> tuple[_Runs, _Runs, Uint64Array]:
    """Return what was inserted and updated, and the ids of what was deleted."""
    cuts = np.sort(np.concatenate((earlier.starts, earlier.ends, later.starts, later.ends)))
    proper = cuts[1:] > cuts[:-1]
    starts, ends = cuts[:-1][proper], cuts[1:][proper]
    was, old = earlier.at(starts)
    there, new = later.at(starts)
    both = was & there
    updated = both.copy()
    updated[both] = earlier.updated_at[old[both]] != later.updated_at[new[both]]
    parts = _parts(later, starts, ends, there, new)
    gone = was & ~there
    return parts.chosen(~was[there]), parts.chosen(updated[there]), _expanded(starts[gone], ends[gone])


def _parts(
    runs: _Runs, starts: Uint64Array, ends: Uint64Array, chosen: BoolArray, places: npt.NDArray[np.intp]
) -> _Runs:
    """Return parts of runs: ids `starts` to `ends` out of those at `places`."""
    runs_of, first = places[chosen], starts[chosen]
    return _Runs(
        first,
        ends[chosen],
        runs.addresses[runs_of] + (first - runs.starts[runs_of]),
        runs.created_at[runs_of],
        runs.updated_at[runs_of],
    )


def _expanded(starts: Uint64Array, ends: Uint64Array) -> Uint64Array:
    counts = (ends - starts).astype(np.int64)
    before = np.cumsum(counts) - counts
    return np.repeat(starts - before.astype(np.uint64), counts) + np.arange(counts.sum(), dtype=np.uint64)


def _told_by_versions(begin_version: int, end: Snapshot) -> Changes:
    runs = _all_runs(end)
    inserted = runs.created_at > begin_version
    updated = ~inserted & (runs.updated_at > begin_version)
    return Changes(runs.chosen(inserted).rows(), runs.chosen(updated).rows(), None)
