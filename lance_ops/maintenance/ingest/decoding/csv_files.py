"""Decode CSV by Arrow, led by a table's types, and name the line, column and value of what does not fit.

Arrow's streaming reader tells a column and a value, but no row. So a refused file is read once more, by the standard
library, up to the line of that value.
"""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv
import pyarrow.types as pt

from lance_ops.maintenance.ingest.decoding.csv_bytes import WatchedCsv
from lance_ops.maintenance.ingest.decoding.csv_rows import (
    check_quotes,
    delimiter_hint,
    line_prefix_where,
    other_delimiter,
    read_header,
)
from lance_ops.maintenance.ingest.decoding.requests import (
    BLOCK_BYTES,
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

_LONG_ROW = "straddling object straddles two block boundaries"
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
    arrow = _ArrowCsv(source, request, limits, names, num_header_rows)
    arrow.open({name: _cell_type(kind, text) for name, kind in types.items()})
    if request.lead is None:
        given = {each.name: each.type for each in arrow.schema if pt.is_float64(each.type)}
        if arrow.has_hexadecimal:
            given |= {each.name: each.type for each in arrow.schema if pt.is_integer(each.type)}
        if given or text.date_formats or text.timestamp_formats or text.thousands:
            arrow.open(dict.fromkeys(given, pa.string()))
            types = _types_by_form(arrow.first(), text, given)
            arrow.open({name: _cell_type(kind, text) for name, kind in types.items()})
    fields = [each.with_type(_parsed_type(each.type, types.get(each.name, each.type))) for each in arrow.schema]
    schema = pa.schema(fields)
    return schema, _batches(arrow, schema, source, text, names)


class _ArrowCsv:
    """Arrow's reader of a file.

    It opens the file again for a row that is longer than a block, and for a number that Arrow would misread. Then it
    continues after the rows that it has yielded.
    """

    def __init__(
        self, source: RawSource, request: RawRequest, limits: RawLimits, names: Sequence[str], num_header_rows: int
    ) -> None:
        self._source, self._request, self._limits, self._names = source, request, limits, names
        self._num_header_rows = num_header_rows
        self._block_bytes = min(BLOCK_BYTES, limits.row_bytes)
        self._reader: Any
        self._watched: WatchedCsv

    @property
    def schema(self) -> pa.Schema:
        """The columns as Arrow reads them."""
        return self._reader.schema

    @property
    def has_hexadecimal(self) -> bool:
        """Whether something like 0x1F is among the bytes of the batches so far, in any column."""
        return self._watched.has_hexadecimal

    def open(self, types: Mapping[str, pa.DataType]) -> None:
        """Begin with the first row; columns without a type get one by inference."""
        while True:
            try:
                self._open(types)
                return
            except pa.ArrowInvalid as error:
                deque(self._lengthened_block(error), maxlen=0)

    def first(self) -> pa.RecordBatch | None:
        """Return the first batch, if there is one."""
        try:
            return next(self._reader, None)
        except pa.ArrowInvalid as error:
            _refuse(error, self._source, self._request, self._names)
            raise

    def batches(self) -> Iterator[pa.RecordBatch]:
        """Yield the rows. Columns of whole numbers become text from the first hexadecimal number on.

        A batch without rows comes now and then while something else is read, so that the parent waits for it.
        """
        types = {each.name: each.type for each in self.schema}
        num_rows = num_to_skip = 0
        while True:
            try:
                batch = next(self._reader, None)
            except pa.ArrowInvalid as error:
                yield from (self._no_rows() for _ in self._lengthened_block(error))
                self.open(types)
                num_to_skip = num_rows
                continue
            if self.has_hexadecimal and any(map(pt.is_integer, types.values())):
                types = {name: pa.string() if pt.is_integer(kind) else kind for name, kind in types.items()}
                self.open(types)
                num_to_skip = num_rows
                continue
            if batch is None:
                break
            num_skipped = min(num_to_skip, batch.num_rows)
            num_to_skip -= num_skipped
            num_rows += batch.num_rows - num_skipped
            yield batch.slice(num_skipped)
        yield from (self._no_rows() for _ in self._checked_quotes())

    def _open(self, types: Mapping[str, pa.DataType]) -> None:
        text, names = self._request.text, self._names
        are_given = not text.header or text.distinct_names
        convert = pa.csv.ConvertOptions(
            column_types=types,
            include_columns=self._included(),
            decimal_point=text.decimal_point,
        )
        if text.null_values is not None:
            convert.null_values = ["", *text.null_values]
        has_integers = self._request.lead is None or any(map(pt.is_integer, types.values()))
        quote = "" if text.escape else text.quote
        self._watched = WatchedCsv(self._source.open(), quote, seeks_hexadecimal=has_integers)
        self._reader = pa.csv.open_csv(
            self._watched,
            read_options=pa.csv.ReadOptions(
                block_size=self._block_bytes,
                skip_rows=text.skip_lines,
                column_names=list(names) or None if are_given else None,
                skip_rows_after_names=self._num_header_rows if are_given else 0,
                autogenerate_column_names=not text.header and self._request.names is None,
            ),
            parse_options=pa.csv.ParseOptions(
                delimiter=text.delimiter,
                quote_char=text.quote or False,
                escape_char=text.escape or False,
                newlines_in_values=True,
            ),
            convert_options=convert,
        )

    def _included(self) -> list[str] | None:
        lead = self._request.lead
        if lead is None or not self._request.ignore_others:
            return None
        known = set(lead.names)
        return [name for name in self._names if name in known]

    def _no_rows(self) -> pa.RecordBatch:
        return pa.RecordBatch.from_arrays([pa.nulls(0, each.type) for each in self.schema], schema=self.schema)

    def _lengthened_block(self, error: pa.ArrowInvalid) -> Iterator[None]:
        """Make blocks longer if a row did not fit into one; otherwise name the line of what Arrow refused."""
        most = self._limits.row_bytes
        if _LONG_ROW not in str(error):
            yield from self._checked_quotes(self._watched.num_bytes)
            _refuse(error, self._source, self._request, self._names)
            raise error
        if self._block_bytes >= most:
            yield from self._checked_quotes(self._watched.num_bytes + most)
            raise DecodingRefused(f"it has a row of more than {most:,} bytes", "row_bytes") from error
        self._block_bytes = min(4 * self._block_bytes, most)

    def _checked_quotes(self, num_bytes: int | None = None) -> Iterator[None]:
        """Check the quotes of the first bytes, or of all, if they are doubtful; the end of a cut file may open one."""
        if self._watched.has_doubtful_quotes and not self._request.is_cut:
            yield from check_quotes(self._source, self._request.text, num_bytes)


def _batches(
    arrow: _ArrowCsv, schema: pa.Schema, source: RawSource, text: TextReading, names: Sequence[str]
) -> Iterator[pa.RecordBatch]:
    in_others = _null_cells(text)
    in_texts = [*(text.null_values or ()), *([""] if text.empty_as_null else [])]
    for batch in arrow.batches():
        columns = []
        for column, wanted in zip(batch.columns, schema, strict=True):
            nulls = in_texts if column.type == _value_type(wanted.type) else in_others
            if nulls and (pt.is_string(column.type) or pt.is_large_string(column.type)):
                matches = pc.is_in(column, value_set=pa.array(nulls, column.type))
                column = pc.if_else(matches, pa.scalar(None, column.type), column)
            try:
                columns.append(parsed(column, wanted.type, text))
            except pa.ArrowInvalid as error:
                at = (list(names) or schema.names).index(wanted.name)
                raise _bad_cell(source, text, names, at, wanted.type, error) from error
        yield pa.RecordBatch.from_arrays(columns, schema=schema)


def _null_cells(text: TextReading) -> list[str]:
    """Return the cells that are null in a column of any other type than text."""
    return ["", *(pa.csv.ConvertOptions().null_values if text.null_values is None else text.null_values)]


def _types_by_form(
    batch: pa.RecordBatch | None, text: TextReading, given: Mapping[str, pa.DataType]
) -> dict[str, pa.DataType]:
    """Return types for text columns of the first batch, of which Arrow would read some as the numbers in `given`.

    A column whose cells all have one declared form, or are null, gets the form's type. Whole numbers beyond int64 get a
    type that keeps their digits, and hexadecimal numbers stay text.
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
        kinds = [given[name]] if name in given else [kind for form, kind in forms if form and len(cells)]
        kind = next((each for each in kinds if _fits(cells, each, text)), None)
        if kind is None and name in given and pt.is_integer(given[name]):
            kind = pa.string()
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


def _refuse(error: pa.ArrowInvalid, source: RawSource, request: RawRequest, names: Sequence[str]) -> None:
    """Refuse the row or the cell that Arrow's error is about, with its line; do nothing for another error."""
    text = request.text
    cell, row = _BAD_CELL.search(str(error)), _BAD_ROW.search(str(error))
    if cell is not None:
        raise _bad_cell(source, text, names, int(cell[1]), cell[2], error) from error
    if row is not None:
        line = line_prefix_where(source, text, lambda cells: len(cells) != int(row[1]))
        other = other_delimiter(names, text)
        hint = f": {delimiter_hint(other)}" if other else ""
        wanted = f"the header has {row[1]}" if text.header else f"the first row has {row[1]}"
        if request.names is not None:
            wanted = f"{row[1]} names are declared"
        raise DecodingRefused(f"{line}it has {row[2]} cells, and {wanted}{hint}") from error


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

    line = line_prefix_where(source, text, is_bad)
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
