"""The columns that an expression may name, and the types that Spark gives to its parts."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import pyarrow as pa
import pyarrow.types as pt
from sqlglot import exp

from lance_ops.core.errors import InvalidInput, UnsupportedFeature
from lance_ops.core.records import dataclass
from lance_ops.core.schema import CaseRule
from lance_ops.spark.sql_access.expressions.number_types import (
    common_type,
    computed_type,
    is_number,
    literal_type,
    type_in_spark,
)
from lance_ops.spark.sql_access.query_needs import name_parts

__all__ = ["ARITHMETIC", "Scope", "SessionRules", "Side", "choices_of", "number_text", "quoted_path"]

ARITHMETIC: dict[type[exp.Expr], str] = {exp.Add: "+", exp.Sub: "-", exp.Mul: "*"}
_TYPES_IN_SPARK = {
    exp.DType.SMALLINT: pa.int16(),
    exp.DType.INT: pa.int32(),
    exp.DType.BIGINT: pa.int64(),
    exp.DType.DOUBLE: pa.float64(),
}


def quoted_path(*names: str) -> str:
    """Return a column's path as the library's SQL writes it."""
    return ".".join("`" + name.replace("`", "``") + "`" for name in names)


@dataclass(frozen=True)
class Side:
    """One table that an expression reads. If there is a `prefix`, the written text has it before each column."""

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
class SessionRules:
    """What settings of a session say about its expressions.

    `in_utc` tells whether moments without a zone are in UTC, and `is_ansi` whether `spark.sql.ansi.enabled` is set.
    """

    case_rule: CaseRule
    in_utc: bool
    is_ansi: bool


@dataclass(frozen=True)
class Scope:
    """Resolves the columns and types in expressions of a statement. `sides` has its tables by their names there."""

    sides: Mapping[str, Side]
    rules: SessionRules

    def found(self, node: exp.Column) -> tuple[str, pa.DataType]:
        """Return a column's written path and its type in the table.

        Raises `InvalidInput` for a name that no table has, or that both tables have. Raises `UnsupportedFeature` for a
        moment in a session that is not in UTC.
        """
        parts = name_parts(node)
        found = []
        seen: list[Side] = []
        for name, side in self.sides.items():
            is_named = len(parts) > 1 and parts[0].lower() == name.lower()
            place = side.find(parts[1:] if is_named else parts, self.rules.case_rule)
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
        if pt.is_timestamp(found[0][1]) and not self.rules.in_utc:
            raise UnsupportedFeature(
                f"column {node.sql('spark')} in a change of a table, in a session whose time zone is not UTC "
                "(set spark.sql.session.timeZone)"
            )
        return found[0]

    def type_of(self, node: exp.Expr) -> pa.DataType | None:
        """Return the type that a value has in Spark; None if this module does not know it."""
        match node:
            case exp.Paren() | exp.Neg() | exp.Abs():
                return self.type_of(node.this)
            case exp.Column():
                return type_in_spark(self.found(node)[1])
            case exp.Literal():
                return pa.string() if node.is_string else literal_type(node.name)
            case exp.Cast():
                return _TYPES_IN_SPARK.get(node.args["to"].this)
            case exp.Div():
                return pa.float64()
            case exp.Mod():
                return self._common_type([node.this, node.expression])
            case exp.Case() | exp.Coalesce():
                return self._common_type(choices_of(node))
        if type(node) not in ARITHMETIC:
            return None
        kinds = self.type_of(node.this), self.type_of(node.expression)
        literals = number_text(node.this), number_text(node.expression)
        one, other = kinds
        if one is None or other is None or not (is_number(one) and is_number(other)):
            return None
        return computed_type(ARITHMETIC[type(node)], (one, other), literals, is_ansi=self.rules.is_ansi)

    def _common_type(self, nodes: Iterable[exp.Expr]) -> pa.DataType | None:
        """Return the common type that Spark gives to values, of which some may be NULL.

        Returns None if their types differ and one is no type of numbers.
        """
        kinds = [self.type_of(node) for node in nodes if not isinstance(node, exp.Null)]
        found = [kind for kind in kinds if kind is not None and (is_number(kind) or {*kinds} == {kind})]
        if not found or len(found) < len(kinds):
            return None
        return found[0] if len({*found}) == 1 else common_type(found, is_ansi=self.rules.is_ansi)


def number_text(node: exp.Expr) -> str | None:
    """Return how a number is written, with its sign; None for any other expression. A zero with a point has no sign."""
    number = node.this if isinstance(node, exp.Neg) else node
    if not isinstance(number, exp.Literal) or number.is_string:
        return None
    is_plain_zero = "e" not in number.name.lower() and not float(number.name)
    return number.name if number is node or is_plain_zero else f"-{number.name}"


def choices_of(node: exp.Case | exp.Coalesce) -> list[exp.Expr]:
    """Return the values of which CASE or coalesce chooses one."""
    if isinstance(node, exp.Coalesce):
        return [node.this, *node.expressions]
    default = node.args.get("default")
    return [*(each.args["true"] for each in node.args["ifs"]), *([] if default is None else [default])]
