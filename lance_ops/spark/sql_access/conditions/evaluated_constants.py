"""Let Spark evaluate the constants that conditions compare columns with: `current_date() - 7`, `TIMESTAMP '…'`.

What such an expression means depends on the session: its time zone, ANSI mode, the kind of its timestamps. So Spark
evaluates the text that the user wrote, once for a statement and without a job. Only functions that are known to depend
on nothing but their arguments and the clock are evaluated; every other expression is left in the query.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from decimal import Decimal
from itertools import pairwise
from typing import Any

import pyarrow as pa
import pyarrow.types as pt
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame
from pyspark.sql.types import (
    BooleanType,
    DataType,
    DateType,
    FractionalType,
    IntegralType,
    StringType,
    TimestampNTZType,
    TimestampType,
)
from sqlglot import exp

from lance_ops.core.errors import InvalidInput
from lance_ops.core.records import dataclass
from lance_ops.spark.sql_access.expressions import parse_expression
from lance_ops.spark.sql_access.table_references import Tables
from lance_ops.spark.sql_access.words import CLOCK_WORDS, Kind, Reader, Word

__all__ = ["Constant", "EvaluatedConstants"]

_MOST = 1000
"""A statement with more constants is left to Spark: a query of them all would take longer than it saves."""

_MOMENTS_OF_CLOCK = re.compile(r"now|today|tomorrow|yesterday|^[\x00-\x20\x7f]*(?:T\d|\d{0,2}:)", re.IGNORECASE)
"""Texts that Spark casts to a moment by the clock: these words, and a time of day without a date, which is today's."""

_UNITS = {
    unit + end
    for unit in ("year", "quarter", "month", "week", "day", "hour", "minute", "second", "millisecond", "microsecond")
    for end in ("", "s")
}
_TYPES = {
    *("date", "timestamp", "timestamp_ntz", "timestamp_ltz", "string", "boolean", "decimal", "numeric", "dec"),
    *("tinyint", "smallint", "int", "integer", "bigint", "long", "short", "byte", "float", "real", "double"),
}
_RISING = {
    *CLOCK_WORDS,
    *_UNITS,
    *("cast", "as", "interval", "to", "date", "timestamp", "timestamp_ntz", "timestamp_ltz"),
    *("date_add", "date_sub", "dateadd", "add_months", "date_trunc", "trunc", "last_day"),
}
"""Words of expressions that never fall while the clock goes on, if nothing is subtracted from the clock's value."""

_CAST_NO_TEXT = {
    *("true", "false", "and", "is", "not", "or", "if", "case", "when", "then", "else", "end"),
    *("concat", "concat_ws", "lower", "upper", "lcase", "ucase", "lpad", "rpad", "substring", "substr", "trim"),
    *("ltrim", "rtrim", "replace", "repeat", "greatest", "least", "coalesce", "nvl", "ifnull", "nullif"),
}
"""Words of expressions that cast no text to a moment, if none of their arguments is one."""

_KNOWN = {
    *_RISING,
    *_TYPES,
    *_CAST_NO_TEXT,
    "try_cast",
    *("to_date", "try_to_date", "to_timestamp", "try_to_timestamp", "to_timestamp_ntz", "to_timestamp_ltz"),
    *("make_date", "make_timestamp", "make_timestamp_ntz", "make_timestamp_ltz", "make_interval", "make_dt_interval"),
    *("make_ym_interval", "timestampadd", "datediff", "date_diff", "months_between", "next_day", "date_from_unix_date"),
    *("timestamp_seconds", "timestamp_millis", "timestamp_micros", "from_utc_timestamp", "to_utc_timestamp"),
    *("convert_timezone", "dayofmonth", "dayofweek", "dayofyear", "weekday", "weekofyear", "date_format", "unix_date"),
    *("abs", "round", "floor", "ceil", "ceiling", "pow", "power", "mod"),
}
_SIGNS = set("()+-*/%,.|:")
_RISING_SIGNS = set("()+-,")

_COMPARES = ("=", "<", ">")
_BEFORE = (*_COMPARES, "(", ",", "AND", "OR", "NOT", "WHERE", "ON", "HAVING", "BETWEEN", "LIKE")
"""What may stand before a constant that is compared."""

_BEHIND = (
    *(*_COMPARES, "!", ",", "AND", "OR", "NOT", "IS", "IN", "BETWEEN", "LIKE", "THEN", "WHEN", "ELSE", "END", "AS"),
    *("GROUP", "ORDER", "HAVING", "LIMIT", "OFFSET", "UNION", "EXCEPT", "MINUS", "INTERSECT", "WHERE", "SELECT"),
    *("JOIN", "INNER", "LEFT", "RIGHT", "FULL", "CROSS", "SEMI", "ANTI", "NATURAL", "LATERAL", "WINDOW", "QUALIFY"),
    *("SORT", "CLUSTER", "DISTRIBUTE", "ON", "USING", "FROM"),
)
"""What may stand behind it."""

_MOMENT = "unix_micros(try_cast({0} AS TIMESTAMP_LTZ))"
_WALL_TIME = "unix_micros(try_cast(CAST(try_cast({0} AS TIMESTAMP_NTZ) AS STRING) || 'Z' AS TIMESTAMP_LTZ))"
_DATE = "unix_date(try_cast({0} AS DATE))"
_IS_MIDNIGHT = "{0} = try_cast(try_cast({0} AS DATE) AS %s)"
_FORMS: tuple[tuple[type[DataType], Mapping[str, str]], ...] = (
    (StringType, {"plain": "{0}", "moment": _MOMENT, "wall_time": _WALL_TIME, "date": _DATE}),
    (DateType, {"moment": _MOMENT, "wall_time": _WALL_TIME, "date": _DATE}),
    (TimestampType, {"moment": _MOMENT, "day": _DATE, "is_midnight": _IS_MIDNIGHT % "TIMESTAMP_LTZ"}),
    (
        TimestampNTZType,
        {"moment": _MOMENT, "wall_time": _WALL_TIME, "day": _DATE, "is_midnight": _IS_MIDNIGHT % "TIMESTAMP_NTZ"},
    ),
    *((kind, {"plain": "{0}"}) for kind in (BooleanType, IntegralType, FractionalType)),
)
"""What is asked of a constant of each type of Spark's: its value as Spark casts it to compare it with a column.

`moment` and `wall_time` are microseconds of a timestamp with and without a zone, and `date` counts days since 1970.
`day` and `is_midnight` say on which day a timestamp is, and whether at its begin: Spark casts a date to compare it.
"""


@dataclass(frozen=True)
class Constant:
    """What Spark made of a constant: its type, and its values by what they are compared with.

    `depends_on_clock` says that its value does; `names_time` that only a cast of it to a moment may: a text such as
    `08:30`, which means today. `never_falls` says that a later value is never less than an earlier one, apart from a
    change of the clock of the session's zone.
    """

    kind: DataType
    values: Mapping[str, Any]
    depends_on_clock: bool
    names_time: bool
    never_falls: bool

    def depends_on_clock_beside(self, column: pa.DataType) -> bool:
        """Return whether a comparison with a column of this type depends on the clock."""
        return self.depends_on_clock or (self.names_time and (pt.is_timestamp(column) or pt.is_date(column)))

    def value(self, column: pa.DataType, *, in_utc: bool) -> Any:
        """Return the value for a comparison with a column of this type in Spark; None if Spark casts the column."""
        if pt.is_timestamp(column):
            # In UTC the two kinds of timestamps show the same time.
            names = ("moment",) if column.tz else ("wall_time", "moment") if in_utc else ("wall_time",)
            return next((self.values[name] for name in names if name in self.values), None)
        if pt.is_date32(column):
            return self.values.get("date")
        plain = self.values.get("plain")
        if pt.is_string(column):
            return plain if isinstance(plain, str) else None
        return None if isinstance(plain, str) else plain


@dataclass(frozen=True)
class _Text:
    """A constant as the statement has it."""

    text: str
    depends_on_clock: bool
    names_time: bool
    never_falls: bool


class EvaluatedConstants:
    """The constants of one statement, or of a condition in it, with `text`."""

    def __init__(self, text: str, tables: Tables) -> None:
        self._text = text
        self._tables = tables
        self._args = tables.args if isinstance(tables.args, Mapping) else {}
        self._found: dict[exp.Expr, Constant] = {}

    @property
    def any_depends_on_clock(self) -> bool:
        """Whether a constant depends on the clock, or may by a cast."""
        return any(constant.depends_on_clock or constant.names_time for constant in self._found.values())

    def find(self, node: exp.Expr) -> Constant | None:
        """Return what Spark made of a constant; None if it was not evaluated."""
        return self._found.get(node) if self._found else None

    def evaluate(self, wanted: Iterable[exp.Expr]) -> None:
        """Let Spark evaluate these expressions, all at once. It evaluates none if one of them has an error."""
        asked = dict.fromkeys(wanted)
        if not asked or len(asked) > _MOST:
            return
        texts = self._texts(asked)
        if not texts:
            return
        listed = ", ".join(f"({each.text}) AS c{i}" for i, each in enumerate(texts.values()))
        try:
            # A query of literal rows has no job.
            frame = self._tables.spark_sql(f"SELECT {listed} FROM VALUES (0)")
            rows = self._values(frame)
        except PySparkException:  # the statement itself raises it, if the constant is needed
            return
        for (node, each), field, values in zip(texts.items(), frame.schema, rows, strict=True):
            if values:
                self._found[node] = Constant(
                    field.dataType, values, each.depends_on_clock, each.names_time, each.never_falls
                )

    @staticmethod
    def _values(frame: DataFrame) -> list[dict[str, Any]]:
        """Return for each column of the only row what is asked of its type."""
        forms = [_forms(field.dataType) for field in frame.schema]
        asked = [form.format(f"c{i}") for i, named in enumerate(forms) for form in named.values()]
        row = iter(frame.selectExpr(*asked).collect()[0] if asked else ())
        return [{name: next(row) for name in named} for named in forms]

    def _texts(self, wanted: Mapping[exp.Expr, None]) -> dict[exp.Expr, _Text]:
        """Return the texts of these expressions. One that several texts may mean is left out."""
        found: dict[exp.Expr, _Text | None] = {}
        candidates = [words for words in self._candidates() if self._is_known(words)]
        if len(candidates) > _MOST:
            candidates = [words for words in candidates if len(words) > 1][:_MOST]
        for words in candidates:
            text = self._text[words[0].start : words[-1].stop]
            try:
                tree = parse_expression(text)
            except InvalidInput:
                continue
            if tree in wanted:
                known = found.get(tree, made := self._made(text, words))
                found[tree] = made if known == made else None
        return {node: each for node, each in found.items() if each is not None}

    def _made(self, text: str, words: Sequence[Word]) -> _Text:
        names = [word.value.lower() for word in words if word.kind is Kind.NAME]
        clocks = [at for at, word in enumerate(words) if word.kind is Kind.NAME and word.value.lower() in CLOCK_WORDS]
        parameters = [word for colon, word in pairwise(words) if colon.value == ":"]
        given = [self._args.get(word.value) for word in parameters]
        texts = [word.value for word in words if word.kind is Kind.TEXT]
        names_time = any(isinstance(each, str) and _MOMENTS_OF_CLOCK.search(each) for each in (*texts, *given))
        functions = {word.value.lower() for word in words if word.kind is Kind.NAME and word not in parameters}
        has_moment = any(each is not None and not isinstance(each, str | int | float | Decimal) for each in given)
        casts_no_text = _CAST_NO_TEXT.issuperset(functions) and not has_moment
        never_falls = (
            len(clocks) == 1
            and not names_time
            and _RISING.issuperset(names)
            # A unit with a bracket behind it is a function of a part of a moment, which begins anew.
            and not any(word.value.lower() in _UNITS and bracket.value == "(" for word, bracket in pairwise(words))
            and all(word.kind is not Kind.SIGN or word.value in _RISING_SIGNS for word in words)
            and all(word.value != "-" for word in words[: clocks[0]])
        )
        return _Text(text, bool(clocks) or (names_time and not casts_no_text), names_time, never_falls)

    def _candidates(self) -> Iterator[Sequence[Word]]:
        """Yield the words of each text that may be one side of a comparison."""
        reader = Reader(self._text)
        for begin in range(len(reader.words)):
            if begin and reader.words[begin - 1].upper not in _BEFORE:
                continue
            reader.at = begin
            if reader.words[begin].upper in (*_BEHIND, ")"):
                continue
            reader.until(*_BEHIND, what="a constant")
            yield reader.words[begin : reader.at]

    def _is_known(self, words: Sequence[Word]) -> bool:
        """Return whether these words, which may also name a column, can be evaluated without one."""
        before = ""
        for word in words:
            if word.kind is Kind.NAME:
                is_known = word.value.lower() in _KNOWN or (before == ":" and word.value in self._args)
            else:
                is_known = word.kind is not Kind.QUOTED and (word.kind is not Kind.SIGN or word.value in _SIGNS)
            if not is_known:
                return False
            before = word.upper
        return True


def _forms(kind: DataType) -> Mapping[str, str]:
    if isinstance(kind, StringType) and kind != StringType():  # a collation compares otherwise
        return {}
    return next((forms for type_, forms in _FORMS if isinstance(kind, type_)), {})
