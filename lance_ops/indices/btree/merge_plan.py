"""Cut sorted runs into shares of exact sizes, from samples of their keys.

Rows are ordered by their key, then by their run, then by their place in it, so no two rows are equal. Of each run the
keys of some rows are known: its first row, its last row, and rows at equal distances. So the rank of a sampled row
among all rows is known up to one distance for each run.

A share is the rows of the ranks from `first` up to, but without, `stop`. Its slices leave out rows whose rank is
certainly outside. The task that merges them skips the few rows before rank `first`, and stops after as many rows as the
share has. So shares have the planned sizes whatever the keys are, and the driver reads no row.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
import pyarrow as pa

from lance_ops.core.ndarrays import Int64Array
from lance_ops.core.records import dataclass
from lance_ops.indices.sort_keys import sort_indices

__all__ = ["RunSample", "Share", "plan_shares"]


@dataclass(frozen=True)
class RunSample:
    """The sort keys at some rows of a run of `num_rows` rows: the first one, the last one, and some between.

    `rows` ascends without repeats.
    """

    keys: pa.Array
    rows: Int64Array
    num_rows: int


@dataclass(frozen=True)
class Share:
    """For each run the rows from `starts[run]` to `stops[run]`; the share begins after `skip_rows` of them."""

    starts: Int64Array
    stops: Int64Array
    skip_rows: int
    num_rows: int


def plan_shares(samples: Sequence[RunSample], share_rows: int) -> Iterator[Share]:
    """Yield shares of `share_rows` rows, of which the last may have fewer; there is at least one row."""
    total = sum(sample.num_rows for sample in samples)
    merged = _MergedSamples(samples)
    starts = np.zeros(len(samples), np.int64)
    for first in range(0, total, share_rows):
        stop = min(first + share_rows, total)
        yield Share(starts, merged.rows_after(stop), first - int(starts.sum()), stop - first)
        starts = merged.rows_before(stop)


class _MergedSamples:
    """The samples of all runs in the order of their rows."""

    def __init__(self, samples: Sequence[RunSample]) -> None:
        counts = np.array([len(sample.keys) for sample in samples], np.int64)
        order = sort_indices(pa.concat_arrays([sample.keys for sample in samples])).to_numpy()
        self._runs = np.repeat(np.arange(len(counts)), counts)[order]
        # each run's rows, with the row before its first and the row after its last sample around each sample
        self._known = [np.concatenate(([-1], sample.rows, [sample.num_rows])) for sample in samples]
        before, after = (
            np.concatenate([known[at : len(known) - 2 + at] for known in self._known])[order] for at in (0, 2)
        )
        rows = np.concatenate([sample.rows for sample in samples])[order]
        self._rows = rows
        # the fewest and the most rows that can come before each sample, given the samples before it
        self._fewest = np.concatenate(([0], np.cumsum(rows - before)))[:-1]
        self._most = np.concatenate(([0], np.cumsum(after - rows)))[:-1]

    def rows_after(self, rank: int) -> Int64Array:
        """Return a row of each run from which on all rows have `rank` or a greater one."""
        place = int(np.searchsorted(self._fewest, rank, "left"))
        return self._at(self._num_before(place) + 1)

    def rows_before(self, rank: int) -> Int64Array:
        """Return a row of each run before which all rows have a rank less than `rank`."""
        place = int(np.searchsorted(self._most, rank, "right")) - 1
        rows = self._at(self._num_before(place)) + 1
        rows[self._runs[place]] = self._rows[place]
        return rows

    def _num_before(self, place: int) -> Int64Array:
        return np.bincount(self._runs[:place], minlength=len(self._known)).astype(np.int64)

    def _at(self, places: Int64Array) -> Int64Array:
        return np.array([known[place] for known, place in zip(self._known, places.tolist(), strict=True)], np.int64)
