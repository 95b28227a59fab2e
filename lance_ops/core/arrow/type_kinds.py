"""Which kind of values an Arrow type has. An extension type and a dictionary are of none of these kinds."""

from __future__ import annotations

import pyarrow as pa
import pyarrow.types as pt

__all__ = ["is_any_list", "is_number", "is_text", "is_text_or_bytes", "is_text_or_view"]

_TEXT = frozenset({pa.string().id, pa.large_string().id})
_TEXT_OR_VIEW = _TEXT | {pa.string_view().id}
_TEXT_OR_BYTES = _TEXT | {pa.binary().id, pa.large_binary().id}
_LISTS = frozenset({each.id for each in (pa.list_(pa.null()), pa.large_list(pa.null()), pa.list_(pa.null(), 1))})


def is_any_list(arrow_type: pa.DataType) -> bool:
    """Return whether the type is a list, a large list or a fixed-size list; neither a map nor a view of lists."""
    return arrow_type.id in _LISTS


def is_number(arrow_type: pa.DataType) -> bool:
    """Return whether values are whole numbers, floats or decimals."""
    return bool(pt.is_integer(arrow_type) or pt.is_floating(arrow_type) or pt.is_decimal(arrow_type))


def is_text(arrow_type: pa.DataType) -> bool:
    """Return whether values are UTF-8 strings with offsets, as files store text: no view."""
    return arrow_type.id in _TEXT


def is_text_or_view(arrow_type: pa.DataType) -> bool:
    """Return whether values are UTF-8 strings, with offsets or as a view."""
    return arrow_type.id in _TEXT_OR_VIEW


def is_text_or_bytes(arrow_type: pa.DataType) -> bool:
    """Return whether values are byte strings with offsets, UTF-8 or not: neither a view nor of a fixed size."""
    return arrow_type.id in _TEXT_OR_BYTES
