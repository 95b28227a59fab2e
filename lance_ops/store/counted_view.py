"""Count the reads of an object that is mapped or kept in memory.

Mapped bytes are read without a call, so this view counts the ranges that the reader announces.
"""

from __future__ import annotations

import pyarrow as pa

from lance_ops.core.ndarrays import Int64Array
from lance_ops.store.contract import View
from lance_ops.store.io_counters import IoCounters
from lance_ops.store.ranges import merge_touching

__all__ = ["CountedView"]


class CountedView(View):
    """Forwards calls to another view, and counts each announced run of bytes as one operation."""

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
        if len(starts) > 1:
            starts, stops = merge_touching(starts, stops)
        if len(starts):
            self._counters.add_reads(len(starts), int(stops.sum()) - int(starts.sum()))
