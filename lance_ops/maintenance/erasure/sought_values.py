"""The values that mark a subject's rows, as bytes to look for in files: texts or bytes of the filter's only column."""

from __future__ import annotations

from collections.abc import Iterable

import pyarrow as pa
import pyarrow.types as pt

from lance_ops.core.predicate import Equals, Predicate, column_query

__all__ = ["long_enough", "marks_rows", "stated_values", "value_bytes"]

_FEWEST_BYTES = 4
"""Shorter values stand in any file by chance."""


def marks_rows(kind: pa.DataType) -> bool:
    """Return whether values of a type are looked for: texts and bytes."""
    return any(test(kind) for test in (pt.is_string, pt.is_large_string, pt.is_binary, pt.is_large_binary))


def stated_values(predicate: Predicate) -> frozenset[bytes]:
    """Return the values that a filter names by `=` or `IN`: they may stand somewhere when no row is left."""
    query = column_query(predicate)
    if not isinstance(query, Equals) or not marks_rows(query.values.type):
        return frozenset()
    return long_enough(map(value_bytes, query.values.drop_null().to_pylist()))


def long_enough(values: Iterable[bytes]) -> frozenset[bytes]:
    """Return the values that do not stand in any file by chance."""
    return frozenset(value for value in values if len(value) >= _FEWEST_BYTES)


def value_bytes(value: str | bytes) -> bytes:
    """Return a text or bytes as an uncompressed page holds them."""
    return value.encode() if isinstance(value, str) else value
