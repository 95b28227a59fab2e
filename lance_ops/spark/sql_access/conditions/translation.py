"""Translate conditions of Spark's SQL into predicates of this library where both mean the same.

Only comparisons of a column with a constant are translated, and AND, OR and NOT of them. Literals of the column's own
kind are read here, and Spark evaluates other constants (`evaluated_constants.py`). Where Spark would cast the column to
another type, the two engines may differ, so Spark evaluates the comparison alone.
"""

from __future__ import annotations

import re
import struct
from collections.abc import Callable, Iterator, Mapping
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pyarrow.types as pt
from pyspark.sql import datasource as spark
from pyspark.sql.types import (
    ByteType,
    DataType,
    DateType,
    DecimalType,
    IntegerType,
    LongType,
    ShortType,
    StringType,
    TimestampNTZType,
    TimestampType,
)
from sqlglot import exp

from lance_ops.core.errors import SchemaMismatch
from lance_ops.core.json import text_schema
from lance_ops.core.predicate import Predicate
from lance_ops.core.predicate.binding import build, either
from lance_ops.core.schema import Schema
from lance_ops.spark.sql_access.conditions.evaluated_constants import Constant, EvaluatedConstants
from lance_ops.spark.sql_access.expressions import CLOCK_OR_COLUMN
from lance_ops.spark.sql_access.words import CLOCK_WORDS
from lance_ops.spark.translation import CaseRule, pushed_predicate, schema_for_spark

__all__ = ["ConditionTranslation"]

_DATE = re.compile(r"\d{4}-\d\d-\d\d")
_MOMENT = re.compile(r"\d{4}-\d\d-\d\d[ T]\d\d:\d\d:\d\d(\.\d{1,6})?")
_SHOWN_MOMENT = re.compile(r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d")
_PLAIN_INTEGER = re.compile(r"-?\d{1,18}")
_PLAIN_NUMBER = re.compile(r"-?\d{1,15}(\.\d{0,15})?")
_EXACT_IN_DOUBLE = 2**53
_MOST_DIGITS = 38
_DIGITS_OF_INTEGERS: dict[type[DataType], int] = {ByteType: 3, ShortType: 5, IntegerType: 10, LongType: 20}
_DAY = 1
_DAY_IN_MICROS = 24 * 60 * 60 * 10**6

_MOMENTS = (exp.DType.TIMESTAMP, exp.DType.TIMESTAMPTZ, exp.DType.TIMESTAMPLTZ, exp.DType.TIMESTAMPNTZ)
"""The types of `TIMESTAMP '…'` and of its kinds with and without a zone, which show the same time in UTC."""

_COMPARISONS: dict[type[exp.Expr], tuple[type[spark.Filter], type[spark.Filter]]] = {
    exp.EQ: (spark.EqualTo, spark.EqualTo),
    exp.NullSafeEQ: (spark.EqualNullSafe, spark.EqualNullSafe),
    exp.GT: (spark.GreaterThan, spark.LessThan),
    exp.GTE: (spark.GreaterThanOrEqual, spark.LessThanOrEqual),
    exp.LT: (spark.LessThan, spark.GreaterThan),
    exp.LTE: (spark.LessThanOrEqual, spark.GreaterThanOrEqual),
}
"""Spark's filter for each comparison, as it stands and with its sides exchanged."""

_WITHIN_DAY: dict[type[spark.Filter], type[spark.Filter]] = {
    spark.GreaterThan: spark.GreaterThan,
    spark.GreaterThanOrEqual: spark.GreaterThan,
    spark.LessThan: spark.LessThanOrEqual,
    spark.LessThanOrEqual: spark.LessThanOrEqual,
}
"""The filter that compares a day with the day of a moment as Spark compares its begin with the moment.

The moment is not the begin of its day.
"""


class _Untranslatable(Exception):
    """A condition that only Spark evaluates."""


class ConditionTranslation:
    """Translates conditions on the columns of one table.

    `in_utc` says whether the session reads moments without a zone as UTC, `has_escapes` whether the statement has a
    backslash: what it means in a text depends on a setting of Spark's parser. `args` are the values of parameters; of
    these, whole numbers, texts and truth values that are named are translated without Spark. `constants` has the values
    of other constants, once Spark has evaluated those of `constants_in`.

    With `later`, Spark evaluates the condition again, at some later time. Then the predicate may be true for more rows
    than the condition is if it `depends_on_clock`: no row that the condition finds later is missing.
    """

    def __init__(
        self,
        schema: Schema,
        case_rule: CaseRule,
        *,
        in_utc: bool,
        has_escapes: bool,
        args: object = None,
        constants: EvaluatedConstants | None = None,
        later: bool = False,
    ) -> None:
        self._args = args if isinstance(args, Mapping) else {}
        self._table = schema.to_arrow_storage()
        self._shape = schema_for_spark(text_schema(self._table))
        self._case_rule = case_rule
        self._in_utc = in_utc
        self._has_escapes = has_escapes
        self._constants = constants
        self._later = later
        # Spark takes a word such as `current_date` for the column of that name, and sqlglot for the function.
        self._has_column_of_clock = any(case_rule.find(word, self._shape.names) is not None for word in CLOCK_WORDS)

    def constants_in(self, condition: exp.Expr) -> Iterator[exp.Expr]:
        """Yield the expressions without a column that a condition compares with a column and only Spark evaluates."""
        for node in condition.find_all(exp.Between, exp.In, exp.NEQ, exp.NullSafeNEQ, *_COMPARISONS):
            sides = [*node.iter_expressions()]
            columns = [side for side in sides if isinstance(side, exp.Column)]
            if len(columns) != 1:
                continue
            try:
                _, kind = self._column(columns[0])
            except _Untranslatable:
                continue
            for side in sides:
                if side is columns[0] or side.find(exp.Column, exp.Query) is not None:
                    continue
                if not (self._has_column_of_clock and side.find(*CLOCK_OR_COLUMN)):
                    try:
                        self._plain_value(side, kind)
                    except _Untranslatable:
                        yield side

    def depends_on_clock(self, condition: exp.Expr) -> bool:
        """Return whether a condition compares with a constant that depends on the clock."""
        if self._constants is None or not self._constants.any_depends_on_clock:
            return False
        names = {column.name for column in condition.find_all(exp.Column)}
        kinds = [
            self._shape.field(found).type for name in names if (found := self._case_rule.find(name, self._shape.names))
        ]
        constants = [each for node in condition.walk() if (each := self._constants.find(node)) is not None]
        return any(constant.depends_on_clock_beside(kind) for constant in constants for kind in kinds)

    def predicate(self, condition: exp.Expr) -> Predicate | None:
        """Return the predicate that is true for exactly the rows for which Spark's condition is; None if unknown.

        With `later` it may be true for more rows; see the class.
        """
        try:
            return self._translated(condition)
        except (_Untranslatable, SchemaMismatch):
            return None

    def _translated(self, node: exp.Expr) -> Predicate:
        if node.args.get("negate"):
            raise _Untranslatable
        match node:
            case exp.Paren():
                return self._translated(node.this)
            case exp.And():
                return build.all_of(*map(self._translated, node.flatten()))
            case exp.Or():
                return either(map(self._translated, node.flatten()))
            case exp.Not():
                if self._later and self.depends_on_clock(node):
                    raise _Untranslatable
                return build.negate(self._translated(node.this))
            case exp.Column():
                return self._pushed(spark.EqualTo(self._path(node, pt.is_boolean), True))
            case exp.NEQ():
                return build.negate(self._comparison(node, _COMPARISONS[exp.EQ]))
            case exp.NullSafeNEQ():
                return build.negate(self._comparison(node, _COMPARISONS[exp.NullSafeEQ]))
            case exp.Between() if node.args.get("symmetric") is None:  # Spark does not know the word
                low = exp.GTE(this=node.this, expression=node.args["low"])
                high = exp.LTE(this=node.this, expression=node.args["high"])
                return self._between(low, high)
            case exp.In() if node.expressions and not node.args.get("query"):
                path, kind = self._column(node.this)
                values = tuple(self._listed_value(each, kind) for each in node.expressions)
                return self._pushed(spark.In(path, values))
            case exp.Is() if isinstance(node.expression, exp.Null):
                return self._pushed(spark.IsNull(self._column(node.this)[0]))
            case exp.Like():
                return self._like(node)
        if type(node) in _COMPARISONS:
            return self._comparison(node, _COMPARISONS[type(node)])
        raise _Untranslatable

    def _comparison(self, node: exp.Expr, filters: tuple[type[spark.Filter], type[spark.Filter]]) -> Predicate:
        left, right = node.this, node.expression
        as_it_stands, exchanged = filters
        if isinstance(left, exp.Column):
            return self._compared(as_it_stands, left, right)
        return self._compared(exchanged, right, left)

    def _between(self, low: exp.Expr, high: exp.Expr) -> Predicate:
        """Return the predicate of both bounds; with `later` one bound may be enough."""
        found, unknown = list[Predicate](), None
        for bound in (low, high):
            try:
                found.append(self._translated(bound))
            except _Untranslatable as error:
                unknown = error
        is_enough = self._later and any(map(self.depends_on_clock, (low, high)))
        if unknown is not None and not (found and is_enough):
            raise unknown
        return build.all_of(*found)

    def _compared(self, filter_: type[spark.Filter], column: exp.Expr, value: exp.Expr) -> Predicate:
        path, kind = self._column(column)
        try:
            return self._pushed(_make(filter_, path, self._plain_value(value, kind)))
        except _Untranslatable:
            constant = self._constant(value)
        found = constant.value(kind, in_utc=self._in_utc)
        is_within = False
        if found is None and pt.is_date32(kind) and filter_ in _WITHIN_DAY:
            found, is_within = constant.values.get("day"), not constant.values.get("is_midnight")
        if constant.depends_on_clock_beside(kind) and self._later:
            if (
                found is None
                or not constant.never_falls
                or filter_ not in (spark.GreaterThan, spark.GreaterThanOrEqual)
            ):
                raise _Untranslatable
            # A change of the zone's clock may set the value back.
            found -= _DAY if pt.is_date32(kind) else _DAY_IN_MICROS
        if is_within:
            filter_ = _WITHIN_DAY[filter_]
        return self._pushed(_make(filter_, path, _fitting(found, constant.kind, kind)))

    def _like(self, node: exp.Expr) -> Predicate:
        path, kind = self._column(node.this)
        if not pt.is_string(kind):
            raise _Untranslatable
        pattern = self._plain_value(node.expression, kind)
        if "\\" in pattern:  # it escapes the sign behind it
            raise _Untranslatable
        inner = pattern.strip("%")
        if "%" in inner or "_" in inner:
            raise _Untranslatable
        if inner == pattern:
            return self._pushed(spark.EqualTo(path, pattern))
        if pattern.startswith("%") and pattern.endswith("%"):
            return self._pushed(spark.StringContains(path, inner))
        ends = pattern.startswith("%")
        return self._pushed(_make(spark.StringEndsWith if ends else spark.StringStartsWith, path, inner))

    def _pushed(self, asked: spark.Filter) -> Predicate:
        found = pushed_predicate(asked, self._table, self._shape)
        if found is None:
            raise _Untranslatable
        return found

    def _column(self, node: exp.Expr) -> tuple[tuple[str, ...], pa.DataType]:
        """Return the path of a top-level column and its type in Spark."""
        if not isinstance(node, exp.Column):
            raise _Untranslatable
        found = self._case_rule.find(node.name, self._shape.names)
        if found is None:
            raise _Untranslatable
        return (found,), self._shape.field(found).type

    def _path(self, node: exp.Column, is_kind: Callable[[pa.DataType], bool]) -> tuple[str, ...]:
        path, kind = self._column(node)
        if not is_kind(kind):
            raise _Untranslatable
        return path

    def _listed_value(self, node: exp.Expr, kind: pa.DataType) -> Any:
        """Return a value of an IN list, for which Spark looks for one type of the column and all values."""
        given = self._given(node)
        if pt.is_timestamp(kind) and isinstance(given, exp.Literal) and not _SHOWN_MOMENT.fullmatch(given.name):
            raise _Untranslatable  # without ANSI mode Spark compares the texts of moments
        try:
            return self._plain_value(node, kind)
        except _Untranslatable:
            constant = self._constant(node)
        if (constant.depends_on_clock_beside(kind) and self._later) or not _is_of_kind(constant.kind, kind):
            raise _Untranslatable
        return _fitting(constant.value(kind, in_utc=self._in_utc), constant.kind, kind)

    def _constant(self, node: exp.Expr) -> Constant:
        found = None if self._constants is None else self._constants.find(node)
        if found is None:
            raise _Untranslatable
        return found

    def _given(self, node: exp.Expr) -> exp.Expr:
        """Return the value of a parameter as a literal; any other expression as it is."""
        value = self._args.get(node.name) if isinstance(node, exp.Placeholder) else None
        return exp.convert(value) if type(value) in (bool, int, str) else node

    def _plain_value(self, node: exp.Expr, kind: pa.DataType) -> Any:
        """Return a literal as the column's kind of value; whatever Spark would cast is refused."""
        node = self._given(node)
        if isinstance(node, exp.Boolean) and pt.is_boolean(kind):
            return bool(node.this)
        if isinstance(node, exp.Cast) and isinstance(node.this, exp.Literal) and node.this.is_string:
            # Spark casts a column of another kind, such as text.
            wanted = (exp.DType.DATE,) if pt.is_date(kind) else _MOMENTS if pt.is_timestamp(kind) else ()
            if node.args["to"].this in wanted:
                node = node.this
        text = f"-{node.this.name}" if isinstance(node, exp.Neg) and isinstance(node.this, exp.Literal) else node.name
        is_text = isinstance(node, exp.Literal) and node.is_string
        is_number = isinstance(node.this if isinstance(node, exp.Neg) else node, exp.Literal) and not is_text
        if is_text:
            return self._value_of_text(text, kind)
        if is_number:
            return _number(text, kind)
        raise _Untranslatable

    def _value_of_text(self, text: str, kind: pa.DataType) -> Any:
        if pt.is_string(kind):
            if self._has_escapes or "'" in text or '"' in text:  # as for a doubled quote, the meaning has changed
                raise _Untranslatable
            return text
        try:
            if pt.is_date32(kind) and _DATE.fullmatch(text):
                return date.fromisoformat(text)
            if pt.is_timestamp(kind) and self._in_utc and _MOMENT.fullmatch(text):
                moment = datetime.fromisoformat(text)
                return moment.replace(tzinfo=UTC) if kind.tz else moment
        except ValueError:
            pass
        raise _Untranslatable


def _make(kind: type[spark.Filter], path: tuple[str, ...], value: Any) -> spark.Filter:
    return kind(path, value)  # type: ignore[call-arg] # every filter of `_COMPARISONS` is made of these


def _is_of_kind(given: DataType, kind: pa.DataType) -> bool:
    """Return whether a constant has the column's kind of value, so that no list makes texts of both."""
    if pt.is_timestamp(kind):
        return isinstance(given, TimestampType | TimestampNTZType)
    if pt.is_date(kind):
        return isinstance(given, DateType)
    return isinstance(given, StringType) is bool(pt.is_string(kind))


def _fitting(value: Any, given: DataType, kind: pa.DataType) -> Any:
    """Return a value that Spark evaluated as one of the column's type; raise `_Untranslatable` if it is no such value.

    `given` is the value's type. Moments are in microseconds, and dates in days.
    """
    is_whole = isinstance(value, int) and not isinstance(value, bool)
    if pt.is_timestamp(kind) or pt.is_date32(kind) or pt.is_integer(kind):
        is_fit = is_whole
    elif pt.is_string(kind):
        is_fit = isinstance(value, str)
    elif pt.is_boolean(kind):
        is_fit = isinstance(value, bool)
    elif pt.is_decimal128(kind) and (is_whole or isinstance(value, Decimal)):
        value = Decimal(value)
        is_fit = _are_compared_exactly(kind, *_digits(given))
    elif pt.is_floating(kind) and (is_whole or isinstance(value, Decimal | float)):
        return _fitting_float(float(value), kind)
    else:
        is_fit = False
    if not is_fit:
        raise _Untranslatable
    return value


def _digits(given: DataType) -> tuple[int, int]:
    """Return the precision and the scale of a type of exact numbers."""
    if isinstance(given, DecimalType):
        return given.precision, given.scale
    return _DIGITS_OF_INTEGERS.get(type(given), _MOST_DIGITS), 0


def _are_compared_exactly(column: pa.Decimal128Type, precision: int, scale: int) -> bool:
    """Return whether Spark compares a column of decimals with a value of such a type without rounding one of them.

    It widens both to a type that has the whole digits and the scale of either, and rounds if that has too many digits.
    """
    whole = max(column.precision - column.scale, precision - scale)
    return bool(whole + max(column.scale, scale) <= _MOST_DIGITS)


def _fitting_float(value: float, kind: pa.DataType) -> float:
    """Return a number that a column of floats may have. Spark compares floats with other numbers as doubles."""
    if abs(value) < _EXACT_IN_DOUBLE and (
        pt.is_float64(kind) or struct.unpack("f", struct.pack("f", value))[0] == value
    ):
        return value
    raise _Untranslatable


def _number(text: str, kind: pa.DataType) -> Any:
    if pt.is_integer(kind) and _PLAIN_INTEGER.fullmatch(text):
        return int(text)
    if pt.is_decimal128(kind) and _PLAIN_NUMBER.fullmatch(text):
        value, digits = Decimal(text), len(text.lstrip("-").replace(".", ""))
        scale = max(0, -int(value.as_tuple().exponent))
        if _are_compared_exactly(kind, digits if scale else _DIGITS_OF_INTEGERS[LongType], scale):
            return value
    if pt.is_floating(kind) and _PLAIN_NUMBER.fullmatch(text):
        return _fitting_float(float(text), kind)
    raise _Untranslatable
