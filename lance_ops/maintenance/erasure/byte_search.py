"""Tell whether any of many values stands in the bytes of a file, in a time that hardly depends on their number.

The last bytes of each value, its end, are hashed to one of many slots, and the flag of that slot is set. There are at
least 16 slots for each distinct end. The bytes at every position of the file are hashed in the same way. Most of them
meet a flag that is not set. Where it is set, the whole values with that end are compared.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterator

import numpy as np
import numpy.typing as npt

from lance_ops.core.records import dataclass

__all__ = ["ByteSearch"]

_FEW = 8
"""At most this many values are searched for one by one."""
_MIX = 0x9E3779B97F4A7C15  # an odd number whose multiples spread over the high bits
_FEWEST_SLOT_BITS = 16


class ByteSearch:
    """Looks for values, each of which must have four bytes or more; `long_enough` chooses such values."""

    def __init__(self, values: Collection[bytes]) -> None:
        self.longest = max(map(len, values), default=0)
        self._few = tuple(values) if len(values) <= _FEW else ()
        long, short = [[each for each in values if (len(each) >= 8) is is_long] for is_long in (True, False)]
        self._ends = [] if self._few else [_Ends.of(long, "<u8"), _Ends.of(short, "<u4")]

    def finds_any_in(self, content: bytes) -> bool:
        """Return whether one of the values stands in the bytes."""
        return any(value in content for value in self._few) or any(ends.finds_any_in(content) for ends in self._ends)


@dataclass(frozen=True, eq=False)
class _Ends:
    """Values, grouped by their last bytes. These bytes are read as a number of type `kind`."""

    kind: str
    slots: npt.NDArray[np.bool_]
    by_end: dict[bytes, list[bytes]]

    @classmethod
    def of(cls, values: Collection[bytes], kind: str) -> _Ends:
        width = np.dtype(kind).itemsize
        by_end = defaultdict[bytes, list[bytes]](list)
        for value in values:
            by_end[value[-width:]].append(value)
        slots = np.zeros(1 << max(len(by_end).bit_length() + 4, _FEWEST_SLOT_BITS), np.bool_)
        slots[_slots_of(np.frombuffer(b"".join(by_end), kind), len(slots))] = True
        return cls(kind, slots, dict(by_end))

    def finds_any_in(self, content: bytes) -> bool:
        width = np.dtype(self.kind).itemsize
        return bool(self.by_end) and any(
            content.endswith(value, 0, end)
            for end in self._candidates(content, width)
            for value in self.by_end.get(content[end - width : end], ())
        )

    def _candidates(self, content: bytes, width: int) -> Iterator[int]:
        """Yield where values may end."""
        for offset in range(width):
            count = (len(content) - offset) // width
            numbers = np.frombuffer(content, self.kind, max(count, 0), offset if count > 0 else 0)
            found = np.flatnonzero(self.slots[_slots_of(numbers, len(self.slots))])
            yield from (found * width + (offset + width)).tolist()


def _slots_of(numbers: npt.NDArray[np.unsignedinteger], num_slots: int) -> npt.NDArray[np.uint64]:
    """Hash each number to a slot: the high bits of its product with `_MIX`."""
    return (numbers.astype(np.uint64) * np.uint64(_MIX)) >> np.uint64(64 - (num_slots.bit_length() - 1))
