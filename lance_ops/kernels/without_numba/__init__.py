"""Twins of kernels in numpy and Arrow, for processes that read and write little; see `first_calls`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from lance_ops.kernels.without_numba.byte_strings import (
    join_strings,
    place_items,
    repeat_items,
    split_strings,
)
from lance_ops.kernels.without_numba.chunk_places import locate_values, pick_strings, read_headers
from lance_ops.kernels.without_numba.chunk_writing import cut_chunks, write_headers, write_parts
from lance_ops.kernels.without_numba.distinct_values import hash_values, is_dictionary_of, number_distinct
from lance_ops.kernels.without_numba.first_calls import FirstCalls, do_without_numba
from lance_ops.kernels.without_numba.fsst import fsst_decode, fsst_decode_chunks
from lance_ops.kernels.without_numba.fsst_encoding import fsst_encode, fsst_train
from lance_ops.kernels.without_numba.levels import mark_nulls, renumber_levels
from lance_ops.kernels.without_numba.packed_numbers import (
    measure_integers,
    pack_runs,
    pick_packed,
    read_widths,
    unpack_blocks,
)

__all__ = ["TWINS", "WEIGHTS", "FirstCalls", "do_without_numba"]

_ALL = (
    cut_chunks,
    fsst_decode,
    fsst_decode_chunks,
    fsst_encode,
    fsst_train,
    hash_values,
    is_dictionary_of,
    join_strings,
    locate_values,
    mark_nulls,
    measure_integers,
    number_distinct,
    pack_runs,
    pick_packed,
    pick_strings,
    place_items,
    read_headers,
    read_widths,
    renumber_levels,
    repeat_items,
    split_strings,
    unpack_blocks,
    write_headers,
    write_parts,
)
TWINS: dict[str, Callable[..., Any]] = {twin.__name__: twin for twin in _ALL}
"""The twins by the names of their kernels."""
WEIGHTS = {"fsst_encode": 16, "fsst_train": 8 << 10}
"""How many bytes one written byte counts for, of twins that take longer than others for each."""
