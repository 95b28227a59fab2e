"""Compile every kernel into the cache: `python -m lance_ops.kernels.warm`, when an image is built.

A kernel is compiled when it is first called, for the arrays it is called with; each is called here as the rooms above
call it.
"""

from __future__ import annotations

import numpy as np

from lance_ops.kernels.arrays import readable
from lance_ops.kernels.chunks import cut_chunks
from lance_ops.kernels.fastlanes import pack_blocks, unpack_blocks
from lance_ops.kernels.fsst import fsst_decode, fsst_decode_chunks, fsst_encode, fsst_train
from lance_ops.kernels.full_zip import walk_entries
from lance_ops.kernels.hashes import xxh64
from lance_ops.kernels.levels import (
    collapse_lists,
    count_children,
    count_levels,
    expand_lists,
    keep_levels,
    mark_nulls,
)
from lance_ops.kernels.lz4 import lz4_decode
from lance_ops.kernels.ranges import copy_ranges
from lance_ops.kernels.strings import join_strings

__all__ = ["warm"]


def warm() -> None:
    """Call every kernel once, on next to nothing."""
    data, out = readable(np.zeros(16, np.uint8)), np.zeros(256, np.uint8)
    none, ends = readable(np.zeros(0, np.int64)), readable(np.zeros(1, np.int64))
    symbols, lengths = np.zeros(256, np.uint64), np.zeros(256, np.int64)
    table = readable(symbols), readable(lengths)
    offsets = np.zeros(1, np.int64)
    levels, out_levels, flags = readable(np.zeros(0, np.uint16)), np.zeros(1, np.uint16), np.zeros(1, np.uint8)
    pack_blocks(data, none, none, 8, out)
    unpack_blocks(data, none, none, none, 8, out)
    cut_chunks(ends, 0, 1, 1, offsets)
    copy_ranges(data, none, none, out, none)
    join_strings(data, none, none, none, 4, out, offsets)
    lz4_decode(data, none, none, out, ends)
    fsst_train(data, ends, symbols[:255], lengths[:255])
    fsst_encode(data, ends, *table, out, offsets)
    fsst_decode(data, none, none, *table, out, offsets)
    fsst_decode_chunks(data, none, none, none, 4, *table, out, offsets)
    keep_levels(levels, 0, out_levels)
    count_levels(levels, 0, none, none, offsets)
    collapse_lists(levels, levels, 1, 0, 0, 0, 0, out_levels, out_levels, offsets, flags)
    count_children(none, readable(flags[:0]), levels, none)
    expand_lists(none, readable(flags[:0]), levels, levels, none, 0, 1, 2, out_levels, out_levels, offsets)
    mark_nulls(readable(flags[:0]), none, 1, out_levels)
    xxh64(data, ends, symbols[:0])
    walk_entries(data, none, none, 1, 0, 0, 1, 0, np.zeros(0, np.uint32), offsets, offsets)


if __name__ == "__main__":
    warm()
