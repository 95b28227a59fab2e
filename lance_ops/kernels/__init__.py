"""Loops that numpy has no word for: `ndarray` in, `ndarray` out, no Arrow and no I/O.

Importing this package costs nothing; the first use of a kernel imports numba and takes the compiled code from the
cache on disk, or compiles it (`warm` does so for all of them, when an image is built).

Kernels trust their callers with array shapes, and nobody with the bytes: what is read from data is checked against
the arrays before it is used as a place.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from lance_ops.core.lazy_import import import_on_first_use
from lance_ops.kernels.arrays import readable

if TYPE_CHECKING:
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

__all__ = [
    "are_entries",
    "build_codes",
    "collapse_lists",
    "copy_ranges",
    "count_children",
    "cut_chunks",
    "end_entries",
    "end_items",
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
    "index_rows",
    "join_strings",
    "keep_levels",
    "locate_values",
    "lz4_decode",
    "mark_nulls",
    "measure_integers",
    "move_rows",
    "number_words",
    "pack_runs",
    "pick_packed",
    "pick_runs",
    "pick_strings",
    "read_headers",
    "read_widths",
    "readable",
    "renumber_levels",
    "repeat_items",
    "split_strings",
    "unpack_blocks",
    "walk_entries",
    "write_headers",
    "write_parts",
    "xxh64",
]

_MODULES = {
    "build_codes": "key_codes",
    "find_codes": "key_codes",
    "find_hits": "key_codes",
    "are_entries": "distinct",
    "collapse_lists": "levels",
    "copy_ranges": "ranges",
    "count_children": "flatten",
    "cut_chunks": "chunks",
    "end_entries": "chunks",
    "end_items": "repeats",
    "expand_lists": "flatten",
    "expand_runs": "runs",
    "find_rows": "rows",
    "fsst_decode": "fsst",
    "fsst_decode_chunks": "fsst",
    "fsst_encode": "fsst_encoding",
    "fsst_train": "fsst_training",
    "hash_values": "measure",
    "index_rows": "chunks",
    "join_strings": "strings",
    "keep_levels": "levels",
    "locate_values": "picks",
    "lz4_decode": "lz4",
    "mark_nulls": "flatten",
    "measure_integers": "measure",
    "move_rows": "moved_rows",
    "number_words": "distinct",
    "pack_runs": "fastlanes",
    "pick_packed": "picks",
    "pick_runs": "runs",
    "pick_strings": "picks",
    "read_headers": "chunk_headers",
    "read_widths": "fastlanes",
    "renumber_levels": "flatten",
    "repeat_items": "repeats",
    "split_strings": "strings",
    "unpack_blocks": "fastlanes",
    "walk_entries": "full_zip",
    "write_headers": "chunk_parts",
    "write_parts": "chunk_parts",
    "xxh64": "hashes",
}

__getattr__ = import_on_first_use(__name__, _MODULES)
