"""Decode CSV by Arrow, led by a table's types, and name the line, column and value of what does not fit.

Arrow's streaming reader tells a column and a value, but no row. So a refused file is read once more, by the standard
library, up to the line of that value.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv
import pyarrow.types as pt

from lance_ops.maintenance.ingest.decoding.csv_rows import line_where, other_delimiter, read_header, set_delimiter
from lance_ops.maintenance.ingest.decoding.requests import (
    DecodingRefused,
    RawLimits,
    RawRequest,
    RawSource,
    TextReading,
)
from lance_ops.maintenance.ingest.decoding.text_values import (
    WHOLE_DECIMAL,
    bad_text,
    form_option,
    holds_text_to_parse,
    is_number,
    misfit_message,
    parsed,
)

__all__ = ["NO_UTF8", "decode_csv"]

_BAD_CELL = re.compile(r"In CSV column #(\d+): CSV conversion error to (.+?): (.*)", re.DOTALL)
_BAD_ROW = re.compile(r"Expected (\d+) columns, got (\d+)")
NO_UTF8 = "a cell is not UTF-8: set the file's encoding, such as cp1252"
_SHOWN = 100

_WITH_COMMA = re.compile(r"[+-]?\d[\d.,]*")


def decode_csv(source: RawSource, request: RawRequest, limits: RawLimits) -> tuple[pa.Schema, Iterator[pa.RecordBatch]]:
    """Return the schema and the batches of a CSV file."""
    text = request.text
    names, num_header_rows = read_header(source, text, limits) if text.header else (request.names or (), 0)
    types = {} if request.lead is None else {each.name: each.type for each in request.lead}
    for name, kind in types.items():
        if pt.is_nested(kind):
            raise DecodingRefused(
                f"column {name!r} is {kind} in the table, and a cell of CSV holds one value: use JSON lines or Parquet"
            )
    are_given = not text.header or text.distinct_names
    convert = pa.csv.ConvertOptions(
        include_columns=[name for name in names if name in types] if request.ignore_others else None,
        decimal_point=text.decimal_point,
    )
    if text.null_values is not None:
        convert.null_values = ["", *text.null_values]

    def opened() -> Any:
        convert.column_types = {name: _cell_type(kind, text) for name, kind in types.items()}
        return pa.csv.open_csv(
            source.open(),
            read_options=pa.csv.ReadOptions(
                skip_rows=text.skip_lines,
                column_names=names or None if are_given else None,
                skip_rows_after_names=num_header_rows if are_given else 0,
                autogenerate_column_names=not text.header and request.names is None,
            ),
            parse_options=pa.csv.ParseOptions(
                delimiter=text.delimiter,
                quote_char=text.quote or False,
                escape_char=text.escape or False,
                newlines_in_values=True,
            ),
            convert_options=convert,
        )

    reader = _named(opened, source, text, names)
    if request.lead is None:
        types = {each.name: pa.string() for each in reader.schema if pt.is_float64(each.type)}
        if types or text.date_formats or text.timestamp_formats or text.thousands:
            first = _named(opened, source, text, names)
            types = _types_by_form(_named(lambda: next(first, None), source, text, names), text, tuple(types))
            reader = _named(opened, source, text, names)
    fields = [each.with_type(_parsed_type(each.type, types.get(each.name, each.type))) for each in reader.schema]
    schema = pa.schema(fields)
    return schema, _batches(reader, schema, source, text, names)


def _batches(
    reader: Any, schema: pa.Schema, source: RawSource, text: TextReading, names: Sequence[str]
) -> Iterator[pa.RecordBatch]:
    in_others = _null_cells(text)
    in_texts = [*(text.null_values or ()), *([""] if text.empty_as_null else [])]
    while True:
        batch = _named(lambda: next(reader, None), source, text, names)
        if batch is None:
            return
        columns = []
        for column, wanted in zip(batch.columns, schema, strict=True):
            nulls = in_texts if column.type == _value_type(wanted.type) else in_others
            if nulls and (pt.is_string(column.type) or pt.is_large_string(column.type)):
                matches = pc.is_in(column, value_set=pa.array(nulls, column.type))
                column = pc.if_else(matches, pa.scalar(None, column.type), column)
            try:
                columns.append(parsed(column, wanted.type, text))
            except pa.ArrowInvalid as error:
                at = list(names).index(wanted.name)
                raise _bad_cell(source, text, names, at, wanted.type, error) from error
        yield pa.RecordBatch.from_arrays(columns, schema=schema)


def _null_cells(text: TextReading) -> list[str]:
    """Return the cells that are null in a column of any other type than text."""
    return ["", *(pa.csv.ConvertOptions().null_values if text.null_values is None else text.null_values)]


def _types_by_form(batch: pa.RecordBatch | None, text: TextReading, floats: Sequence[str]) -> dict[str, pa.DataType]:
    """Return types for text columns of the first batch, of which Arrow would read those of `floats` as float64.

    A column whose cells all have one declared form, or are null, gets the form's type. Whole numbers beyond int64 get a
    type that keeps their digits.
    """
    found: dict[str, pa.DataType] = {}
    nulls = pa.array(_null_cells(text), pa.string())
    forms = (
        (text.date_formats, pa.date32()),
        (text.timestamp_formats, pa.timestamp("us")),
        (text.thousands, pa.int64()),
        (text.thousands, pa.float64()),
    )
    for name, column in () if batch is None else zip(batch.schema.names, batch.columns, strict=True):
        if not pt.is_string(column.type):
            continue
        cells = column.filter(pc.invert(pc.is_in(column, value_set=nulls)))
        kinds = [pa.float64()] if name in floats else [kind for form, kind in forms if form and len(cells)]
        kind = next((each for each in kinds if _fits(cells, each, text)), None)
        if kind is not None:
            found[name] = _type_of_numbers(cells, text) if kind == pa.float64() else kind
    return found


def _fits(cells: pa.Array, kind: pa.DataType, text: TextReading) -> bool:
    try:
        parsed(cells, kind, text)
    except pa.ArrowInvalid:
        return False
    return True


def _type_of_numbers(cells: pa.Array, text: TextReading) -> pa.DataType:
    """Return float64 for numbers, or for whole numbers of which int64 does not hold one a type that keeps their digits.

    Decimals have at most 38 digits, so longer numbers stay text.
    """
    plain = pc.utf8_trim_whitespace(cells)
    if text.thousands:
        plain = pc.replace_substring(plain, text.thousands, "")
    if not pc.all(pc.match_substring_regex(plain, "^[+-]?[0-9]+$")).as_py():
        return pa.float64()
    num_digits = pc.max(pc.utf8_length(pc.utf8_ltrim(plain, "+-"))).as_py()
    return WHOLE_DECIMAL if num_digits <= WHOLE_DECIMAL.precision else pa.string()


def _cell_type(kind: pa.DataType, text: TextReading) -> pa.DataType:
    """Return the type as which Arrow reads a column of this type: text where it does not know the type, or a format."""
    kind = _value_type(kind)
    if pt.is_string_view(kind):
        return pa.string()
    if pt.is_binary_view(kind):
        return pa.binary()
    if pt.is_float16(kind):
        return pa.float32()
    has_form = (
        (pt.is_date(kind) and text.date_formats)
        or (pt.is_timestamp(kind) and text.timestamp_formats)
        or (is_number(kind) and text.thousands)
    )
    # Arrow does not always quote the cell that is no decimal, so decimals are parsed here.
    return pa.string() if has_form or pt.is_decimal(kind) else kind


def _value_type(kind: pa.DataType) -> pa.DataType:
    """Return the type of the values that a dictionary has, or the type itself."""
    return kind.value_type if pt.is_dictionary(kind) else kind


def _parsed_type(read: pa.DataType, wanted: pa.DataType) -> pa.DataType:
    return wanted if holds_text_to_parse(read, wanted) else read


def _named(read: Callable[[], Any], source: RawSource, text: TextReading, names: Sequence[str]) -> Any:
    """Call `read`, and name the line of the row or cell that Arrow refuses."""
    try:
        return read()
    except pa.ArrowInvalid as error:
        cell, row = _BAD_CELL.search(str(error)), _BAD_ROW.search(str(error))
        if cell is not None:
            raise _bad_cell(source, text, names, int(cell[1]), cell[2], error) from error
        if row is not None:
            line = line_where(source, text, lambda cells: len(cells) != int(row[1]))
            other = other_delimiter(names, text)
            hint = f": {set_delimiter(other)}" if other else ""
            first = "the header" if text.header else "the first row"
            raise DecodingRefused(f"{line}it has {row[2]} cells, and {first} has {row[1]}{hint}") from error
        raise


def _bad_cell(
    source: RawSource, text: TextReading, names: Sequence[str], at: int, kind: object, error: Exception
) -> DecodingRefused:
    """Return the refusal of a cell of the column at a position: Arrow quotes it, or its bytes are no text."""
    value = bad_text(error)

    def is_bad(cells: list[str]) -> bool:
        if at >= len(cells):
            return False
        if value is None:
            return any("\udc80" <= character <= "\udcff" for character in cells[at])
        return cells[at] == value or cells[at].strip() == value.strip()

    line = line_where(source, text, is_bad)
    name = names[at] if at < len(names) else f"#{at + 1}"
    if value is None:
        return DecodingRefused(f"{line}column {name!r}: {NO_UTF8}")
    why = " (expected a zone offset)" if "expected a zone" in str(error) else ""
    return DecodingRefused(
        line + misfit_message(name, repr(value[:_SHOWN]), f"{kind}{why}", _option_for(value, str(kind), text))
    )


def _option_for(value: str, kind: str, text: TextReading) -> str:
    """Return what to set so that a cell may be read as a type, or an empty text."""
    has_comma = kind != "bool" and "," in value and _WITH_COMMA.fullmatch(value.strip()) is not None
    if has_comma and text.decimal_point == "." and not text.thousands:
        return "say what its comma is by raw.text.decimal_point or raw.text.thousands (--decimal-point, --thousands)"
    return form_option(kind)
