"""Twins of kernels in numpy, for processes that read little; see `first_calls`."""

from __future__ import annotations

from collections.abc import Callable

from lance_ops.kernels.without_numba.byte_strings import (
    join_strings,
    place_items,
    repeat_items,
)
from lance_ops.kernels.without_numba.chunk_places import locate_values, pick_strings, read_headers
from lance_ops.kernels.without_numba.first_calls import FirstCalls, do_without_numba
from lance_ops.kernels.without_numba.fsst import fsst_decode, fsst_decode_chunks
from lance_ops.kernels.without_numba.packed_numbers import pick_packed, read_widths, unpack_blocks

__all__ = ["TWINS", "FirstCalls", "do_without_numba"]

_ALL = (
    fsst_decode,
    fsst_decode_chunks,
    join_strings,
    locate_values,
    pick_packed,
    pick_strings,
    place_items,
    read_headers,
    read_widths,
    repeat_items,
    unpack_blocks,
)
TWINS: dict[str, Callable[..., int | None]] = {twin.__name__: twin for twin in _ALL}
"""The twins by the names of their kernels."""
