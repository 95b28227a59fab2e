"""Limit how deeply types nest. Libraries exchange schemas by Arrow's C interface, which carries no deeper types."""

from __future__ import annotations

from collections.abc import Iterable

import pyarrow as pa
import pyarrow.types as pt

from lance_ops.core.errors import InvalidInput

__all__ = ["MAX_DEPTH", "check_depth", "depth_of"]

MAX_DEPTH = 62
"""The levels below a top-level column: a list of numbers has one, a map two. Readers and writers have this limit."""


def check_depth(columns: Iterable[pa.Field]) -> None:
    """Raise `InvalidInput` for a column that nests more deeply than `MAX_DEPTH`."""
    for column in columns:
        if depth_of(column.type) > MAX_DEPTH:
            raise InvalidInput(f"column {column.name!r} nests more than {MAX_DEPTH} levels: flatten it")


def depth_of(arrow_type: pa.DataType) -> int:
    """Return how many levels are below a type, or `MAX_DEPTH` + 1 for more; does not recurse."""
    if not (pt.is_nested(arrow_type) or pt.is_dictionary(arrow_type) or isinstance(arrow_type, pa.BaseExtensionType)):
        return 0
    depth, level = 0, [arrow_type]
    while depth <= MAX_DEPTH:
        level = [child for parent in level for child in _types_in(parent)]
        if not level:
            break
        depth += 1
    return depth


def _types_in(arrow_type: pa.DataType) -> list[pa.DataType]:
    if isinstance(arrow_type, pa.BaseExtensionType):
        arrow_type = arrow_type.storage_type
    if pt.is_dictionary(arrow_type):
        return [arrow_type.value_type]
    return [arrow_type.field(index).type for index in range(arrow_type.num_fields)]
