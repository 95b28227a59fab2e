"""Write the value of each parameter and of each subquery into an expression of a MERGE.

Spark joins the rows of a MERGE by calls on DataFrames, which take no parameters and know no names of Lance tables. A
parameter and a subquery that reads neither row of a pair have one value for the whole statement. So Spark computes
this value first, and its literal stands in the expression.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import field

from pyspark.errors import AnalysisException
from pyspark.sql.functions import col, hex, unix_micros  # noqa: A004 - Spark's own
from pyspark.sql.types import (
    AnsiIntervalType,
    BinaryType,
    BooleanType,
    DataType,
    DateType,
    IntegerType,
    LongType,
    NullType,
    NumericType,
    StringType,
    TimestampNTZType,
    TimestampType,
)
from sqlglot import exp

from lance_ops.core.errors import InvalidInput, UnsupportedFeature
from lance_ops.core.records import dataclass
from lance_ops.spark.sql_access.expressions import parse_expression
from lance_ops.spark.sql_access.queries import run_query
from lance_ops.spark.sql_access.table_references import Tables
from lance_ops.spark.sql_access.words import QUERY_WORDS, Kind, Reader

__all__ = ["InlinedValues"]

_WRITTEN = (
    *(NullType, BooleanType, NumericType, StringType, BinaryType),
    *(DateType, TimestampType, TimestampNTZType, AnsiIntervalType),
)
"""The types of values that have a literal here."""

_PLAIN_TEXT = re.compile(r"[\w .,:/@%+-]*")
"""What a text in quotes means in every session; the meaning of a backslash or of two quotes depends on settings."""

_BEFORE_ROWS = ("IN", "ANY", "SOME", "ALL")
"""The words before a subquery whose rows are all compared."""


@dataclass(frozen=True)
class InlinedValues:
    """Computes constants of a statement on these tables, each once."""

    tables: Tables
    _known: dict[str, str] = field(default_factory=dict, repr=False)

    def written_out(self, text: str) -> str:
        """Return an expression with literals in place of its parameters `:name` and its subqueries.

        Raises `InvalidInput` for a parameter `?`, and `UnsupportedFeature` for a subquery that has no single value for
        the whole statement and for a value without a literal. Spark raises for an unknown parameter.
        """
        tree = parse_expression(text)
        if tree.find(exp.Query, exp.Placeholder) is None:
            return text
        parameters = {node.name for node in tree.find_all(exp.Placeholder)}
        if "?" in parameters:
            raise InvalidInput(
                f"SQL on a Lance table: ? in {text} of MERGE: a parameter behind USING needs a name, as in :since with "
                "args={'since': …}"
            )
        for start, stop in reversed(list(_places(text, parameters))):
            constant = text[start:stop]
            if constant not in self._known:
                self._known[constant] = self._literal(constant)
            text = f"{text[:start]} {self._known[constant]} {text[stop:]}"
        return text

    def _literal(self, constant: str) -> str:
        """Return a literal of Spark's SQL that has the value and the type of a constant."""
        try:
            frame = run_query(f"SELECT {constant} AS value", self.tables)
            kind = frame.schema["value"].dataType
        except AnalysisException as error:
            if constant.startswith(":") or not (error.getCondition() or "").startswith("UNRESOLVED_COLUMN"):
                raise
            raise UnsupportedFeature(
                f"{constant} in MERGE, a subquery that reads a row of the merge, or a column that it does not have: "
                "join it to the source"
            ) from error
        if not isinstance(kind, _WRITTEN):
            raise UnsupportedFeature(
                f"{constant} in a condition or a value of MERGE, of type {kind.simpleString()}: select it as a column "
                "of the source"
            )
        shown = col("value")
        if isinstance(kind, TimestampType):
            shown = unix_micros(shown)
        elif isinstance(kind, StringType | BinaryType):
            shown = hex(shown)
        [(value,)] = frame.select(shown.cast("string")).collect()
        return _as_literal(value, kind)


def _places(text: str, parameters: set[str]) -> Iterator[tuple[int, int]]:
    """Yield where parameters of these names, and subqueries, begin and end."""
    reader = Reader(text)
    while not reader.ended:
        words, begin = reader.words, reader.at
        before = words[begin - 1].upper if begin else ""
        reader.at += 1
        if words[begin].upper == ":" and reader.next is not None and reader.next.value in parameters:
            if reader.next.kind is Kind.NAME and before != ":":
                reader.at += 1
                yield words[begin].start, words[begin + 1].stop
        elif words[begin].upper == "(" and reader.next is not None and reader.next.upper in QUERY_WORDS:
            reader.until(what="a query")
            reader.expect(")")
            if before in _BEFORE_ROWS:
                raise UnsupportedFeature(f"{text} in MERGE, a subquery of several rows: join it to the source")
            first = begin - 1 if before == "EXISTS" else begin
            yield words[first].start, words[reader.at - 1].stop


def _as_literal(shown: str | None, kind: DataType) -> str:
    """Return the literal of a value that is shown as text: a moment in microseconds, and texts and bytes in hex."""
    name = kind.simpleString()
    if shown is None:
        return "NULL" if isinstance(kind, NullType) else f"CAST(NULL AS {name})"
    match kind:
        case BooleanType() | IntegerType():
            return shown
        case LongType():
            return f"{shown}L"
        case DateType():
            return f"DATE '{shown}'"
        case TimestampType():
            return f"timestamp_micros({shown})"
        case BinaryType():
            return f"X'{shown}'"
        case StringType():
            text = bytes.fromhex(shown).decode(errors="replace")
            is_plain = kind == StringType() and _PLAIN_TEXT.fullmatch(text)
            return f"'{text}'" if is_plain else f"CAST(X'{shown}' AS {name})"
        case AnsiIntervalType():
            return shown
    return f"CAST('{shown}' AS {name})"
