"""Copy many byte ranges of one array to places in another."""

from __future__ import annotations

from lance_ops.core.ndarrays import Int64Array, Uint8Array
from lance_ops.kernels.compile import kernel, part
from lance_ops.kernels.unaligned import load_word, store_word

__all__ = ["copy_bytes", "copy_ranges"]


@part
def copy_bytes(data: Uint8Array, start: int, size: int, out: Uint8Array, place: int) -> None:
    """Copy `size` bytes and write no others; the two ranges lie in their arrays and do not overlap."""
    if size < 8:
        for byte in range(size):
            out[place + byte] = data[start + byte]
    else:
        for word in range(0, size - 8, 8):
            store_word(out, place + word, load_word(data, start + word))
        store_word(out, place + size - 8, load_word(data, start + size - 8))


@kernel
def copy_ranges(
    data: Uint8Array,
    starts: Int64Array,
    sizes: Int64Array,
    out: Uint8Array,
    places: Int64Array,
) -> None:
    """Copy `sizes[i]` bytes from `starts[i]` of `data` to `places[i]` of `out`, for every `i`.

    The caller has checked that all ranges lie in their arrays.
    """
    for i in range(len(starts)):
        copy_bytes(data, starts[i], sizes[i], out, places[i])
