"""Compile every kernel into the cache when an image is built: `python -m lance_ops.kernels.warm`.

numba compiles a kernel at the first call with each combination of argument types. So each kernel is called here with
the types that its callers pass.
"""

from __future__ import annotations

import numpy as np

from lance_ops.kernels.chunks import count_chunk_rows, cut_chunks, end_chunks, read_headers, write_headers, write_parts
from lance_ops.kernels.dictionary_strings import place_items, repeat_items
from lance_ops.kernels.fastlanes import pack_runs, read_widths, unpack_blocks
from lance_ops.kernels.fsst import fsst_decode, fsst_decode_chunks, fsst_encode, fsst_train
from lance_ops.kernels.full_zip import walk_entries
from lance_ops.kernels.hashing import hash_values, is_dictionary_of, number_distinct, xxh64
from lance_ops.kernels.levels import (
    collapse_lists,
    count_children,
    expand_lists,
    find_rows,
    keep_levels,
    mark_nulls,
    renumber_levels,
)
from lance_ops.kernels.lz4 import lz4_decode
from lance_ops.kernels.metadata import read_columns, read_file_ends, read_single_pages, write_columns
from lance_ops.kernels.ranges import copy_ranges
from lance_ops.kernels.read_only_arrays import read_only
from lance_ops.kernels.runs import expand_runs, pick_runs
from lance_ops.kernels.single_values import locate_values, pick_packed, pick_strings
from lance_ops.kernels.strings import join_strings, split_strings
from lance_ops.kernels.value_statistics import measure_integers
from lance_ops.kernels.words import build_codes, find_codes, find_hits, remap_rows, sort_words

__all__ = ["warm"]


def warm() -> None:
    """Call every kernel with each combination of argument types, on tiny arrays."""
    data, out = read_only(np.zeros(16, np.uint8)), np.zeros(256, np.uint8)
    none, ends = read_only(np.zeros(0, np.int64)), read_only(np.zeros(1, np.int64))
    symbols, lengths = np.zeros(256, np.uint64), np.zeros(256, np.int64)
    table = read_only(symbols), read_only(lengths)
    offsets = np.zeros(1, np.int64)
    levels, out_levels, flags = read_only(np.zeros(0, np.uint16)), np.zeros(1, np.uint16), np.zeros(1, np.uint8)
    positions = read_only(np.zeros(0, np.uint32))
    pack_runs(data, none, 0, 8, out, offsets)
    read_widths(data, none, none, 8, offsets)
    unpack_blocks(data, none, none, none, 8, out)
    cut_chunks(ends, 0, 1, 1, offsets)
    end_chunks(levels, 0, none, offsets)
    count_chunk_rows(levels, 1, none, np.zeros(0, np.uint64))
    for bits in (8, 16, 32, 64):
        measure_integers(read_only(np.zeros(1, f"u{bits // 8}")), 1024, np.zeros(1, np.uint64))
    hash_values(data, none, none, 0, np.zeros(0, np.uint64))
    number_distinct(read_only(np.zeros(0, np.uint64)), offsets, np.zeros(0, np.uint32))
    is_dictionary_of(data, ends, none, positions)
    copy_ranges(data, none, none, out, none)
    join_strings(data, none, none, none, 4, out, offsets)
    split_strings(data, ends, none, 4, out, offsets)
    lz4_decode(data, none, none, out, ends)
    fsst_train(data, ends, symbols[:255], lengths[:255])
    fsst_encode(data, ends, *table, out, offsets)
    for ends_of in (np.zeros(1, np.int32), offsets):
        fsst_decode(data, none, none, *table, out, ends_of)
        fsst_decode_chunks(data, none, none, none, 4, *table, offsets, out, ends_of)
        place_items(read_only(ends_of), 0, positions, read_only(flags[:0]), ends_of)
        repeat_items(data, read_only(ends_of), positions, out, read_only(ends_of))
    keep_levels(levels, 0, out_levels)
    collapse_lists(levels, levels, 1, 0, 0, 0, 0, out_levels, out_levels, offsets, flags)
    read_columns(data, none, none, *[offsets[:0]] * 6)
    write_columns(none, 1, data, data, out, offsets[:0])
    read_headers(data, none, none, 0, 1, 4, offsets, offsets, offsets)
    write_headers(none, none, none, 0, 4, out, offsets, offsets)
    write_parts(data, none, offsets, out)
    locate_values(ends, none, offsets, offsets, offsets)
    pick_packed(data, none, none, none, 8, symbols)
    pick_strings(data, none, none, none, none, none, 4, offsets, offsets)
    expand_runs(data, none, none, none, none, 8, out)
    pick_runs(data, none, none, none, none, none, 8, symbols)
    find_rows(levels, levels, none, none, 1, 0, none, none, none, none, offsets, offsets, offsets)
    absent = read_only(flags[:0])
    count_children(none, absent, levels, none, 0, 0)
    expand_lists(none, absent, levels, levels, none, 0, 0, 0, 1, 2, out_levels, out_levels, offsets, flags)
    mark_nulls(absent, none, 0, 0, 1, out_levels[:0], flags)
    renumber_levels(out_levels, out_levels)
    words, slots, straight = read_only(symbols[:0]), np.full(16, -1, np.int32), read_only(np.zeros(0, np.bool_))
    build_codes(words, 60, slots, symbols, offsets, symbols)
    find_codes(words, 60, read_only(slots), words, offsets)
    find_hits(words, 60, read_only(slots), words, read_only(symbols), offsets, offsets)
    remap_rows(
        words,
        60,
        read_only(slots),
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
    sort_words(symbols[:0], np.zeros(0, np.uint32))
    xxh64(data, ends, symbols[:0])
    read_file_ends(data, none, none, none, offsets)
    read_single_pages(data, none, none, none, none, offsets)
    walk_entries(data, none, none, 1, 0, 0, 1, 0, np.zeros(0, np.uint32), offsets, offsets)


if __name__ == "__main__":
    warm()
