"""Find `column IN (query)` among the conditions of a DELETE or an UPDATE: the query's values are joined by key."""

from __future__ import annotations

from sqlglot import exp

from lance_ops.core.records import dataclass
from lance_ops.spark.sql_access.expressions import conjuncts, parse_expression
from lance_ops.spark.sql_access.query_needs import name_parts
from lance_ops.spark.sql_access.words import QUERY_WORDS, Reader, Word

__all__ = ["KeyCondition", "key_condition"]


@dataclass(frozen=True)
class KeyCondition:
    """`column IN (query)`, and what else AND requires of the row: `rest`, or None if nothing else is required."""

    column: tuple[str, ...]
    query: str
    rest: str | None


def key_condition(condition: str) -> KeyCondition | None:
    """Return a condition of this shape by its parts; None for any other, also for one with several subqueries.

    The parts are the texts that the user wrote. In `rest`, the word TRUE stands where `column IN (query)` stood.
    """
    required = list(conjuncts(parse_expression(condition)))
    found = [each for each in required if isinstance(each, exp.In) and each.args.get("query") is not None]
    if len(found) != 1 or not isinstance(found[0].this, exp.Column):
        return None
    if any(each.find(exp.Query) is not None for each in required if each is not found[0]):
        return None
    reader = Reader(condition)
    while not (reader.ended or _asks_query(reader)):
        reader.at += 1
    parts = name_parts(found[0].this)
    begin = reader.words[reader.at - 2 * len(parts) + 1].start
    query = _in_brackets(reader)
    end = reader.words[reader.at].stop
    rest = f"{condition[:begin]}TRUE{condition[end:]}" if len(required) > 1 else None
    return KeyCondition(parts, query, rest)


def _asks_query(reader: Reader) -> bool:
    """Return whether an IN and a query in brackets come next, and leave them unread.

    A column may have the name TABLE or VALUES, so the parser decides what a bracket that begins with such a word holds.
    """
    if not reader.peek("IN", "(") or not _may_be_query(reader.words[reader.at + 2 :]):
        return False
    at = reader.at
    tree = parse_expression(f"x IN ({_in_brackets(reader)})")
    reader.at = at
    return tree.args.get("query") is not None


def _in_brackets(reader: Reader) -> str:
    """Read `IN (text`, and return the text; the closing bracket comes next."""
    reader.expect("IN", "(")
    return reader.until(what="a query")


def _may_be_query(words: list[Word]) -> bool:
    """Return whether the words begin with one that begins a query, in brackets or not."""
    first = next((word for word in words if word.upper != "("), None)
    return first is not None and first.upper in QUERY_WORDS
