"""Write mini-block chunks into a page: the headers that `read_headers` reads, and the parts behind each header."""

from __future__ import annotations

from lance_ops.core.ndarrays import Int64Array, Uint8Array
from lance_ops.kernels.compile import kernel, part
from lance_ops.kernels.ranges import copy_bytes

__all__ = ["write_headers", "write_parts"]


_PAD = 0xFE


@part
def _write_number(out: Uint8Array, place: int, number: int, width: int) -> int:
    """Write a number of `width` bytes, little-endian; return the place after it."""
    for byte in range(width):
        out[place + byte] = (number >> (8 * byte)) & 0xFF
    return place + width


@part
def _pad(out: Uint8Array, place: int) -> int:
    """Pad to the next multiple of 8; return that place."""
    while place & 7:
        out[place] = _PAD
        place += 1
    return place


@kernel
def write_headers(
    counts: Int64Array,
    num_levels: Int64Array,
    part_sizes: Int64Array,
    num_level_parts: int,
    width: int,
    out: Uint8Array,
    places: Int64Array,
    words: Int64Array,
) -> int:
    """Write the headers of chunks and leave room for their padded parts; return the size of all chunks in bytes.

    Part `p` of chunk `i` has `part_sizes[p * len(counts) + i]` bytes, levels before value buffers; sizes are two bytes
    wide for levels, `width` bytes for value buffers. `places[i]` gets the place of the chunk's first part. `words[i]`
    gets the page's word for the chunk: its size in units of 8 bytes less one, shifted left by 4, and the logarithm of
    its number of values. All chunks but the last have a power of two values. The caller has made `out` long enough.
    """
    num_chunks = len(counts)
    num_parts = len(part_sizes) // max(num_chunks, 1)
    start = 0
    for i in range(num_chunks):
        place, end = _write_number(out, start, num_levels[i], 2), 0
        for number in range(num_parts):
            size = part_sizes[number * num_chunks + i]
            place = _write_number(out, place, size, 2 if number < num_level_parts else width)
            end += (size + 7) & ~7
        place = _pad(out, place)
        places[i] = place
        end += place
        logarithm = 0
        while i < num_chunks - 1 and 1 << logarithm < counts[i]:
            logarithm += 1
        words[i] = (((end - start) // 8 - 1) << 4) | logarithm
        start = end
    return start


@kernel
def write_parts(data: Uint8Array, sizes: Int64Array, places: Int64Array, out: Uint8Array) -> None:
    """Copy the next part of every chunk to its place and pad it; each place moves to the end of the part.

    The parts lie end to end in `data`; that of chunk `i` has `sizes[i]` bytes. The caller has left room for them.
    """
    start = 0
    for i in range(len(sizes)):
        copy_bytes(data, start, sizes[i], out, places[i])
        start += sizes[i]
        places[i] = _pad(out, places[i] + sizes[i])
