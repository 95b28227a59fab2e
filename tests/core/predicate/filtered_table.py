"""A table of three rows with a column of most types, and which of its rows match a predicate."""

from __future__ import annotations

import datetime as dt
from decimal import Decimal

import pyarrow as pa

from lance_ops.core.predicate import Predicate

__all__ = ["SCHEMA", "TABLE", "matching"]

SCHEMA = pa.schema(
    [
        ("id", pa.int64()),
        ("i8", pa.int8()),
        ("f16", pa.float16()),
        ("f32", pa.float32()),
        ("name", pa.string()),
        ("large", pa.large_string()),
        ("view", pa.string_view()),
        ("kind", pa.dictionary(pa.int32(), pa.string())),
        ("raw", pa.binary()),
        ("four", pa.binary(4)),
        ("dec", pa.decimal128(38, 2)),
        ("local", pa.timestamp("us")),
        ("paris", pa.timestamp("ns", "Europe/Paris")),
        ("day", pa.date64()),
        ("clock", pa.time32("s")),
        ("took", pa.duration("ms")),
        ("flag", pa.bool_()),
        ("tags", pa.list_(pa.string())),
        ("vec", pa.list_(pa.int16(), 2)),
        ("Mixed", pa.int32()),
        ("a.b", pa.int32()),
        ("order", pa.int32()),
        ("st", pa.struct([("x", pa.int32()), ("y", pa.struct([("Z", pa.string())]))])),
    ]
)
ROWS = {
    "id": [0, 1, 2],
    "i8": [-128, 127, None],
    "f16": [0.1, 2.0, None],
    "f32": [0.1, float("nan"), None],
    "name": ["it's", 'say "x"', None],
    "large": ["a", "b", None],
    "view": ["a", "b", None],
    "kind": ["a", "b", None],
    "raw": [b"\x00a", b"\xff", None],
    "four": [b"abcd", b"\x00\x00\x00\x01", None],
    "dec": [Decimal("123456789012345678901234567890123456.78"), Decimal("1.10"), None],
    "local": [dt.datetime(2020, 1, 1), dt.datetime(1960, 7, 1, 0, 0, 0, 1), None],
    "paris": [dt.datetime(2020, 1, 1), dt.datetime(2020, 7, 1), None],
    "day": [dt.date(2020, 1, 1), dt.date(1960, 1, 1), None],
    "clock": [dt.time(1, 2, 3), dt.time(23, 59, 59), None],
    "took": [dt.timedelta(milliseconds=5), dt.timedelta(days=1), None],
    "flag": [True, False, None],
    "tags": [["a", "b"], [], None],
    "vec": [[1, 2], [3, None], None],
    "Mixed": [1, 2, None],
    "a.b": [1, 2, None],
    "order": [1, 2, None],
    "st": [{"x": 1, "y": {"Z": "q"}}, {"x": None, "y": None}, None],
}


def column(name: str) -> pa.Array:
    kind = SCHEMA.field(name).type
    if name == "paris":  # the values in ROWS are in UTC
        return pa.array(ROWS[name], pa.timestamp("ns", "UTC")).cast(kind)
    return pa.array(ROWS[name]).cast(kind) if name == "kind" else pa.array(ROWS[name], kind)


TABLE = pa.table([column(name) for name in ROWS], schema=SCHEMA)


def matching(predicate: Predicate) -> list[int]:
    ids: list[int] = TABLE["id"].filter(predicate.mask(TABLE)).to_pylist()
    return ids
