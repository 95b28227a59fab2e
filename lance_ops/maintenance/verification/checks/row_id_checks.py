"""Find live rows that share a stable row id, one range of ids at a time.

The ids of a fragment are runs. Runs are swept by their first id, and each is compared with the run that reaches
furthest so far. The search of a range sweeps the runs that begin in it. Of the runs before the range, it needs only the
one that reaches furthest. So searches of all ranges together find what one sweep over all runs finds.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable

import numpy as np

from lance_ops.core.errors import LanceOpsError
from lance_ops.core.ndarrays import Int64Array, Uint64Array
from lance_ops.maintenance.verification.findings import DamageKind, FindingCollector
from lance_ops.snapshot import Snapshot
from lance_ops.table.rows import offsets_in

__all__ = ["SharedRowId", "find_shared_row_ids", "record_shared_row_ids"]

_SHOWN = 5


@dataclasses.dataclass(frozen=True, order=True)
class SharedRowId:
    """A stable row id that live rows of fragments `first` and `second` share; `first` <= `second`, and may be equal."""

    version: int
    first: int
    second: int
    row_id: int
    path: str
    """The manifest of the version."""


def find_shared_row_ids(snapshot: Snapshot, start: int, stop: int, max_runs: int) -> list[SharedRowId]:
    """Return ids that live rows share, one for each of the first few pairs of fragments that share any.

    Searches the runs of ids that begin in `[start, stop)`, and the run before them that reaches furthest into the
    range. Holds about `max_runs` runs in memory: a range with more is searched in halves. A range of one id is not
    halved, whatever its number of runs.
    """
    runs = _live_runs(snapshot, start, stop, max_runs if stop - start > 1 else None)
    if runs is None:
        middle = (start + stop) // 2
        halves = ((start, middle), (middle, stop))
        return _first_pairs(shared for half in halves for shared in find_shared_row_ids(snapshot, *half, max_runs))
    starts, ends, owners = runs
    order = np.argsort(starts, kind="stable")
    starts, ends, owners = starts[order], ends[order], owners[order]
    if not len(ends):
        return []
    furthest = np.maximum.accumulate(ends)
    holders = np.maximum.accumulate(np.where(ends == furthest, np.arange(len(ends)), 0))
    twice = np.flatnonzero(starts[1:] < furthest[:-1]) + 1
    pairs = zip(owners[holders[twice - 1]].tolist(), owners[twice].tolist(), starts[twice].tolist(), strict=True)
    return _first_pairs(
        SharedRowId(snapshot.version, min(one, other), max(one, other), row_id, snapshot.manifest_uri)
        for one, other, row_id in pairs
    )


def record_shared_row_ids(shared: Iterable[SharedRowId], found: FindingCollector) -> None:
    """Record a damage for the first few pairs of fragments of each version that share ids."""
    by_version: dict[int, list[SharedRowId]] = {}
    for each in shared:
        by_version.setdefault(each.version, []).append(each)
    for version, its_pairs in sorted(by_version.items()):
        for each in _first_pairs(its_pairs):
            detail = f"live rows of fragments {each.first} and {each.second} share the row id {each.row_id}"
            found.of_version(version).damaged(DamageKind.ROW_IDS, detail, each.path, fragment_id=each.second)


def _first_pairs(shared: Iterable[SharedRowId]) -> list[SharedRowId]:
    """Return the first few pairs, each with the highest of its ids."""
    highest = {(each.first, each.second): each for each in sorted(shared)}
    return [highest[pair] for pair in sorted(highest)[:_SHOWN]]


def _live_runs(
    snapshot: Snapshot, start: int, stop: int, limit: int | None
) -> tuple[Uint64Array, Uint64Array, Int64Array] | None:
    """Return the first and the last id (exclusive) of runs of live rows, and each run's fragment.

    These are the runs that begin in a range, after the run before the range that reaches furthest into it, if any does.
    Returns None if more than `limit` begin in it. The deletions of a fragment without ids in the range are not read.
    """
    lowest, highest = np.uint64(start), np.uint64(stop)
    starts, ends, owners = [np.empty(0, np.uint64)], [np.empty(0, np.uint64)], [np.empty(0, np.int64)]
    before: tuple[int, int, int] | None = None
    num_runs = 0
    for fragment in snapshot.fragments:
        try:
            ids = snapshot.lineage(fragment).row_ids
            if not ((ids.starts < highest) & (ids.starts + ids.lengths > lowest)).any():
                continue
            deleted = snapshot.deletion_vector(fragment)
        except LanceOpsError:
            continue  # the check of this fragment records it
        live = ids.without(offsets_in(deleted)) if deleted else ids
        live_ends = live.starts + live.lengths
        begins = (live.starts >= lowest) & (live.starts < highest)
        for at in np.flatnonzero((live.starts < lowest) & (live_ends > lowest)).tolist():
            reached = int(live_ends[at]), int(live.starts[at]), fragment.id
            before = reached if before is None or reached[:2] >= before[:2] else before
        starts.append(live.starts[begins])
        ends.append(live_ends[begins])
        owners.append(np.full(len(starts[-1]), fragment.id, np.int64))
        num_runs += len(starts[-1])
        if limit is not None and num_runs > limit:
            return None
    if before is not None:
        starts[0], ends[0] = np.array([before[1]], np.uint64), np.array([before[0]], np.uint64)
        owners[0] = np.array([before[2]], np.int64)
    return np.concatenate(starts), np.concatenate(ends), np.concatenate(owners)
