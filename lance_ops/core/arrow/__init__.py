"""Arrow helpers: kinds of types, rows, nested arrays, serialized extension types, memory for values.

The first use of `pads` imports `pyarrow.dataset`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

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
from lance_ops.core.arrow.type_kinds import is_any_list, is_number, is_text, is_text_or_bytes, is_text_or_view
from lance_ops.core.arrow.without_pandas import (
    array_of_numbers,
    array_of_scalars,
    array_of_truths,
    bits_of_floats,
    empty_table,
    numbers_of,
    scalar,
    truths_of,
)
from lance_ops.core.lazy_import import import_on_first_use

if TYPE_CHECKING:
    from lance_ops.core.arrow.dataset_import import pads
    from lance_ops.core.arrow.decimals import type_between
    from lance_ops.core.arrow.dictionaries import as_dictionary

__all__ = [
    "EXTENSION_METADATA",
    "EXTENSION_NAME",
    "array_of_numbers",
    "array_of_scalars",
    "array_of_truths",
    "as_dictionary",
    "bits_of_floats",
    "child_fields",
    "children_of",
    "convert_leaves",
    "empty_table",
    "is_any_list",
    "is_number",
    "is_text",
    "is_text_or_bytes",
    "is_text_or_view",
    "items_of",
    "new_array",
    "new_bytes",
    "numbers_of",
    "pads",
    "rows_at",
    "rows_where",
    "safe_to_take",
    "scalar",
    "serialized_extension",
    "truths_of",
    "type_between",
    "with_child_fields",
    "with_children",
]

_MODULES = {"as_dictionary": "dictionaries", "pads": "dataset_import", "type_between": "decimals"}

if not TYPE_CHECKING:  # a type checker that sees it would accept any name
    __getattr__ = import_on_first_use(__name__, _MODULES)
