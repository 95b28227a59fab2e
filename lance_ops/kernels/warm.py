"""Compile every kernel into the cache: `python -m lance_ops.kernels.warm`, when an image is built.

A kernel is compiled when it is first called, for the arrays it is called with; each is called here as the rooms above
call it.
"""

from __future__ import annotations

import numpy as np

from lance_ops.kernels.arrays import readable
from lance_ops.kernels.chunk_headers import read_headers
from lance_ops.kernels.chunk_parts import write_headers, write_parts
from lance_ops.kernels.chunks import cut_chunks, end_entries, index_rows
from lance_ops.kernels.distinct import are_entries, number_words
from lance_ops.kernels.fastlanes import pack_runs, read_widths, unpack_blocks
from lance_ops.kernels.flatten import count_children, expand_lists, mark_nulls, renumber_levels
from lance_ops.kernels.fsst import fsst_decode, fsst_decode_chunks
from lance_ops.kernels.fsst_encoding import fsst_encode
from lance_ops.kernels.fsst_training import fsst_train
from lance_ops.kernels.full_zip import walk_entries
from lance_ops.kernels.hashes import xxh64
from lance_ops.kernels.key_codes import build_codes, find_codes, find_hits
from lance_ops.kernels.levels import collapse_lists, keep_levels
from lance_ops.kernels.lz4 import lz4_decode
from lance_ops.kernels.measure import hash_values, measure_integers
from lance_ops.kernels.moved_rows import move_rows
from lance_ops.kernels.picks import locate_values, pick_packed, pick_strings
from lance_ops.kernels.ranges import copy_ranges
from lance_ops.kernels.repeats import end_items, repeat_items
from lance_ops.kernels.rows import find_rows
from lance_ops.kernels.runs import expand_runs, pick_runs
from lance_ops.kernels.strings import join_strings, split_strings

__all__ = ["warm"]


def warm() -> None:
    """Call every kernel once, on next to nothing."""
    data, out = readable(np.zeros(16, np.uint8)), np.zeros(256, np.uint8)
    none, ends = readable(np.zeros(0, np.int64)), readable(np.zeros(1, np.int64))
    symbols, lengths = np.zeros(256, np.uint64), np.zeros(256, np.int64)
    table = readable(symbols), readable(lengths)
    offsets = np.zeros(1, np.int64)
    levels, out_levels, flags = readable(np.zeros(0, np.uint16)), np.zeros(1, np.uint16), np.zeros(1, np.uint8)
    positions = readable(np.zeros(0, np.uint32))
    pack_runs(data, none, 0, 8, out, offsets)
    read_widths(data, none, none, 8, offsets)
    unpack_blocks(data, none, none, none, 8, out)
    cut_chunks(ends, 0, 1, 1, offsets)
    end_entries(levels, 0, none, offsets)
    index_rows(levels, 1, none, np.zeros(0, np.uint64))
    for bits in (8, 16, 32, 64):
        measure_integers(readable(np.zeros(1, f"u{bits // 8}")), 1024, np.zeros(1, np.uint64))
    hash_values(data, none, none, 0, np.zeros(0, np.uint64))
    number_words(readable(np.zeros(0, np.uint64)), offsets, np.zeros(0, np.uint32))
    are_entries(data, ends, none, positions)
    copy_ranges(data, none, none, out, none)
    join_strings(data, none, none, none, 4, out, offsets)
    split_strings(data, ends, none, 4, out, offsets)
    lz4_decode(data, none, none, out, ends)
    fsst_train(data, ends, symbols[:255], lengths[:255])
    fsst_encode(data, ends, *table, out, offsets)
    for ends_of in (np.zeros(1, np.int32), offsets):
        fsst_decode(data, none, none, *table, out, ends_of)
        fsst_decode_chunks(data, none, none, none, 4, *table, offsets, out, ends_of)
        end_items(readable(ends_of), 0, positions, readable(flags[:0]), ends_of)
        repeat_items(data, readable(ends_of), positions, out, readable(ends_of))
    keep_levels(levels, 0, out_levels)
    collapse_lists(levels, levels, 1, 0, 0, 0, 0, out_levels, out_levels, offsets, flags)
    read_headers(data, none, none, 0, 1, 4, offsets, offsets, offsets)
    write_headers(none, none, none, 0, 4, out, offsets, offsets)
    write_parts(data, none, offsets, out)
    locate_values(ends, none, offsets, offsets, offsets)
    pick_packed(data, none, none, none, 8, symbols)
    pick_strings(data, none, none, none, none, none, 4, offsets, offsets)
    expand_runs(data, none, none, none, none, 8, out)
    pick_runs(data, none, none, none, none, none, 8, symbols)
    find_rows(levels, levels, none, none, 1, 0, none, none, none, none, offsets, offsets, offsets)
    absent = readable(flags[:0])
    count_children(none, absent, levels, none, 0, 0)
    expand_lists(none, absent, levels, levels, none, 0, 0, 0, 1, 2, out_levels, out_levels, offsets, flags)
    mark_nulls(absent, none, 0, 0, 1, out_levels[:0], flags)
    renumber_levels(out_levels, out_levels)
    words, slots, straight = readable(symbols[:0]), np.full(16, -1, np.int32), readable(np.zeros(0, np.bool_))
    build_codes(words, 60, slots, symbols, offsets, symbols)
    find_codes(words, 60, readable(slots), words, offsets)
    find_hits(words, 60, readable(slots), words, readable(symbols), offsets, offsets)
    move_rows(
        words,
        60,
        readable(slots),
        words,
        none,
        none,
        ends,
        words,
        ends,
        none,
        none,
        words,
        straight,
        words,
        True,
        symbols,
    )
    xxh64(data, ends, symbols[:0])
    walk_entries(data, none, none, 1, 0, 0, 1, 0, np.zeros(0, np.uint32), offsets, offsets)


if __name__ == "__main__":
    warm()
