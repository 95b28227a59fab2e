"""Names of Arrow types, as `arrow_cast` takes them and `arrow_typeof` returns them.

    Int64   Utf8   FixedSizeBinary(4)   Decimal128(10, 2)   Timestamp(µs)   Timestamp(µs, "UTC")   Time32(s)
    Duration(ms)   List(Int32)   List(non-null Int32)   FixedSizeList(2 x Float32)   Struct("a": Int8, "b": Utf8)
    Dictionary(Int32, Utf8)

`parse_arrow_type` also reads the older names: units in full, `Timestamp(Microsecond, Some("UTC"))`, `None` for no zone,
`FixedSizeList(2, Float32)`.
"""

from __future__ import annotations

import re
from collections.abc import Callable

import pyarrow as pa

from lance_ops.core.errors import InvalidFilter, UnsupportedFeature

__all__ = ["parse_arrow_type", "spell_arrow_type"]

_PLAIN: dict[str, pa.DataType] = {
    "Null": pa.null(),
    "Boolean": pa.bool_(),
    "Int8": pa.int8(),
    "Int16": pa.int16(),
    "Int32": pa.int32(),
    "Int64": pa.int64(),
    "UInt8": pa.uint8(),
    "UInt16": pa.uint16(),
    "UInt32": pa.uint32(),
    "UInt64": pa.uint64(),
    "Float16": pa.float16(),
    "Float32": pa.float32(),
    "Float64": pa.float64(),
    "Utf8": pa.string(),
    "LargeUtf8": pa.large_string(),
    "Utf8View": pa.string_view(),
    "Binary": pa.binary(),
    "LargeBinary": pa.large_binary(),
    "BinaryView": pa.binary_view(),
    "Date32": pa.date32(),
    "Date64": pa.date64(),
}
_PLAIN_NAMES: dict[pa.DataType, str] = {arrow_type: name for name, arrow_type in _PLAIN.items()}
_UNITS = {"Second": "s", "Millisecond": "ms", "Microsecond": "us", "Nanosecond": "ns", "µs": "us", "μs": "us"}
_UNIT_NAMES = {"us": "µs"}
_TOKEN = re.compile(r'\s*(?:(?P<word>[\w\-+]+)|"(?P<text>[^"]*)"|(?P<sign>[(),:]))')


def parse_arrow_type(name: str) -> pa.DataType:
    """Return the type of that name; raise `InvalidFilter` if there is none."""
    try:
        reader = _Reader(_tokens(name))
        found = reader.type()
        reader.end()
    except (pa.ArrowInvalid, ValueError, OverflowError, RecursionError) as error:
        raise InvalidFilter(
            f"{name!r} is not the name of an Arrow type, such as 'Int32' or 'Timestamp(us, \"UTC\")': {error}"
        ) from error
    return found


def spell_arrow_type(arrow_type: pa.DataType) -> str:
    """Return the name from which `parse_arrow_type` reads a type; raise `UnsupportedFeature` if there is none."""
    if arrow_type in _PLAIN_NAMES:
        return _PLAIN_NAMES[arrow_type]
    for test, spell in _SPELLINGS:
        if test(arrow_type):
            return spell(arrow_type)
    raise UnsupportedFeature(f"the name of type {arrow_type} in a filter")


def _unit(arrow_type: pa.DataType) -> str:
    return _UNIT_NAMES.get(arrow_type.unit, str(arrow_type.unit))


def _spell_timestamp(arrow_type: pa.DataType) -> str:
    zone = f', "{arrow_type.tz}"' if arrow_type.tz is not None else ""
    return f"Timestamp({_unit(arrow_type)}{zone})"


def _spell_field(field: pa.Field) -> str:
    return f"{'' if field.nullable else 'non-null '}{spell_arrow_type(field.type)}"


def _spell_struct(arrow_type: pa.DataType) -> str:
    return f"Struct({', '.join(f'{_quoted(field.name)}: {_spell_field(field)}' for field in arrow_type)})"


def _quoted(name: str) -> str:
    return f'"{name}"'


_SPELLINGS: tuple[tuple[Callable[[pa.DataType], bool], Callable[[pa.DataType], str]], ...] = (
    (pa.types.is_timestamp, _spell_timestamp),
    (pa.types.is_time32, lambda kind: f"Time32({_unit(kind)})"),
    (pa.types.is_time64, lambda kind: f"Time64({_unit(kind)})"),
    (pa.types.is_duration, lambda kind: f"Duration({_unit(kind)})"),
    (pa.types.is_fixed_size_binary, lambda kind: f"FixedSizeBinary({kind.byte_width})"),
    (pa.types.is_decimal, lambda kind: f"Decimal{kind.bit_width}({kind.precision}, {kind.scale})"),
    (
        pa.types.is_dictionary,
        lambda kind: f"Dictionary({spell_arrow_type(kind.index_type)}, {spell_arrow_type(kind.value_type)})",
    ),
    (pa.types.is_list, lambda kind: f"List({_spell_field(kind.value_field)})"),
    (pa.types.is_large_list, lambda kind: f"LargeList({_spell_field(kind.value_field)})"),
    (pa.types.is_fixed_size_list, lambda kind: f"FixedSizeList({kind.list_size} x {_spell_field(kind.value_field)})"),
    (pa.types.is_struct, _spell_struct),
)


def _tokens(name: str) -> list[str]:
    """Split a name into words, signs, and texts with a quote before them."""
    found, at = [], 0
    while name[at:].strip():
        match = _TOKEN.match(name, at)
        if match is None:
            raise ValueError(f"{name[at:].strip()[0]!r} is not expected")
        found.append('"' + match["text"] if match["text"] is not None else match["word"] or match["sign"])
        at = match.end()
    return found


class _Reader:
    """Reads a type from tokens, from left to right."""

    def __init__(self, tokens: list[str]) -> None:
        self._tokens = tokens
        self._at = 0

    def type(self) -> pa.DataType:
        name = self._next()
        if name in _PLAIN:
            return _PLAIN[name]
        read = _PARAMETRIC.get(name)
        if read is None:
            raise ValueError(f"no type {name.removeprefix(_TEXT)!r}")
        self.take("(")
        found = read(self)
        self.take(")")
        return found

    def field(self, name: str = "item") -> pa.Field:
        strict = self.take_if("non-null")
        if not strict:
            self.take_if("nullable")
        return pa.field(name, self.type(), not strict)

    def unit(self) -> str:
        name = self._next()
        return _UNITS.get(name, name)

    def number(self) -> int:
        return int(self._next())

    def zone(self) -> str | None:
        """Read the rest of a timestamp: nothing, `, None`, `, "UTC"` or `, Some("UTC")`."""
        if not self.take_if(",") or self.take_if("None"):
            return None
        wrapped = self.take_if("Some")
        if wrapped:
            self.take("(")
        zone = self.text()
        if wrapped:
            self.take(")")
        return zone

    def text(self) -> str:
        token = self._next()
        if not token.startswith(_TEXT):
            raise ValueError(f"{token!r} should be in double quotes")
        return token[1:]

    def struct(self) -> pa.DataType:
        fields: list[pa.Field] = []
        while self._peek() != ")":
            if fields:
                self.take(",")
            name = self.text()
            self.take(":")
            fields.append(self.field(name))
        return pa.struct(fields)

    def pair(self, separator: str = ",") -> tuple[pa.DataType, pa.DataType]:
        first = self.type()
        self.take(separator)
        return first, self.type()

    def numbers(self) -> tuple[int, int]:
        first = self.number()
        self.take(",")
        return first, self.number()

    def fixed_size_list(self) -> pa.DataType:
        size = self.number()
        if not self.take_if("x"):
            self.take(",")
        return pa.list_(self.field(), size)

    def take(self, wanted: str) -> None:
        if not self.take_if(wanted):
            raise ValueError(f"{wanted!r} is missing")

    def take_if(self, wanted: str) -> bool:
        if self._peek() != wanted:
            return False
        self._at += 1
        return True

    def end(self) -> None:
        if self._at < len(self._tokens):
            raise ValueError(f"{self._tokens[self._at].removeprefix(_TEXT)!r} is not expected")

    def _peek(self) -> str:
        return self._tokens[self._at] if self._at < len(self._tokens) else ""

    def _next(self) -> str:
        token = self._peek()
        if not token:
            raise ValueError("the name ends too early")
        self._at += 1
        return token


_TEXT = '"'
_PARAMETRIC: dict[str, Callable[[_Reader], pa.DataType]] = {
    "Timestamp": lambda reader: pa.timestamp(reader.unit(), reader.zone()),
    "Time32": lambda reader: pa.time32(reader.unit()),
    "Time64": lambda reader: pa.time64(reader.unit()),
    "Duration": lambda reader: pa.duration(reader.unit()),
    "FixedSizeBinary": lambda reader: pa.binary(reader.number()),
    "Decimal32": lambda reader: pa.decimal32(*reader.numbers()),
    "Decimal64": lambda reader: pa.decimal64(*reader.numbers()),
    "Decimal128": lambda reader: pa.decimal128(*reader.numbers()),
    "Decimal256": lambda reader: pa.decimal256(*reader.numbers()),
    "Dictionary": lambda reader: pa.dictionary(*reader.pair()),
    "List": lambda reader: pa.list_(reader.field()),
    "LargeList": lambda reader: pa.large_list(reader.field()),
    "FixedSizeList": _Reader.fixed_size_list,
    "Struct": _Reader.struct,
}
