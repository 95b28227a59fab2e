"""Expressions that cover the functions and operators of filters, over columns of special values.

The expressions are generated from the library's own tables, so a function that is added to a table is covered without
a change here. The columns hold nulls, empty values, extremes, both zeros, NaNs of either sign, and text whose case
mapping changes its length.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from decimal import Decimal
from itertools import product
from typing import Any

import numpy as np
import pyarrow as pa

from lance_ops.core.arrow import is_number
from lance_ops.core.predicate import ArithmeticOp, CompareOp
from lance_ops.core.predicate.binding import NODES
from lance_ops.core.predicate.functions import FUNCTIONS, Function
from lance_ops.core.predicate.tree import TYPES
from lance_ops.core.predicate.types import compute_type

__all__ = ["TABLE", "contexts", "expressions"]

_CONDITION_CONTEXTS = ("NOT ({})", "({}) IS NULL", "({}) IS NOT NULL", "({}) AND id < 6", "({}) OR id < 3")
_VALUE_CONTEXTS = ("({}) IS NULL", "({}) IS NOT NULL")

_TEXTS = [None, "", "apple", "berry", "Straße É", "ﬀİΣ", " pad\t", "a%b_", "12", "-1.5", "2020-01-01", "true"]
_INSTANTS = [
    None,
    dt.datetime(1970, 1, 1),
    dt.datetime(2020, 1, 1),
    dt.datetime(2020, 3, 8, 2, 30),  # does not exist on the clocks of New York
    dt.datetime(2020, 7, 1, 12, 34, 56, 789012),
    dt.datetime(1960, 1, 1, 23, 59, 59, 999999),
    dt.datetime(1700, 1, 1),
    dt.datetime(2261, 12, 31, 23, 59, 59),
    dt.datetime(2019, 12, 31, 23),
    dt.datetime(2020, 11, 1, 1, 30),  # occurs twice on the clocks of New York
    dt.datetime(2020, 1, 1, 0, 0, 0, 1),
    dt.datetime(2000, 2, 29),
]
_DAYS = [None if instant is None else instant.date() for instant in _INSTANTS]
_AMOUNTS = "0.00 1.10 -3.00 2.25 999999.99 -999999.99 1.00 0.50 -0.50 2.50 5.00"
_DOCUMENTS = [
    None,
    '{"a":1,"b":"x"}',
    "[1,2]",
    '"a"',
    "null",
    "true",
    "1.5",
    '{"a":null}',
    "{}",
    "[]",
    '{"a":[1]}',
    '{"a":true}',
]
_NEGATIVE_NAN = np.copysign(np.nan, -1)


def _floats(arrow_type: pa.DataType, largest: float) -> pa.Array:
    numbers = [0, 0.0, -0.0, 1.5, -2.5, np.inf, -np.inf, np.nan, _NEGATIVE_NAN, largest, 0.5, 2.5]
    values = np.array(numbers).astype(arrow_type.to_pandas_dtype())
    return pa.array(values, mask=np.arange(len(numbers)) == 0)


def _integers(arrow_type: pa.DataType) -> pa.Array:
    signed = pa.types.is_signed_integer(arrow_type)
    bits = arrow_type.bit_width - signed
    low, high = -(2**bits) if signed else 0, 2**bits - 1
    return pa.array([None, 0, 1, 2, high, low, 7, high - 1, low + 1, 100, -7 if signed else 3, 5], arrow_type)


def _column(values: Sequence[Any], arrow_type: pa.DataType) -> pa.Array:
    return pa.array([values[row % len(values)] for row in range(len(_TEXTS))], arrow_type)


_UTC = pa.array(_INSTANTS, pa.timestamp("us", "UTC"))
TABLE = pa.table(
    {
        "id": pa.array(range(len(_TEXTS))),
        **{f"i{bits}": _integers(kind) for bits, kind in ((8, pa.int8()), (32, pa.int32()), (64, pa.int64()))},
        **{f"u{bits}": _integers(kind) for bits, kind in ((8, pa.uint8()), (64, pa.uint64()))},
        "f16": _floats(pa.float16(), 65504),
        "f32": _floats(pa.float32(), 1e30),
        "f64": _floats(pa.float64(), 1e300),
        "dec": pa.array([None, *map(Decimal, _AMOUNTS.split())], pa.decimal128(8, 2)),
        "s": pa.array(_TEXTS),
        "large": pa.array(_TEXTS, pa.large_string()),
        "word": _column([None, "a", "b", "c"], pa.string()).dictionary_encode(),
        "raw": pa.array([None if text is None else text.encode() for text in _TEXTS], pa.binary()),
        "two": _column([None, b"ab", b"\0\0", b"\xff\xff"], pa.binary(2)),
        "b": _column([None, True, False], pa.bool_()),
        "day": pa.array(_DAYS, pa.date32()),
        "day64": pa.array(_DAYS, pa.date64()),
        "ts": pa.array(_INSTANTS, pa.timestamp("us")),
        "utc": _UTC,
        "ny": _UTC.cast(pa.timestamp("us", "America/New_York")),
        "clock": _column([None, 0, 1, 86_399_999_999], pa.time64("us")),
        "took": _column([None, 0, 1, -1, 2**63 - 1, -(2**63)], pa.duration("us")),
        "numbers": _column([None, [], [1], [1, 2, None], [None], [2**31 - 1, -(2**31)], [7, 7]], pa.list_(pa.int32())),
        "words": _column([None, [], ["a"], ["a", "b", None], [None], ["É"], ["b", "a"], [""]], pa.list_(pa.string())),
        "pair": _column([None, [1, 2], [None, 3]], pa.list_(pa.int16(), 2)),
        "Outer": _column(
            [None, {"x": 1, "inner": {"Z": "q"}}, {"x": None, "inner": None}, {"x": 3, "inner": {"Z": None}}],
            pa.struct([("x", pa.int32()), ("inner", pa.struct([("Z", pa.string())]))]),
        ),
        "js": pa.array(_DOCUMENTS, pa.json_()),
    }
)
"""One row for each special value."""

_NAMES = [name for name in TABLE.column_names if name not in ("id", "Outer")]
_STORED = {"js": pa.large_binary()}
_TYPES = {name: _STORED.get(name) or compute_type(TABLE.schema.field(name).type) for name in _NAMES}
_FITTING = {
    **{name: ["0", "7", "-1"] for name in ("i8", "i32", "i64")},
    **{name: ["0", "7"] for name in ("u8", "u64")},
    **{name: ["0", "1.5", "CAST('NaN' AS DOUBLE)", "CAST('inf' AS DOUBLE)"] for name in ("f16", "f32", "f64")},
    "dec": ["0", "2.25"],
    **{name: ["''", "'apple'", "'É'"] for name in ("s", "large")},
    "word": ["'a'"],
    "raw": ["X''", "X'61'"],
    "two": ["X'6162'"],
    "b": ["true", "false"],
    **{name: ["date '2020-01-01'"] for name in ("day", "day64")},
    **{name: ["timestamp '2020-01-01 00:00:00'", "date '2020-01-01'"] for name in ("ts", "utc", "ny")},
}
"""Literals of each column's type."""

_LITERALS: list[tuple[str, pa.DataType]] = [
    *((text, pa.string()) for text in ("''", "'a'", "'É'", "'A.*'")),
    *((text, pa.int64()) for text in ("0", "1", "-1", "7")),
    ("1.5", pa.float64()),
    ("[1, 7]", pa.list_(pa.int64())),
    ("['a', 'É']", pa.list_(pa.string())),
    ("[]", pa.list_(pa.int64())),
    ("NULL", pa.null()),
]
_PATHS = ["'$'", "'$.a'", "'$.a[0]'", "'$[0]'", "NULL"]
_UNITS = "year quarter month week day hour minute second millisecond microsecond"
_ARGUMENTS: dict[tuple[str, int], list[str]] = {
    ("date_part", 0): [f"'{unit}'" for unit in f"{_UNITS} nanosecond dow doy isodow epoch DAY eon".split()],
    ("date_trunc", 0): [f"'{unit}'" for unit in f"{_UNITS} DAY eon".split()],
    ("regexp_match", 1): ["'a'", "'A'", "'(a)(p)?'", "'(x)|(a)'", "''", r"'\w\s'", "'^É|ß'", "'('", "NULL"],
    ("regexp_match", 2): ["'i'", "'s'", "'g'", "NULL"],
    **{(f"json_{name}", 1): _PATHS for name in ("extract", "exists", "array_length", "array_contains")},
    **{
        (f"json_{name}", 1): ["'a'", "'b'", "'0'", "0", "NULL"]
        for name in ("get", "get_string", "get_int", "get_float", "get_bool")
    },
    ("json_array_contains", 2): ["'1'", "1", "NULL"],
}
"""Arguments that say more of a function than literals of the type that it takes."""


@dataclass(frozen=True)
class _Call:
    """A function of the function table, called by one of its names."""

    name: str
    function: Function

    def texts(self) -> Iterator[str]:
        kinds, first = self.function.kinds, self.function.names[0]
        for arity in range(len(kinds) - self.function.optional, len(kinds) + 1 + self.function.variadic):
            places = range(arity)
            columns = next((place for place in places if place not in self.function.fixed), None)
            choices = [self._arguments(first, place, is_first=place == columns) for place in places]
            for chosen in product(*choices):
                own = chosen[columns] if columns is not None else ""
                arguments = [own if argument == "{column}" else argument for argument in chosen]
                operator = self.function.operator
                yield operator.join(arguments) if operator else f"{self.name}({', '.join(arguments)})"

    def _arguments(self, first: str, place: int, *, is_first: bool) -> list[str]:
        kind = self.function.kinds[min(place, len(self.function.kinds) - 1)]
        if is_first:
            fitting = [name for name in _NAMES if kind(_TYPES[name]) and (name == "js") == first.startswith("json_")]
            return fitting if self.name == first else fitting[:1]
        if (first, place) in _ARGUMENTS:
            return _ARGUMENTS[first, place]
        if kind(pa.struct([])):  # takes every type
            return ["NULL", "1.5", "'É'", "{column}"]
        literals = [text for text, literal_type in _LITERALS if pa.types.is_null(literal_type) or kind(literal_type)]
        return literals if place in self.function.fixed else [*literals, "{column}"]


def _calls() -> Iterator[str]:
    for name, function in FUNCTIONS.items():
        yield from _Call(name, function).texts()
    for name, (_, most, _) in NODES.items():
        if name in _NOT_OF_TEXT:
            continue
        for column in _NAMES if most == 1 else ["s", "large", "word", "i8"]:
            yield from (f"{name}({', '.join([column, *rest])})" for rest in _patterns(name, most))


_NOT_OF_TEXT = frozenset(
    ["array_element", "array_extract", "arrow_cast", "arrow_try_cast", "get_field", "list_element", "list_extract"]
)
"""Nodes that `tests/interop/test_expressions.py` compares with the reference."""


def _patterns(name: str, most: int) -> list[tuple[str, ...]]:
    if most == 1:
        return [()]
    if name.startswith("regexp"):
        patterns, flags = _ARGUMENTS["regexp_match", 1], _ARGUMENTS["regexp_match", 2]
        return [(pattern,) for pattern in patterns] + [("'A'", flag) for flag in flags]
    return [(pattern,) for pattern in ("''", "'a'", "'É'", "'%'", "NULL")]


def _comparisons() -> Iterator[str]:
    for name in _NAMES:
        for literal in [*_FITTING.get(name, ()), "NULL"]:
            yield from (f"{name} {op} {literal}" for op in CompareOp)
        for op in CompareOp:
            yield f"{name} {op} {name}"
    for left, right in (("i8", "u64"), ("i64", "u64"), ("i64", "f64"), ("f32", "f64"), ("f16", "f64"), ("i8", "dec")):
        yield from (f"{left} {op} {right}" for op in CompareOp)
    for left, right in (("s", "large"), ("s", "word"), ("day", "day64"), ("day", "ts"), ("utc", "ts"), ("ny", "day")):
        yield from (f"{left} {op} {right}" for op in CompareOp)


def _memberships() -> Iterator[str]:
    for name, literals in _FITTING.items():
        listed = ", ".join(literals)
        for word in ("IN", "NOT IN"):
            yield f"{name} {word} ({listed})"
            yield f"{name} {word} ({listed}, NULL)"
            yield f"{name} {word} ({literals[0]})"
        yield f"{name} BETWEEN {literals[0]} AND {literals[-1]}"
        yield f"{name} NOT BETWEEN {literals[0]} AND {literals[-1]}"
        yield f"{name} BETWEEN {literals[0]} AND NULL"
    yield from (f"b IS {word}" for word in ("TRUE", "FALSE", "NOT TRUE", "NOT FALSE"))


def _arithmetic() -> Iterator[str]:
    numbers = [name for name in _NAMES if is_number(_TYPES[name])]
    for name in numbers:
        yield f"-{name}"
        for op, other in product(ArithmeticOp, [name, "1", "2", "-1", "NULL", *(["0"] if name == "i8" else [])]):
            yield f"{name} {op} {other}"
            yield f"({name} {op} {other}) > 0"
    for left, right in (("i8", "u8"), ("i8", "i64"), ("u64", "i8"), ("i64", "f32"), ("f32", "f64"), ("i8", "dec")):
        yield from (f"{left} {op} {right}" for op in ArithmeticOp)


def _likes() -> Iterator[str]:
    for name, word in product(("s", "large", "word"), ("LIKE", "NOT LIKE", "ILIKE", "NOT ILIKE")):
        patterns = ("", "%", "_", "a%", "%E", "%é%", "%SS%", "ap_le", r"a\%%", "%ı%", "%i̇%", "K%")
        yield from (f"{name} {word} '{pattern}'" for pattern in patterns)
        yield f"{name} {word} NULL"


def _casts() -> Iterator[str]:
    for name, target, word in product(_NAMES, [*TYPES, "DECIMAL(10, 2)", "DECIMAL(3, 1)"], ("CAST", "TRY_CAST")):
        yield f"{word}({name} AS {target})"


def _others() -> Iterator[str]:
    yield from ("b AND b", "b OR NULL", "b AND NULL", "NOT b", "b AND NOT b", "b OR i8 > 0", "b AND (b OR f64 < 0)")
    paths = (
        "Outer.x",
        "outer.x",
        "OUTER.X",
        "outer.inner.z",
        "Outer.inner.Z",
        "Outer['inner']['Z']",
        "`Outer`.inner.Z",
    )
    for path in (*paths, "`outer`.x", "Outer.y", "Outer['X']"):
        yield f"{path} IS NULL"
        yield path
    yield from ("Outer IS NULL", "OUTER.x + 1", "I8 + 1", "`I8` + 1", "length(outer.inner.Z)")


def expressions() -> list[str]:
    """Return the expressions, each once."""
    groups = (_calls, _comparisons, _memberships, _arithmetic, _likes, _casts, _others)
    return list(dict.fromkeys(text for group in groups for text in group()))


def contexts(text: str, *, is_condition: bool) -> list[str]:
    """Return the conditions in which an expression is also tested."""
    if text.startswith("CAST") or any(f" {op} " in text for op in ("!=", "<=", ">", ">=")):
        return []  # these differ from TRY_CAST, and from the other comparisons, only by themselves
    return [context.format(text) for context in (_CONDITION_CONTEXTS if is_condition else _VALUE_CONTEXTS)]
