"""Encode JSON text as JSONB, the bytes that JSON columns hold, and decode JSONB to text.

A document is a container: a header, an entry for each part, and the parts' payloads one after another. All numbers are
big-endian.

    header   u32   kind << 29 | number of parts    kind 1: one scalar, 2: object, 4: array
    entry    u32   type << 28 | payload's bytes    0 null, 1 string, 2 number, 3 false, 4 true, 5 container, 6 extension
    string         UTF-8
    number         a first byte, then: 0x00 zero, 0x10 NaN, 0x20 inf, 0x30 -inf: no more bytes; 0x40 signed, 0x50
                   unsigned: 1, 2, 4 or 8 bytes; 0x60: a double; 0x70 decimal: 8, 16 or 32 bytes signed, then u8 scale
    container      an object or array, with its own header

An object has the entries of its keys first, then the entries of its values, both in the order of the keys' bytes. The
root is always a container; a lone scalar stands in a container of kind 1. An integer takes the fewest bytes, signed if
it is negative and unsigned if not. Integers beyond 64 bits and numbers with a point or an exponent become doubles. Only
other programs write decimals and extension values.

The layout is that of the `jsonb` crate (docs.rs/jsonb, "Encoding format"). Decoding returns compact JSON, with numbers
spelled as the reference spells them.
"""

from __future__ import annotations

import json
import math
import struct
from collections import Counter
from decimal import Decimal
from itertools import accumulate
from typing import Any, TypeAlias

from lance_ops.core.errors import InvalidInput, UnsupportedFeature

__all__ = [
    "ARRAY",
    "CONTAINER",
    "FALSE",
    "MAX_DEPTH",
    "NULL",
    "NUMBER",
    "OBJECT",
    "SCALAR",
    "STRING",
    "TRUE",
    "CorruptJsonb",
    "Span",
    "decode",
    "decode_part",
    "document",
    "encode",
    "read_container",
]

MAX_DEPTH = 256
"""The most levels of nested objects and arrays."""

Span: TypeAlias = tuple[int, int, int]
"""A part of a container: its entry's type, and the start and end of its payload in the document's bytes."""

SCALAR, OBJECT, ARRAY = 1, 2, 4
NULL, STRING, NUMBER, FALSE, TRUE, CONTAINER, _EXTENSION = range(7)
_ZERO, _NAN, _INFINITY, _MINUS_INFINITY, _SIGNED, _UNSIGNED, _DOUBLE, _DECIMAL = (kind << 4 for kind in range(8))

_MAX_PAYLOAD = (1 << 28) - 1
_MAX_PARTS = (1 << 29) - 1
_ALONE = frozenset([_ZERO, _NAN, _INFINITY, _MINUS_INFINITY])


class CorruptJsonb(ValueError):
    """Bytes that contradict the JSONB layout."""


def encode(text: str) -> bytes:
    """Return a JSON text as JSONB.

    Raises `InvalidInput` for text that is not JSON (RFC 8259), for a key that an object has twice, and for values that
    JSONB cannot hold: half of a surrogate pair, a number outside the range of a double, more than `MAX_DEPTH` levels, a
    part of 256 MiB.
    """
    try:
        value = json.loads(text, object_pairs_hook=_object, parse_constant=_no_number)
        kind, payload = _encode(value, 0)
    except (ValueError, OverflowError, RecursionError) as error:
        raise InvalidInput(f"not a JSON text that can be stored: {error}: {text[:60]!r}") from error
    return payload if kind == CONTAINER else _container(SCALAR, [(kind, payload)], 0)


def decode(data: bytes) -> str:
    """Return a document as compact JSON; an empty document is null.

    Raises `CorruptJsonb` for bytes that contradict the layout, `UnsupportedFeature` for extension values and for
    documents deeper than `MAX_DEPTH`.
    """
    if not data:
        return "null"
    parts: list[str] = []
    _decode_container(data, 0, len(data), parts, 0)
    return "".join(parts)


def read_container(data: bytes, start: int, end: int) -> tuple[int, list[Span]]:
    """Return the kind and the parts of the container in `data[start:end]`; an object's keys come before its values.

    Raises `CorruptJsonb` for a header or entries that contradict the layout.
    """
    (header,) = _unpack(data, start, end, 1)
    kind, count = header >> 29, header & _MAX_PARTS
    if kind not in (SCALAR, OBJECT, ARRAY) or (kind == SCALAR and count):
        raise CorruptJsonb(f"invalid container header {header:#010x}")
    num_entries = {SCALAR: 1, OBJECT: 2 * count, ARRAY: count}[kind]
    entries = _unpack(data, start + 4, end, num_entries)
    bounds = list(accumulate((entry & _MAX_PAYLOAD for entry in entries), initial=start + 4 + 4 * num_entries))
    if bounds[-1] > end:
        raise CorruptJsonb(f"the last {bounds[-1] - end} bytes of a container are missing")
    return kind, list(zip((entry >> 28 for entry in entries), bounds[:-1], bounds[1:], strict=True))


def decode_part(data: bytes, part: Span) -> str:
    """Return one part of a document as compact JSON; raises as `decode` does."""
    parts: list[str] = []
    _decode_part(data, *part, parts, 0)
    return "".join(parts)


def document(data: bytes, part: Span) -> bytes:
    """Return one part of a document as a document of its own."""
    kind, start, stop = part
    payload = data[start:stop]
    return payload if kind == CONTAINER else _container(SCALAR, [(kind, payload)], 0)


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        times = Counter(key for key, _ in pairs)
        twice = next(key for key in times if times[key] > 1)
        raise ValueError(f"an object has the key {twice!r} twice")
    return found


def _no_number(name: str) -> Any:
    raise ValueError(f"{name} is not a JSON number")


def _encode(value: Any, depth: int) -> tuple[int, bytes]:
    """Return a value's entry type and payload."""
    match value:
        case None:
            return NULL, b""
        case bool():
            return (TRUE if value else FALSE), b""
        case str():
            return STRING, value.encode()
        case int():
            return NUMBER, _encode_int(value)
        case float():
            return NUMBER, _encode_float(value)
    if depth == MAX_DEPTH:
        raise ValueError(f"more than {MAX_DEPTH} levels of nested objects and arrays")
    if isinstance(value, list):
        return CONTAINER, _container(ARRAY, [_encode(item, depth + 1) for item in value], len(value))
    members = sorted((key.encode(), item) for key, item in value.items())
    keys = [(STRING, key) for key, _ in members]
    return CONTAINER, _container(OBJECT, keys + [_encode(item, depth + 1) for _, item in members], len(members))


def _container(kind: int, parts: list[tuple[int, bytes]], count: int) -> bytes:
    if count > _MAX_PARTS or any(len(payload) > _MAX_PAYLOAD for _, payload in parts):
        raise ValueError("a part of 256 MiB or more")
    entries = [part << 28 | len(payload) for part, payload in parts]
    return struct.pack(f">{1 + len(parts)}I", kind << 29 | count, *entries) + b"".join(payload for _, payload in parts)


def _encode_int(value: int) -> bytes:
    if not value:
        return bytes([_ZERO])
    signed = value < 0
    for size in (1, 2, 4, 8):
        if -(1 << 8 * size - 1) <= value < 1 << 8 * size:
            return bytes([_SIGNED if signed else _UNSIGNED]) + value.to_bytes(size, "big", signed=signed)
    return _encode_float(float(value))


def _encode_float(value: float) -> bytes:
    if math.isinf(value):
        raise ValueError("a number outside the range of a double")
    return struct.pack(">Bd", _DOUBLE, value)


def _decode_container(data: bytes, start: int, end: int, parts: list[str], depth: int) -> None:
    if depth > MAX_DEPTH:
        raise UnsupportedFeature(f"JSON with more than {MAX_DEPTH} levels of nested objects and arrays")
    kind, spans = read_container(data, start, end)
    if kind == SCALAR and depth:
        raise CorruptJsonb("a scalar container inside another container")
    count = len(spans) // 2 if kind == OBJECT else len(spans)
    if kind == SCALAR:
        _decode_part(data, *spans[0], parts, depth)
        return
    parts.append("[" if kind == ARRAY else "{")
    for index in range(count):
        if index:
            parts.append(",")
        if kind == OBJECT:
            part, first, last = spans[index]
            if part != STRING:
                raise CorruptJsonb(f"an object key of entry type {part}, not a string")
            parts += (_string(data[first:last]), ":")
        _decode_part(data, *spans[index if kind == ARRAY else count + index], parts, depth)
    parts.append("]" if kind == ARRAY else "}")


def _decode_part(data: bytes, part: int, start: int, end: int, parts: list[str], depth: int) -> None:
    match part:
        case 0 | 3 | 4:  # null, false, true
            if start < end:
                raise CorruptJsonb("null, true or false with a payload")
            parts.append({NULL: "null", FALSE: "false", TRUE: "true"}[part])
        case 1:
            parts.append(_string(data[start:end]))
        case 2:
            parts.append(_number(data[start:end]))
        case 5:
            _decode_container(data, start, end, parts, depth + 1)
        case 6:
            raise UnsupportedFeature(f"a JSON extension value of kind {data[start : start + 1].hex() or 'none'}")
        case _:
            raise CorruptJsonb(f"unknown entry type {part}")


def _unpack(data: bytes, start: int, end: int, count: int) -> tuple[int, ...]:
    if start + 4 * count > end:
        raise CorruptJsonb(f"{count} entries in {end - start} bytes")
    return struct.unpack_from(f">{count}I", data, start)


def _string(payload: bytes) -> str:
    try:
        return json.dumps(payload.decode(), ensure_ascii=False)
    except UnicodeDecodeError as error:
        raise CorruptJsonb("a string that is not UTF-8") from error


def _number(payload: bytes) -> str:
    kind, size = payload[:1] and payload[0], len(payload) - 1
    if kind in _ALONE and not size:
        return "0" if kind == _ZERO else "null"
    if kind in (_SIGNED, _UNSIGNED) and size in (1, 2, 4, 8):
        return str(int.from_bytes(payload[1:], "big", signed=kind == _SIGNED))
    if kind == _DOUBLE and size == 8:
        return _float_text(struct.unpack(">d", payload[1:])[0])
    if kind == _DECIMAL and size in (9, 17, 33):
        return f"{Decimal(int.from_bytes(payload[1:-1], 'big', signed=True)).scaleb(-payload[-1]):f}"
    raise CorruptJsonb(f"invalid number bytes {payload[:9].hex()}")


def _float_text(value: float) -> str:
    """Return the shortest digits that give the number; magnitudes below 1e-5 and from 1e16 have an exponent."""
    if not math.isfinite(value):
        return "null"
    text = repr(value)
    if "e" not in text:
        return text
    digits, _, exponent = text.partition("e")
    power = int(exponent)
    if power == -5:  # Python writes an exponent already below 1e-4
        return f"{Decimal(text):f}"
    return f"{digits}e{power:+d}" if power > 0 else f"{digits}e{power}"
