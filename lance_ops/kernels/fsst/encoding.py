"""Encode FSST: replace the longest symbol that the next bytes begin with by its code, until the value ends.

Two indices find the symbols of a table (`lance_ops.kernels.fsst.decoding` describes tables). `slots` finds a symbol of
three bytes or more by a hash of its first three bytes; if two symbols share a slot, the later one has it. `pairs` holds
the symbol of one or two bytes for each pair of bytes, then for each single byte, which is used for the last byte of a
value. An entry is `length << 8 | code`.

A code depends on where the symbol before it ended, so the codes of a value are one chain of dependent loads. Four such
chains, over four parts of the values, keep the processor busy. Branches depend on where values end, never on bytes.
"""

from __future__ import annotations

import numpy as np

from lance_ops.core.ndarrays import Int64Array, Uint8Array, Uint16Array, Uint64Array
from lance_ops.kernels.compile import kernel, part
from lance_ops.kernels.unaligned import load_word, store_word

__all__ = [
    "ESCAPE",
    "MAX_SYMBOLS",
    "NUM_PAIRS",
    "NUM_SLOTS",
    "find_code",
    "fsst_encode",
    "index_symbols",
    "next_word",
    "slot_of",
]

ESCAPE = 255
MAX_SYMBOLS = 255
NUM_SLOTS = 1 << 11
NUM_PAIRS = (1 << 16) + 256
_NO_SYMBOL = 1 << 8 | ESCAPE


@part
def slot_of(word: np.uint64) -> np.uint64:
    """Return the slot of a symbol whose first three bytes are the lowest three of `word`."""
    head = word & np.uint64(0xFFFFFF)
    return (head * np.uint64(0x9E3779B97F4A7C15)) >> np.uint64(53)


@kernel
def index_symbols(
    symbols: Uint64Array, lengths: Int64Array, slot_words: Uint64Array, slot_entries: Uint16Array, pairs: Uint16Array
) -> None:
    """Fill the indices of a table."""
    # an empty slot holds a word that hashes to another slot, so it matches nothing
    slot_words[:] = 0
    slot_words[slot_of(np.uint64(0))] = 1
    slot_entries[:] = 8 << 8
    pairs[:] = _NO_SYMBOL
    for code in range(len(lengths)):
        word, length = symbols[code], lengths[code]
        entry = length << 8 | code
        if length == 1:
            pairs[(1 << 16) + np.int64(word)] = entry
            for second in range(256):
                place = np.int64(word) + 256 * second
                if pairs[place] >> 8 == 1:
                    pairs[place] = entry
        elif length == 2:
            pairs[np.int64(word)] = entry
        elif length > 2:
            slot_words[slot_of(word)] = word
            slot_entries[slot_of(word)] = entry


@part
def next_word(data: Uint8Array, at: int, end: int) -> np.uint64:
    """Return the eight bytes from `at` on; where the array is shorter, the bytes up to `end`."""
    if at + 8 <= len(data):
        return load_word(data, at)
    word = np.uint64(0)
    for byte in range(end - at):
        word |= np.uint64(data[at + byte]) << np.uint64(8 * byte)
    return word


@part
def find_code(
    word: np.uint64, left: int, slot_words: Uint64Array, slot_entries: Uint16Array, pairs: Uint16Array
) -> int:
    """Return the entry for the lowest `left` bytes of a word; `left` is at least 1."""
    slot = slot_of(word)
    long = np.int64(slot_entries[slot])
    length = long >> 8
    differing = (word ^ slot_words[slot]) << np.uint64(64 - 8 * length)
    # the entries of single bytes follow those of pairs
    place = word & np.uint64(0xFFFF) if left > 1 else (word & np.uint64(0xFF)) | np.uint64(1 << 16)
    short = np.int64(pairs[place])
    return long if (differing == np.uint64(0)) & (length <= left) else short  # type: ignore[return-value]  # an int to numba


@part
def _write_code(entry: int, word: np.uint64, out: Uint8Array, place: int) -> int:
    """Write a code, the byte that it may escape, and six bytes that the next code overwrites; return the next place."""
    code = np.uint64(entry & 0xFF)
    store_word(out, place, code | (word & np.uint64(0xFF)) << np.uint64(8))
    return place + 1 + np.int64(code == np.uint64(ESCAPE))  # type: ignore[return-value]  # an int to numba


@kernel
def fsst_encode(
    data: Uint8Array,
    offsets: Int64Array,
    symbols: Uint64Array,
    lengths: Int64Array,
    out: Uint8Array,
    out_offsets: Int64Array,
) -> None:
    """Encode value `i`, `data[offsets[i] : offsets[i + 1]]`; write its codes to `out` and where they end.

    `lengths` has 255 entries, 0 beyond the last symbol. `offsets` begin at 0. The caller has checked them, and that
    `out` is twice as long as the bytes and 32 bytes more.
    """
    slot_words, slot_entries = np.empty(NUM_SLOTS, np.uint64), np.empty(NUM_SLOTS, np.uint16)
    pairs = np.empty(NUM_PAIRS, np.uint16)
    index_symbols(symbols, lengths, slot_words, slot_entries, pairs)
    num_values = len(offsets) - 1
    bounds = np.searchsorted(offsets, np.arange(5) * offsets[num_values] // 4)
    bounds[0], bounds[4] = 0, num_values
    # each part starts where it would be if all values before it were escapes, with 8 spare bytes for each part
    at, places = offsets[bounds[:4]], 2 * offsets[bounds[:4]] + 8 * np.arange(4)
    begins, values = places.copy(), bounds[:4].copy()
    _encode_abreast(data, offsets, bounds, slot_words, slot_entries, pairs, out, out_offsets, at, places, values)
    out_offsets[0] = 0
    end = 0
    for number in range(4):
        value, start, place = values[number], at[number], places[number]
        while value < bounds[number + 1]:
            stop = offsets[value + 1]
            while start < stop:
                word = next_word(data, start, stop)
                entry = find_code(word, stop - start, slot_words, slot_entries, pairs)
                place = _write_code(entry, word, out, place)
                start += entry >> 8
            value += 1
            out_offsets[value] = place
        begin = begins[number]
        _move_down(out, begin, end, place - begin)
        for value in range(bounds[number], bounds[number + 1]):
            out_offsets[value + 1] -= begin - end
        end += place - begin


@kernel
def _encode_abreast(
    data: Uint8Array,
    offsets: Int64Array,
    bounds: Int64Array,
    slot_words: Uint64Array,
    slot_entries: Uint16Array,
    pairs: Uint16Array,
    out: Uint8Array,
    out_offsets: Int64Array,
    at: Int64Array,
    places: Int64Array,
    values: Int64Array,
) -> None:
    """Encode until one of the four parts is done; leave in `at`, `places` and `values` where each part continues."""
    a0, a1, a2, a3 = at[0], at[1], at[2], at[3]
    p0, p1, p2, p3 = places[0], places[1], places[2], places[3]
    # each part is inside value number `v - 1`, which ends at `e`
    v0, v1, v2, v3 = values[0], values[1], values[2], values[3]
    e0, e1, e2, e3 = a0, a1, a2, a3
    stop0, stop1, stop2, stop3 = bounds[1], bounds[2], bounds[3], bounds[4]
    while True:
        ended0, ended1, ended2, ended3 = a0 == e0, a1 == e1, a2 == e2, a3 == e3
        if ended0 | ended1 | ended2 | ended3:
            # for a value that has not ended this is not its final end, which overwrites it later
            out_offsets[v0], out_offsets[v1], out_offsets[v2], out_offsets[v3] = p0, p1, p2, p3
            if (
                (ended0 & (v0 == stop0))
                | (ended1 & (v1 == stop1))
                | (ended2 & (v2 == stop2))
                | (ended3 & (v3 == stop3))
            ):
                break
            v0, v1, v2, v3 = v0 + ended0, v1 + ended1, v2 + ended2, v3 + ended3
            e0, e1, e2, e3 = offsets[v0], offsets[v1], offsets[v2], offsets[v3]
            continue
        w0, w1 = next_word(data, a0, e0), next_word(data, a1, e1)
        w2, w3 = next_word(data, a2, e2), next_word(data, a3, e3)
        c0 = find_code(w0, e0 - a0, slot_words, slot_entries, pairs)
        c1 = find_code(w1, e1 - a1, slot_words, slot_entries, pairs)
        c2 = find_code(w2, e2 - a2, slot_words, slot_entries, pairs)
        c3 = find_code(w3, e3 - a3, slot_words, slot_entries, pairs)
        p0, p1 = _write_code(c0, w0, out, p0), _write_code(c1, w1, out, p1)
        p2, p3 = _write_code(c2, w2, out, p2), _write_code(c3, w3, out, p3)
        a0, a1, a2, a3 = a0 + (c0 >> 8), a1 + (c1 >> 8), a2 + (c2 >> 8), a3 + (c3 >> 8)
    at[0], at[1], at[2], at[3] = a0, a1, a2, a3
    places[0], places[1], places[2], places[3] = p0, p1, p2, p3
    values[0], values[1], values[2], values[3] = v0 - (a0 < e0), v1 - (a1 < e1), v2 - (a2 < e2), v3 - (a3 < e3)


@part
def _move_down(out: Uint8Array, source: int, target: int, size: int) -> None:
    """Move bytes towards the start; the two ranges may overlap."""
    if source == target:
        return
    whole = size // 8 * 8
    for byte in range(0, whole, 8):
        store_word(out, target + byte, load_word(out, source + byte))
    for byte in range(whole, size):
        out[target + byte] = out[source + byte]
