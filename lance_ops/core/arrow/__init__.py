"""Arrow helpers: select rows, walk nested arrays, serialize extension types, allocate memory for values."""

from lance_ops.core.arrow.arrow_rows import rows_at, rows_where, safe_to_take
from lance_ops.core.arrow.extensions import EXTENSION_METADATA, EXTENSION_NAME, serialized_extension
from lance_ops.core.arrow.memory import new_array, new_bytes
from lance_ops.core.arrow.nested import (
    child_fields,
    children_of,
    convert_leaves,
    items_of,
    with_child_fields,
    with_children,
)

__all__ = [
    "EXTENSION_METADATA",
    "EXTENSION_NAME",
    "child_fields",
    "children_of",
    "convert_leaves",
    "items_of",
    "new_array",
    "new_bytes",
    "rows_at",
    "rows_where",
    "safe_to_take",
    "serialized_extension",
    "with_child_fields",
    "with_children",
]
