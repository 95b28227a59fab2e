"""Hashes of byte strings, and distinct values found by them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from lance_ops.core.lazy_import import import_on_first_use

if TYPE_CHECKING:
    from lance_ops.kernels.hashing.distinct import is_dictionary_of, number_distinct
    from lance_ops.kernels.hashing.value_hashes import hash_values
    from lance_ops.kernels.hashing.xxhash import xxh64

__all__ = [
    "hash_values",
    "is_dictionary_of",
    "number_distinct",
    "xxh64",
]

_MODULES = {
    "hash_values": "value_hashes",
    "is_dictionary_of": "distinct",
    "number_distinct": "distinct",
    "xxh64": "xxhash",
}

__getattr__ = import_on_first_use(__name__, _MODULES)
