"""Tables for random predicates: a column of every type, whose values are those at which comparisons go wrong.

`histories` changes a table step by step, by either library, so that an index covers it in part, and rows are deleted,
updated and moved.
"""

from __future__ import annotations

import datetime as dt
import math
from collections.abc import Iterator
from dataclasses import dataclass
from decimal import Decimal
from enum import StrEnum
from random import Random
from typing import Any

import numpy as np
import pyarrow as pa

__all__ = ["COLUMNS", "FIELDS", "INDEXED", "ColumnSpec", "Kind", "history", "index_name", "rows"]


class Kind(StrEnum):
    """What a value is to the grammar: values of one kind compare with each other."""

    INTEGER = "integer"
    FLOAT = "float"
    DECIMAL = "decimal"
    BOOLEAN = "boolean"
    TEXT = "text"
    BINARY = "binary"
    DATE = "date"
    INSTANT = "instant"
    ZONED = "zoned"
    TIME = "time"
    DURATION = "duration"
    INTEGERS = "integers"
    TEXTS = "texts"
    STRUCT = "struct"
    STRUCTS = "structs"


@dataclass(frozen=True)
class ColumnSpec:
    """A column's values other than null, and the literals that the grammar compares it with.

    `wild` values are only in tables whose answers are not compared with pylance's, see `rows`.
    """

    path: str
    type: pa.DataType
    kind: Kind
    values: tuple[Any, ...]
    literals: tuple[str, ...]
    indexed: bool = True
    wild: tuple[Any, ...] = ()


def _integers(path: str, kind: pa.DataType, *values: int) -> ColumnSpec:
    return ColumnSpec(path, kind, Kind.INTEGER, values, tuple(map(str, values)))


def _floats(path: str, kind: pa.DataType, *more: float) -> ColumnSpec:
    values: tuple[Any, ...] = (0.0, 1.0, 0.1, -2.5, math.nan)
    wild: tuple[Any, ...] = (-0.0, math.inf, -math.inf, -math.nan, *more)
    literals = ("0.0", "-0.0", "1.0", "0.1", "-2.5", "1e30", "CAST('NaN' AS DOUBLE)", "CAST('inf' AS DOUBLE)")
    if pa.types.is_float16(kind):
        values, wild = (tuple(np.float16(value) for value in each) for each in (values, wild))
    return ColumnSpec(path, kind, Kind.FLOAT, values, literals, wild=wild)


def _texts(path: str, kind: pa.DataType, *, indexed: bool = True) -> ColumnSpec:
    values = ("", "a", "ab", "a%", "A", "é", "ß", "it's", "\\", "_b", "😀", "zz", "a\nb", "12")
    return ColumnSpec(path, kind, Kind.TEXT, values, tuple(map(quoted, values)), indexed)


def _binary(path: str, kind: pa.DataType, *values: bytes) -> ColumnSpec:
    return ColumnSpec(path, kind, Kind.BINARY, values, tuple(f"X'{value.hex()}'" for value in values))


_INSTANTS = (
    dt.datetime(1970, 1, 1),
    dt.datetime(1960, 7, 1, 12),
    dt.datetime(2020, 1, 1),
    dt.datetime(2020, 3, 29, 2, 30),  # does not exist in Paris
    dt.datetime(2020, 10, 25, 2, 30),  # exists twice there
    dt.datetime(2020, 12, 31, 23, 59, 59),
)


def _instants(path: str, kind: pa.DataType, *more: dt.datetime) -> ColumnSpec:
    values = (*_INSTANTS, *more)
    literals = tuple(f"timestamp '{value:%Y-%m-%d %H:%M:%S.%f}'" for value in values)
    return ColumnSpec(path, kind, Kind.ZONED if kind.tz else Kind.INSTANT, values, literals)


def _dates(path: str, kind: pa.DataType) -> ColumnSpec:
    values = (dt.date(1970, 1, 1), dt.date(1960, 7, 1), dt.date(2020, 1, 1), dt.date(2020, 12, 31))
    return ColumnSpec(path, kind, Kind.DATE, values, tuple(f"date '{value}'" for value in values))


def _times(path: str, kind: pa.DataType) -> ColumnSpec:
    values = (dt.time(0, 0), dt.time(1, 2, 3), dt.time(23, 59, 59))
    name = "Time32(s)" if pa.types.is_time32(kind) else "Time64(us)"
    literals = tuple(f"arrow_cast('{value:%H:%M:%S}', '{name}')" for value in values)
    return ColumnSpec(path, kind, Kind.TIME, values, (*literals, "'01:02:03'"))


def _decimals(path: str, kind: pa.DataType, *texts: str) -> ColumnSpec:
    literals = tuple(f"decimal({kind.precision},{kind.scale}) '{text}'" for text in texts)
    return ColumnSpec(path, kind, Kind.DECIMAL, tuple(map(Decimal, texts)), (*literals, "1", "0"))


def quoted(text: str) -> str:
    """Return a text literal."""
    return "'" + text.replace("'", "''") + "'"


_ITEM = pa.struct([("x", pa.int32()), ("y", pa.string())])
_STRUCT = pa.struct([("x", pa.int32()), ("t", pa.string()), ("in", pa.struct([("z", pa.float64())]))])

COLUMNS: tuple[ColumnSpec, ...] = (
    _integers("i8", pa.int8(), -128, -1, 0, 1, 127),
    _integers("i16", pa.int16(), -(2**15), -1, 0, 300, 2**15 - 1),
    _integers("i32", pa.int32(), -(2**31), -1, 0, 7, 2**31 - 1),
    _integers("i64", pa.int64(), -(2**63) + 1, -1, 0, 7, 2**53 + 1, 2**63 - 1),
    _integers("u8", pa.uint8(), 0, 1, 7, 255),
    _integers("u16", pa.uint16(), 0, 1, 300, 2**16 - 1),
    _integers("u32", pa.uint32(), 0, 7, 2**32 - 1),
    _integers("u64", pa.uint64(), 0, 7, 2**63 - 1, 2**63, 2**64 - 1),
    _floats("f16", pa.float16(), 65504.0),
    _floats("f32", pa.float32(), 1e30, float(np.float32(0.1))),
    _floats("f64", pa.float64(), 1e300, 5e-324),
    ColumnSpec("b", pa.bool_(), Kind.BOOLEAN, (True, False), ("true", "false")),
    _texts("s", pa.string()),
    _texts("large_s", pa.large_string()),
    _texts("dictionary", pa.dictionary(pa.int16(), pa.string()), indexed=False),
    _binary("raw", pa.binary(), b"", b"\x00", b"a", b"ab", b"\xff"),
    _binary("large_raw", pa.large_binary(), b"", b"\x00", b"a", b"ab", b"\xff"),
    _binary("two", pa.binary(2), b"\x00\x00", b"ab", b"\xff\xff"),
    _dates("d32", pa.date32()),
    _dates("d64", pa.date64()),
    _instants("ts_s", pa.timestamp("s")),
    _instants("ts_ms", pa.timestamp("ms"), dt.datetime(2020, 1, 1, 0, 0, 0, 1000)),
    _instants("ts_us", pa.timestamp("us"), dt.datetime(2020, 1, 1, 0, 0, 0, 1)),
    _instants("ts_ns", pa.timestamp("ns"), dt.datetime(2020, 1, 1, 0, 0, 0, 1)),
    _instants("utc", pa.timestamp("us", "UTC"), dt.datetime(2020, 1, 1, 0, 0, 0, 1)),
    _instants("paris", pa.timestamp("ms", "Europe/Paris")),
    _times("t32", pa.time32("s")),
    _times("t64", pa.time64("us")),
    ColumnSpec(
        "took",
        pa.duration("us"),
        Kind.DURATION,
        (dt.timedelta(0), dt.timedelta(microseconds=1), dt.timedelta(days=-1), dt.timedelta(hours=3)),
        (*(f"arrow_cast({ticks}, 'Duration(us)')" for ticks in (0, 1, -86_400_000_000)), "interval '3 hours'"),
    ),
    _decimals("dec", pa.decimal128(8, 2), "0.00", "1.00", "-2.50", "999999.99"),
    _decimals("wide", pa.decimal128(38, 6), "0.000000", "1.000000", "-12345678901234567890.123456"),
    ColumnSpec("ints", pa.list_(pa.int32()), Kind.INTEGERS, ((), (1,), (1, None, 3), (7, 7)), (), False),
    ColumnSpec("texts", pa.large_list(pa.string()), Kind.TEXTS, ((), ("a",), (None, "b"), ("ab", "é")), (), False),
    ColumnSpec("pair", pa.list_(pa.int16(), 2), Kind.INTEGERS, ((1, 2), (None, 7)), (), False),
    ColumnSpec(
        "items",
        pa.list_(_ITEM),
        Kind.STRUCTS,
        ((), ({"x": 1, "y": "a"},), (None, {"x": 7, "y": None}), ({"x": None, "y": "b"}, {"x": 2, "y": "ab"})),
        (),
        False,
    ),
    ColumnSpec(
        "st",
        _STRUCT,
        Kind.STRUCT,
        (
            {"x": 1, "t": "a", "in": {"z": 0.5}},
            {"x": None, "t": "ab", "in": None},
            {"x": 7, "t": None, "in": {"z": math.nan}},
        ),
        (),
        False,
    ),
)
"""The top-level columns; a row's `id` stands beside them."""

FIELDS: tuple[ColumnSpec, ...] = (
    ColumnSpec("st.x", pa.int32(), Kind.INTEGER, (1, 7), ("1", "7", "0")),
    ColumnSpec("st.t", pa.string(), Kind.TEXT, ("a", "ab"), ("'a'", "'ab'", "''")),
    ColumnSpec("st.in.z", pa.float64(), Kind.FLOAT, (0.5, math.nan), ("0.5", "CAST('NaN' AS DOUBLE)")),
)
"""Fields of the struct column, by their paths."""

INDEXED = tuple(column.path for column in (*COLUMNS, *FIELDS) if column.indexed)
"""The paths that `history` puts a BTREE index on."""


def rows(random: Random, first_id: int, count: int, *, wild: bool = False) -> pa.Table:
    """Return rows with values drawn from the columns' lists; about a fifth are null.

    `wild` adds -0.0, NaNs with a sign bit, and floats from which arithmetic makes such NaNs. The libraries order them
    differently.
    """
    ids = pa.array(range(first_id, first_id + count), pa.int64())
    arrays = [_array(column, random, count, wild) for column in COLUMNS]
    return pa.table([ids, *arrays], names=["id", *(column.path for column in COLUMNS)])


def _array(column: ColumnSpec, random: Random, count: int, wild: bool) -> pa.Array:
    choices = (*column.values, *column.wild) if wild else column.values
    values = [None if random.random() < 0.2 else random.choice(choices) for _ in range(count)]
    if pa.types.is_dictionary(column.type):
        return pa.array(values, column.type.value_type).cast(column.type)
    return pa.array(values, column.type)


def index_name(path: str) -> str:
    """Return the name of the index on a column or field."""
    return f"{path.replace('.', '_')}_index"


def history(random: Random, uri: str, libraries: tuple[Any, ...], *, wild: bool) -> Iterator[str]:
    """Make a table and change it; yield the name of each step after it, with the library that took it.

    The first step writes two fragments and builds the indices. Later steps leave rows that no index covers, delete
    rows, update them, compact the fragments, and bring the indices up to date. Some tables have stable row ids.
    """
    library = random.choice(libraries)
    stable = random.random() < 0.3
    library.write_dataset(rows(random, 0, 40, wild=wild), uri, max_rows_per_file=25, enable_stable_row_ids=stable)
    builder = random.choice(libraries)
    for path in INDEXED:
        builder.dataset(uri).create_scalar_index(path, "BTREE", name=index_name(path))
    yield f"indexed by {builder.__name__}"
    library = random.choice(libraries)
    library.write_dataset(rows(random, 40, 15, wild=wild), uri, mode="append")
    yield f"appended by {library.__name__}"
    library = random.choice(libraries)
    library.dataset(uri).delete(f"id % 5 = {random.randrange(5)}")
    yield f"deleted by {library.__name__}"
    library = random.choice(libraries)
    library.dataset(uri).update({"i32": "7", "s": "'zz'", "f64": "0.1"}, where=f"id % 7 = {random.randrange(7)}")
    yield f"updated by {library.__name__}"
    library = random.choice(libraries)
    library.dataset(uri).optimize.compact_files()
    yield f"compacted by {library.__name__}"
    library = random.choice(libraries)
    library.dataset(uri).optimize.optimize_indices()
    yield f"indices optimized by {library.__name__}"
