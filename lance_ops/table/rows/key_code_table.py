"""Codes of 64-bit keys: small numbers, one for each distinct key, in the order in which they are first met."""

from __future__ import annotations

import numpy as np

from lance_ops import kernels
from lance_ops.core.ndarrays import Int64Array, Uint64Array
from lance_ops.kernels import read_only

__all__ = ["NO_CODE", "KeyCodeTable"]


NO_CODE = -1
_FEWEST_BITS = 4


class KeyCodeTable:
    """Codes of `keys`, and of any others that are looked up."""

    def __init__(self, keys: Uint64Array) -> None:
        bits = max(_FEWEST_BITS, (2 * len(keys)).bit_length())
        slots, marks = np.full(1 << bits, NO_CODE, np.int32), np.zeros(1 << (bits - 3), np.uint64)
        key_of: Uint64Array = np.empty(len(keys), np.uint64)
        self.codes: Int64Array = np.empty(len(keys), np.int64)
        """The code of each key."""
        self.count = kernels.build_codes(read_only(keys), 64 - bits, slots, marks, self.codes, key_of)
        """How many distinct keys there are."""
        self.table = 64 - bits, read_only(slots), read_only(key_of[: self.count])
        """What kernels look keys up with: `shift`, `slots` and `key_of`."""
        self._marks = read_only(marks)

    def find(self, keys: Uint64Array) -> Int64Array:
        """Return the code of each key, `NO_CODE` for one that is not known."""
        codes: Int64Array = np.empty(len(keys), np.int64)
        kernels.find_codes(read_only(keys), *self.table, codes)
        return codes

    def hits(self, keys: Uint64Array) -> tuple[Int64Array, Int64Array]:
        """Return where those keys are that are known, ascending, and the code of each; most others cost very little."""
        places, codes = np.empty(len(keys), np.int64), np.empty(len(keys), np.int64)
        count = kernels.find_hits(read_only(keys), *self.table, self._marks, places, codes)
        return places[:count].copy(), codes[:count].copy()  # they may be few, and live long
