"""Arrow arrays on their way into pages and out of them."""

from lance_ops.file.arrow_values.arrays import (
    array_of,
    bitmap_of,
    bits_per_value_of,
    buffer_bytes,
    copy_array,
    is_text,
    is_variable,
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
    "is_text",
    "is_variable",
    "reorder",
    "storage_of",
    "take_items",
    "validity_of",
    "values_of",
    "with_empty_slots",
]
