"""Twins of the kernels that decode FSST; see `lance_ops.kernels.fsst`.

Arrow joins the symbols: it takes byte strings by their positions as fast as a compiled loop does.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from lance_ops.core.ndarrays import BoolArray, Int64Array, OffsetArray, Uint8Array, Uint16Array, Uint64Array
from lance_ops.kernels.without_numba.chunked_strings import strings_of_chunks
from lance_ops.kernels.without_numba.numbers import bytes_of_ranges

__all__ = ["fsst_decode", "fsst_decode_chunks"]

_ESCAPE = 255
_NUM_CODES = 256


def fsst_decode(
    data: Uint8Array,
    starts: Int64Array,
    sizes: Int64Array,
    symbols: Uint64Array,
    lengths: Int64Array,
    out: Uint8Array,
    out_offsets: OffsetArray,
) -> int | None:
    """Do what the kernel `fsst_decode` does; return None for malformed input, which the kernel reports.

    It decodes the codes of all values at once.
    """
    codes = bytes_of_ranges(data, starts, sizes)
    if not _decode(codes, np.append(0, np.cumsum(sizes)), symbols, lengths, out, out_offsets):
        return None
    return len(starts)


def fsst_decode_chunks(
    data: Uint8Array,
    starts: Int64Array,
    sizes: Int64Array,
    counts: Int64Array,
    width: int,
    symbols: Uint64Array,
    lengths: Int64Array,
    ends: Int64Array,
    out: Uint8Array,
    out_offsets: OffsetArray,
) -> int | None:
    """Do what the kernel `fsst_decode_chunks` does; return None for malformed input, which the kernel reports.

    It decodes the codes of all chunks at once. The kernel alone uses `ends`.
    """
    joined = strings_of_chunks(data, starts, sizes, counts, width)
    if joined is None or not _decode(*joined, symbols, lengths, out, out_offsets):
        return None
    return len(starts)


def _decode(
    codes: Uint8Array,
    offsets: Int64Array,
    symbols: Uint64Array,
    lengths: Int64Array,
    out: Uint8Array,
    out_offsets: OffsetArray,
) -> bool:
    """Write the symbols of all codes, and where each value ends; return False if the codes are malformed."""
    positions: Uint8Array | Uint16Array = codes
    if not (lengths[: int(codes.max(initial=0)) + 1] > 0).all():
        found = _positions_of_symbols(codes, offsets, lengths)
        if found is None:
            return False
        positions = found
    kind = pa.uint8() if positions.itemsize == 1 else pa.uint16()
    indices = pa.Array.from_buffers(kind, len(positions), [None, pa.py_buffer(positions)])  # `pa.array` imports pandas
    taken = _symbol_array(symbols, lengths).take(indices)
    _, code_offsets, joined = taken.buffers()
    ends = np.frombuffer(code_offsets, np.int32)[: len(codes) + 1]
    num_bytes = int(ends[-1])
    out[:num_bytes] = np.frombuffer(joined, np.uint8)[:num_bytes] if num_bytes else 0
    out_offsets[: len(offsets)] = ends[offsets]
    return True


def _positions_of_symbols(codes: Uint8Array, offsets: Int64Array, lengths: Int64Array) -> Uint16Array | None:
    """Return the symbol of each code in `_symbol_array`; return None if a code has none, or if a value ends escaped."""
    is_escape = _escapes(codes)
    is_code = ~is_escape
    escaped = np.flatnonzero(is_escape) + 1
    is_end = np.zeros(len(codes) + 1, np.bool_)
    is_end[offsets] = True
    if is_end[escaped].any():
        return None
    is_code[escaped] = False
    if (lengths[codes[is_code]] == 0).any():
        return None
    positions: Uint16Array = codes.astype(np.uint16)
    positions[escaped] += _NUM_CODES
    return positions


def _escapes(codes: Uint8Array) -> BoolArray:
    """Return which codes escape the byte after them: every second one of a run of 255, beginning with the first."""
    is_255 = codes == _ESCAPE
    number = np.arange(len(codes))
    before_run = np.maximum.accumulate(np.where(is_255, -1, number))
    escapes: BoolArray = is_255 & ((number - before_run) % 2 == 1)
    return escapes


def _symbol_array(symbols: Uint64Array, lengths: Int64Array) -> pa.BinaryArray:
    """Return the symbol of each code, empty for the escape, and after them every single byte."""
    sizes = np.where(np.arange(_NUM_CODES) == _ESCAPE, 0, lengths)
    is_used = np.arange(8) < sizes[:, None]
    used = np.append(
        symbols.astype("<u8").view(np.uint8).reshape(-1, 8)[is_used], np.arange(_NUM_CODES, dtype=np.uint8)
    )
    offsets = np.append(0, np.cumsum(np.append(sizes, np.ones(_NUM_CODES, np.int64)))).astype(np.int32)
    return pa.Array.from_buffers(pa.binary(), 2 * _NUM_CODES, [None, pa.py_buffer(offsets), pa.py_buffer(used)])
