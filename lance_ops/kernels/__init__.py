"""Compiled loops over arrays, for work that numpy has no function for: `ndarray` in, `ndarray` out, no Arrow, no I/O.

Importing this package imports no numba. The first use of a kernel imports numba and loads the compiled code from the
cache on disk, or compiles it. For kernels of common reads, writes and sorts, numpy answers the first calls; see
`without_numba`. `python -m lance_ops.kernels.warm` compiles all of them when an image is built.

A kernel trusts its caller with the shapes of arrays, but never the bytes: a number read from data is checked against
the arrays before it is used as an index.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

from lance_ops.core.lazy_import import import_on_first_use
from lance_ops.kernels.read_only_arrays import read_only
from lance_ops.kernels.without_numba import TWINS, WEIGHTS, FirstCalls, do_without_numba

if TYPE_CHECKING:
    from lance_ops.kernels.chunks import (
        count_chunk_rows,
        cut_chunks,
        end_chunks,
        read_headers,
        write_headers,
        write_parts,
    )
    from lance_ops.kernels.code_cache import cached_code
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
    from lance_ops.kernels.metadata import (
        FILE_FACTS,
        PAGE_FACTS,
        read_columns,
        read_file_ends,
        read_single_pages,
        write_columns,
    )
    from lance_ops.kernels.ranges import copy_ranges
    from lance_ops.kernels.runs import expand_runs, pick_runs
    from lance_ops.kernels.single_values import locate_values, pick_packed, pick_strings
    from lance_ops.kernels.strings import join_strings, split_strings
    from lance_ops.kernels.value_statistics import measure_integers
    from lance_ops.kernels.words import build_codes, find_codes, find_hits, remap_rows, sort_words

__all__ = [
    "FILE_FACTS",
    "PAGE_FACTS",
    "build_codes",
    "cached_code",
    "collapse_lists",
    "copy_ranges",
    "count_children",
    "count_chunk_rows",
    "cut_chunks",
    "do_without_numba",
    "end_chunks",
    "expand_lists",
    "expand_runs",
    "find_codes",
    "find_hits",
    "find_rows",
    "fsst_decode",
    "fsst_decode_chunks",
    "fsst_encode",
    "fsst_train",
    "hash_values",
    "is_dictionary_of",
    "join_strings",
    "keep_levels",
    "load_kernels",
    "locate_values",
    "lz4_decode",
    "mark_nulls",
    "measure_integers",
    "number_distinct",
    "pack_runs",
    "pick_packed",
    "pick_runs",
    "pick_strings",
    "place_items",
    "read_columns",
    "read_file_ends",
    "read_headers",
    "read_only",
    "read_single_pages",
    "read_widths",
    "remap_rows",
    "renumber_levels",
    "repeat_items",
    "sort_words",
    "split_strings",
    "unpack_blocks",
    "walk_entries",
    "write_columns",
    "write_headers",
    "write_parts",
    "xxh64",
]

_MODULES = {
    "FILE_FACTS": "metadata",
    "PAGE_FACTS": "metadata",
    "build_codes": "words",
    "cached_code": "code_cache",
    "collapse_lists": "levels",
    "copy_ranges": "ranges",
    "count_children": "levels",
    "count_chunk_rows": "chunks",
    "cut_chunks": "chunks",
    "end_chunks": "chunks",
    "expand_lists": "levels",
    "expand_runs": "runs",
    "find_codes": "words",
    "find_hits": "words",
    "find_rows": "levels",
    "fsst_decode": "fsst",
    "fsst_decode_chunks": "fsst",
    "fsst_encode": "fsst",
    "fsst_train": "fsst",
    "hash_values": "hashing",
    "is_dictionary_of": "hashing",
    "join_strings": "strings",
    "keep_levels": "levels",
    "locate_values": "single_values",
    "lz4_decode": "lz4",
    "mark_nulls": "levels",
    "measure_integers": "value_statistics",
    "number_distinct": "hashing",
    "pack_runs": "fastlanes",
    "pick_packed": "single_values",
    "pick_runs": "runs",
    "pick_strings": "single_values",
    "place_items": "dictionary_strings",
    "read_columns": "metadata",
    "read_file_ends": "metadata",
    "read_headers": "chunks",
    "read_single_pages": "metadata",
    "read_widths": "fastlanes",
    "remap_rows": "words",
    "renumber_levels": "levels",
    "repeat_items": "dictionary_strings",
    "sort_words": "words",
    "split_strings": "strings",
    "unpack_blocks": "fastlanes",
    "walk_entries": "full_zip",
    "write_columns": "metadata",
    "write_headers": "chunks",
    "write_parts": "chunks",
    "xxh64": "hashing",
}

_load = import_on_first_use(__name__, _MODULES)


def load_kernels() -> None:
    """Load the kernels whose first calls numpy would answer. It is for a process that forks others, which inherit them.

    With a filled cache this takes 0.1 s of processor time, and the import of numba 0.3 s.
    """
    for name in TWINS:
        found = globals().get(name) or __getattr__(name)
        if isinstance(found, FirstCalls):
            found.load()


def __getattr__(name: str) -> Any:
    twin = TWINS.get(name)
    if twin is None:
        return _load(name)
    found = globals()[name] = FirstCalls(twin, partial(_load, name), WEIGHTS.get(name, 1))
    return found
