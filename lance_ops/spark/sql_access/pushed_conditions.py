"""Translate conditions of Spark's SQL into predicates of this library where both mean the same.

Only comparisons of a column with a literal of the column's own kind are translated, and AND, OR and NOT of them.
Where Spark would cast one side to the other's type, the two engines may differ, so Spark evaluates it alone.
"""

from __future__ import annotations

import re
import struct
from collections.abc import Callable, Mapping
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pyarrow.types as pt
from pyspark.sql import datasource as spark
from sqlglot import exp

from lance_ops.core.errors import SchemaMismatch
from lance_ops.core.json import text_schema
from lance_ops.core.predicate import Predicate
from lance_ops.core.predicate.binding import build, either
from lance_ops.core.schema import Schema
from lance_ops.spark.translation import CaseRule, pushed_predicate, schema_for_spark

__all__ = ["ConditionTranslation"]

_DATE = re.compile(r"\d{4}-\d\d-\d\d")
_MOMENT = re.compile(r"\d{4}-\d\d-\d\d[ T]\d\d:\d\d:\d\d(\.\d{1,6})?")
_PLAIN_INTEGER = re.compile(r"-?\d{1,18}")
_PLAIN_NUMBER = re.compile(r"-?\d{1,15}(\.\d{0,15})?")
_EXACT_IN_DOUBLE = 2**53

_COMPARISONS: dict[type[exp.Expr], tuple[type[spark.Filter], type[spark.Filter]]] = {
    exp.EQ: (spark.EqualTo, spark.EqualTo),
    exp.NullSafeEQ: (spark.EqualNullSafe, spark.EqualNullSafe),
    exp.GT: (spark.GreaterThan, spark.LessThan),
    exp.GTE: (spark.GreaterThanOrEqual, spark.LessThanOrEqual),
    exp.LT: (spark.LessThan, spark.GreaterThan),
    exp.LTE: (spark.LessThanOrEqual, spark.GreaterThanOrEqual),
}
"""Spark's filter for each comparison, as it stands and with its sides exchanged."""


class _Untranslatable(Exception):
    """A condition that only Spark evaluates."""


class ConditionTranslation:
    """Translates conditions on the columns of one table.

    `in_utc` says whether the session reads moments without a zone as UTC, `has_escapes` whether the statement has a
    backslash: what it means in a text depends on a setting of Spark's parser. `args` are the values of parameters; of
    these, whole numbers, texts and truth values that are named are translated.
    """

    def __init__(
        self, schema: Schema, case_rule: CaseRule, *, in_utc: bool, has_escapes: bool, args: object = None
    ) -> None:
        self._args = args if isinstance(args, Mapping) else {}
        self._table = schema.to_arrow_storage()
        self._shape = schema_for_spark(text_schema(self._table))
        self._case_rule = case_rule
        self._in_utc = in_utc
        self._has_escapes = has_escapes

    def predicate(self, condition: exp.Expr) -> Predicate | None:
        """Return the predicate that is true for exactly the rows for which Spark's condition is; None if unknown."""
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
                return build.negate(self._translated(node.this))
            case exp.Column():
                return self._pushed(spark.EqualTo(self._path(node, pt.is_boolean), True))
            case exp.NEQ():
                return build.negate(self._comparison(node, _COMPARISONS[exp.EQ]))
            case exp.NullSafeNEQ():
                return build.negate(self._comparison(node, _COMPARISONS[exp.NullSafeEQ]))
            case exp.Between():
                low = exp.GTE(this=node.this, expression=node.args["low"])
                high = exp.LTE(this=node.this, expression=node.args["high"])
                return build.all_of(self._translated(low), self._translated(high))
            case exp.In() if node.expressions and not node.args.get("query"):
                path, kind = self._column(node.this)
                values = tuple(self._value(each, kind) for each in node.expressions)
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
            path, kind = self._column(left)
            return self._pushed(_make(as_it_stands, path, self._value(right, kind)))
        path, kind = self._column(right)
        return self._pushed(_make(exchanged, path, self._value(left, kind)))

    def _like(self, node: exp.Expr) -> Predicate:
        path, kind = self._column(node.this)
        if not pt.is_string(kind):
            raise _Untranslatable
        pattern = self._value(node.expression, kind)
        inner = pattern.strip("%")
        if "%" in inner or "_" in inner:
            raise _Untranslatable
        if inner == pattern:
            return self._pushed(spark.EqualTo(path, pattern))
        if not inner:
            return self._pushed(spark.IsNotNull(path))
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

    def _value(self, node: exp.Expr, kind: pa.DataType) -> Any:
        """Return a literal as the column's kind of value; whatever Spark would cast is refused."""
        if isinstance(node, exp.Placeholder):
            given = self._args.get(node.name)
            if type(given) not in (bool, int, str):
                raise _Untranslatable
            node = exp.convert(given)
        if isinstance(node, exp.Boolean) and pt.is_boolean(kind):
            return bool(node.this)
        if isinstance(node, exp.Cast) and isinstance(node.this, exp.Literal) and node.this.is_string:
            wanted = exp.DType.DATE if pt.is_date(kind) else exp.DType.TIMESTAMP
            if node.args["to"].this is wanted:
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


def _number(text: str, kind: pa.DataType) -> Any:
    if pt.is_integer(kind) and _PLAIN_INTEGER.fullmatch(text):
        return int(text)
    if pt.is_decimal128(kind) and _PLAIN_NUMBER.fullmatch(text):
        return Decimal(text)
    if pt.is_floating(kind) and _PLAIN_NUMBER.fullmatch(text):
        value = float(text)
        # Spark compares a float with a decimal literal as doubles, so the literal must be a float itself.
        if abs(value) < _EXACT_IN_DOUBLE and (
            pt.is_float64(kind) or struct.unpack("f", struct.pack("f", value))[0] == value
        ):
            return value
    raise _Untranslatable
