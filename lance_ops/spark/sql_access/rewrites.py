"""Rewrite statements of Spark's SQL that mean the same in a form that is read more easily.

Each function returns the text of a statement, and leaves any other text as it is.
"""

from __future__ import annotations

from lance_ops.spark.sql_access.words import EXPLAIN_MODES, QUERY_WORDS, Reader

__all__ = ["move_insert_before_with", "table_queries_as_selects"]

_SET_OPERATORS = ("UNION", "EXCEPT", "MINUS", "INTERSECT")
_BEFORE_QUERY = (*_SET_OPERATORS, "ALL", "DISTINCT", "AS", ")")
_BEFORE_BRACKET = (*_BEFORE_QUERY, "FROM", "JOIN", "LATERAL", "USING", "IN", "EXISTS", "ANY", "SOME", "INTO", "NOT")
"""What may stand before a query in brackets; before other brackets stands the name of a function."""
_BEHIND_TABLE = (
    *(*_SET_OPERATORS, "ORDER", "SORT", "CLUSTER", "DISTRIBUTE", "LIMIT", "OFFSET", "WINDOW"),
    *(")", "|", "@", "VERSION", "TIMESTAMP"),
)


def table_queries_as_selects(text: str) -> str:
    """Return the text of a statement with `SELECT * FROM t` in place of each query `TABLE t`, which means the same."""
    reader = Reader(text)
    words = reader.words
    found = [at for at, word in enumerate(words) if word.upper == "TABLE" and _begins_query(reader, at)]
    for at in reversed(found):
        text = f"{text[: words[at].start]}SELECT * FROM{text[words[at].stop :]}"
    return text


def move_insert_before_with(text: str) -> str:
    """Return `WITH x AS (…) INSERT INTO t query` as `INSERT INTO t WITH x AS (…) query`, which means the same.

    Any other text stays as it is.
    """
    reader = Reader(text)
    if not reader.peek("WITH"):
        return text
    reader.until("INSERT", *QUERY_WORDS[:2], "FROM", "TABLE", behind=")", what="WITH")
    insert = reader.at
    if not reader.accept("INSERT"):
        return text
    reader.accept_any("INTO", "OVERWRITE")
    reader.accept("TABLE")
    reader.until(*QUERY_WORDS, what="a table")
    if reader.ended or reader.peek("WITH"):
        return text
    query = reader.at
    last = len(reader.words)
    return f"{reader.between(insert, query)} {reader.between(0, insert)} {reader.between(query, last)}"


def _begins_query(reader: Reader, at: int) -> bool:
    """Return whether the word TABLE at a position begins a query, and does not introduce or name something else."""
    words = reader.words
    before, first = words[at - 1].upper if at else "", words[0].upper
    if before == "(":
        opener = words[at - 2] if at > 1 else None
        is_query = opener is None or not opener.is_name or opener.upper in _BEFORE_BRACKET
        is_query = is_query or _is_behind_target(reader, at - 1)
    elif first == "INSERT":
        is_query = before not in ("INTO", "OVERWRITE", "SELECT", ",", ".")
    else:
        is_query = not at or before in _BEFORE_QUERY or (first == "EXPLAIN" and before in ("EXPLAIN", *EXPLAIN_MODES))
    reader.at = at + 1
    if not is_query or reader.next is None or not reader.next.is_name:
        return False
    reader.path("a table")
    return reader.next is None or reader.next.upper in _BEHIND_TABLE


def _is_behind_target(reader: Reader, at: int) -> bool:
    """Return whether the words before a position are an INSERT up to the name of its table, or to BY NAME behind it."""
    reader.at = 0
    if not reader.accept("INSERT") or reader.accept_any("INTO", "OVERWRITE") is None:
        return False
    reader.accept("TABLE")
    if reader.next is None or not reader.next.is_name:
        return False
    reader.path("a table")
    reader.accept("BY", "NAME")
    return reader.at == at
