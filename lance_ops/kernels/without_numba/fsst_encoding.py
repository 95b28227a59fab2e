"""Twins of the kernels that train and encode FSST; see `lance_ops.kernels.fsst`.

All values take their next code side by side, so the number of steps is that of the longest value's codes.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice
from typing import NamedTuple

import numpy as np
from numpy.lib.stride_tricks import as_strided

from lance_ops.core.ndarrays import BoolArray, Int64Array, Uint8Array, Uint16Array, Uint64Array

__all__ = ["fsst_encode", "fsst_train"]

_ESCAPE = 255
_MAX_SYMBOLS = 255
_NO_SYMBOL = 1 << 8 | _ESCAPE
_NUM_SLOTS = 1 << 11
_NUM_COUNTED = 512
_STRIDES = (8, 8, 4, 2, 1)
_HOPELESS = 0.98
_RARE_SHIFT = 13
_MULTIPLIER = np.uint64(0x9E3779B97F4A7C15)
_LONGEST = 512
"""Longer values take so many steps that the kernels are faster, with all that they load."""


class _Codes(NamedTuple):
    """The codes of all values, end to end.

    `entries` has the place of each code in the table's index. `first_bytes` has the byte of the value where the code
    begins. `counts` has the number of codes of each value.
    """

    entries: Uint16Array
    first_bytes: Uint8Array
    counts: Int64Array

    @property
    def num_bytes(self) -> int:
        return len(self.entries) + int(np.count_nonzero(self.is_escape))

    @property
    def is_escape(self) -> BoolArray:
        escapes: BoolArray = (self.entries & 0xFF) == _ESCAPE
        return escapes


class _Index:
    """Finds the symbols of a table as `lance_ops.kernels.fsst.encoding` describes."""

    def __init__(self, symbols: Uint64Array, lengths: Int64Array) -> None:
        self.slot_words = np.zeros(_NUM_SLOTS, np.uint64)
        self.slot_words[_slots_of(np.zeros(1, np.uint64))] = 1
        self.slot_entries = np.full(_NUM_SLOTS, 8 << 8, np.int64)
        self.pairs = np.full((1 << 16) + 256, _NO_SYMBOL, np.int64)
        entries = lengths << 8 | np.arange(len(lengths))
        is_single, is_pair, is_long = lengths == 1, lengths == 2, lengths > 2
        singles = symbols[is_single].astype(np.int64)
        self.pairs[: 1 << 16].reshape(256, 256)[:, singles] = entries[is_single]
        self.pairs[(1 << 16) + singles] = entries[is_single]
        self.pairs[symbols[is_pair].astype(np.int64)] = entries[is_pair]
        slots = _slots_of(symbols[is_long])
        self.slot_words[slots], self.slot_entries[slots] = symbols[is_long], entries[is_long]

    def find(self, words: Uint64Array, left: Int64Array) -> Int64Array:
        """Return the entry for the lowest `left` bytes of each word."""
        slots = _slots_of(words)
        long = self.slot_entries[slots]
        size = long >> 8
        differing = (words ^ self.slot_words[slots]) << (64 - 8 * size).astype(np.uint64)
        place = np.where(left > 1, words & np.uint64(0xFFFF), words & np.uint64(0xFF) | np.uint64(1 << 16))
        return np.where((differing == 0) & (size <= left), long, self.pairs[place.astype(np.int64)])

    def codes_of(self, data: Uint8Array, starts: Int64Array, ends: Int64Array) -> _Codes:
        """Encode the values `data[starts[i] : ends[i]]`."""
        counts = np.zeros(len(starts), np.int64)
        steps = list(self._steps(data, starts, ends, counts))
        begins = np.cumsum(counts) - counts
        entries, first_bytes = np.empty(int(counts.sum()), np.uint16), np.empty(int(counts.sum()), np.uint8)
        for number, (values, found, bytes_there) in enumerate(steps):
            places = begins[values] + number
            entries[places], first_bytes[places] = found, bytes_there
        return _Codes(entries, first_bytes, counts)

    def _steps(
        self, data: Uint8Array, starts: Int64Array, ends: Int64Array, counts: Int64Array
    ) -> Iterator[tuple[Int64Array, Int64Array, Uint8Array]]:
        """Give the next code of every value that has one: the values, the entries, and the bytes where they begin."""
        padded = np.append(data, np.zeros(8, np.uint8))
        windows = as_strided(padded, (len(data) + 1, 8), (1, 1))
        values = np.flatnonzero(starts < ends)
        at, end = starts[values], ends[values]
        while len(values):
            found = self.find(windows[at].view("<u8").reshape(-1), end - at)
            yield values, found, data[at]
            counts[values] += 1
            at = at + (found >> 8)
            is_left = at < end
            values, at, end = values[is_left], at[is_left], end[is_left]


def _slots_of(words: Uint64Array) -> Int64Array:
    slots: Int64Array = ((words & np.uint64(0xFFFFFF)) * _MULTIPLIER >> np.uint64(53)).astype(np.int64)
    return slots


def fsst_encode(
    data: Uint8Array,
    offsets: Int64Array,
    symbols: Uint64Array,
    lengths: Int64Array,
    out: Uint8Array,
    out_offsets: Int64Array,
) -> int | None:
    """Do what the kernel `fsst_encode` does; return None for a value of more than 512 bytes.

    It finds all codes, then writes them.
    """
    if np.diff(offsets).max(initial=0) > _LONGEST:
        return None
    codes = _Index(symbols, lengths).codes_of(data, offsets[:-1], offsets[1:])
    ends = np.append(0, np.cumsum(1 + codes.is_escape))
    out[ends[:-1]] = codes.entries & 0xFF
    escapes = np.flatnonzero(codes.is_escape)
    out[ends[escapes] + 1] = codes.first_bytes[escapes]
    out_offsets[:] = ends[np.append(0, np.cumsum(codes.counts))]
    return len(codes.counts)


def fsst_train(
    data: Uint8Array, offsets: Int64Array, symbols: Uint64Array, lengths: Int64Array
) -> tuple[int, int] | None:
    """Do what the kernel `fsst_train` does; return None for a value of more than 512 bytes.

    It trains by the rounds of the kernel.
    """
    starts, ends = offsets[:-1], offsets[1:]
    if (ends - starts).max(initial=0) > _LONGEST:
        return None
    num_symbols = 0
    for number, stride in enumerate(_STRIDES):
        codes = _Index(symbols, lengths).codes_of(data, starts[::stride], ends[::stride])
        num_bytes = int((ends - starts)[::stride].sum())
        if number == 1 and codes.num_bytes > _HOPELESS * num_bytes:
            break
        num_symbols = _select(symbols, lengths, codes, max(2, num_bytes >> _RARE_SHIFT))
    return num_symbols, _Index(symbols, lengths).codes_of(data, starts, ends).num_bytes


def _select(symbols: Uint64Array, lengths: Int64Array, codes: _Codes, least_count: int) -> int:
    """Replace the table by the symbols and pairs of greatest gain, without pairs rarer than `least_count`."""
    words = np.concatenate([symbols, np.zeros(1, np.uint64), np.arange(256, dtype=np.uint64)])
    sizes = np.concatenate([lengths, np.ones(257, np.int64)])
    bytes_counted = codes.first_bytes + np.int64(256)
    counted = np.where(codes.is_escape, bytes_counted, codes.entries & 0xFF)
    is_long = codes.entries >> 8 > 1
    singles = np.bincount(counted, minlength=_NUM_COUNTED)
    singles += np.bincount(bytes_counted[is_long], minlength=_NUM_COUNTED)
    used = np.flatnonzero(singles)
    pairs, counts = _count_pairs(counted, bytes_counted, is_long, codes.counts)
    first, second = pairs // _NUM_COUNTED, pairs % _NUM_COUNTED
    kept = (counts >= least_count) & (sizes[first] < 8)
    first, second, counts = first[kept], second[kept], counts[kept]
    joined = words[first] | words[second] << (8 * sizes[first]).astype(np.uint64)
    joined_sizes = np.minimum(8, sizes[first] + sizes[second])
    return _fill(
        symbols,
        lengths,
        np.append(words[used], joined),
        np.append(sizes[used], joined_sizes),
        np.append(singles[used] * np.where(sizes[used] > 1, sizes[used], 8), counts * joined_sizes),
    )


def _count_pairs(
    counted: Int64Array, bytes_counted: Int64Array, is_long: BoolArray, code_counts: Int64Array
) -> tuple[Int64Array, Int64Array]:
    """Return the pairs in the order in which they first occur, and how often each does.

    A code is paired with the one after it, and, if that one is of several bytes, with its first byte too.
    """
    follows = np.ones(len(counted), np.bool_)
    follows[(np.cumsum(code_counts) - code_counts)[code_counts > 0]] = False
    after = np.flatnonzero(follows)
    before = counted[after - 1] * _NUM_COUNTED
    both = np.stack((before + counted[after], before + bytes_counted[after]), axis=1)
    occur = np.stack((np.ones(len(after), np.bool_), is_long[after]), axis=1)
    pairs, firsts, counts = np.unique(both[occur], return_index=True, return_counts=True)
    order = np.argsort(firsts)
    return pairs[order], counts[order]


def _fill(symbols: Uint64Array, lengths: Int64Array, words: Uint64Array, sizes: Int64Array, gains: Int64Array) -> int:
    """Take candidates by descending gain until the table is full; of equal gains, that which comes first."""
    order = np.lexsort((sizes, words))  # equal candidates stay in their order
    words, sizes = words[order], sizes[order]
    is_new = np.append(True, (words[1:] != words[:-1]) | (sizes[1:] != sizes[:-1]))[: len(words)]
    groups = np.flatnonzero(is_new)
    total = np.add.reduceat(gains[order], groups) if len(groups) else gains
    best = groups[np.lexsort((order[groups], -total))]
    slots = np.where(sizes[best] > 2, _slots_of(words[best]), -1).tolist()
    taken = list(islice(_untaken(best.tolist(), slots), _MAX_SYMBOLS))
    symbols[:], lengths[:] = 0, 0
    symbols[: len(taken)], lengths[: len(taken)] = words[taken], sizes[taken]
    return len(taken)


def _untaken(candidates: list[int], slots: list[int]) -> Iterator[int]:
    """Leave out a candidate whose slot another has; slot -1 has room for all."""
    taken = set[int]()
    for candidate, slot in zip(candidates, slots, strict=True):
        if slot not in taken:
            yield candidate
            if slot >= 0:
                taken.add(slot)
