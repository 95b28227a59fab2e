"""Index types that this library only remaps: other writers build them, and other readers search them.

    remap_only_type_of(metadata).remap(store, metadata, moves, store_out) -> files

When rows move, the library writes the rows' new addresses into the index files. Some files name rows by address, in one
column and in some files also in one global buffer. Other files are copied byte by byte. Other columns keep their
values. A new type is a line in `ALL_REMAP_ONLY_TYPES`; `registry.py` says who else must know it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from lance_ops.core.lazy_import import import_on_first_use

if TYPE_CHECKING:
    from lance_ops.indices.remap_only.registry import ALL_REMAP_ONLY_TYPES, remap_only_type_of
    from lance_ops.indices.remap_only.remap_only_type import RemapOnlyType

__all__ = ["ALL_REMAP_ONLY_TYPES", "RemapOnlyType", "remap_only_type_of"]

_MODULES = {
    "ALL_REMAP_ONLY_TYPES": "registry",
    "RemapOnlyType": "remap_only_type",
    "remap_only_type_of": "registry",
}

if not TYPE_CHECKING:  # a type checker that sees it would accept any name
    __getattr__ = import_on_first_use(__name__, _MODULES)
