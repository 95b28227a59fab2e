"""Compare two versions of a table with stable row ids: which rows were inserted, updated and deleted.

Each version is described as runs of live rows: rows with consecutive ids and addresses that the same versions created
and last updated. The runs of both versions are cut where a run of either begins or ends. Then each part is in one
version, or in both:

    only in the later    inserted
    only in the earlier  deleted
    in both              updated, if the versions that last updated it differ

No values are read. In a fragment that both versions have, only the rows that one of them deleted are compared. A
compaction keeps the ids and versions of the rows that it moves. A restore brings earlier rows and versions back, and
is compared like any other version.

If the earlier version was cleaned up, the versions that the later one records for its rows say which rows were inserted
or updated since. They do not know of restores, and deleted rows are unknown.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
from pyroaring import BitMap

from lance_ops.core.addresses import row_addr
from lance_ops.core.errors import InvalidInput, VersionNotFound
from lance_ops.core.ndarrays import BoolArray, Uint64Array
from lance_ops.core.records import dataclass
from lance_ops.indices import RowAddressSet
from lance_ops.snapshot import Snapshot
from lance_ops.table import Fragment
from lance_ops.table.rows import RowIds, offsets_in

__all__ = ["Changes", "changes_between"]


_LONG_RUN_ROWS = 64  # a bitmap takes such a run as a range; the rows of shorter runs are added all at once


@dataclass(frozen=True, eq=False)
class Changes:
    """Rows of the later version by address, and ascending ids of the deleted rows; None if those are unknown."""

    inserted: RowAddressSet
    updated: RowAddressSet
    deleted: Uint64Array | None


def changes_between(begin_version: int, end: Snapshot) -> Changes:
    """Compare a version (0 is the empty table before the first) with a later one.

    Raises `InvalidInput` if it is not earlier, or if there are no stable row ids.
    """
    if not end.manifest.uses_stable_row_ids:
        raise InvalidInput(f"{end.uri}: comparing versions needs stable row ids, which the table does not have")
    if begin_version > end.version:
        raise InvalidInput(f"begin version {begin_version} is newer than end version {end.version}")
    if begin_version == 0:
        return _compare(_Runs.joined([]), _all_runs(end))
    try:
        begin = end.at(begin_version)
    except VersionNotFound:
        return _changes_by_row_versions(begin_version, end)
    before, after = begin.fragments_by_id, end.fragments_by_id
    shared = {key for key in before.keys() & after.keys() if _has_same_rows(before[key], after[key])}
    thinned = [key for key in shared if before[key].deletion_file != after[key].deletion_file]
    begin.read_deletion_vectors([before[key] for key in (*thinned, *(before.keys() - shared))])
    end.read_deletion_vectors([after[key] for key in (*thinned, *(after.keys() - shared))])
    earlier, later = [], []
    for key in thinned:
        was, now = begin.deletion_vector(before[key]), end.deletion_vector(after[key])
        earlier.append(_runs_of(end, after[key], now - was))
        later.append(_runs_of(begin, before[key], was - now))
    earlier += [_live_runs(begin, fragment) for key, fragment in before.items() if key not in shared]
    later += [_live_runs(end, fragment) for key, fragment in after.items() if key not in shared]
    return _compare(_Runs.joined(earlier), _Runs.joined(later))


@dataclass(frozen=True, eq=False)
class _Runs:
    """Runs of rows in ascending order of ids: ids `starts` to `ends` (exclusive), at `addresses` and following."""

    starts: Uint64Array
    ends: Uint64Array
    addresses: Uint64Array
    created_at: Uint64Array
    updated_at: Uint64Array

    @classmethod
    def joined(cls, parts: Sequence[tuple[Uint64Array, ...]]) -> _Runs:
        """Return the runs of all fragments in one, each fragment given as a tuple of these columns."""
        if not parts:
            return cls(*[np.empty(0, np.uint64)] * 5)
        columns = [np.concatenate(column) for column in zip(*parts, strict=True)]
        if (columns[0][1:] > columns[0][:-1]).all():
            return cls(*columns)
        order = np.argsort(columns[0])
        return cls(*(column[order] for column in columns))

    def at(self, row_ids: Uint64Array) -> tuple[BoolArray, npt.NDArray[np.intp]]:
        """Return a mask of the ids that are in a run, and for each id the index of its run."""
        if not len(self.starts):
            return np.zeros(len(row_ids), np.bool_), np.zeros(len(row_ids), np.intp)
        after = np.searchsorted(self.starts, row_ids, side="right")
        runs = np.maximum(after, 1) - 1
        return (after > 0) & (row_ids < self.ends[runs]), runs

    def overlap(self, others: _Runs) -> BoolArray:
        """Return a mask of the runs that share an id with one of the others."""
        first = np.searchsorted(self.ends, others.starts, side="right")
        after = np.searchsorted(self.starts, others.ends)
        length = len(self.starts) + 1
        steps = np.bincount(first, minlength=length) - np.bincount(after, minlength=length)
        overlapping: BoolArray = np.cumsum(steps)[:-1] > 0
        return overlapping

    def chosen(self, mask: BoolArray) -> _Runs:
        """Return the runs at which the mask is true."""
        if mask.all():
            return self
        columns = (self.starts, self.ends, self.addresses, self.created_at, self.updated_at)
        return _Runs(*(column[mask] for column in columns))

    def rows(self) -> RowAddressSet:
        """Return the addresses of all rows in the runs."""
        lengths = self.ends - self.starts
        long = lengths >= _LONG_RUN_ROWS
        bitmaps: dict[int, BitMap] = {}
        for address, length in zip(self.addresses[long].tolist(), lengths[long].tolist(), strict=True):
            offset = address & 0xFFFF_FFFF
            bitmaps.setdefault(address >> 32, BitMap()).add_range(offset, offset + length)
        short = self.addresses[~long]
        short_rows = RowAddressSet.from_addresses(_consecutive(short, short + lengths[~long]))
        return RowAddressSet.union((RowAddressSet.from_bitmaps(bitmaps), short_rows))

    def row_ids(self) -> Uint64Array:
        """Return the ids of all rows in the runs, ascending."""
        return _consecutive(self.starts, self.ends)


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


def _has_same_rows(before: Fragment, after: Fragment) -> bool:
    """Return whether the fragment has the same row ids and updates in both versions, deletions aside."""
    return (before.row_ids, before.last_updated_at_versions) == (after.row_ids, after.last_updated_at_versions)


def _compare(earlier: _Runs, later: _Runs) -> Changes:
    """Compare overlapping runs part by part; the rows of all other runs were inserted or deleted."""
    is_deleted, is_inserted = ~earlier.overlap(later), ~later.overlap(earlier)
    deleted_runs, inserted_runs = earlier.chosen(is_deleted), later.chosen(is_inserted)
    inserted, updated, deleted = _compare_parts(earlier.chosen(~is_deleted), later.chosen(~is_inserted))
    return Changes(
        inserted=inserted_runs.rows() | inserted.rows(),
        updated=updated.rows(),
        deleted=np.sort(np.concatenate((deleted_runs.row_ids(), deleted))),
    )


def _compare_parts(earlier: _Runs, later: _Runs) -> tuple[_Runs, _Runs, Uint64Array]:
    """Return the inserted and the updated runs, and the ids of the deleted rows."""
    cuts = np.sort(np.concatenate((earlier.starts, earlier.ends, later.starts, later.ends)))
    proper = cuts[1:] > cuts[:-1]
    starts, ends = cuts[:-1][proper], cuts[1:][proper]
    in_earlier, earlier_run = earlier.at(starts)
    in_later, later_run = later.at(starts)
    both = in_earlier & in_later
    updated = both.copy()
    updated[both] = earlier.updated_at[earlier_run[both]] != later.updated_at[later_run[both]]
    parts = _parts(later, starts, ends, in_later, later_run)
    deleted = in_earlier & ~in_later
    inserted_parts, updated_parts = parts.chosen(~in_earlier[in_later]), parts.chosen(updated[in_later])
    return inserted_parts, updated_parts, _consecutive(starts[deleted], ends[deleted])


def _parts(
    runs: _Runs, starts: Uint64Array, ends: Uint64Array, chosen: BoolArray, run_of: npt.NDArray[np.intp]
) -> _Runs:
    """Return the parts at which `chosen` is true: ids `starts` to `ends` of the run at the same index of `run_of`."""
    source, first = run_of[chosen], starts[chosen]
    return _Runs(
        first,
        ends[chosen],
        runs.addresses[source] + (first - runs.starts[source]),
        runs.created_at[source],
        runs.updated_at[source],
    )


def _consecutive(starts: Uint64Array, ends: Uint64Array) -> Uint64Array:
    counts = (ends - starts).astype(np.int64)
    before = np.cumsum(counts) - counts
    return np.repeat(starts - before.astype(np.uint64), counts) + np.arange(counts.sum(), dtype=np.uint64)


def _changes_by_row_versions(begin_version: int, end: Snapshot) -> Changes:
    runs = _all_runs(end)
    inserted = runs.created_at > begin_version
    updated = ~inserted & (runs.updated_at > begin_version)
    return Changes(runs.chosen(inserted).rows(), runs.chosen(updated).rows(), None)
