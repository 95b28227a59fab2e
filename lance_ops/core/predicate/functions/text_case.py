"""Map text to upper and lower case, with Unicode's full mappings: `ß` becomes `SS`, and a final `Σ` becomes `ς`.

Arrow's kernels map one character to one character. Python's mappings are full but slower, so they are applied only to
the values that may contain a character for which the two differ.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from lance_ops.core.ndarrays import BoolArray, Int64Array

__all__ = ["lower", "upper"]


def _pairs(characters: Iterable[str]) -> BoolArray:
    """Return for each pair of bytes whether it ends the UTF-8 form of one of the characters."""
    found = np.zeros(1 << 16, np.bool_)
    for character in characters:
        last_two = character.encode()[-2:]
        found[last_two[0] << 8 | last_two[1]] = True
    return found


_BLOCKS = (range(0x80, 0x600), range(0x1E90, 0x2000), range(0xFB00, 0xFB18))
"""Ranges that hold every code point whose mapping has several characters."""

_LONGER_IN_UPPER_CASE = _pairs(chr(code) for block in _BLOCKS for code in block if len(chr(code).upper()) > 1)
_SPECIAL_IN_LOWER_CASE = _pairs("İΣ")


def upper(text: Any) -> Any:
    """Return texts (array or scalar) in upper case."""
    return _mapped(text, pc.ascii_upper, pc.utf8_upper, str.upper, _LONGER_IN_UPPER_CASE)


def lower(text: Any) -> Any:
    """Return texts (array or scalar) in lower case."""
    return _mapped(text, pc.ascii_lower, pc.utf8_lower, str.lower, _SPECIAL_IN_LOWER_CASE)


def _mapped(
    text: Any,
    of_ascii: Callable[[Any], Any],
    by_character: Callable[[Any], Any],
    of_value: Callable[[str], str],
    special_pairs: BoolArray,
) -> Any:
    if isinstance(text, pa.Scalar):
        return pa.scalar(of_value(text.as_py()) if text.is_valid else None, text.type)
    first, content = _content(text)
    if not content.size or content.max() < 0x80:
        return of_ascii(text)
    mapped = by_character(text)
    rows = _rows_with(special_pairs, text, first, content)
    if not len(rows):
        return mapped
    mask = np.zeros(len(text), np.bool_)
    mask[rows] = True
    values = [of_value(value) for value in text.take(pa.array(rows)).to_pylist() if value is not None]
    return pc.replace_with_mask(mapped, pc.and_(pa.array(mask), pc.is_valid(text)), pa.array(values, text.type))


def _offsets(text: pa.Array) -> Int64Array:
    width = np.int64 if pa.types.is_large_string(text.type) else np.int32
    offsets = np.frombuffer(text.buffers()[1], width)[text.offset : text.offset + len(text) + 1]
    return offsets.astype(np.int64, copy=False)


def _content(text: pa.Array) -> tuple[int, np.ndarray[tuple[int], np.dtype[np.uint8]]]:
    """Return the position of the first byte of the array's values, and their bytes."""
    data = text.buffers()[2] if len(text) else None
    if data is None:
        return 0, np.empty(0, np.uint8)
    offsets = _offsets(text)
    return int(offsets[0]), np.frombuffer(data, np.uint8)[offsets[0] : offsets[-1]]


def _rows_with(
    special_pairs: BoolArray, text: pa.Array, first: int, content: np.ndarray[tuple[int], np.dtype[np.uint8]]
) -> Int64Array:
    """Return the rows that may have a special character; a pair may also belong to another character."""
    pairs = content[:-1].astype(np.uint16) << 8 | content[1:]
    places = np.flatnonzero(special_pairs[pairs]) + first
    rows: Int64Array = np.unique(np.searchsorted(_offsets(text), places, side="right") - 1)
    return rows
