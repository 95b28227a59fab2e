"""The JSON functions that a filter may call, with the reference's names; they read columns of stored JSONB.

`json_extract` returns text. `json_get` returns a document, so calls can be nested. If nothing is at the path or under
the key, `json_exists` and `json_array_contains` return false, and the others null. `json_get_string`, `_int`, `_float`
and `_bool` return null for a JSON null. `_int`, `_float` and `_bool` convert values as the reference does (text that
spells a number, 2.5 to 3, true to 1), and raise for values that they cannot convert.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from decimal import Decimal, InvalidOperation
from typing import Any, TypeAlias, TypeVar

import pyarrow as pa

from lance_ops.core.arrow import is_text
from lance_ops.core.errors import UnsupportedFeature
from lance_ops.core.json import (
    FALSE,
    NULL,
    NUMBER,
    STRING,
    TRUE,
    CorruptJsonb,
    Span,
    decode_part,
    document,
    find,
    items,
    parse_path,
    step_into,
    whole,
)

__all__ = [
    "is_key",
    "json_array_contains",
    "json_array_length",
    "json_exists",
    "json_extract",
    "json_get",
    "json_get_bool",
    "json_get_float",
    "json_get_int",
    "json_get_string",
]

T = TypeVar("T")
Documents: TypeAlias = Any
"""An array or a scalar of JSONB."""

_NUMBER_TEXT = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?|[+-]?(nan|inf|infinity)", re.IGNORECASE)
_BOOLS = {"true": True, "false": False}
_LARGEST, _LEAST = 2**63 - 1, -(2**63)
_MOST_DIGITS = len(str(_LARGEST))


def is_key(arrow_type: pa.DataType) -> bool:
    """Whether a literal of this type may be a member's name or an item's position."""
    return is_text(arrow_type) or bool(pa.types.is_integer(arrow_type))


def json_extract(documents: Documents, path: pa.Scalar) -> Any:
    """Return the part at a path as JSON text."""
    return _at(documents, path, pa.string(), decode_part)


def json_exists(documents: Documents, path: pa.Scalar) -> Any:
    """Return whether a path leads to a part; a JSON null counts."""
    return _at(documents, path, pa.bool_(), lambda data, part: True, absent=False)


def json_array_length(documents: Documents, path: pa.Scalar) -> Any:
    """Return the number of items of the array at a path; 0 for any other part, null if there is no part."""
    return _at(documents, path, pa.int64(), lambda data, part: len(items(data, part) or ()))


def json_array_contains(documents: Documents, path: pa.Scalar, wanted: pa.Scalar) -> Any:
    """Return whether the array at a path has an item equal to `wanted`: the same text, or the same spelling in JSON."""
    if not wanted.is_valid:
        return _each(documents, pa.bool_(), lambda data: None)
    text = str(wanted.as_py()) if not pa.types.is_boolean(wanted.type) else str(wanted.as_py()).lower()

    def contains(data: bytes, part: Span) -> bool:
        return any(_plain_text(data, item) == text for item in items(data, part) or ())

    return _at(documents, path, pa.bool_(), contains, absent=False)


def json_get(documents: Documents, key: pa.Scalar) -> Any:
    """Return a member of an object, or an item of an array, as a document."""
    return _under(documents, key, pa.large_binary(), document)


def json_get_string(documents: Documents, key: pa.Scalar) -> Any:
    """Return a text, or a number or truth value as JSON spells it."""
    return _under(documents, key, pa.string(), _string)


def json_get_int(documents: Documents, key: pa.Scalar) -> Any:
    """Return a number as an integer, rounded half away from zero."""
    return _under(documents, key, pa.int64(), _int)


def json_get_float(documents: Documents, key: pa.Scalar) -> Any:
    """Return a number as a double."""
    return _under(documents, key, pa.float64(), _float)


def json_get_bool(documents: Documents, key: pa.Scalar) -> Any:
    """Return a truth value; the texts "true" and "false" are converted, in any case."""
    return _under(documents, key, pa.bool_(), _bool)


def _at(
    documents: Documents,
    path: pa.Scalar,
    arrow_type: pa.DataType,
    convert: Callable[[bytes, Span], T],
    absent: T | None = None,
) -> Any:
    if not path.is_valid:
        return _each(documents, arrow_type, lambda data: None)
    steps = parse_path(path.as_py())

    def value(data: bytes) -> T | None:
        part = find(data, steps)
        return absent if part is None else convert(data, part)

    return _each(documents, arrow_type, value)


def _under(
    documents: Documents, key: pa.Scalar, arrow_type: pa.DataType, convert: Callable[[bytes, Span], T | None]
) -> Any:
    if not key.is_valid:
        return _each(documents, arrow_type, lambda data: None)
    name = str(key.as_py())
    steps: tuple[str | int, ...] = (name, int(name)) if name.isdecimal() else (name,)

    def value(data: bytes) -> T | None:
        top = whole(data)
        part = next((found for step in steps if (found := step_into(data, top, step)) is not None), None)
        return None if part is None else convert(data, part)

    return _each(documents, arrow_type, value)


def _each(documents: Documents, arrow_type: pa.DataType, value: Callable[[bytes], Any]) -> Any:
    """Apply a function to every document; errors become `ArrowInvalid`, as pyarrow's functions raise."""
    rows = [documents] if isinstance(documents, pa.Scalar) else documents
    try:
        values = [None if (data := row.as_py()) is None else value(data) for row in rows]
    except (CorruptJsonb, UnsupportedFeature) as error:
        raise pa.ArrowInvalid(f"JSON: {error}") from error
    return pa.scalar(values[0], arrow_type) if isinstance(documents, pa.Scalar) else pa.array(values, arrow_type)


def _plain_text(data: bytes, part: Span) -> str:
    kind, start, stop = part
    return data[start:stop].decode() if kind == STRING else decode_part(data, part)


def _string(data: bytes, part: Span) -> str | None:
    if part[0] == NULL:
        return None
    if part[0] not in (STRING, NUMBER, FALSE, TRUE):
        raise pa.ArrowInvalid(f"{_shown(data, part)} is not a string")
    return _plain_text(data, part)


def _number(data: bytes, part: Span) -> Decimal | None:
    if part[0] == NULL:
        return None
    if part[0] in (FALSE, TRUE):
        return Decimal(part[0] == TRUE)
    text = _plain_text(data, part)
    if part[0] not in (STRING, NUMBER) or not _NUMBER_TEXT.fullmatch(text):
        raise pa.ArrowInvalid(f"{_shown(data, part)} is not a number")
    try:
        return Decimal(text)
    except InvalidOperation:  # an exponent of some 20 digits: too large or too small for a float, too
        return Decimal(float(text))


def _int(data: bytes, part: Span) -> int | None:
    number = _number(data, part)
    if number is None:
        return None
    if not number.is_finite() or (number and number.adjusted() > _MOST_DIGITS):  # a larger exponent has no `abs`
        raise pa.ArrowInvalid(f"{_shown(data, part)} is not a 64-bit integer")
    rounded = int(math.copysign(1, number)) * int(abs(number) + Decimal("0.5"))
    if not _LEAST <= rounded <= _LARGEST:
        raise pa.ArrowInvalid(f"{_shown(data, part)} is not a 64-bit integer")
    return rounded


def _float(data: bytes, part: Span) -> float | None:
    number = _number(data, part)
    return None if number is None else float(number)


def _bool(data: bytes, part: Span) -> bool | None:
    if part[0] == NULL:
        return None
    if part[0] in (FALSE, TRUE):
        return part[0] == TRUE
    found = _BOOLS.get(_plain_text(data, part).lower()) if part[0] == STRING else None
    if found is None:
        raise pa.ArrowInvalid(f"{_shown(data, part)} is not a truth value")
    return found


def _shown(data: bytes, part: Span) -> str:
    text = decode_part(data, part)
    return text if len(text) < 60 else f"{text[:57]}..."
