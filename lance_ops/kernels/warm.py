"""Compile every kernel into the cache when an image is built: `python -m lance_ops.kernels.warm`.

numba compiles a kernel at the first call with each combination of argument types. So each kernel is called here with
the types that its callers pass.
"""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from multiprocessing import get_context
from typing import Any

import numpy as np

from lance_ops.core.threads import available_cores
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

__all__ = ["warm", "warm_in_processes"]


def warm() -> None:
    """Call every kernel with each combination of argument types, on tiny arrays."""
    for call in _calls():
        call()


def warm_in_processes() -> None:
    """Do what `warm` does, in as many processes as there are cores. They share the kernels; this process compiles none.

    One process makes all calls of a kernel: two would overwrite each other's entries in the kernel's index.
    """
    _CALLS.clear()
    for call in _calls():
        _CALLS.setdefault(call.func.__name__, []).append(call)
    with ProcessPoolExecutor(min(available_cores(), len(_CALLS)), get_context("fork")) as processes:
        list(processes.map(_warm_kernel, _CALLS))


_CALLS: dict[str, list[partial[Any]]] = {}
"""The calls of each kernel. A forked process has them; a kernel cannot be sent to it."""


def _warm_kernel(name: str) -> None:
    for call in _CALLS[name]:
        call()


def _calls() -> Iterator[partial[Any]]:
    data, out = read_only(np.zeros(16, np.uint8)), np.zeros(256, np.uint8)
    none, ends = read_only(np.zeros(0, np.int64)), read_only(np.zeros(1, np.int64))
    symbols, lengths = np.zeros(256, np.uint64), np.zeros(256, np.int64)
    table = read_only(symbols), read_only(lengths)
    offsets = np.zeros(1, np.int64)
    levels, out_levels, flags = read_only(np.zeros(0, np.uint16)), np.zeros(1, np.uint16), np.zeros(1, np.uint8)
    positions = read_only(np.zeros(0, np.uint32))
    yield partial(pack_runs, data, none, 0, 8, out, offsets)
    yield partial(read_widths, data, none, none, 8, offsets)
    yield partial(unpack_blocks, data, none, none, none, 8, out)
    yield partial(cut_chunks, ends, 0, 1, 1, offsets)
    yield partial(end_chunks, levels, 0, none, offsets)
    yield partial(count_chunk_rows, levels, 1, none, np.zeros(0, np.uint64))
    for bits in (8, 16, 32, 64):
        yield partial(measure_integers, read_only(np.zeros(1, f"u{bits // 8}")), 1024, np.zeros(1, np.uint64))
    yield partial(hash_values, data, none, none, 0, np.zeros(0, np.uint64))
    yield partial(number_distinct, read_only(np.zeros(0, np.uint64)), offsets, np.zeros(0, np.uint32))
    yield partial(is_dictionary_of, data, ends, none, positions)
    yield partial(copy_ranges, data, none, none, out, none)
    yield partial(join_strings, data, none, none, none, 4, out, offsets)
    yield partial(split_strings, data, ends, none, 4, out, offsets)
    yield partial(lz4_decode, data, none, none, out, ends)
    yield partial(fsst_train, data, ends, symbols[:255], lengths[:255])
    yield partial(fsst_encode, data, ends, *table, out, offsets)
    for ends_of in (np.zeros(1, np.int32), offsets):
        yield partial(fsst_decode, data, none, none, *table, out, ends_of)
        yield partial(fsst_decode_chunks, data, none, none, none, 4, *table, offsets, out, ends_of)
        yield partial(place_items, read_only(ends_of), 0, positions, read_only(flags[:0]), ends_of)
        yield partial(repeat_items, data, read_only(ends_of), positions, out, read_only(ends_of))
    yield partial(keep_levels, levels, 0, out_levels)
    yield partial(collapse_lists, levels, levels, 1, 0, 0, 0, 0, out_levels, out_levels, offsets, flags)
    yield partial(read_columns, data, none, none, *[offsets[:0]] * 6)
    yield partial(write_columns, none, 1, data, data, out, offsets[:0])
    yield partial(read_headers, data, none, none, 0, 1, 4, offsets, offsets, offsets)
    yield partial(write_headers, none, none, none, 0, 4, out, offsets, offsets)
    yield partial(write_parts, data, none, offsets, out)
    yield partial(locate_values, ends, none, offsets, offsets, offsets)
    yield partial(pick_packed, data, none, none, none, 8, symbols)
    yield partial(pick_strings, data, none, none, none, none, none, 4, offsets, offsets)
    yield partial(expand_runs, data, none, none, none, none, 8, out)
    yield partial(pick_runs, data, none, none, none, none, none, 8, symbols)
    yield partial(find_rows, levels, levels, none, none, 1, 0, none, none, none, none, offsets, offsets, offsets)
    absent = read_only(flags[:0])
    yield partial(count_children, none, absent, levels, none, 0, 0)
    yield partial(
        expand_lists, none, absent, levels, levels, none, 0, 0, 0, 1, 2, out_levels, out_levels, offsets, flags
    )
    yield partial(mark_nulls, absent, none, 0, 0, 1, out_levels[:0], flags)
    yield partial(renumber_levels, out_levels, out_levels)
    words, slots, straight = read_only(symbols[:0]), np.full(16, -1, np.int32), read_only(np.zeros(0, np.bool_))
    yield partial(build_codes, words, 60, slots, symbols, offsets, symbols)
    yield partial(find_codes, words, 60, read_only(slots), words, offsets)
    yield partial(find_hits, words, 60, read_only(slots), words, read_only(symbols), offsets, offsets)
    yield partial(
        remap_rows,
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
    yield partial(sort_words, symbols[:0], np.zeros(0, np.uint32))
    yield partial(xxh64, data, ends, symbols[:0])
    yield partial(read_file_ends, data, none, none, none, offsets)
    yield partial(read_single_pages, data, none, none, none, none, offsets)
    yield partial(walk_entries, data, none, none, 1, 0, 0, 1, 0, np.zeros(0, np.uint32), offsets, offsets)


if __name__ == "__main__":
    warm_in_processes()
