"""Random filters, each as SQL text and as a plain Python function that gives SQL's answer for a row.

This module does not use the code under test: a row is a dict of Python values, an answer is True, False or None.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from typing import Any, TypeAlias

import pyarrow as pa
from hypothesis import strategies as st

Row: TypeAlias = dict[str, Any]
Answer: TypeAlias = bool | None

SCHEMA = pa.schema(
    [
        ("i8", pa.int8()),
        ("u64", pa.uint64()),
        ("i64", pa.int64()),
        ("f64", pa.float64()),
        ("s", pa.string()),
        ("b", pa.bool_()),
        ("ts", pa.timestamp("us")),
        ("d", pa.date32()),
        ("dec", pa.decimal128(8, 2)),
        ("st", pa.struct([("x", pa.int32()), ("With Space", pa.string())])),
    ]
)
EPOCH = dt.datetime(1970, 1, 1)
OPERATORS = ("=", "!=", "<", "<=", ">", ">=")


@dataclass(frozen=True)
class Case:
    """A filter as SQL text, and the function that gives its answer for a row."""

    sql: str
    answer: Callable[[Row], Answer]

    def __repr__(self) -> str:
        return self.sql


def order(value: Any) -> tuple[bool, Any]:
    """Return a key that orders the values of one type, with NaN above all others."""
    return (True, 0) if value != value else (False, value)


def compare(op: str, left: Any, right: Any) -> Answer:
    if left is None or right is None:
        return None
    a, b = order(left), order(right)
    return {"=": a == b, "!=": a != b, "<": a < b, "<=": a <= b, ">": a > b, ">=": a >= b}[op]


def both(left: Answer, right: Answer) -> Answer:
    if left is False or right is False:
        return False
    return None if left is None or right is None else True


def invert(answer: Answer) -> Answer:
    return None if answer is None else not answer


@dataclass(frozen=True)
class Operand:
    """A column: its SQL, its value in a row in the form that literals have, and literals to compare it with."""

    sql: str
    value: Callable[[Row], Any]
    literals: st.SearchStrategy[tuple[str, Any]]


def _get(*path: str) -> Callable[[Row], Any]:
    def value(row: Row) -> Any:
        found: Any = row
        for name in path:
            found = None if found is None else found[name]
        return found

    return value


def _scaled(get: Callable[[Row], Any], scale: Callable[[Any], Any]) -> Callable[[Row], Any]:
    return lambda row: None if get(row) is None else scale(get(row))


def _microseconds(value: dt.datetime | dt.date) -> Fraction:
    moment = value if isinstance(value, dt.datetime) else dt.datetime(value.year, value.month, value.day)
    return Fraction((moment - EPOCH) // dt.timedelta(microseconds=1))


def text_sql(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"


WORDS = st.text(alphabet="ab%_'\\\"é\U0010ffff", max_size=3)
_WHOLE = st.one_of(st.integers(-3, 3), st.sampled_from([-129, -128, 127, 128, 300, 2**63 - 1, 2**63, 2**64 - 1, 2**64]))
_NUMBERS = st.one_of(
    _WHOLE.map(lambda number: (str(number), Fraction(number))),
    st.decimals(-4, 4, places=3).map(lambda number: (format(number, "f"), Fraction(number))),
    st.sampled_from([("1e3", Fraction(1000)), ("-2.5e-1", Fraction(-1, 4)), ("1e25", Fraction(10**25))]),
)
_FLOATS = st.one_of(
    _NUMBERS.map(lambda pair: (pair[0], float(pair[1]))),
    st.sampled_from([("CAST('NaN' AS DOUBLE)", float("nan")), ("CAST('inf' AS DOUBLE)", float("inf")), ("-0.0", 0.0)]),
)
_MOMENTS = st.datetimes(dt.datetime(2019, 12, 31, 23), dt.datetime(2020, 1, 1, 1)).map(
    lambda moment: moment.replace(minute=0, second=0, microsecond=moment.microsecond % 3)
)
_DAYS = st.dates(dt.date(2019, 12, 30), dt.date(2020, 1, 3))
_INSTANTS = st.one_of(
    _MOMENTS.map(lambda moment: (f"TIMESTAMP '{moment}'", _microseconds(moment))),
    _MOMENTS.map(lambda moment: (f"'{moment.isoformat()}'", _microseconds(moment))),
    _MOMENTS.map(
        lambda moment: (
            f"TIMESTAMP(9) '{moment:%F %T}.000000999'",
            _microseconds(moment).__floor__() // 10**6 * 10**6 + Fraction(999, 1000),
        )
    ),
    _DAYS.map(lambda day: (f"DATE '{day}'", _microseconds(day))),
)

OPERANDS = (
    Operand("i8", _scaled(_get("i8"), Fraction), _NUMBERS),
    Operand("u64", _scaled(_get("u64"), Fraction), _NUMBERS),
    Operand("i64", _scaled(_get("i64"), Fraction), _NUMBERS),
    Operand("f64", _get("f64"), _FLOATS),
    Operand("s", _get("s"), WORDS.map(lambda word: (text_sql(word), word))),
    Operand("b", _get("b"), st.booleans().map(lambda value: (str(value), value))),
    Operand("ts", _scaled(_get("ts"), _microseconds), _INSTANTS),
    Operand("d", _scaled(_get("d"), _microseconds), _INSTANTS),
    Operand("dec", _scaled(_get("dec"), Fraction), _NUMBERS),
    Operand("st.x", _scaled(_get("st", "x"), Fraction), _NUMBERS),
    Operand("st.`With Space`", _get("st", "With Space"), WORDS.map(lambda word: (text_sql(word), word))),
)


@st.composite
def comparisons(draw: st.DrawFn) -> Case:
    operand = draw(st.sampled_from(OPERANDS))
    op = draw(st.sampled_from(OPERATORS))
    sql, literal = draw(operand.literals)
    if draw(st.booleans()):
        return Case(f"{operand.sql} {op} {sql}", lambda row: compare(op, operand.value(row), literal))
    return Case(f"{sql} {op} {operand.sql}", lambda row: compare(op, literal, operand.value(row)))


@st.composite
def memberships(draw: st.DrawFn) -> Case:
    operand = draw(st.sampled_from(OPERANDS))
    items = draw(st.lists(st.one_of(operand.literals, st.just(("NULL", None))), min_size=1, max_size=4))
    negated = draw(st.booleans())

    def answer(row: Row) -> Answer:
        found = [compare("=", operand.value(row), literal) for _, literal in items]
        result = True if True in found else None if None in found else False
        return invert(result) if negated else result

    return Case(f"{operand.sql} {'NOT ' * negated}IN ({', '.join(sql for sql, _ in items)})", answer)


@st.composite
def ranges(draw: st.DrawFn) -> Case:
    operand = draw(st.sampled_from(OPERANDS))
    (low_sql, low), (high_sql, high) = draw(operand.literals), draw(operand.literals)
    return Case(
        f"{operand.sql} BETWEEN {low_sql} AND {high_sql}",
        lambda row: both(compare(">=", operand.value(row), low), compare("<=", operand.value(row), high)),
    )


@st.composite
def null_tests(draw: st.DrawFn) -> Case:
    operand = draw(st.sampled_from(OPERANDS))
    if draw(st.booleans()):
        return Case(f"{operand.sql} IS NULL", lambda row: operand.value(row) is None)
    return Case(f"{operand.sql} IS NOT NULL", lambda row: operand.value(row) is not None)


def like(pattern: str, text: str) -> bool:
    """Match a LIKE pattern, one character at a time."""
    if not pattern:
        return not text
    if pattern[0] == "%":
        return any(like(pattern[1:], text[start:]) for start in range(len(text) + 1))
    if pattern[0] == "\\":
        escaped = pattern[1:2] or "\\"
        return text[:1] == escaped and like(pattern[2:], text[1:])
    return bool(text) and (pattern[0] in ("_", text[0])) and like(pattern[1:], text[1:])


_TEXT_TESTS: dict[str, Callable[[str, str], bool]] = {
    "{0} LIKE {1}": lambda text, word: like(word, text),
    "starts_with({0}, {1})": str.startswith,
    "ends_with({0}, {1})": str.endswith,
    "contains({0}, {1})": lambda text, word: word in text,
    "lower({0}) = {1}": lambda text, word: text.lower() == word,
}


@st.composite
def text_tests(draw: st.DrawFn) -> Case:
    form = draw(st.sampled_from(sorted(_TEXT_TESTS)))
    word = draw(WORDS)

    def answer(row: Row) -> Answer:
        return None if row["s"] is None else _TEXT_TESTS[form](row["s"], word)

    return Case(form.format("s", text_sql(word)), answer)


@st.composite
def sums(draw: st.DrawFn) -> Case:
    added, total = draw(st.integers(-200, 200)), draw(st.integers(-200, 200))
    op = draw(st.sampled_from(OPERATORS))
    return Case(
        f"i8 + {added} {op} {total}",
        lambda row: None if row["i8"] is None else compare(op, row["i8"] + added, total),
    )


def _combined(inner: st.SearchStrategy[Case]) -> st.SearchStrategy[Case]:
    pairs = st.tuples(inner, inner)
    return st.one_of(
        pairs.map(
            lambda p: Case(f"({p[0].sql}) AND ({p[1].sql})", lambda row: both(p[0].answer(row), p[1].answer(row)))
        ),
        pairs.map(
            lambda p: Case(
                f"({p[0].sql}) OR ({p[1].sql})",
                lambda row: invert(both(invert(p[0].answer(row)), invert(p[1].answer(row)))),
            )
        ),
        inner.map(lambda p: Case(f"NOT ({p.sql})", lambda row: invert(p.answer(row)))),
        inner.map(lambda p: Case(f"({p.sql}) IS TRUE", lambda row: p.answer(row) is True)),
        inner.map(lambda p: Case(f"({p.sql}) IS NOT FALSE", lambda row: p.answer(row) is not False)),
        inner.map(lambda p: Case(f"({p.sql}) IS NULL", lambda row: p.answer(row) is None)),
    )


def cases() -> st.SearchStrategy[Case]:
    """Draw filters of every kind."""
    plain = st.one_of(
        comparisons(),
        memberships(),
        ranges(),
        null_tests(),
        text_tests(),
        sums(),
        st.just(Case("b", lambda row: row["b"])),
    )
    return st.recursive(plain, _combined, max_leaves=4)


def _nullable(values: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    return st.one_of(st.none(), values)


def rows() -> st.SearchStrategy[list[dict[str, Any]]]:
    """Draw up to six rows of `SCHEMA`, with values close to the literals."""
    return st.lists(
        st.fixed_dictionaries(
            {
                "i8": _nullable(st.sampled_from([-128, -3, -1, 0, 1, 2, 127])),
                "u64": _nullable(st.sampled_from([0, 1, 2, 127, 2**63, 2**64 - 1])),
                "i64": _nullable(st.sampled_from([-(2**63), -2, 0, 1, 300, 2**63 - 1])),
                "f64": _nullable(
                    st.sampled_from([float("nan"), float("-inf"), float("inf"), -0.0, 0.0, 1.0, 0.25, -2.0])
                ),
                "s": _nullable(WORDS),
                "b": _nullable(st.booleans()),
                "ts": _nullable(_MOMENTS),
                "d": _nullable(_DAYS),
                "dec": _nullable(
                    st.sampled_from([Decimal("0.00"), Decimal("1.00"), Decimal("-2.50"), Decimal("999999.99")])
                ),
                "st": _nullable(
                    st.fixed_dictionaries({"x": _nullable(st.integers(-2, 2)), "With Space": _nullable(WORDS)})
                ),
            }
        ),
        max_size=6,
    )


def table(drawn: list[dict[str, Any]]) -> pa.Table:
    return pa.Table.from_pylist(drawn, schema=SCHEMA)
