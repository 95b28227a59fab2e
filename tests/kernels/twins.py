"""Each kernel again, in plain numpy and Python, as slow and as clear as can be."""

from __future__ import annotations

import itertools

import numpy as np

from lance_ops.core.ndarrays import BoolArray, Int64Array, Uint8Array, Uint16Array, UnsignedArray

ORDER = (0, 4, 2, 6, 1, 5, 3, 7)


def lane_order(bits: int) -> Int64Array:
    """Return, for every row and lane in turn, which of the 1024 values is there."""
    rows, lanes = np.arange(bits), np.arange(1024 // bits)
    first = np.array([ORDER[row // 8] * 16 + (row % 8) * 128 for row in rows])
    return (first[:, None] + lanes).astype(np.int64)


def unpack_block(packed: Uint8Array, width: int, bits: int) -> UnsignedArray:
    lanes = 1024 // bits
    rows = np.unpackbits(packed, bitorder="little").reshape(width, lanes, bits)
    of_lane = rows.transpose(1, 0, 2).reshape(lanes, bits, width) if width else np.zeros((lanes, bits, 0), np.uint8)
    powers = np.array([1 << i for i in range(width)], object)
    values = (of_lane.astype(object) * powers).sum(axis=2) if width else np.zeros((lanes, bits), object)
    out = np.zeros(1024, f"u{bits // 8}")
    out[lane_order(bits)] = values.T.astype(out.dtype)
    return out


def pack_block(values: UnsignedArray, width: int, bits: int) -> Uint8Array:
    lanes = 1024 // bits
    in_order = values[lane_order(bits)].T.astype(object)
    of_lane = np.array([[(int(value) >> bit) & 1 for value in lane for bit in range(width)] for lane in in_order])
    rows = of_lane.reshape(lanes, width, bits).transpose(1, 0, 2).astype(np.uint8)
    return np.packbits(rows.reshape(-1), bitorder="little")


def copy_ranges(data: Uint8Array, starts: Int64Array, sizes: Int64Array, out: Uint8Array, places: Int64Array) -> None:
    for start, size, place in zip(starts, sizes, places, strict=True):
        out[place : place + size] = data[start : start + size]


def write_chunk(num_levels: int, parts: list[bytes], num_level_parts: int, width: int) -> bytes:
    header = num_levels.to_bytes(2, "little")
    for number, part in enumerate(parts):
        header += len(part).to_bytes(2 if number < num_level_parts else width, "little")
    return b"".join(part + b"\xfe" * (-len(part) % 8) for part in [header, *parts])


def repeat_items(items: list[bytes], positions: list[int], present: list[bool]) -> list[bytes]:
    return [items[position] if there else b"" for position, there in zip(positions, present, strict=True)]


def fsst_decode(codes: bytes, symbols: list[bytes]) -> bytes:
    out, at = b"", 0
    while at < len(codes):
        if codes[at] == 255:
            out += codes[at + 1 : at + 2]
            at += 2
        else:
            out += symbols[codes[at]]
            at += 1
    return out


def lz4_decode(block: bytes) -> bytes:
    out, at = bytearray(), 0
    while at < len(block):
        token = block[at]
        at += 1
        length, at = _lz4_length(block, token >> 4, at)
        out += block[at : at + length]
        at += length
        if at >= len(block):
            break
        distance = int.from_bytes(block[at : at + 2], "little")
        length, at = _lz4_length(block, token & 15, at + 2)
        for _ in range(length + 4):
            out.append(out[-distance])
    return bytes(out)


def _lz4_length(block: bytes, nibble: int, at: int) -> tuple[int, int]:
    length = nibble
    while nibble == 15:
        length += block[at]
        at += 1
        if block[at - 1] != 255:
            break
    return length, at


def join_strings(chunks: list[bytes], counts: list[int], width: int) -> tuple[list[bytes], list[int]]:
    strings = []
    for chunk, count in zip(chunks, counts, strict=True):
        offsets = [int.from_bytes(chunk[i * width : (i + 1) * width], "little") for i in range(count + 1)]
        strings += [chunk[a:b] for a, b in itertools.pairwise(offsets)]
    return strings, np.cumsum([0, *map(len, strings)]).tolist()


def cut_chunks(costs: list[int], chunk_bytes: int, max_bytes: int, max_values: int) -> list[int]:
    counts = []
    while costs:
        fits = [n for n in range(1, min(len(costs), max_values) + 1) if sum(costs[:n]) + chunk_bytes <= max_bytes]
        powers = [1, *(n for n in fits if n & (n - 1) == 0)]
        counts.append(len(costs) if len(costs) in fits else powers[-1])
        costs = costs[counts[-1] :]
    return counts


def xxh64(data: bytes) -> int:
    """Hash one string with seed 0."""
    mask = (1 << 64) - 1
    primes = (
        *(0x9E3779B185EBCA87, 0xC2B2AE3D27D4EB4F, 0x165667B19E3779F9),
        *(0x85EBCA77C2B2AE63, 0x27D4EB2F165667C5),
    )
    one, two, three, four, five = primes

    def rotate(value: int, bits: int) -> int:
        return ((value << bits) | (value >> (64 - bits))) & mask

    def step(state: int, word: int) -> int:
        return rotate((state + word * two) & mask, 31) * one & mask

    rest = data
    state = five
    if len(data) >= 32:
        lanes = [(one + two) & mask, two, 0, -one & mask]
        while len(rest) >= 32:
            lanes = [step(lane, int.from_bytes(rest[8 * i : 8 * i + 8], "little")) for i, lane in enumerate(lanes)]
            rest = rest[32:]
        state = sum(rotate(lane, bits) for lane, bits in zip(lanes, (1, 7, 12, 18), strict=True)) & mask
        for lane in lanes:
            state = ((state ^ step(0, lane)) * one + four) & mask
    state = (state + len(data)) & mask
    while len(rest) >= 8:
        state = (rotate(state ^ step(0, int.from_bytes(rest[:8], "little")), 27) * one + four) & mask
        rest = rest[8:]
    if len(rest) >= 4:
        state = (rotate(state ^ (int.from_bytes(rest[:4], "little") * one & mask), 23) * two + three) & mask
        rest = rest[4:]
    for byte in rest:
        state = rotate(state ^ (byte * five & mask), 11) * one & mask
    state = (state ^ (state >> 33)) * two & mask
    state = (state ^ (state >> 29)) * three & mask
    return state ^ (state >> 32)


def keep_levels(levels: Uint16Array, most: int) -> Uint16Array:
    return levels[levels <= most]


def collapse_lists(
    rep: Uint16Array, definition: Uint16Array, list_level: int, item_end: int, list_end: int, null: int, empty: int
) -> tuple[Uint16Array, Uint16Array, list[int], list[bool]]:
    starts = rep >= list_level
    is_list, is_item = starts & (definition <= list_end), definition <= item_end
    before = np.append(0, np.cumsum(is_item))
    offsets = [*before[np.flatnonzero(is_list)].tolist(), int(before[-1])]
    present = (definition < null) | (definition == empty)
    return rep[starts], definition[starts], offsets, present[is_list].tolist()


def expand_lists(
    offsets: Int64Array,
    present: BoolArray | None,
    rep: Uint16Array,
    codes: Uint16Array,
    slots: Int64Array,
    level: int,
    null_code: int,
    empty_code: int,
) -> list[tuple[int, int, int]]:
    out = []
    for first_rep, code, slot in zip(rep.tolist(), codes.tolist(), slots.tolist(), strict=True):
        if code:
            out.append((first_rep, code, -1))
        elif present is not None and not present[slot]:
            out.append((first_rep, null_code, -1))
        elif offsets[slot] == offsets[slot + 1]:
            out.append((first_rep, empty_code, -1))
        else:
            items = range(int(offsets[slot]), int(offsets[slot + 1]))
            out += [(level if number else first_rep, 0, item) for number, item in enumerate(items)]
    return out


def mark_nulls(present: BoolArray, slots: Int64Array, code: int, codes: Uint16Array) -> Uint16Array:
    marked = codes.copy()
    open_entries = np.flatnonzero(codes == 0)
    marked[open_entries[~present[slots[open_entries]]]] = code
    return marked


def walk_entries(
    rows: list[bytes], word_bytes: int, bits_def: int, most_def: int, value_bytes: int, length_bytes: int
) -> tuple[list[int], list[bytes]] | None:
    """Return control words and values; None where a row ends inside an entry."""
    words, values = [], []
    for row in rows:
        while row:
            if len(row) < word_bytes:
                return None
            words.append(int.from_bytes(row[:word_bytes], "little"))
            row = row[word_bytes:]
            if words[-1] % (1 << bits_def) > most_def:
                continue
            size = int.from_bytes(row[:length_bytes], "little") if length_bytes else value_bytes
            if len(row) < length_bytes + size:
                return None
            values.append(row[length_bytes : length_bytes + size])
            row = row[length_bytes + size :]
    return words, values


def count_chunk_rows(rep: list[int], row_level: int, chunk_ends: list[int]) -> list[list[int]]:
    bounds = [i for i, level in enumerate(rep) if level == row_level]
    row_ends = [*bounds[1:], len(rep)]
    index = []
    for start, end in itertools.pairwise([0, *chunk_ends]):
        finished = [row_end for row_end in row_ends if start < row_end <= end]
        begun_since = max([start, *(row_end for row_end in row_ends if row_end <= end)])
        index.append([len(finished), end - begun_since])
    return index
