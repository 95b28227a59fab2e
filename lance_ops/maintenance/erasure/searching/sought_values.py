"""The values that mark a subject's rows, as bytes to look for in files: texts or bytes of the filter's only column."""

from __future__ import annotations

from collections.abc import Iterable

import pyarrow as pa

from lance_ops.core.arrow import is_text_or_bytes
from lance_ops.core.predicate import Equals, Predicate, column_query
from lance_ops.maintenance.erasure.subject import HasKey

__all__ = ["long_enough", "marks_rows", "stated_values", "value_bytes"]

_FEWEST_BYTES = 4
"""Shorter values stand in any file by chance."""


def marks_rows(kind: pa.DataType) -> bool:
    """Return whether values of a type are looked for: texts and bytes."""
    return is_text_or_bytes(kind)


def stated_values(predicate: Predicate) -> frozenset[bytes]:
    """Return the values that a filter names by `=` or `IN`, or the keys: they may stand somewhere when no row is left.

    A value of one of several columns may also stand in the rows of others.
    """
    values = _values(predicate)
    if values is None or not marks_rows(values.type):
        return frozenset()
    return long_enough(map(value_bytes, values.drop_null().to_pylist()))


def _values(predicate: Predicate) -> pa.Array | pa.ChunkedArray | None:
    if isinstance(predicate, HasKey):
        return predicate.fitted().column(0) if len(predicate.key_columns) == 1 else None
    query = column_query(predicate)
    return query.values if isinstance(query, Equals) else None


def long_enough(values: Iterable[bytes]) -> frozenset[bytes]:
    """Return the values that do not stand in any file by chance."""
    return frozenset(value for value in values if len(value) >= _FEWEST_BYTES)


def value_bytes(value: str | bytes) -> bytes:
    """Return a text or bytes as an uncompressed page holds them."""
    return value.encode() if isinstance(value, str) else value
