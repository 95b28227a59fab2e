"""Arrow arrays on their way into pages and out of them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from lance_ops.core.lazy_import import import_on_first_use

if TYPE_CHECKING:
    from lance_ops.file.arrow_values.arrays import (
        array_of,
        bitmap_of,
        bits_per_value_of,
        buffer_bytes,
        copy_array,
        validity_of,
        values_of,
        with_empty_slots,
    )
    from lance_ops.file.arrow_values.dictionary_items import take_items
    from lance_ops.file.arrow_values.reordering import reorder
    from lance_ops.file.arrow_values.storage_arrays import storage_of

__all__ = [
    "array_of",
    "bitmap_of",
    "bits_per_value_of",
    "buffer_bytes",
    "copy_array",
    "reorder",
    "storage_of",
    "take_items",
    "validity_of",
    "values_of",
    "with_empty_slots",
]

_MODULES = {
    "array_of": "arrays",
    "bitmap_of": "arrays",
    "bits_per_value_of": "arrays",
    "buffer_bytes": "arrays",
    "copy_array": "arrays",
    "reorder": "reordering",
    "storage_of": "storage_arrays",
    "take_items": "dictionary_items",
    "validity_of": "arrays",
    "values_of": "arrays",
    "with_empty_slots": "arrays",
}

if not TYPE_CHECKING:  # a type checker that sees it would accept any name
    __getattr__ = import_on_first_use(__name__, _MODULES)
