"""Write an expression of Spark's SQL as one of this library's filters and updates, where both mean the same.

Deletes, updates and merges are executed by this library. An expression that the two engines may read differently is
refused by name, because the wrong rows would be changed. Refused are, among others, functions that are not listed here,
subqueries, a division by anything but a number, a text with a backslash, and moments without a zone in a session whose
time zone is not UTC. Operands of `+`, `-` and `*` are cast to the types in which Spark computes, so that an overflow is
an error. It is one in a session without ANSI mode, too, where Spark would wrap the number.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterable, Iterator

import pyarrow as pa
import pyarrow.types as pt
import sqlglot
from sqlglot import exp
from sqlglot.errors import SqlglotError

from lance_ops.core.errors import InvalidInput, UnsupportedFeature
from lance_ops.spark.sql_access.dialect import SparkSql
from lance_ops.spark.sql_access.expressions.number_types import common_type, is_number, name_of_type
from lance_ops.spark.sql_access.expressions.scope import ARITHMETIC, Scope, choices_of, number_text

__all__ = ["ExpressionWriter", "conjuncts", "parse_expression"]

_BETWEEN_SIGNS: dict[type[exp.Expr], str] = {
    exp.EQ: "=",
    exp.NEQ: "!=",
    exp.GT: ">",
    exp.GTE: ">=",
    exp.LT: "<",
    exp.LTE: "<=",
    exp.And: "AND",
    exp.Or: "OR",
}
_COMPARISONS = (exp.EQ, exp.NEQ, exp.GT, exp.GTE, exp.LT, exp.LTE)
_FUNCTIONS: dict[type[exp.Expr], str] = {exp.Lower: "lower", exp.Upper: "upper", exp.Abs: "abs"}
_TYPES = {
    exp.DType.BOOLEAN: "BOOLEAN",
    exp.DType.SMALLINT: "SMALLINT",
    exp.DType.INT: "INT",
    exp.DType.BIGINT: "BIGINT",
    exp.DType.DOUBLE: "DOUBLE",
    exp.DType.DATE: "DATE",
    exp.DType.TIMESTAMP: "TIMESTAMP",
    exp.DType.TIMESTAMPTZ: "TIMESTAMP",
}
_NO_DIGITS = pa.decimal128(1, 0)
"""A decimal that is no longer than any number."""

_MOST_PLAIN_SCALE = 6
"""Decimals of more digits after the point may become texts with an exponent here, and never do in Spark."""

_CAST_FROM_NUMBERS = (exp.DType.SMALLINT, exp.DType.INT, exp.DType.BIGINT, exp.DType.DOUBLE)


def parse_expression(text: str) -> exp.Expr:
    """Return the tree of one expression; raise `InvalidInput` naming the place where it does not parse."""
    try:
        tree = sqlglot.parse_one(f"SELECT {text}", dialect=SparkSql)
    except (SqlglotError, RecursionError) as error:
        reason = str(error).splitlines()[0] if isinstance(error, SqlglotError) else "nested too deeply"
        raise InvalidInput(f"SQL on a Lance table: {text!r} does not parse: {reason}") from error
    used = {name for name, value in tree.args.items() if value}
    if not isinstance(tree, exp.Select) or used - {"expressions"} or len(tree.expressions) != 1:
        raise InvalidInput(f"SQL on a Lance table: {text!r} is not one expression")
    found = tree.expressions[0]
    assert isinstance(found, exp.Expr)
    return found


def conjuncts(tree: exp.Expr) -> Iterator[exp.Expr]:
    """Yield the conditions that AND joins, in brackets or not."""
    tree = tree.unnest()
    if isinstance(tree, exp.And):
        yield from conjuncts(tree.this)
        yield from conjuncts(tree.expression)
    else:
        yield tree


class ExpressionWriter(Scope):
    """Writes the expressions of a scope in this library's SQL."""

    def write(self, text: str) -> str:
        """Return the expression in this library's SQL.

        Raises `UnsupportedFeature` naming a part that may mean something else here, and `InvalidInput` naming a column
        that is in none of the tables, or in both.
        """
        if "\\" in text:
            raise UnsupportedFeature(
                "a backslash in an expression that changes a table: Spark's setting says what it is"
            )
        return self._written(parse_expression(text))

    def write_value(self, text: str, column: str) -> str:
        """Return the expression as `write` does, for a new value of this column of the only table.

        Raises `UnsupportedFeature` for a value that Spark brings to the column's type otherwise, too: to a timestamp by
        the session's time zone, and numbers with a point and timestamps to texts.
        """
        written, node = self.write(text), parse_expression(text).unnest()
        (table,) = set(self.sides.values())
        wanted = table.schema.field(column).type
        if isinstance(node, exp.Null):
            return written
        if pt.is_timestamp(wanted) and not self.rules.in_utc:
            raise UnsupportedFeature(
                f"{column} = {text}: a new value of a timestamp, in a session whose time zone is not UTC (set "
                "spark.sql.session.timeZone, or MERGE a source that has the value)"
            )
        if (pt.is_string(wanted) or pt.is_large_string(wanted)) and self._is_spelled_otherwise(node):
            raise UnsupportedFeature(
                f"{column} = {text}: a number with a point, or a timestamp, as the value of a text (MERGE a source "
                "that has the text)"
            )
        return written

    def _is_spelled_otherwise(self, node: exp.Expr) -> bool:
        """Return whether Spark and this library make different texts of a value."""
        node = node.unnest()
        if isinstance(node, exp.Case | exp.Coalesce):
            return any(map(self._is_spelled_otherwise, choices_of(node)))
        if any(not each.is_string and "." in each.name for each in node.find_all(exp.Literal)):
            return True
        kind = self.type_of(node)
        if kind is None:
            return False
        is_long = pt.is_decimal(kind) and kind.scale > _MOST_PLAIN_SCALE
        return bool(is_long or pt.is_floating(kind) or pt.is_timestamp(kind))

    def _written(self, node: exp.Expr) -> str:
        if isinstance(node, _COMPARISONS):
            return self._comparison(node)
        if type(node) in _BETWEEN_SIGNS:
            return f"{self._operand(node.this)} {_BETWEEN_SIGNS[type(node)]} {self._operand(node.expression)}"
        if type(node) in ARITHMETIC:
            return self._arithmetic(node)
        if type(node) in _FUNCTIONS:
            return f"{_FUNCTIONS[type(node)]}({self._written(node.this)})"
        write = _WRITERS.get(type(node))
        if write is None or (node.args.get("negate") and not isinstance(node, exp.Like)):
            raise _refusal(node)
        return write(self, node)

    def _operand(self, node: exp.Expr) -> str:
        text = self._written(node)
        return text if isinstance(node, exp.Column | exp.Literal | exp.Paren | exp.Boolean | exp.Null) else f"({text})"

    def _column(self, node: exp.Expr) -> str:
        assert isinstance(node, exp.Column)
        return self.found(node)[0]

    def _arithmetic(self, node: exp.Expr) -> str:
        wanted, sign = self.type_of(node), ARITHMETIC[type(node)]
        if wanted is None:
            return f"{self._operand(node.this)} {sign} {self._operand(node.expression)}"
        one, other = (self._in_type(each, wanted) for each in (node.this, node.expression))
        return (
            f"CAST({one} {sign} {other} AS {name_of_type(wanted)})"
            if pt.is_integer(wanted)
            else f"{one} {sign} {other}"
        )

    def _in_type(self, node: exp.Expr, wanted: pa.DataType) -> str:
        """Return an operand in the type in which Spark computes; a decimal keeps its digits."""
        number, kind = number_text(node), self.type_of(node)
        if isinstance(node, exp.Column) and self.found(node)[1] == wanted:
            return self._operand(node)
        if kind is None or (number is not None and pt.is_integer(kind) and not pt.is_floating(wanted)):
            return self._operand(node)
        if not pt.is_decimal128(wanted):
            return f"CAST({self._written(node)} AS {name_of_type(wanted)})"
        if number is not None:
            return f"CAST('{number}' AS {name_of_type(kind)})"
        return f"CAST({self._written(node)} AS {name_of_type(common_type([kind, _NO_DIGITS], is_ansi=True))})"

    def _chosen(self, node: exp.Expr, wanted: pa.DataType | None) -> str:
        """Return a value that CASE or coalesce may choose, in the type that Spark gives to all of them."""
        if (
            not is_number(wanted)
            or isinstance(node, exp.Null)
            or (self.type_of(node), number_text(node)) == (wanted, None)
        ):
            return self._written(node)
        assert wanted is not None
        number = number_text(node)
        if number is not None and pt.is_decimal128(wanted):
            return f"CAST('{number}' AS {name_of_type(wanted)})"
        return f"CAST({self._written(node)} AS {name_of_type(wanted)})"

    def _concatenation(self, node: exp.Expr) -> str:
        sides = (node.this, node.expression)
        if any(map(self._is_spelled_otherwise, sides)):
            raise UnsupportedFeature(
                f"{node.sql('spark')}: a number with a point, or a timestamp, as a part of a text, in a change of a "
                "table (MERGE a source that has the text)"
            )
        return " || ".join(map(self._operand, sides))

    def _negation(self, node: exp.Expr) -> str:
        return number_text(node) or f"-{self._operand(node.this)}"

    def _comparison(self, node: exp.Expr) -> str:
        left, right = node.this, node.expression
        self._check_no_decimal_as_text(node, [left, right])
        as_double = any(self._is_float(one) and not _is_exact(other) for one, other in ((left, right), (right, left)))
        texts = [
            f"CAST({self._written(each)} AS DOUBLE)" if as_double and self._is_float(each) else self._operand(each)
            for each in (left, right)
        ]
        return f"{texts[0]} {_BETWEEN_SIGNS[type(node)]} {texts[1]}"

    def _check_no_decimal_as_text(self, node: exp.Expr, compared: Iterable[exp.Expr]) -> None:
        """Raise `UnsupportedFeature` for a decimal beside a text, which Spark may compare as doubles or as texts."""
        kinds = [self.type_of(each) for each in compared]
        if pa.string() in kinds and any(kind is not None and pt.is_decimal(kind) for kind in kinds):
            raise UnsupportedFeature(
                f"{node.sql('spark')}: a comparison of a decimal with a text, in a change of a table (write the number "
                "without quotes)"
            )

    def _is_float(self, node: exp.Expr) -> bool:
        """Return whether a value is a float of 32 bits, which Spark compares with a literal as a double."""
        return bool(self.type_of(node) == pa.float32())

    def _division(self, node: exp.Expr, sign: str) -> str:
        divisor = node.expression
        number = divisor.name if isinstance(divisor, exp.Literal) and not divisor.is_string else "0"
        if not float(number):
            raise UnsupportedFeature(
                f"{node.sql('spark')}: a division by anything but a number, in a change of a table"
            )
        kinds = [self.type_of(each) for each in (node.this, divisor)]
        if sign == "%" and all(kind is not None and pt.is_integer(kind) for kind in kinds):
            return f"{self._operand(node.this)} % {number}"
        is_decimal = any(kind is not None and pt.is_decimal(kind) for kind in kinds)
        if sign == "/" and (not is_decimal or any(kind is not None and pt.is_floating(kind) for kind in kinds)):
            return f"CAST({self._written(node.this)} AS DOUBLE) / CAST({number} AS DOUBLE)"
        raise _refusal(node)

    def _in(self, node: exp.Expr) -> str:
        if node.args.get("query") is not None or not node.expressions:
            raise _refusal(node)
        compared = [node.this, *node.expressions]
        self._check_no_decimal_as_text(node, compared)
        if any(map(self._is_float, compared)) and not all(map(_is_exact, compared)):
            raise _refusal(node)
        return f"{self._operand(node.this)} IN ({', '.join(map(self._written, node.expressions))})"

    def _between(self, node: exp.Expr) -> str:
        low = exp.GTE(this=node.this, expression=node.args["low"])
        high = exp.LTE(this=node.this, expression=node.args["high"])
        return f"({self._written(low)}) AND ({self._written(high)})"

    def _like(self, node: exp.Expr) -> str:
        if not isinstance(node.expression, exp.Literal):
            raise _refusal(node)
        verb = "NOT LIKE" if node.args.get("negate") else "LIKE"
        return f"{self._operand(node.this)} {verb} {self._written(node.expression)}"

    def _cast(self, node: exp.Expr) -> str:
        target, value = node.args["to"].this, node.this
        is_text = isinstance(value, exp.Literal) and value.is_string
        if target not in _TYPES or isinstance(node, exp.TryCast):
            raise _refusal(node)
        if not is_text and target not in _CAST_FROM_NUMBERS:
            raise _refusal(node)
        if target not in (exp.DType.DATE, *_CAST_FROM_NUMBERS) and not self.rules.in_utc:
            raise UnsupportedFeature(
                f"{node.sql('spark')} in a session whose time zone is not UTC, in a change of a table"
            )
        return f"CAST({self._written(value)} AS {_TYPES[target]})"

    def _case(self, node: exp.Expr) -> str:
        if node.this is not None:
            raise _refusal(node)
        wanted = self.type_of(node)
        branches = [
            f"WHEN {self._written(each.this)} THEN {self._chosen(each.args['true'], wanted)}"
            for each in node.args["ifs"]
        ]
        default = node.args.get("default")
        return f"CASE {' '.join(branches)} {'' if default is None else f'ELSE {self._chosen(default, wanted)} '}END"

    def _coalesce(self, node: exp.Expr) -> str:
        assert isinstance(node, exp.Coalesce)
        wanted = self.type_of(node)
        return f"coalesce({', '.join(self._chosen(each, wanted) for each in choices_of(node))})"

    def _is_null(self, node: exp.Expr) -> str:
        if not isinstance(node.expression, exp.Null | exp.Boolean):
            raise _refusal(node)
        return f"{self._operand(node.this)} IS {self._written(node.expression)}"


def _refusal(node: exp.Expr) -> UnsupportedFeature:
    return UnsupportedFeature(
        f"{node.sql('spark')} in an expression that changes a Lance table (such an expression has comparisons, "
        "IN (…), LIKE, IS NULL, CASE, coalesce, lower, upper, abs, ||, + - * and numbers)"
    )


def _literal(node: exp.Expr) -> str:
    text = node.name
    return "'" + text.replace("'", "''") + "'" if node.is_string else text


def _is_exact(node: exp.Expr) -> bool:
    """Return whether a value is no number, or one that 32 bits hold exactly."""
    number = node.this if isinstance(node, exp.Neg) else node
    if not isinstance(number, exp.Literal) or number.is_string:
        return isinstance(node, exp.Column | exp.Null)
    value = float(number.name)
    return abs(value) < 2**53 and bool(struct.unpack("f", struct.pack("f", value))[0] == value)


_WRITERS: dict[type[exp.Expr], Callable[[ExpressionWriter, exp.Expr], str]] = {
    exp.Paren: lambda writer, node: f"({writer._written(node.this)})",
    exp.Not: lambda writer, node: f"NOT ({writer._written(node.this)})",
    exp.Neg: ExpressionWriter._negation,
    exp.DPipe: ExpressionWriter._concatenation,
    exp.Column: ExpressionWriter._column,
    exp.Literal: lambda _, node: _literal(node),
    exp.Boolean: lambda _, node: "true" if node.this else "false",
    exp.Null: lambda *_: "NULL",
    exp.Between: ExpressionWriter._between,
    exp.In: ExpressionWriter._in,
    exp.Is: ExpressionWriter._is_null,
    exp.Like: ExpressionWriter._like,
    exp.Cast: ExpressionWriter._cast,
    exp.Case: ExpressionWriter._case,
    exp.Coalesce: ExpressionWriter._coalesce,
    exp.Div: lambda writer, node: writer._division(node, "/"),
    exp.Mod: lambda writer, node: writer._division(node, "%"),
}
