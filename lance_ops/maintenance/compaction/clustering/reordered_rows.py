"""Map row addresses through a rewrite that changed the order of the rows."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import field

import numpy as np

from lance_ops.core.addresses import fragment_of, offset_of, row_addrs
from lance_ops.core.cached_property import cached_property
from lance_ops.core.ndarrays import Int64Array, Uint64Array
from lance_ops.core.records import dataclass
from lance_ops.table.rows import RowAddressMap

__all__ = ["NewOrder", "ReorderedRows"]


class NewOrder:
    """Where rows are: `read` returns the old addresses of a new fragment's rows, in their order.

    It is asked when the first address is mapped, and takes 8 bytes for each row.
    """

    def __init__(self, in_order: RowAddressMap, read: Callable[[int], Uint64Array]) -> None:
        self._in_order = in_order
        self._read = read

    @cached_property
    def fragment_ids(self) -> Uint64Array:
        """The new fragments, ascending."""
        new = (fragment.fragment_id for group in self._in_order.groups for fragment in group.new)
        return np.array(sorted(new), np.uint64)

    @cached_property
    def begins(self) -> Int64Array:
        """For each new fragment, the number of rows in those before it."""
        counts = {fragment.fragment_id: fragment.num_rows for group in self._in_order.groups for fragment in group.new}
        return np.cumsum([0, *(counts[int(key)] for key in self.fragment_ids)], dtype=np.int64)

    @cached_property
    def addresses(self) -> Uint64Array:
        """The address of each row, at the position that it would have if rows had kept their order."""
        found: Uint64Array = np.empty(int(self.begins[-1]), np.uint64)
        for number, fragment_id in enumerate(self.fragment_ids):
            old = self._read(int(fragment_id))
            places, _ = self.places(self._in_order.remap(old))
            num_rows = int(self.begins[number + 1] - self.begins[number])
            found[places] = row_addrs(int(fragment_id), np.arange(num_rows))
        return found

    def places(self, in_order: Uint64Array) -> tuple[Int64Array, Int64Array]:
        """Return the positions of the addresses that are in new fragments, and which of the addresses those are."""
        fragments = fragment_of(in_order)
        number = np.minimum(np.searchsorted(self.fragment_ids, fragments), len(self.fragment_ids) - 1)
        moved = np.flatnonzero(self.fragment_ids[number] == fragments)
        return self.begins[number[moved]] + offset_of(in_order[moved]).astype(np.int64), moved


@dataclass(frozen=True)
class ReorderedRows(RowAddressMap):
    """Maps addresses first as if the rows of each group had kept their order, then to where they are."""

    order: NewOrder | None = field(default=None, compare=False)

    @property
    def keeps_order(self) -> bool:
        return self.order is None

    def remap(self, addresses: Uint64Array) -> Uint64Array:
        """Map row addresses, shape (n,); see `RowAddressMap.remap`."""
        in_order = super().remap(addresses)
        if self.order is None or not len(self.order.fragment_ids):
            return in_order
        places, moved = self.order.places(in_order)
        in_order[moved] = self.order.addresses[places]
        return in_order
