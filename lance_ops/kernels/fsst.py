"""FSST: bytes as codes of up to 255 symbols of 1 to 8 bytes; code 255 stands for the byte after it.

A table is `symbols` (the bytes of each, the first one lowest, the rest zero) and `lengths`. To encode, two indices are
kept beside it: `starts` finds the symbol of three bytes or more by a hash of its first three, `pairs` the one of one or
two bytes by the bytes themselves. No two long symbols share a hash: of two that would, the table has the better one.

Training follows Boncz, Neumann, Leis: FSST (VLDB 2020): encode a sample with the table so far, count the symbols used
and those that follow each other, and make the next table of the best symbols and pairs.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from lance_ops.kernels.jit import kernel, part
from lance_ops.kernels.strings import read_offset
from lance_ops.kernels.unaligned import load_word, store_word

__all__ = ["fsst_decode", "fsst_decode_chunks", "fsst_encode", "fsst_train"]

_ESCAPE = 255
_MAX_SYMBOLS = 255
_NUM_STARTS = 4096
_NUM_ROUNDS = 6
# Bytes that hardly shrink with the best bytes and pairs as symbols are noise.
_HOPELESS = 0.98
# Codes while counting: 0 to 254 are symbols, 256 + b is byte b, which the table does not have.
_NUM_COUNTED = 512

Bytes = NDArray[np.uint8]
Integers = NDArray[np.int64]
Words = NDArray[np.uint64]


@kernel
def fsst_decode(
    data: Bytes, starts: Integers, sizes: Integers, symbols: Words, lengths: Integers, out: Bytes, out_offsets: Integers
) -> int:
    """Decode value `i` from `sizes[i]` codes at `starts[i]` of `data`; write its bytes to `out` and where they end.

    `lengths` has 256 entries, 0 for a code without a symbol. The caller has checked that the ranges lie in `data`, and
    that `out` is eight times as long as the codes and eight bytes more. Returns the number of values decoded: fewer
    than given when that value has a code without a symbol or ends inside an escape.
    """
    place = 0
    out_offsets[0] = 0
    for i in range(len(starts)):
        place = _decode_value(data, starts[i], starts[i] + sizes[i], symbols, lengths, out, place)
        if place < 0:
            return i
        out_offsets[i + 1] = place
    return len(starts)


@kernel
def fsst_decode_chunks(
    data: Bytes,
    starts: Integers,
    sizes: Integers,
    counts: Integers,
    width: int,
    symbols: Words,
    lengths: Integers,
    out: Bytes,
    out_offsets: Integers,
) -> int:
    """Decode the values of all chunks, which `lance_ops.kernels.strings` describes, as `fsst_decode` does.

    The caller has checked that the chunks lie in `data` and hold their offsets, and that `out` is eight times as long
    as they are and eight bytes more. Returns the number of chunks decoded: fewer than given when that one is malformed.
    """
    place, value = 0, 0
    out_offsets[0] = 0
    for i in range(len(starts)):
        start, count = starts[i], counts[i]
        before = read_offset(data, start, width)
        if before < (count + 1) * width:
            return i
        for j in range(1, count + 1):
            offset = read_offset(data, start + j * width, width)
            if offset < before or offset > sizes[i]:
                return i
            place = _decode_value(data, start + before, start + offset, symbols, lengths, out, place)
            if place < 0:
                return i
            value += 1
            out_offsets[value] = place
            before = offset
    return len(starts)


@part
def _decode_value(data: Bytes, at: int, end: int, symbols: Words, lengths: Integers, out: Bytes, place: int) -> int:
    """Return where the value's bytes end; -1 for malformed codes."""
    while at < end:
        code = data[at]
        if code != _ESCAPE:
            length = lengths[code]
            if length == 0:
                return -1
            store_word(out, place, symbols[code])
            place += length
            at += 1
        elif at + 1 < end:
            out[place] = data[at + 1]
            place += 1
            at += 2
        else:
            return -1
    return place


@kernel
def fsst_encode(
    data: Bytes, offsets: Integers, symbols: Words, lengths: Integers, out: Bytes, out_offsets: Integers
) -> None:
    """Encode value `i`, `data[offsets[i] : offsets[i + 1]]`; write its codes to `out` and where they end.

    `lengths` has 255 entries, 0 beyond the last symbol. The caller has checked the offsets, and that `out` is twice as
    long as the bytes.
    """
    starts, pairs = np.empty(_NUM_STARTS, np.int16), np.empty(1 << 16, np.int16)
    _index(symbols, lengths, starts, pairs)
    place = 0
    out_offsets[0] = 0
    for i in range(len(offsets) - 1):
        at, end = offsets[i], offsets[i + 1]
        while at < end:
            code = _find(_word_at(data, at, end), end - at, symbols, lengths, starts, pairs)
            if code >= 0:
                out[place] = code
                place += 1
                at += lengths[code]
            else:
                out[place] = _ESCAPE
                out[place + 1] = data[at]
                place += 2
                at += 1
        out_offsets[i + 1] = place


@kernel
def fsst_train(data: Bytes, offsets: Integers, symbols: Words, lengths: Integers) -> int:
    """Write the best table found for a sample of values; return its number of symbols.

    `symbols` and `lengths` have 255 zeros. The sample should be some tens of KiB.
    """
    starts, pairs = np.empty(_NUM_STARTS, np.int16), np.empty(1 << 16, np.int16)
    singles = np.empty(_NUM_COUNTED, np.int64)
    followed = np.empty((_NUM_COUNTED, _NUM_COUNTED), np.int32)
    tried, tried_lengths = np.zeros(_MAX_SYMBOLS, np.uint64), np.zeros(_MAX_SYMBOLS, np.int64)
    least, num_symbols, best = 2 * len(data) + 1, 0, 0
    for number in range(_NUM_ROUNDS):
        _index(tried, tried_lengths, starts, pairs)
        singles[:] = 0
        followed[:] = 0
        num_codes = _count(data, offsets, tried, tried_lengths, starts, pairs, singles, followed)
        if num_codes < least:
            least, best = num_codes, num_symbols
            symbols[:] = tried
            lengths[:] = tried_lengths
        if number == 1 and num_codes > _HOPELESS * len(data):
            break
        num_symbols = _select(tried, tried_lengths, singles, followed)
    return best


@part
def _word_at(data: Bytes, at: int, end: int) -> np.uint64:
    """Return up to eight bytes from `at`, none from `end` on."""
    if at + 8 <= end:
        return load_word(data, at)
    if at + 8 <= len(data):
        return load_word(data, at) & (np.uint64(0xFFFFFFFFFFFFFFFF) >> np.uint64(64 - 8 * (end - at)))
    word = np.uint64(0)
    for byte in range(end - at):
        word |= np.uint64(data[at + byte]) << np.uint64(8 * byte)
    return word


@part
def _start_of(word: np.uint64) -> int:
    head = word & np.uint64(0xFFFFFF)
    return np.int64((head * np.uint64(0x9E3779B97F4A7C15)) >> np.uint64(52))  # type: ignore[return-value]


@part
def _index(symbols: Words, lengths: Integers, starts: NDArray[np.int16], pairs: NDArray[np.int16]) -> None:
    starts[:] = -1
    pairs[:] = -1
    for code in range(_MAX_SYMBOLS):
        if lengths[code] == 1:
            for second in range(256):
                if pairs[np.int64(symbols[code]) + 256 * second] < 0:
                    pairs[np.int64(symbols[code]) + 256 * second] = code
        elif lengths[code] == 2:
            pairs[np.int64(symbols[code])] = code
        elif lengths[code] > 2:
            starts[_start_of(symbols[code])] = code


@part
def _find(
    word: np.uint64, left: int, symbols: Words, lengths: Integers, starts: NDArray[np.int16], pairs: NDArray[np.int16]
) -> int:
    """Return the code of the longest symbol that the next `left` bytes begin with, -1 for none."""
    code = np.int64(starts[_start_of(word)])
    if code >= 0:
        length = lengths[code]
        if length <= left and word << np.uint64(64 - 8 * length) == symbols[code] << np.uint64(64 - 8 * length):
            return code  # type: ignore[return-value]
    code = np.int64(pairs[np.int64(word & np.uint64(0xFFFF))])
    if code >= 0 and lengths[code] > left:  # the last byte, and a pair of it and zero
        for other in range(_MAX_SYMBOLS):
            if lengths[other] == 1 and symbols[other] == word & np.uint64(0xFF):
                return other
        return -1
    return code  # type: ignore[return-value]


@kernel
def _count(
    data: Bytes,
    offsets: Integers,
    symbols: Words,
    lengths: Integers,
    starts: NDArray[np.int16],
    pairs: NDArray[np.int16],
    singles: Integers,
    followed: NDArray[np.int32],
) -> int:
    """Encode the sample and count codes, and codes after codes; the first byte of a long symbol counts beside it.

    Returns the bytes of all codes.
    """
    num_codes = 0
    for i in range(len(offsets) - 1):
        at, end = offsets[i], offsets[i + 1]
        before = -1
        while at < end:
            code = _find(_word_at(data, at, end), end - at, symbols, lengths, starts, pairs)
            length = np.int64(1)
            byte: int = 256 + np.int64(data[at])  # type: ignore[assignment]
            num_codes += 1
            if code < 0:
                code = byte
                num_codes += 1
            else:
                length = lengths[code]
            singles[code] += 1
            if before >= 0:
                followed[before, code] += 1
            if length > 1:
                # a later round may want to begin a symbol with this byte alone
                singles[byte] += 1
                if before >= 0:
                    followed[before, byte] += 1
            before = code
            at += length
    return num_codes


@kernel
def _select(symbols: Words, lengths: Integers, singles: Integers, followed: NDArray[np.int32]) -> int:
    """Replace the table by the symbols of the greatest gain among those counted and their pairs."""
    used = np.flatnonzero(singles)
    most = len(used) + np.count_nonzero(followed)
    words, sizes, gains = np.empty(most, np.uint64), np.empty(most, np.int64), np.empty(most, np.int64)
    num = 0
    for first in used:
        word = symbols[first] if first < _MAX_SYMBOLS else np.uint64(first - 256)
        size = lengths[first] if first < _MAX_SYMBOLS else 1
        words[num], sizes[num] = word, size
        # a byte that is no symbol costs two
        gains[num] = singles[first] * (size if size > 1 else 8)
        num += 1
        if size == 8:
            continue
        for second in used:
            count = np.int64(followed[first, second])
            if count < 2:
                continue
            tail = symbols[second] if second < _MAX_SYMBOLS else np.uint64(second - 256)
            size2 = min(8, size + (lengths[second] if second < _MAX_SYMBOLS else 1))
            joined = word | (tail << np.uint64(8 * size))
            words[num], sizes[num], gains[num] = joined, size2, count * size2
            num += 1
    return _fill(symbols, lengths, words[:num], sizes[:num], gains[:num])


@kernel
def _fill(symbols: Words, lengths: Integers, words: Words, sizes: Integers, gains: Integers) -> int:
    """Take candidates by gain; the same symbol counted in several ways gains from all."""
    order = np.argsort(words)
    num = 0
    merged = np.empty(len(order), np.int64)
    for at in order:
        # equal words of different sizes differ by zero bytes; they are rare enough to compete
        if num and words[merged[num - 1]] == words[at] and sizes[merged[num - 1]] == sizes[at]:
            gains[merged[num - 1]] += gains[at]
        else:
            merged[num] = at
            num += 1
    best = merged[:num][np.argsort(-gains[merged[:num]], kind="mergesort")]
    taken = np.zeros(_NUM_STARTS, np.bool_)
    symbols[:] = 0
    lengths[:] = 0
    code = 0
    for at in best:
        if code == _MAX_SYMBOLS:
            break
        if sizes[at] > 2:
            start = _start_of(words[at])
            if taken[start]:
                continue
            taken[start] = True
        symbols[code], lengths[code] = words[at], sizes[at]
        code += 1
    return code
