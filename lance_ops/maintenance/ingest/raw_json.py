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
from collections.abc import Callable, Iterable, Iterator
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
from lance_ops.maintenance.ingest.raw_values import bad_text, form_option, is_list, misfit_message, parsed

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
    check_json(source, limits)
    if request.lead is None:
        with pa.json.open_json(source.open()) as first:
            schema = wanted = first.schema
    else:
        wanted = request.lead
        schema = pa.schema([pa.field(each.name, _json_type(each.type, request.text)) for each in wanted])
    check_schema(schema, limits)
    others = "ignore" if request.ignore_others else "error"
    parsing = pa.json.ParseOptions(explicit_schema=schema, unexpected_field_behavior=others)

    def batches() -> Iterator[pa.RecordBatch]:
        with pa.json.open_json(source.open(), parse_options=parsing) as reader:
            yield from reader

    is_led = request.lead is not None
    made = pa.schema(_parsed_fields(schema, wanted, request.text))
    return made, _named(source, schema, wanted, _parsed_batches(batches(), wanted, made, request.text), is_led=is_led)


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
    *,
    is_led: bool,
) -> Iterator[pa.RecordBatch]:
    """Yield the batches, and name the line of what Arrow refuses.

    Without a lead a field is unknown if no row of the first block has it, because then it has no type yet.
    """
    try:
        yield from batches
    except pa.ArrowInvalid as error:
        if "unexpected field" in str(error):
            where = _line_where(source, lambda row: _field_outside(row, pa.struct(schema))) or "a field"
            if is_led:
                raise DecodingRefused(f"{where} is not in the table: add it to the table, or ignore it") from error
            rule = f"a field must occur in the first {BLOCK_BYTES:,} bytes"
            raise DecodingRefused(
                f"{where} is in no earlier row, and {rule}: put a row with all fields first"
            ) from error
        text = bad_text(error)
        where = _line_where(source, lambda row: _misfit(row, pa.struct(schema), pa.struct(wanted), text))
        if not where:
            raise
        raise DecodingRefused(where) from error


def _line_where(source: RawSource, fault: Callable[[object], str]) -> str:
    """Return the line and fault of the first row that has one, as far as each line is one row."""
    with source.open() as stream:
        number, rest = 0, b""
        while block := stream.read(BLOCK_BYTES):
            *lines, rest = (rest + block).split(b"\n")
            for line in lines:
                number += 1
                if found := _fault_of(line, fault):
                    return f"line {number}: {found}"
        found = _fault_of(rest, fault)
        return f"line {number + 1}: {found}" if found else ""


def _fault_of(line: bytes, fault: Callable[[object], str]) -> str:
    try:
        return fault(json.loads(line)) if line.strip() else ""
    except (ValueError, RecursionError):  # a line that is no JSON, or too deep for Python's parser
        return ""


def _no_row(value: object) -> str:
    return "" if isinstance(value, dict) else f"{json.dumps(value)[:_SHOWN]} is no row: each row is an object of fields"


def _field_outside(value: object, kind: pa.DataType) -> str:
    """Return the field, by its dotted name, that the value has and the type lacks, or an empty text."""
    name = _name_outside(value, kind)
    return name and f"the field {json.dumps(name)}"


def _name_outside(value: object, kind: pa.DataType) -> str:
    if isinstance(value, list) and pt.is_list(kind):
        return next(filter(None, (_name_outside(item, kind.value_type) for item in value)), "")
    if isinstance(value, dict) and pt.is_struct(kind):
        for name, item in value.items():
            if kind.get_field_index(name) < 0:
                return str(name)
            below = _name_outside(item, kind.field(name).type)
            if below:
                return f"{name}.{below}"
    return ""


def _misfit(value: Any, read: pa.DataType, wanted: pa.DataType, bad: str | None, path: str = "") -> str:
    """Return the column and value that Arrow does not read as `read`, or that is the text `bad`; or an empty text."""
    if value is None:
        return ""
    if pt.is_struct(read) and isinstance(value, dict):
        names = [name for name in value if read.get_field_index(name) >= 0]
        below = (
            _misfit(
                value[name], read.field(name).type, wanted.field(name).type, bad, f"{path}.{name}" if path else name
            )
            for name in names
        )
        return next(filter(None, below), "")
    if pt.is_list(read) and isinstance(value, list):
        return next(filter(None, (_misfit(each, read.value_type, wanted.value_type, bad, path) for each in value)), "")
    fits = _fits(value, read) and not (pt.is_string(read) and read != wanted and value == bad)
    remedy = form_option(str(wanted)) if isinstance(value, str) else ""
    return "" if fits else misfit_message(path, json.dumps(value)[:_SHOWN], wanted, remedy)


def _fits(value: Any, kind: pa.DataType) -> bool:
    if pt.is_nested(kind) or pt.is_null(kind) or isinstance(value, list | dict):
        return False
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    if pt.is_boolean(kind):
        return isinstance(value, bool)
    if pt.is_integer(kind) or pt.is_floating(kind):
        if not is_number or (pt.is_integer(kind) and isinstance(value, float)):
            return False
        try:
            pa.scalar(value, kind)
        except (pa.ArrowInvalid, OverflowError):
            return False
        return True
    if pt.is_decimal(kind):
        return _casts(str(value), kind) if is_number or isinstance(value, str) else False
    if not isinstance(value, str):
        return False
    return _casts(value, kind) or _casts(f"{value}Z", kind) if pt.is_timestamp(kind) else True


def _casts(text: str, kind: pa.DataType) -> bool:
    try:
        pa.array([text]).cast(kind)
    except pa.ArrowInvalid:
        return False
    return True


def check_json(source: RawSource, limits: RawLimits) -> None:
    """Refuse what Arrow's parser does not survive: deep values, because it recurses, and nulls in place of rows.

    Its schema follows from the first block alone.
    """
    marks, size_bytes = _Marks(b"[]{}"), 0
    with source.open() as file:
        num_keys = len(set(_JSON_KEY.findall(file.read(BLOCK_BYTES))))
        check_count(num_keys, "columns", limits.columns)
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
