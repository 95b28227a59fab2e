"""Decode JSON by Arrow, led by a table's types, and name the line, field and value of what does not fit.

Arrow infers a schema from the first block and reads the file again with it, so that a later field is refused by name
and does not vanish. A refused file is read once more, line by line, to find the line.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import Any

import pyarrow as pa
import pyarrow.json
import pyarrow.types as pt

from lance_ops.maintenance.ingest.decoding.json_bytes import (
    JsonSource,
    broken_line,
    check_json,
    first_fault,
    parsed_lines,
)
from lance_ops.maintenance.ingest.decoding.json_names import (
    as_spelled,
    fields_of,
    names_at_any_depth,
    unknown_field_message,
)
from lance_ops.maintenance.ingest.decoding.requests import (
    DecodingRefused,
    RawLimits,
    RawRequest,
    RawSource,
    TextReading,
    check_schema,
)
from lance_ops.maintenance.ingest.decoding.text_values import WHOLE_DECIMAL, bad_text, is_list, json_misfit, parsed

__all__ = ["decode_json"]

_OFFSET = re.compile(r"[T ][\d:.]+(?:Z|[+-]\d\d(?::?\d\d)?)$")
"""The end of a moment of ISO 8601 that has an offset."""


def decode_json(
    source: RawSource, request: RawRequest, limits: RawLimits
) -> tuple[pa.Schema, Iterator[pa.RecordBatch]]:
    """Return the schema and the batches of a file of JSON lines, or of one array of rows."""
    source = JsonSource(**vars(source))
    names = list(names_at_any_depth(request.lead)) if request.lead is not None and request.any_case else []
    keys, block_bytes = check_json(source, limits, names, in_all_rows=request.ignore_others)
    reading = pa.json.ReadOptions(block_size=block_bytes)
    if request.lead is None:
        schema = wanted = _exact(source, _inferred(source, reading))
    else:
        wanted = as_spelled(source, request.lead, keys)
        schema = pa.schema([pa.field(each.name, _json_type(each.type, request.text)) for each in wanted])
    check_schema(schema, limits)
    others = "ignore" if request.ignore_others else "error"
    parsing = pa.json.ParseOptions(explicit_schema=schema, unexpected_field_behavior=others)

    def batches() -> Iterator[pa.RecordBatch]:
        with pa.json.open_json(source.open(), reading, parsing) as reader:
            yield from reader

    made = pa.schema(_parsed_fields(schema, wanted, request.text))
    return made, _named(source, schema, wanted, _parsed_batches(batches(), wanted, made, request.text), request)


def _inferred(source: RawSource, reading: pa.json.ReadOptions) -> pa.Schema:
    try:
        with pa.json.open_json(source.open(), reading) as first:
            return first.schema
    except pa.ArrowInvalid as error:
        where = broken_line(source)
        if not where:
            raise
        raise DecodingRefused(where) from error


def _exact(source: RawSource, schema: pa.Schema) -> pa.Schema:
    """Return an inferred schema with types that keep what Arrow's lose: digits of whole numbers, offsets of moments."""
    if not _holds_doubtful(schema):
        return schema
    rows = [row for _, row in parsed_lines(replace(source, is_cut=True))]
    return pa.schema(list(_exact_type(pa.struct(schema), rows)))


def _holds_doubtful(fields: Iterable[pa.Field]) -> bool:
    return any(
        pt.is_float64(each.type) or pt.is_timestamp(each.type) or _holds_doubtful(fields_of(each.type))
        for each in fields
    )


def _exact_type(kind: pa.DataType, values: list[Any]) -> pa.DataType:
    """Return a type that keeps what the values say.

    Whole numbers beyond int64 are decimals, and float64 with more than 38 digits. Moments that all have an offset are
    of UTC, and text if only some have one.
    """
    if pt.is_struct(kind):
        rows = [each for each in values if isinstance(each, dict)]
        return pa.struct(
            [child.with_type(_exact_type(child.type, [row.get(child.name) for row in rows])) for child in kind]
        )
    if pt.is_list(kind):
        items = [item for each in values if isinstance(each, list) for item in each]
        return pa.list_(kind.value_field.with_type(_exact_type(kind.value_type, items)))
    if pt.is_timestamp(kind):
        return _exact_moments(kind, [each for each in values if isinstance(each, str)])
    given = [each for each in values if each is not None]
    if not pt.is_float64(kind) or not all(isinstance(each, int) for each in given):
        return kind
    return WHOLE_DECIMAL if 2**63 <= max(map(abs, given), default=0) < 10**WHOLE_DECIMAL.precision else kind


def _exact_moments(kind: pa.DataType, texts: list[str]) -> pa.DataType:
    num_zoned = sum(_OFFSET.search(text) is not None for text in texts)
    if not num_zoned:
        return kind
    return pa.timestamp(kind.unit, "UTC") if num_zoned == len(texts) else pa.string()


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
            where = first_fault(source, lambda row: unknown_field_message(row, pa.struct(schema), request))
            raise DecodingRefused(where or broken_line(source) or "it has a field that is not in the table") from error
        text = bad_text(error)
        where = first_fault(source, lambda row: json_misfit(row, pa.struct(schema), pa.struct(wanted), text))
        if not (where or (where := broken_line(source))):
            raise
        raise DecodingRefused(where) from error
