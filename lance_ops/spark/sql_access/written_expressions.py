"""Write an expression of Spark's SQL as one of this library's filters and updates, where both mean the same.

Deletes, updates and merges are executed by this library. An expression that the two engines may read differently is
refused by name, because the wrong rows would be changed. Refused are, among others, functions that are not listed here,
subqueries, a division by anything but a number, a text with a backslash, and moments without a zone in a session whose
time zone is not UTC.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterator, Mapping

import pyarrow as pa
import pyarrow.types as pt
import sqlglot
from sqlglot import exp
from sqlglot.errors import SqlglotError

from lance_ops.core.errors import InvalidInput, UnsupportedFeature
from lance_ops.core.records import dataclass
from lance_ops.spark.sql_access.query_needs import name_parts
from lance_ops.spark.translation import CaseRule

__all__ = ["ExpressionWriter", "Side", "conjuncts", "parse_expression", "quoted_path"]

_BETWEEN_SIGNS: dict[type[exp.Expr], str] = {
    exp.EQ: "=",
    exp.NEQ: "!=",
    exp.GT: ">",
    exp.GTE: ">=",
    exp.LT: "<",
    exp.LTE: "<=",
    exp.Add: "+",
    exp.Sub: "-",
    exp.Mul: "*",
    exp.DPipe: "||",
    exp.And: "AND",
    exp.Or: "OR",
}
_COMPARISONS = (exp.EQ, exp.NEQ, exp.GT, exp.GTE, exp.LT, exp.LTE)
_NUMBERS = (exp.Column, exp.Literal, exp.Add, exp.Sub, exp.Mul, exp.Div, exp.Mod, exp.Neg, exp.Abs, exp.Coalesce)
"""What may be a number or a timestamp as a whole."""
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
_CAST_FROM_NUMBERS = (exp.DType.SMALLINT, exp.DType.INT, exp.DType.BIGINT, exp.DType.DOUBLE)


def parse_expression(text: str) -> exp.Expr:
    """Return the tree of one expression; raise `InvalidInput` naming the place where it does not parse."""
    try:
        tree = sqlglot.parse_one(f"SELECT {text}", dialect="spark")
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


def quoted_path(*names: str) -> str:
    """Return a column's path as the library's SQL writes it."""
    return ".".join("`" + name.replace("`", "``") + "`" for name in names)


@dataclass(frozen=True)
class Side:
    """The columns of one table in an expression; in the written text they stand behind `prefix`, if there is one."""

    schema: pa.Schema
    prefix: str | None = None

    def find(self, parts: tuple[str, ...], rule: CaseRule) -> tuple[str, pa.DataType] | None:
        """Return a column's written path and its type; None if there is no such column."""
        names, node = [], pa.struct(list(self.schema))
        for part in parts:
            if not pt.is_struct(node):
                return None
            found = rule.find(part, [field.name for field in node])
            if found is None:
                return None
            names.append(found)
            node = node.field(found).type
        return quoted_path(*([self.prefix] if self.prefix else []), *names), node


@dataclass(frozen=True)
class ExpressionWriter:
    """Writes expressions over one table or two. `sides` are the tables by the names that the statement gives them."""

    sides: Mapping[str, Side]
    case_rule: CaseRule
    in_utc: bool

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
        if pt.is_timestamp(wanted) and not self.in_utc:
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
        if not isinstance(node, _NUMBERS):
            return False
        columns = [self._found(each)[1] for each in node.find_all(exp.Column)]
        literals = [each.name for each in node.find_all(exp.Literal) if not each.is_string]
        return any(pt.is_floating(each) or pt.is_timestamp(each) for each in columns) or not all(
            literal.isdecimal() for literal in literals
        )

    def _written(self, node: exp.Expr) -> str:
        if isinstance(node, _COMPARISONS):
            return self._comparison(node)
        if type(node) in _BETWEEN_SIGNS:
            return f"{self._operand(node.this)} {_BETWEEN_SIGNS[type(node)]} {self._operand(node.expression)}"
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
        return self._found(node)[0]

    def _found(self, node: exp.Column) -> tuple[str, pa.DataType]:
        parts = name_parts(node)
        found = []
        seen: list[Side] = []
        for name, side in self.sides.items():
            is_named = len(parts) > 1 and parts[0].lower() == name.lower()
            place = side.find(parts[1:] if is_named else parts, self.case_rule)
            if place is not None and is_named:
                found, seen = [place], [side]
                break
            if place is not None and side not in seen:  # one table may have two names
                found.append(place)
                seen.append(side)
        if len(found) != 1:
            what = "is in both tables" if found else "is in no table of the statement"
            names = ", ".join(name for side in self.sides.values() for name in side.schema.names)
            raise InvalidInput(f"SQL on a Lance table: column {node.sql('spark')} {what}: there are {names}")
        if pt.is_timestamp(found[0][1]) and not self.in_utc:
            raise UnsupportedFeature(
                f"column {node.sql('spark')} in a change of a table, in a session whose time zone is not UTC "
                "(set spark.sql.session.timeZone)"
            )
        return found[0]

    def _comparison(self, node: exp.Expr) -> str:
        left, right = node.this, node.expression
        as_double = any(self._is_float(one) and not _is_exact(other) for one, other in ((left, right), (right, left)))
        texts = [
            f"CAST({self._written(each)} AS DOUBLE)" if as_double and self._is_float(each) else self._operand(each)
            for each in (left, right)
        ]
        return f"{texts[0]} {_BETWEEN_SIGNS[type(node)]} {texts[1]}"

    def _is_float(self, node: exp.Expr) -> bool:
        """Return whether a value is a float of 32 bits, which Spark compares with a literal as a double."""
        return isinstance(node, exp.Column) and bool(pt.is_float32(self._found(node)[1]))

    def _division(self, node: exp.Expr, sign: str) -> str:
        divisor = node.expression
        number = divisor.name if isinstance(divisor, exp.Literal) and not divisor.is_string else "0"
        if not float(number):
            raise UnsupportedFeature(
                f"{node.sql('spark')}: a division by anything but a number, in a change of a table"
            )
        columns = [self._found(each)[1] for each in node.find_all(exp.Column)]
        if sign == "%" and all(map(pt.is_integer, columns)) and number.isdecimal():
            return f"{self._operand(node.this)} % {number}"
        if sign == "/" and not any(map(pt.is_decimal, columns)):
            return f"CAST({self._written(node.this)} AS DOUBLE) / CAST({number} AS DOUBLE)"
        raise _refusal(node)

    def _in(self, node: exp.Expr) -> str:
        if node.args.get("query") is not None or not node.expressions:
            raise _refusal(node)
        if self._is_float(node.this) and not all(map(_is_exact, node.expressions)):
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
        if target not in (exp.DType.DATE, *_CAST_FROM_NUMBERS) and not self.in_utc:
            raise UnsupportedFeature(
                f"{node.sql('spark')} in a session whose time zone is not UTC, in a change of a table"
            )
        return f"CAST({self._written(value)} AS {_TYPES[target]})"

    def _case(self, node: exp.Expr) -> str:
        if node.this is not None:
            raise _refusal(node)
        branches = [
            f"WHEN {self._written(each.this)} THEN {self._written(each.args['true'])}" for each in node.args["ifs"]
        ]
        default = node.args.get("default")
        return f"CASE {' '.join(branches)} {'' if default is None else f'ELSE {self._written(default)} '}END"

    def _coalesce(self, node: exp.Expr) -> str:
        return f"coalesce({', '.join(map(self._written, [node.this, *node.expressions]))})"

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
    exp.Neg: lambda writer, node: f"-{writer._operand(node.this)}",
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
