"""Parse the most frequent filters without sqlglot: columns compared with literals, joined by AND.

    id = 7        price >= 10 AND price < 20.5        name = 'x' and day <> -1

To parse one by sqlglot takes ten times as long, and a new process would import sqlglot for it.
"""

from __future__ import annotations

import re

import pyarrow as pa

from lance_ops.core.arrow import scalar
from lance_ops.core.predicate.binding import CURRENT_TIME_KEYWORDS, Name, build, number_literal, resolve
from lance_ops.core.predicate.tree import CompareOp, Expression, Literal, Predicate

__all__ = ["parse_plain"]

_MOST_CHARACTERS = 1000
_SPACE = r"[\ \t\r\n]"
_COMPARISON = re.compile(
    rf"""{_SPACE}* (?P<column>[a-z_][a-z0-9_]*) {_SPACE}* (?P<operator>=|!=|<>|<=|>=|<|>)
    (?:
        (?: {_SPACE}* | {_SPACE}+(?P<minus>-) ) (?P<number>[0-9]+(?:\.[0-9]+)?) |
        {_SPACE}* '(?P<text>[^'"\\]*)'
    )
    (?: {_SPACE}*\Z | {_SPACE}+and(?={_SPACE}) )""",
    re.VERBOSE | re.IGNORECASE | re.ASCII,
)
_OPERATORS = {
    "=": CompareOp.EQ,
    "!=": CompareOp.NE,
    "<>": CompareOp.NE,
    "<": CompareOp.LT,
    "<=": CompareOp.LE,
    ">": CompareOp.GT,
    ">=": CompareOp.GE,
}
_WORDS_OF_SQL = CURRENT_TIME_KEYWORDS.union(
    ["and", "any", "array", "as", "between", "case", "connect_by_root", "distinct", "else", "false", "from", "if"],
    ["ilike", "like", "list", "map", "not", "null", "nullable", "object", "or", "range", "select", "struct", "then"],
    ["true", "when"],
)
"""Words that are no columns before a comparison. A test holds that these are all that sqlglot reads otherwise."""


def parse_plain(text: str, schema: pa.Schema) -> Predicate | None:
    """Return the predicate that `parse_sql` returns; None for any other text. Raises as `parse_sql` does."""
    if len(text) > _MOST_CHARACTERS or not text.isascii():
        return None
    comparisons: list[re.Match[str]] = []
    at = 0
    while at < len(text):
        found = _COMPARISON.match(text, at)
        if found is None or found["column"].lower() in _WORDS_OF_SQL:
            return None
        comparisons.append(found)
        at = found.end()
    if not comparisons:
        return None
    return build.all_of(*[_condition(found, schema) for found in comparisons])


def _condition(found: re.Match[str], schema: pa.Schema) -> Predicate:
    column = resolve(schema, [Name(found["column"], exact=False)])
    return build.compare(_OPERATORS[found["operator"]], column, _literal(found))


def _literal(found: re.Match[str]) -> Expression:
    if found["text"] is not None:
        return Literal(scalar(found["text"]))
    number = number_literal(found["number"])
    return build.minus(number) if found["minus"] else number
