"""Train FSST: find the table of symbols that shortens a sample most.

Follows Boncz, Neumann, Leis: FSST (VLDB 2020). Each round encodes a sample with the table so far, counts symbols and
pairs of adjacent symbols, and makes the next table of the best symbols and pairs.
"""

from __future__ import annotations

import numpy as np

from lance_ops.core.ndarrays import Int32Array, Int64Array, Uint8Array, Uint16Array, Uint64Array
from lance_ops.kernels.compile import kernel, part
from lance_ops.kernels.fsst.encoding import (
    ESCAPE,
    MAX_SYMBOLS,
    NUM_PAIRS,
    NUM_SLOTS,
    find_code,
    index_symbols,
    next_word,
    slot_of,
)

__all__ = ["fsst_train"]

# Each round looks at every n-th value of the sample: the first rounds need only find which bytes are common.
_STRIDES = (8, 8, 4, 2, 1)
# If bytes and pairs as symbols shrink the sample by less than 2%, it is noise.
_HOPELESS = 0.98
# A pair that occurs less than 2 ** (n - 13) times in a sample of 2 ** n bytes cannot become one of the best.
_RARE_SHIFT = 13
# Codes while counting: 0 to 254 are symbols, 256 + b is the byte b, which has no symbol.
_NUM_COUNTED = 512
_MULTIPLIER = np.uint64(0x9E3779B97F4A7C15)


@kernel
def fsst_train(data: Uint8Array, offsets: Int64Array, symbols: Uint64Array, lengths: Int64Array) -> tuple[int, int]:
    """Write the table found for a sample of values; return its number of symbols, and the bytes of their codes.

    `symbols` and `lengths` have 255 zeros. The sample should be some tens of KiB.
    """
    slot_words, slot_entries = np.empty(NUM_SLOTS, np.uint64), np.empty(NUM_SLOTS, np.uint16)
    pairs = np.empty(NUM_PAIRS, np.uint16)
    singles = np.zeros(_NUM_COUNTED, np.int64)
    followed = np.zeros(_NUM_COUNTED * _NUM_COUNTED, np.int32)
    seen = np.empty(2 * len(data), np.int32)
    num_symbols = 0
    for number in range(len(_STRIDES)):
        index_symbols(symbols, lengths, slot_words, slot_entries, pairs)
        num_bytes, num_codes, num_seen = _count(
            data, offsets, _STRIDES[number], slot_words, slot_entries, pairs, singles, followed, seen
        )
        if number == 1 and num_codes > _HOPELESS * num_bytes:
            break
        least_count = max(2, num_bytes >> _RARE_SHIFT)
        num_symbols = _select(symbols, lengths, singles, followed, seen[:num_seen], least_count)
        singles[:] = 0
        for pair in seen[:num_seen]:
            followed[pair] = 0
    index_symbols(symbols, lengths, slot_words, slot_entries, pairs)
    return num_symbols, _num_codes(data, offsets, slot_words, slot_entries, pairs)


@kernel
def _count(
    data: Uint8Array,
    offsets: Int64Array,
    stride: int,
    slot_words: Uint64Array,
    slot_entries: Uint16Array,
    pairs: Uint16Array,
    singles: Int64Array,
    followed: Int32Array,
    seen: Int32Array,
) -> tuple[int, int, int]:
    """Encode values and count codes and pairs of codes; a symbol of several bytes counts also as its first byte.

    Returns the number of bytes of the values, the number of bytes of their codes, and how many pairs occur: `seen`
    lists them.
    """
    # No branch depends on a code: the processor cannot predict which comes next.
    num_bytes, num_codes, num_seen = 0, 0, 0
    for i in range(0, len(offsets) - 1, stride):
        at, end = offsets[i], offsets[i + 1]
        num_bytes += end - at
        before = -1
        while at < end:
            entry = find_code(next_word(data, at, end), end - at, slot_words, slot_entries, pairs)
            byte: int = 256 + np.int64(data[at])  # type: ignore[assignment]  # an int to numba
            length, code = entry >> 8, entry & 0xFF
            num_codes += 1 + (code == ESCAPE)
            code = byte if code == ESCAPE else code
            # a later round may begin a symbol with this byte alone
            is_long = np.int64(length > 1)
            singles[code] += 1
            singles[byte] += is_long
            if before >= 0:
                pair = before * _NUM_COUNTED + code
                seen[num_seen] = pair
                num_seen += followed[pair] == 0
                followed[pair] += 1
                pair = before * _NUM_COUNTED + byte
                seen[num_seen] = pair
                num_seen += is_long & (followed[pair] == 0)
                followed[pair] += is_long
            before = code
            at += length
    return num_bytes, num_codes, num_seen


@kernel
def _num_codes(
    data: Uint8Array, offsets: Int64Array, slot_words: Uint64Array, slot_entries: Uint16Array, pairs: Uint16Array
) -> int:
    """Return the number of bytes of the values' codes."""
    num_codes = 0
    for i in range(len(offsets) - 1):
        at, end = offsets[i], offsets[i + 1]
        while at < end:
            entry = find_code(next_word(data, at, end), end - at, slot_words, slot_entries, pairs)
            num_codes += 1 + ((entry & 0xFF) == ESCAPE)
            at += entry >> 8
    return num_codes


@kernel
def _select(
    symbols: Uint64Array,
    lengths: Int64Array,
    singles: Int64Array,
    followed: Int32Array,
    seen: Int32Array,
    least_count: int,
) -> int:
    """Replace the table by the counted symbols and pairs of greatest gain, without pairs rarer than `least_count`."""
    used = np.flatnonzero(singles)
    most = len(used) + len(seen)
    words, sizes, gains = np.empty(most, np.uint64), np.empty(most, np.int64), np.empty(most, np.int64)
    num = 0
    for first in used:
        words[num] = symbols[first] if first < MAX_SYMBOLS else np.uint64(first - 256)
        sizes[num] = lengths[first] if first < MAX_SYMBOLS else 1
        # without a symbol, a byte costs two bytes; weigh single bytes as the paper does
        gains[num] = singles[first] * (sizes[num] if sizes[num] > 1 else 8)
        num += 1
    for pair in seen:
        first, second, count = pair // _NUM_COUNTED, pair % _NUM_COUNTED, np.int64(followed[pair])
        size = lengths[first] if first < MAX_SYMBOLS else 1
        if count < least_count or size == 8:
            continue
        word = symbols[first] if first < MAX_SYMBOLS else np.uint64(first - 256)
        tail = symbols[second] if second < MAX_SYMBOLS else np.uint64(second - 256)
        words[num] = word | (tail << np.uint64(8 * size))
        sizes[num] = min(8, size + (lengths[second] if second < MAX_SYMBOLS else 1))
        gains[num] = count * sizes[num]
        num += 1
    return _fill(symbols, lengths, words[:num], sizes[:num], gains[:num])


@kernel
def _fill(symbols: Uint64Array, lengths: Int64Array, words: Uint64Array, sizes: Int64Array, gains: Int64Array) -> int:
    """Take candidates by descending gain until the table is full. A heap saves sorting all of them."""
    num = _merge(words, sizes, gains)
    heap = np.arange(num)
    for place in range(num // 2 - 1, -1, -1):
        _sink(heap[:num], place, gains)
    taken = np.zeros(NUM_SLOTS, np.bool_)
    symbols[:] = 0
    lengths[:] = 0
    code = 0
    while num > 0 and code < MAX_SYMBOLS:
        best = heap[0]
        num -= 1
        if num > 0:
            heap[0] = heap[num]
            _sink(heap[:num], 0, gains)
        if sizes[best] > 2:
            slot = slot_of(words[best])
            if taken[slot]:
                continue
            taken[slot] = True
        symbols[code], lengths[code] = words[best], sizes[best]
        code += 1
    return code


@kernel
def _merge(words: Uint64Array, sizes: Int64Array, gains: Int64Array) -> int:
    """Keep each candidate once, at its first index, with the sum of its gains; return how many there are."""
    bits = 1
    while 1 << bits < 2 * len(words):
        bits += 1
    slots = np.full(1 << bits, -1, np.int32)
    num = 0
    for at in range(len(words)):
        slot = np.int64((words[at] * _MULTIPLIER) >> np.uint64(64 - bits))
        # symbols of different sizes have equal words if they differ only by zero bytes
        while slots[slot] >= 0 and (words[slots[slot]] != words[at] or sizes[slots[slot]] != sizes[at]):
            slot = (slot + 1) & ((1 << bits) - 1)
        if slots[slot] >= 0:
            gains[slots[slot]] += gains[at]
        else:
            slots[slot] = num
            words[num], sizes[num], gains[num] = words[at], sizes[at], gains[at]
            num += 1
    return num


@part
def _sink(heap: Int64Array, place: int, gains: Int64Array) -> None:
    """Move an element of a heap down until its gain exceeds those below it; of equal gains the lower index is above."""
    moved = heap[place]
    while 2 * place + 1 < len(heap):
        below = 2 * place + 1
        if below + 1 < len(heap) and _is_before(heap[below + 1], heap[below], gains):
            below += 1
        if _is_before(moved, heap[below], gains):
            break
        heap[place] = heap[below]
        place = below
    heap[place] = moved


@part
def _is_before(one: np.int64, other: np.int64, gains: Int64Array) -> bool:
    return bool((gains[one] > gains[other]) | ((gains[one] == gains[other]) & (one < other)))
