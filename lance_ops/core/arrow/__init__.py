"""Arrow helpers: select rows, walk nested arrays, serialize extension types, allocate memory for values.

The first use of `pads` imports `pyarrow.dataset`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from lance_ops.core.arrow.arrow_rows import rows_at, rows_where, safe_to_take
from lance_ops.core.arrow.decimals import type_between
from lance_ops.core.arrow.dictionaries import as_dictionary
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

if not TYPE_CHECKING:  # a type checker that sees it would accept any name
    __getattr__ = import_on_first_use(__name__, {"pads": "dataset_import"})
