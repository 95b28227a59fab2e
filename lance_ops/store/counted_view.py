"""Count the reads of an object that is mapped or kept in memory.

Mapped bytes are read without a call, so this view counts the ranges that the reader announces.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from lance_ops.core.ndarrays import Int64Array
from lance_ops.store.contract import View
from lance_ops.store.io_counters import IoCounters

__all__ = ["CountedView"]


class CountedView(View):
    """Forwards calls to another view, and counts each announced run of bytes as one operation.

    A run is ranges that follow each other in the announcement, each of which touches or overlaps the one before. A take
    announces thousands, which are not sorted for this.
    """

    __slots__ = ("_counters", "_view")

    def __init__(self, view: View, counters: IoCounters) -> None:
        super().__init__(view.buffer, view.identity)
        self._view = view
        self._counters = counters

    def whole(self) -> pa.Buffer:
        self._counters.add_reads(1, self.buffer.size)
        return self._view.whole()

    def will_need(self, starts: Int64Array, stops: Int64Array) -> None:
        self._view.will_need(starts, stops)
        if len(starts):
            self._counters.add_reads(*_runs_in(starts, stops))


def _runs_in(starts: Int64Array, stops: Int64Array) -> tuple[int, int]:
    """Return the number of runs, and the bytes in them; bytes that two neighbours share count once."""
    if len(starts) == 1:
        num_bytes = max(int(stops[0] - starts[0]), 0)
        return int(num_bytes > 0), num_bytes
    has_bytes = starts < stops
    if not has_bytes.all():
        starts, stops = starts[has_bytes], stops[has_bytes]
    continues = (starts[1:] >= starts[:-1]) & (starts[1:] <= stops[:-1])
    shared = (np.minimum(stops[1:], stops[:-1]) - starts[1:]) * continues
    return len(starts) - int(np.count_nonzero(continues)), int((stops - starts).sum() - shared.sum())
