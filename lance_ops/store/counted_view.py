"""Count the ranges that the reader of a mapped or kept object announces: no call reads them."""

from __future__ import annotations

import pyarrow as pa

from lance_ops.core.ndarrays import Int64Array
from lance_ops.store.contract import View
from lance_ops.store.io_counters import IoCounters
from lance_ops.store.ranges import merge_touching

__all__ = ["CountedView"]


class CountedView(View):
    """Passes on to another view, and counts each run of bytes that is announced as one operation."""

    __slots__ = ("_counters", "_view")

    def __init__(self, view: View, counters: IoCounters) -> None:
        super().__init__(view.buffer)
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
