"""Decode JSON by Arrow, led by a table's types, and name the line, field and value of what does not fit.

Arrow reads JSON lines. A file whose rows are the items of one array is turned into lines while it is read, so a row's
line is its place in the array.

Arrow infers a schema from the first block and reads the file again with it, so that a later field is refused by name
and does not vanish. A refused file is read once more, line by line, to find the line.

The process that decodes runs this module's text, so it imports nothing but the standard library, numpy and pyarrow.
"""

from __future__ import annotations

import io
import json
import re
from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.json
import pyarrow.types as pt

from lance_ops.maintenance.ingest.raw_limits import (
    BLOCK_BYTES,
    DecodingRefused,
    RawLimits,
    RawRequest,
    RawSource,
    TextReading,
    check_count,
    check_schema,
)
from lance_ops.maintenance.ingest.raw_values import WHOLE_DECIMAL, bad_text, is_list, json_misfit, parsed

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = ["JsonSource", "check_json", "decode_json"]

_MAX_BLOCK_CELLS = 16 * 1024**2  # Arrow makes a cell for each column that a row lacks
_SHOWN = 100
_JSON_KEY = re.compile(rb'("[^"\\]*+(?:\\.[^"\\]*+)*+")\s*+:', re.DOTALL)
_STEPS = np.zeros(256, np.int8)
_STEPS[list(b"[{")] = 1
_STEPS[list(b"]}")] = -1
_BETWEEN_ROWS = np.isin(np.arange(256), list(b"} \t\r\n\xef\xbb\xbf"))
"""The bytes that may stand where no object is open, with the end of one and those of a byte order mark."""
_LONGEST_KEY = 4096
"""A key that the end of a block cuts is seen if it has at most so many bytes."""

_NUM_SHAPES = 2**16
_PLAIN_NAME = re.compile(r"[ !#-.0-\[\]-~]+")
"""A name that JSON writes as it is, unless it escapes letters."""

_KELVIN = "\u212a".encode()  # its lower case is k, and no other letter outside of ASCII has one in ASCII
_ESCAPED_LETTER = re.compile(rb"\\u(?:00[2-7]|212[aA])")

_ANYTHING = re.compile(rb"\S")
_LINE_OF_ARRAY = bytes.maketrans(b"\n\r", b"  ")
_SPACES = b" \t\r\n"
_BOM = b"\xef\xbb\xbf"
_START_BYTES = 4096
"""A file is one array if its first character that is no space is a bracket, and among these bytes."""


def decode_json(
    source: RawSource, request: RawRequest, limits: RawLimits
) -> tuple[pa.Schema, Iterator[pa.RecordBatch]]:
    """Return the schema and the batches of a file of JSON lines, or of one array of rows."""
    source = JsonSource(source.path, source.compression, source.encoding, source.allowed_bytes, source.is_cut)
    names = list(_names_at_any_depth(request.lead)) if request.lead is not None and request.any_case else []
    keys = check_json(source, limits, names, in_all_rows=request.ignore_others)
    if request.lead is None:
        with pa.json.open_json(source.open()) as first:
            schema = wanted = _with_digits(source, first.schema)
    else:
        wanted = _as_spelled(source, request.lead, keys)
        schema = pa.schema([pa.field(each.name, _json_type(each.type, request.text)) for each in wanted])
    check_schema(schema, limits)
    others = "ignore" if request.ignore_others else "error"
    parsing = pa.json.ParseOptions(explicit_schema=schema, unexpected_field_behavior=others)

    def batches() -> Iterator[pa.RecordBatch]:
        with pa.json.open_json(source.open(), parse_options=parsing) as reader:
            yield from reader

    made = pa.schema(_parsed_fields(schema, wanted, request.text))
    return made, _named(source, schema, wanted, _parsed_batches(batches(), wanted, made, request.text), request)


class JsonSource(RawSource):
    """An open file's path; its rows are lines, also if they are the items of an array in the file."""

    def _whole(self) -> Any:
        with super()._whole() as stream:
            start = stream.read(_START_BYTES)
        is_array = start.removeprefix(_BOM).lstrip(_SPACES).startswith(b"[")
        return _ArrayLines(super()._whole()) if is_array else super()._whole()


class _Marks:
    """Finds some characters of JSON outside of its texts, and how deep each is nested, a block of the file at a time.

    A character is outside of texts if an even number of quotes stands before it, without those that are escaped.
    """

    def __init__(self, characters: bytes) -> None:
        self.depth = 0
        self._is_mark = np.isin(np.arange(256), list(characters))
        self._num_quotes = 0
        self._is_escaped = False

    def feed(self, block: bytes) -> tuple[NDArray[np.int64], NDArray[np.uint8], NDArray[np.int64]]:
        """Return the places of the marks in the next block, their codes, and the depth after each one."""
        is_escaped = self._is_escaped and block.startswith((b'"', b"\\"))
        bare = b" " + block[1:] if is_escaped else block
        # Of a run of backslashes the pairs go first, so a quote after one that is left belongs to the text.
        bare = bare.replace(b"\\\\", b"  ").replace(b'\\"', b"  ")
        self._is_escaped = bare.endswith(b"\\")
        codes = np.frombuffer(bare, np.uint8)
        quotes = np.flatnonzero(codes == ord('"'))
        places = np.flatnonzero(self._is_mark[codes])
        places = places[(np.searchsorted(quotes, places) + self._num_quotes) % 2 == 0]
        depths = self.depth + np.cumsum(_STEPS[codes[places]], dtype=np.int64)
        self.depth = int(depths[-1]) if len(depths) else self.depth
        self._num_quotes += len(quotes)
        return places, codes[places], depths


class _ArrayLines(io.RawIOBase):
    """The items of an array as lines: its brackets become spaces, its commas line feeds, and other line ends spaces."""

    def __init__(self, stream: Any) -> None:
        self._stream = stream
        self._marks = _Marks(b"[]{},")

    def readable(self) -> bool:
        return True

    def close(self) -> None:
        self._stream.close()
        super().close()

    def read(self, size: int = -1) -> bytes:
        block = self._stream.read(None if size < 0 else size)
        if not block:
            if self._marks.depth:
                raise DecodingRefused("its array has no end: the file is cut off, or a bracket is missing")
            return b""
        places, codes, depths = self._marks.feed(block)
        lines = bytearray(block.translate(_LINE_OF_ARRAY))
        outer = np.frombuffer(lines, np.uint8)
        outer[places[(codes == ord("[")) & (depths == 1)]] = ord(" ")
        outer[places[(codes == ord("]")) & (depths == 0)]] = ord(" ")
        outer[places[(codes == ord(",")) & (depths == 1)]] = ord("\n")
        return bytes(lines)


def _with_digits(source: RawSource, schema: pa.Schema) -> pa.Schema:
    """Return an inferred schema with decimals for whole numbers, of which int64 does not hold one."""
    if not _holds_floats(schema):
        return schema
    rows = [value for _, value in _values(replace(source, is_cut=True))]
    return pa.schema(list(_type_with_digits(pa.struct(schema), rows)))


def _holds_floats(fields: Iterable[pa.Field]) -> bool:
    return any(pt.is_float64(each.type) or _holds_floats(_fields_of(each.type)) for each in fields)


def _type_with_digits(kind: pa.DataType, values: list[Any]) -> pa.DataType:
    """Return the type with decimals for whole numbers; of fractions, and beyond 38 digits, float64 stays."""
    if pt.is_struct(kind):
        rows = [each for each in values if isinstance(each, dict)]
        return pa.struct(
            [child.with_type(_type_with_digits(child.type, [row.get(child.name) for row in rows])) for child in kind]
        )
    if pt.is_list(kind):
        items = [item for each in values if isinstance(each, list) for item in each]
        return pa.list_(kind.value_field.with_type(_type_with_digits(kind.value_type, items)))
    given = [each for each in values if each is not None]
    if not pt.is_float64(kind) or not all(isinstance(each, int) for each in given):
        return kind
    return WHOLE_DECIMAL if 2**63 <= max(map(abs, given), default=0) < 10**WHOLE_DECIMAL.precision else kind


def _as_spelled(source: RawSource, lead: pa.Schema, names: Mapping[bytes, str]) -> pa.Schema:
    """Return the lead with the spelling that the file's keys have, also within structs; `names` are keys of any row.

    Refuses a file that spells one field in two ways. Only lines with such keys are parsed.
    """
    alike: defaultdict[str, set[str]] = defaultdict(set)
    for name in (*_names_at_any_depth(lead), *names.values()):
        alike[name.lower()].add(name)
    several = {name for name, spellings in alike.items() if len(spellings) > 1}
    marks = [re.escape(key) for key, name in names.items() if name.lower() in several]
    if not marks:
        return lead
    lines: defaultdict[tuple[str, ...], dict[str, int]] = defaultdict(dict)
    for number, value in _values(source, re.compile(b"|".join(marks))):
        for path, name in _spellings(value, pa.struct(lead)):
            lines[path].setdefault(name, number)
    for path, by_name in lines.items():
        if len(by_name) > 1:
            first, second, *_ = by_name
            field = json.dumps(".".join((*path[:-1], second)))
            raise DecodingRefused(
                f"line {by_name[second]}: the field {field} is {json.dumps(first)} in line {by_name[first]}, "
                "and both are one column: spell it in one way"
            )
    return pa.schema(_respelled(lead, {path: next(iter(by_name)) for path, by_name in lines.items()}))


def _spellings(value: object, kind: pa.DataType, path: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], str]]:
    """Yield the path in the type of each field of a value that the type has in any case, and the name in the value."""
    if isinstance(value, list) and is_list(kind):
        for item in value:
            yield from _spellings(item, kind.value_type, path)
    if isinstance(value, dict) and pt.is_struct(kind):
        known = [child.name for child in kind]
        for name, item in value.items():
            alike = [name] if name in known else [each for each in known if each.lower() == name.lower()]
            if len(alike) == 1:
                yield (*path, alike[0]), name
                yield from _spellings(item, kind.field(alike[0]).type, (*path, alike[0]))


def _respelled(
    fields: Iterable[pa.Field], names: Mapping[tuple[str, ...], str], path: tuple[str, ...] = ()
) -> list[pa.Field]:
    """Return fields with the names that their paths have, also of those within structs."""
    made = []
    for each in fields:
        below = (*path, each.name)
        made.append(each.with_name(names.get(below, each.name)).with_type(_type_respelled(each.type, names, below)))
    return made


def _type_respelled(kind: pa.DataType, names: Mapping[tuple[str, ...], str], path: tuple[str, ...]) -> pa.DataType:
    if pt.is_struct(kind):
        return pa.struct(_respelled(kind, names, path))
    if is_list(kind):
        items = _type_respelled(kind.value_type, names, path)
        return kind if items == kind.value_type else pa.list_(items)
    return kind


def _names_at_any_depth(fields: Iterable[pa.Field]) -> Iterator[str]:
    """Yield the names of fields and of those within them."""
    for each in fields:
        yield each.name
        yield from _names_at_any_depth(_fields_of(each.type))


def _fields_of(kind: pa.DataType) -> list[pa.Field]:
    return [kind.field(at) for at in range(kind.num_fields)]


def _text_of(key: bytes) -> str:
    try:
        return str(json.loads(key)) if b"\\" in key else key[1:-1].decode()
    except ValueError:
        return ""


def _parsed_fields(schema: pa.Schema, wanted: pa.Schema, text: TextReading) -> list[pa.Field]:
    """Return the fields after their text is parsed: a parse of no value shows its type."""
    return [
        read.with_type(parsed(pa.array([], read.type), field.type, text).type)
        for read, field in zip(schema, wanted, strict=True)
    ]


def _parsed_batches(
    batches: Iterable[pa.RecordBatch], wanted: pa.Schema, made: pa.Schema, text: TextReading
) -> Iterator[pa.RecordBatch]:
    for batch in batches:
        columns = [parsed(column, field.type, text) for column, field in zip(batch.columns, wanted, strict=True)]
        yield pa.RecordBatch.from_arrays(columns, schema=made)


def _json_type(kind: pa.DataType, text: TextReading) -> pa.DataType:
    """Return the type as which Arrow reads values of a column of this type."""
    if pt.is_dictionary(kind):
        return _json_type(kind.value_type, text)
    if pt.is_struct(kind):
        return pa.struct([pa.field(child.name, _json_type(child.type, text)) for child in kind])
    if is_list(kind):
        return pa.list_(_json_type(kind.value_type, text))
    if pt.is_float16(kind):
        return pa.float32()
    if pt.is_date(kind) or pt.is_time(kind) or (pt.is_timestamp(kind) and text.timestamp_formats):
        return pa.string()
    if pt.is_duration(kind):
        return pa.int64()
    if pt.is_fixed_size_binary(kind) or pt.is_binary_view(kind):
        return pa.binary()
    return pa.string() if pt.is_string_view(kind) else kind


def _named(
    source: RawSource,
    schema: pa.Schema,
    wanted: pa.Schema,
    batches: Iterator[pa.RecordBatch],
    request: RawRequest,
) -> Iterator[pa.RecordBatch]:
    """Yield the batches, and name the line of what Arrow refuses."""
    try:
        yield from batches
    except pa.ArrowInvalid as error:
        if "unexpected field" in str(error):
            where = _line_where(source, lambda row: _unknown_field(row, pa.struct(schema), request))
            raise DecodingRefused(where or "it has a field that is not in the table") from error
        text = bad_text(error)
        where = _line_where(source, lambda row: json_misfit(row, pa.struct(schema), pa.struct(wanted), text))
        if not where:
            raise
        raise DecodingRefused(where) from error


def _line_where(source: RawSource, fault: Callable[[object], str]) -> str:
    """Return the line and fault of the first row that has one."""
    for number, value in _values(source):
        if found := fault(value):
            return f"line {number}: {found}"
    return ""


def _values(source: RawSource, marks: re.Pattern[bytes] = _ANYTHING) -> Iterator[tuple[int, Any]]:
    """Yield the number and value of each line that has a mark, as far as each line is one value of JSON."""
    for number, line in enumerate(_lines(source), 1):
        if marks.search(line):
            with suppress(ValueError, RecursionError):  # no JSON, or too deep for Python's parser
                yield number, json.loads(line)


def _lines(source: RawSource) -> Iterator[bytes]:
    with source.open() as stream:
        rest = b""
        while block := stream.read(BLOCK_BYTES):
            *lines, rest = (rest + block).split(b"\n")
            yield from lines
        yield rest


def _no_row(value: object) -> str:
    return "" if isinstance(value, dict) else f"{json.dumps(value)[:_SHOWN]} is no row: each row is an object of fields"


def _unknown_field(row: object, kind: pa.DataType, request: RawRequest) -> str:
    """Return the first field that a row has and the type lacks, with what to do; or an empty text.

    Without a lead a field is unknown if no row of the first block has it, because then it has no type yet.
    """
    for name, alike in _fields_outside(row, kind):
        field, others = f"the field {json.dumps(name)}", " or ".join(map(json.dumps, alike))
        if request.lead is None:
            rule = f"a field must occur in the first {BLOCK_BYTES:,} bytes"
            return f"{field} is in no earlier row, and {rule}: put a row with all fields first"
        if request.any_case and len(alike) == 1:
            return f"{field} is {others} in another line, and both are one column: spell it in one way"
        return f"{field}{f', unlike {others},' * bool(alike)} is not in the table: add it to the table, or ignore it"
    return ""


def _fields_outside(value: object, kind: pa.DataType, path: str = "") -> Iterator[tuple[str, list[str]]]:
    """Yield the dotted name of each field that the value has and the type lacks, and those unlike it in case alone."""
    if isinstance(value, list) and pt.is_list(kind):
        for item in value:
            yield from _fields_outside(item, kind.value_type, path)
    if isinstance(value, dict) and pt.is_struct(kind):
        for name, item in value.items():
            if kind.get_field_index(name) >= 0:
                yield from _fields_outside(item, kind.field(name).type, f"{path}{name}.")
            else:
                yield path + name, [child.name for child in kind if child.name.lower() == name.lower()]


class _KeySearch:
    """Finds keys that are one of some names in any case, a block of the file at a time.

    A block is parsed only if one of its texts has the length, the first and the last letter of a name.
    """

    def __init__(self, names: Collection[str]) -> None:
        self.keys: dict[bytes, str] = {}
        self._names = {name.lower() for name in names}
        self._is_plain = all(map(_PLAIN_NAME.fullmatch, self._names))
        self._is_sought = np.zeros(_NUM_SHAPES, np.bool_)
        for name in self._names:
            self._is_sought[_shapes_of_texts(json.dumps(name).encode())] = True
        self._end = b""

    def feed(self, block: bytes) -> None:
        """Look for keys in the next block, and in those that it ends."""
        if not self._names:
            return
        text = self._end + block
        if self._may_have_key(text):
            found = ((key, _text_of(key)) for key in set(_JSON_KEY.findall(text)) - self.keys.keys())
            self.keys.update((key, name) for key, name in found if name.lower() in self._names)
        self._end = block[-_LONGEST_KEY:]

    def _may_have_key(self, text: bytes) -> bool:
        if not self._is_plain or _KELVIN in text or (b"\\" in text and _ESCAPED_LETTER.search(text)):
            return True
        return bool(self._is_sought[_shapes_of_texts(text)].any())


def _shapes_of_texts(text: bytes) -> NDArray[np.int64]:
    """Return a number for what is between each two quotes, from its length and the letters at its ends in any case."""
    codes = np.frombuffer(text.lower(), np.uint8)
    quotes = np.flatnonzero(codes == ord('"'))
    ends = codes[quotes[:-1] + 1].astype(np.int64) << 8 | codes[quotes[1:] - 1]
    return (ends ^ np.diff(quotes)) & (_NUM_SHAPES - 1)


def check_json(
    source: RawSource, limits: RawLimits, names: Sequence[str] = (), *, in_all_rows: bool = True
) -> dict[bytes, str]:
    """Refuse what Arrow's parser does not survive: deep values, because it recurses, and nulls in place of rows.

    Returns the keys that are one of the names in any case. Unless they are sought `in_all_rows`, those of the first
    block suffice for a name that it has, and has in no other case; but not for one that several fields have.
    """
    marks, size_bytes = _Marks(b"[]{}"), 0
    with source.open() as file:  # a schema follows from the first block alone
        first = set(_JSON_KEY.findall(file.read(BLOCK_BYTES)))
    num_keys = len(first)
    check_count(num_keys, "columns", limits.columns)
    num_fields = Counter(name.lower() for name in names)
    sought = set(num_fields)
    if sought and not in_all_rows:
        spelled = {_text_of(key) for key in first}
        others = {name.lower() for name in spelled.difference(names)}
        sought -= {name for each in spelled if num_fields[name := each.lower()] == 1} - others
    search = _KeySearch(sought)
    with source.open() as file:
        while block := file.read(BLOCK_BYTES):
            size_bytes += len(block)
            if size_bytes > source.allowed_bytes:
                raise DecodingRefused(f"it has more than {source.allowed_bytes:,} bytes decompressed", "expansion")
            first_depth = marks.depth
            places, _, depths = marks.feed(block)
            lengths = np.diff(places, prepend=0, append=len(block))
            if depths.max(initial=0) > limits.depth:
                raise DecodingRefused(f"its values are nested more than {limits.depth} deep", "depth")
            is_outside = np.repeat(np.append(first_depth, depths) <= 0, lengths)  # a surplus } makes it negative
            if not _BETWEEN_ROWS[np.frombuffer(block, np.uint8)[is_outside]].all():
                raise DecodingRefused(_line_where(source, _no_row) or "it has text between its rows, which are objects")
            num_rows = int(np.count_nonzero(depths == 0))
            if num_rows * num_keys > _MAX_BLOCK_CELLS:
                raise DecodingRefused(
                    f"{num_rows:,} of its rows in {BLOCK_BYTES:,} bytes share {num_keys:,} columns", "columns"
                )
            search.feed(block)
    return search.keys
