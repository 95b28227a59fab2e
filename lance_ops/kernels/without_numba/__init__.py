"""Twins of kernels in numpy and Arrow, for processes that read and write little; see `first_calls`."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

from lance_ops.core.lazy_import import import_on_first_use
from lance_ops.kernels.without_numba.first_calls import FirstCalls, do_without_numba

__all__ = ["TWINS", "WEIGHTS", "FirstCalls", "do_without_numba"]

_PLACES = {
    "collapse_lists": "levels",
    "count_children": "levels",
    "count_chunk_rows": "chunk_writing",
    "cut_chunks": "chunk_writing",
    "end_chunks": "chunk_writing",
    "expand_lists": "levels",
    "fsst_decode": "fsst",
    "fsst_decode_chunks": "fsst",
    "fsst_encode": "fsst_encoding",
    "fsst_train": "fsst_encoding",
    "hash_values": "distinct_values",
    "is_dictionary_of": "distinct_values",
    "join_strings": "byte_strings",
    "keep_levels": "levels",
    "locate_values": "chunk_places",
    "mark_nulls": "levels",
    "measure_integers": "packed_numbers",
    "number_distinct": "distinct_values",
    "pack_runs": "packed_numbers",
    "pick_packed": "packed_numbers",
    "pick_strings": "chunk_places",
    "place_items": "byte_strings",
    "read_headers": "chunk_places",
    "read_widths": "packed_numbers",
    "renumber_levels": "levels",
    "repeat_items": "byte_strings",
    "sort_words": "sorted_words",
    "split_strings": "byte_strings",
    "unpack_blocks": "packed_numbers",
    "write_headers": "chunk_writing",
    "write_parts": "chunk_writing",
}
_load = import_on_first_use(__name__, _PLACES)


class _Twins(Mapping[str, Callable[..., Any]]):
    """Loads the module of a twin when the twin is first asked for: most processes need a few of them."""

    def __getitem__(self, name: str) -> Callable[..., Any]:
        if name not in _PLACES:
            raise KeyError(name)
        twin: Callable[..., Any] = _load(name)
        return twin

    def __iter__(self) -> Iterator[str]:
        return iter(_PLACES)

    def __len__(self) -> int:
        return len(_PLACES)


TWINS = _Twins()
"""The twins by the names of their kernels."""
WEIGHTS = {"expand_lists": 4, "fsst_encode": 16, "fsst_train": 8 << 10, "sort_words": 10}
"""How many bytes one written byte counts for, of twins that take longer than others for each."""
