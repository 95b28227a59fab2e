"""Find `column IN (query)` among the conditions of a DELETE or an UPDATE: the query's values are joined by key."""

from __future__ import annotations

from sqlglot import exp

from lance_ops.core.records import dataclass
from lance_ops.spark.sql_access.query_needs import name_parts
from lance_ops.spark.sql_access.words import Kind, Word, split_words
from lance_ops.spark.sql_access.written_expressions import conjuncts, parse_expression

__all__ = ["KeyCondition", "key_condition"]

_BEGINS_QUERY = ("SELECT", "VALUES", "WITH", "FROM", "TABLE")
_DEPTH = {"(": 1, ")": -1}


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
    words = split_words(condition)
    at = next(number for number in range(len(words)) if _asks_query(condition, words, number))
    parts = name_parts(found[0].this)
    begin, end = words[at - 2 * len(parts) + 1].start, _closing(words, at + 1)
    rest = f"{condition[:begin]}TRUE{condition[end.stop :]}" if len(required) > 1 else None
    return KeyCondition(parts, condition[words[at + 1].stop : end.start], rest)


def _asks_query(condition: str, words: list[Word], at: int) -> bool:
    """Return whether the word at a position is an IN before a query in brackets.

    A column may have the name TABLE or VALUES, so the parser decides what a bracket that begins with such a word holds.
    """
    if words[at].upper != "IN" or not _may_be_query(words[at + 1 :]):
        return False
    bracket = condition[words[at + 1].start : _closing(words, at + 1).stop]
    return parse_expression(f"x IN {bracket}").args.get("query") is not None


def _may_be_query(words: list[Word]) -> bool:
    """Return whether the words begin with a bracket and a word that begins a query."""
    inner = next((word for word in words if word.upper != "("), None)
    return bool(words) and words[0].upper == "(" and inner is not None and inner.upper in _BEGINS_QUERY


def _closing(words: list[Word], at: int) -> Word:
    """Return the bracket that closes the one at a position."""
    depth = 0
    for word in words[at:]:
        depth += _DEPTH.get(word.upper, 0) if word.kind is Kind.SIGN else 0
        if depth == 0:
            return word
    raise AssertionError("a condition that parses closes its brackets")
