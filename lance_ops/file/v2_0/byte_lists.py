"""Text and bytes as lists of bytes, in two columns: where each value ends, and the bytes of all values.

Releases before 0.14 wrote them so. The second column has no field. A file does not state which form it has: it has more
columns than fields, and the first page of such a column is one of lists.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

import numpy as np
import pyarrow as pa
import pyarrow.types as pt

from lance_ops.core.ndarrays import OffsetArray
from lance_ops.core.schema import Field
from lance_ops.encodings import VariableWidth, check
from lance_ops.file.arrow_values import array_of, validity_of

__all__ = ["as_byte_list", "from_byte_lists", "with_byte_columns"]

_VARIABLE = ("string", "binary", "large_string", "large_binary")
_FIRST_ID = -10
"""The id of the first column without a field; the next ones count down. No schema has such ids."""


def with_byte_columns(fields: Sequence[Field], is_list: Callable[[int], bool]) -> tuple[list[Field], dict[int, Field]]:
    """Return the field of each column of a file, and the fields that were made for the columns of bytes.

    The latter are keyed by the id of the text or bytes field that each completes. `fields` are the fields of the file's
    schema that have columns. `is_list` says whether a column, by its number, stores lists.
    """
    columns: list[Field] = []
    bytes_of: dict[int, Field] = {}
    for field in fields:
        columns.append(field)
        if field.logical_type in _VARIABLE and is_list(len(columns) - 1):
            bytes_of[field.id] = Field(_FIRST_ID - len(bytes_of), field.id, "bytes", "uint8", nullable=False)
            columns.append(bytes_of[field.id])
    return columns, bytes_of


def as_byte_list(field: Field, item: Field) -> Field:
    """Return the field of text or bytes as one of lists of bytes."""
    return replace(
        field, logical_type="large_list" if field.logical_type.startswith("large") else "list", children=(item,)
    )


def from_byte_lists(lists: pa.Array, arrow_type: pa.DataType) -> pa.Array:
    """Return lists of bytes as text or bytes. `lists` has no offset. Raises as `array_of` does."""
    check(lists.values.null_count == 0, "a byte that is null")
    raw = lists.buffers()[1]
    offsets: OffsetArray = (
        np.frombuffer(raw, np.int64) if pt.is_large_list(lists.type) else np.frombuffer(raw, np.int32)
    )
    return array_of(VariableWidth(offsets, lists.values.to_numpy()), arrow_type, validity_of(lists))
