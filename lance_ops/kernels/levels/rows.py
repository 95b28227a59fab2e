"""Find the entries of wanted rows in the levels of mini-block chunks; a row is a list and may span chunks."""

from __future__ import annotations

import numpy as np

from lance_ops.core.ndarrays import Int64Array, Uint8Array, Uint16Array
from lance_ops.kernels.compile import kernel, part
from lance_ops.kernels.unaligned import load_word

__all__ = ["find_rows"]


_SKIP = 64
# Four levels in a word are compared at once; no scheme has levels with the highest bit set.
_EACH = 0x0001000100010001
_HIGH = 0x8000800080008000
_LOW = 0x7FFF7FFF7FFF7FFF


@part
def _count_other(levels: Uint8Array, start: int, level: int) -> int:
    """Count how many of `_SKIP` levels, from byte `start` on, differ from `level`."""
    same = np.uint64(level) * np.uint64(_EACH)
    found = np.uint64(0)
    for place in range(start, start + 2 * _SKIP, 8):
        other = load_word(levels, place) ^ same
        found += (((other & np.uint64(_LOW)) + np.uint64(_LOW) | other) & np.uint64(_HIGH)) >> np.uint64(15)
    return np.int64((found * np.uint64(_EACH)) >> np.uint64(48))  # type: ignore[return-value]  # an int to numba


@part
def _count_above(levels: Uint8Array, start: int, most: int) -> int:
    """Count how many of `_SKIP` levels, from byte `start` on, are above `most`."""
    above = np.uint64(most + 1) * np.uint64(_EACH)
    found = np.uint64(0)
    for place in range(start, start + 2 * _SKIP, 8):
        found += (((load_word(levels, place) | np.uint64(_HIGH)) - above) & np.uint64(_HIGH)) >> np.uint64(15)
    return np.int64((found * np.uint64(_EACH)) >> np.uint64(48))  # type: ignore[return-value]  # an int to numba


@kernel
def find_rows(
    rep: Uint16Array,
    definition: Uint16Array,
    num_levels: Int64Array,
    num_begun: Int64Array,
    max_rep: int,
    most_def: int,
    begins_in: Int64Array,
    ends_in: Int64Array,
    ordinals: Int64Array,
    lasts: Int64Array,
    entries: Int64Array,
    chunk_of: Int64Array,
    within: Int64Array,
) -> tuple[int, int]:
    """Write the positions of the wanted rows' entries, and the chunk and index in it of each of their values.

    Chunk `c` has the next `num_levels[c]` entries, of which `num_begun[c]` start a row. Runs of wanted rows ascend. Run
    `i` begins with the row that starts as number `ordinals[i]` in chunk `begins_in[i]`; `lasts[i]` rows follow it, and
    the last one ends in chunk `ends_in[i]`. An entry has a value if its definition level is at most `most_def`, or if
    `definition` is empty. All outputs have the same length. Returns the number of entries and of values. The first is
    -1 if a chunk starts another number of rows than it should, -2 if the outputs are too short.
    """
    rep_bytes, definition_bytes = rep.view(np.uint8), definition.view(np.uint8)
    num_entries, num_values, run = 0, 0, 0
    left = np.int64(-1)  # rows still to come of the run being copied; -1 if no run is being copied
    base = 0
    for chunk in range(len(num_levels)):
        at, end = base, base + num_levels[chunk]
        started, place = 0, 0
        while at < end:
            if left < 0:
                # skip to the chunk's next wanted row and count rows and values on the way
                target = num_begun[chunk]
                if run < len(begins_in) and begins_in[run] == chunk:
                    target = ordinals[run]
                while at + _SKIP <= end:
                    starts = _SKIP - _count_other(rep_bytes, 2 * at, max_rep)
                    if started + starts > target:
                        break
                    started += starts
                    place += _SKIP
                    if len(definition):
                        place -= _count_above(definition_bytes, 2 * at, most_def)
                    at += _SKIP
                while at < end and not (rep[at] == max_rep and started == target):
                    started += rep[at] == max_rep
                    place += 1 if not len(definition) else definition[at] <= most_def
                    at += 1
                if at == end:
                    break
                if target == num_begun[chunk]:
                    return -1, num_values  # the chunk starts one row more than it should
                left = lasts[run]
                started += 1
            elif rep[at] == max_rep:
                if left == 0:
                    left = np.int64(-1)
                    run += 1
                    continue
                left -= 1
                started += 1
            if num_entries == len(entries):
                return -2, num_values
            entries[num_entries] = at
            num_entries += 1
            if not len(definition) or definition[at] <= most_def:
                chunk_of[num_values] = chunk
                within[num_values] = place
                num_values += 1
                place += 1
            at += 1
        if started != num_begun[chunk]:
            return -1, num_values
        if left == 0 and ends_in[run] == chunk:
            left = np.int64(-1)
            run += 1
        base = end
    if run < len(begins_in):
        return -1, num_values
    return num_entries, num_values
