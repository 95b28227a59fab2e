"""Random schemas of every Arrow type, with odd names and metadata, and tiny tables of them."""

from __future__ import annotations

from collections.abc import Callable
from datetime import date
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pyarrow.types as pt
from hypothesis import assume
from hypothesis import strategies as st

__all__ = ["NAMES", "fields", "tables"]

ODD_NAMES = (
    *("", ".", "a.b", "`", "a`b", "'", '"', " ", "*", "\n", "\0", "a\0b", "ä", "🙂", "\u202e", "e\u0301", "x" * 300),
    *("_rowid", "_rowaddr", "_rowoffset", "_row_created_at_version", "_row_last_updated_at_version", "_RowId"),
    *("a", "A", "b", "item", "key", "entries", "select", "true", "null", "_distance", "0"),
)
NAMES: st.SearchStrategy[str] = st.sampled_from(ODD_NAMES) | st.text(max_size=4)

LEAVES: tuple[pa.DataType, ...] = (
    *(pa.null(), pa.bool_(), pa.int8(), pa.int16(), pa.int32(), pa.int64()),
    *(pa.uint8(), pa.uint16(), pa.uint32(), pa.uint64(), pa.float16(), pa.float32(), pa.float64()),
    *(pa.decimal32(5, 2), pa.decimal64(12, 0), pa.decimal128(38, 10), pa.decimal128(5, -2), pa.decimal256(76, 0)),
    *(pa.date32(), pa.date64(), pa.time32("s"), pa.time32("ms"), pa.time64("us"), pa.time64("ns")),
    *(pa.timestamp("s"), pa.timestamp("ns", "UTC"), pa.timestamp("us", "+01:00"), pa.timestamp("ms", "-")),
    *(pa.duration("s"), pa.duration("ns"), pa.month_day_nano_interval()),
    *(pa.string(), pa.large_string(), pa.string_view(), pa.binary(), pa.large_binary(), pa.binary_view()),
    *(pa.binary(0), pa.binary(3), pa.binary(300)),
    *(pa.uuid(), pa.bool8(), pa.json_(), pa.opaque(pa.int32(), "kind", "vendor")),
    pa.fixed_shape_tensor(pa.float32(), [2, 2]),
    pa.dictionary(pa.int8(), pa.string()),
    pa.dictionary(pa.uint64(), pa.int64(), ordered=True),
    pa.dictionary(pa.int16(), pa.date32()),
    pa.dictionary(pa.int8(), pa.list_(pa.int8())),
    pa.run_end_encoded(pa.int32(), pa.int64()),
    pa.sparse_union([pa.field("a", pa.int8())]),
    pa.dense_union([pa.field("a", pa.int8()), pa.field("b", pa.string())]),
)

METADATA: tuple[dict[Any, Any], ...] = (
    *({"k": "v"}, {"": ""}, {"ä": b"\xff"}, {b"\xff": b"x"}),
    *({"lance-encoding:packed": "true"}, {"lance-encoding:blob": "true"}),
    *({"lance-encoding:compression": "zstd"}, {"lance-encoding:compression": "bogus"}),
    *({"lance-encoding:structural-encoding": "fullzip"}, {"lance-encoding:rle-threshold": "x"}),
    *({"ARROW:extension:name": "unknown"}, {"ARROW:extension:name": "arrow.json"}),
    *({"ARROW:extension:name": "lance.blob.v2"}, {"lance-schema:unenforced-primary-key": "true"}),
)


@st.composite
def fields(draw: st.DrawFn) -> pa.Field:
    """Draw a field of any name, type, nullability and metadata."""
    metadata = draw(st.sampled_from(METADATA)) if draw(st.integers(0, 5)) == 0 else None
    return _field(draw(NAMES), draw(_TYPES), draw(st.integers(0, 4)) > 0, metadata)


@st.composite
def tables(draw: st.DrawFn) -> pa.Table:
    """Draw a table of up to three rows; some have no columns, or columns of one name."""
    columns = draw(st.lists(fields(), max_size=3))
    metadata = draw(st.sampled_from(METADATA)) if draw(st.integers(0, 5)) == 0 else None
    num_rows, nulls = draw(st.integers(0, 3)), draw(st.booleans())
    try:
        arrays = [_array(column.type, num_rows, nulls=nulls and column.nullable) for column in columns]
        return pa.Table.from_arrays(arrays, schema=pa.schema(columns, metadata))
    except (pa.ArrowException, TypeError, ValueError):  # Arrow itself cannot make values of some types
        assume(False)
        raise


def _field(name: str, kind: pa.DataType, nullable: bool, metadata: dict[Any, Any] | None = None) -> pa.Field:
    return pa.field(name, kind, nullable or pt.is_null(kind), metadata)


def _nested(children: st.SearchStrategy[pa.DataType]) -> st.SearchStrategy[pa.DataType]:
    inner = st.builds(_field, NAMES, children, st.booleans())
    return st.one_of(
        st.builds(pa.list_, inner),
        st.builds(pa.large_list, children),
        st.builds(pa.list_view, children),
        st.builds(pa.list_, children, st.integers(0, 3)),
        st.lists(inner, max_size=3).map(pa.struct),
        st.builds(pa.map_, st.sampled_from([pa.string(), pa.int8()]), children, st.booleans()),
    )


def _deep(kind: pa.DataType, levels: int, wrap: Callable[[pa.DataType], pa.DataType]) -> pa.DataType:
    for _ in range(levels):
        kind = wrap(kind)
    return kind


_WRAPPERS = st.sampled_from(
    [
        pa.list_,
        pa.large_list,
        lambda kind: pa.struct([("f", kind)]),
        lambda kind: pa.list_(kind, 1),
        lambda kind: pa.map_(pa.int8(), kind),
    ]
)
_SHALLOW = st.recursive(st.sampled_from(LEAVES), _nested, max_leaves=3)
_DEEP = st.builds(_deep, st.sampled_from(LEAVES[:8]), st.sampled_from([20, 31, 32, 61, 62, 63, 200]), _WRAPPERS)
_TYPES = st.integers(0, 14).flatmap(lambda choice: _SHALLOW if choice else _DEEP)


def _array(kind: pa.DataType, num_rows: int, *, nulls: bool) -> pa.Array:
    if isinstance(kind, pa.BaseExtensionType):
        return pa.ExtensionArray.from_storage(kind, _array(kind.storage_type, num_rows, nulls=nulls))
    if nulls:
        return pa.nulls(num_rows, kind)
    if pt.is_run_end_encoded(kind) or pt.is_union(kind):
        return pa.nulls(num_rows, kind)
    return pa.array([_value(kind, row) for row in range(num_rows)], kind)


def _value(kind: pa.DataType, row: int) -> Any:
    """Return a value that `pa.array` takes; instants and times are numbers."""
    if isinstance(kind, pa.BaseExtensionType):
        return _value(kind.storage_type, row)
    for fits, make in _MAKERS:
        if fits(kind):
            return make(kind, row)
    return row + 1


_MAKERS: tuple[tuple[Callable[[pa.DataType], bool], Callable[[pa.DataType, int], Any]], ...] = (
    (lambda kind: pt.is_null(kind) or pt.is_union(kind) or pt.is_run_end_encoded(kind), lambda kind, row: None),
    (pt.is_boolean, lambda kind, row: row % 2 == 0),
    (pt.is_date, lambda kind, row: date(1970, 1, 2 + row)),
    (pt.is_decimal, lambda kind, row: Decimal(row + 1).scaleb(2)),
    (pt.is_interval, lambda kind, row: pa.MonthDayNano([row, 1, 2])),
    (lambda kind: pt.is_string(kind) or pt.is_large_string(kind) or pt.is_string_view(kind), lambda _, row: f"v{row}"),
    (pt.is_fixed_size_binary, lambda kind, row: bytes([row]) * kind.byte_width),
    (
        lambda kind: pt.is_binary(kind) or pt.is_large_binary(kind) or pt.is_binary_view(kind),
        lambda _, row: b"b%d" % row,
    ),
    (pt.is_dictionary, lambda kind, row: _value(kind.value_type, row)),
    (pt.is_fixed_size_list, lambda kind, row: [_value(kind.value_type, row)] * kind.list_size),
    (pt.is_map, lambda kind, row: [(_value(kind.key_type, row), _value(kind.item_type, row))]),
    (pt.is_struct, lambda kind, row: [(child.name, _value(child.type, row)) for child in kind]),
    (pt.is_nested, lambda kind, row: [_value(kind.value_type, row)]),
)
