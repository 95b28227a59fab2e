"""A hash table that gives each distinct 64-bit key a code: 0, 1, … in the order of first occurrence."""

from __future__ import annotations

import numpy as np

from lance_ops import kernels
from lance_ops.core.ndarrays import Int64Array, Uint64Array
from lance_ops.kernels import read_only

__all__ = ["NO_CODE", "KeyCodeTable"]


NO_CODE = -1
_FEWEST_BITS = 4


class KeyCodeTable:
    """Assigns codes to `keys` and finds the codes of other arrays of keys."""

    def __init__(self, keys: Uint64Array) -> None:
        bits = max(_FEWEST_BITS, (2 * len(keys)).bit_length())
        slots, marks = np.full(1 << bits, NO_CODE, np.int32), np.zeros(1 << (bits - 3), np.uint64)
        key_of: Uint64Array = np.empty(len(keys), np.uint64)
        self.codes: Int64Array = np.empty(len(keys), np.int64)
        """The code of each key."""
        self.count = kernels.build_codes(read_only(keys), 64 - bits, slots, marks, self.codes, key_of)
        """The number of distinct keys."""
        self.table = 64 - bits, read_only(slots), read_only(key_of[: self.count])
        """The arguments by which kernels look keys up: `shift`, `slots` and `key_of`."""
        self._marks = read_only(marks)

    def find(self, keys: Uint64Array) -> Int64Array:
        """Return the code of each key, `NO_CODE` for a key that is not in the table."""
        codes: Int64Array = np.empty(len(keys), np.int64)
        kernels.find_codes(read_only(keys), *self.table, codes)
        return codes

    def hits(self, keys: Uint64Array) -> tuple[Int64Array, Int64Array]:
        """Return the ascending positions of the keys that are in the table, and the code of each.

        Most keys that are not in the table cost very little.
        """
        places, codes = np.empty(len(keys), np.int64), np.empty(len(keys), np.int64)
        count = kernels.find_hits(read_only(keys), *self.table, self._marks, places, codes)
        return places[:count].copy(), codes[:count].copy()  # a view would keep the whole arrays alive
