"""Words of 64 bits, such as keys and row addresses: sort them, number the distinct ones, and map them to others."""

from __future__ import annotations

from typing import TYPE_CHECKING

from lance_ops.core.lazy_import import import_on_first_use

if TYPE_CHECKING:
    from lance_ops.kernels.words.address_mapping import remap_rows
    from lance_ops.kernels.words.key_codes import build_codes, find_codes, find_hits
    from lance_ops.kernels.words.sorting import sort_words

__all__ = [
    "build_codes",
    "find_codes",
    "find_hits",
    "remap_rows",
    "sort_words",
]

_MODULES = {
    "build_codes": "key_codes",
    "find_codes": "key_codes",
    "find_hits": "key_codes",
    "remap_rows": "address_mapping",
    "sort_words": "sorting",
}

__getattr__ = import_on_first_use(__name__, _MODULES)
