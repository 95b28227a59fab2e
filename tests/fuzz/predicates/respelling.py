"""Spell an expression in another way, in which pylance has the answer that a known difference predicts."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from re import Match

from tests.fuzz.predicates.grammar import Node
from tests.fuzz.predicates.tables import COLUMNS, FIELDS, Kind

__all__ = [
    "WIDE",
    "in_nanoseconds",
    "replace_columns",
    "replace_nodes",
    "with_one_binary_type",
    "with_one_time_unit",
    "with_rounded_literals",
]

_SPELLINGS = {"st.x": r"st\.x|st\['x'\]", "st.in.z": r"st\.in\.z|st\['in'\]\['z'\]", "st.t": r"st\.t|st\['t'\]"}
_TYPES = {column.path: column.type for column in (*COLUMNS, *FIELDS)}

WIDE = {
    **dict.fromkeys(("i8", "i16", "i32", "u8", "u16", "u32", "st.x"), "CAST({} AS BIGINT)"),
    **dict.fromkeys(("i64", "u64"), "CAST({} AS DECIMAL(20, 0))"),
    "f16": "CAST({} AS DOUBLE)",
    "f32": "CAST({} AS DOUBLE)",
    "two": "arrow_cast({}, 'Binary')",
    "dec": "CAST({} AS DECIMAL(38, 6))",
}
"""Each column cast to a wider type, which holds more literals."""


def replace_columns(sql: str, spelled: Mapping[str, str]) -> str:
    """Replace each column that has a spelling by it."""
    for path, spelling in spelled.items():
        name = _SPELLINGS.get(path, re.escape(path))
        sql = re.sub(rf"(?<![\w.'])(?P<column>{name})(?![\w'])", spelling.replace("{}", r"\g<column>"), sql)
    return sql


def replace_nodes(sql: str, node: Node, change: Callable[[Node], str | None]) -> str:
    """Replace each part of a node that `change` gives a text for; a whole is replaced before its parts."""
    changed = {part.sql: change(part) for part in reversed(list(node.walk()))}
    for text, new in changed.items():
        sql = sql if new is None else sql.replace(text, new)
    return sql


def in_nanoseconds(sql: str) -> str:
    """Cast every column of instants to nanoseconds; a literal has them already."""
    spelled = {}
    for column in COLUMNS:
        if column.kind in (Kind.INSTANT, Kind.ZONED):
            zone = f'Some("{column.type.tz}")' if column.type.tz else "None"
            cast = f"arrow_cast({{}}, 'Timestamp(ns, {zone})')"
            spelled[column.path] = f"coalesce({cast}, {cast})"  # a lone cast is moved to the literals
    return replace_columns(sql, spelled)


def with_one_time_unit(sql: str) -> str:
    """Cast every time to microseconds."""
    sql = sql.replace("'Time32(s)'", "'Time64(us)'")
    sql = re.sub(r"(?<!arrow_cast\()'01:02:03'", "arrow_cast('01:02:03', 'Time64(us)')", sql)
    return replace_columns(sql, {"t32": "arrow_cast({}, 'Time64(us)')"})


def with_one_binary_type(sql: str) -> str:
    """Cast every binary value to large binary."""

    def literal(found: Match[str]) -> str:
        return f"arrow_cast({found[0]}, 'LargeBinary')"

    sql = re.sub(r"X'[0-9a-f]*'", literal, sql)
    two = "arrow_cast(arrow_cast({}, 'Binary'), 'LargeBinary')"
    return replace_columns(sql, {"raw": "arrow_cast({}, 'LargeBinary')", "two": two})


def with_rounded_literals(sql: str, half: bool) -> str:
    """Write out the single (or half) float that a literal is rounded to."""
    tenth = "CAST(CAST(0.0999755859375 AS FLOAT) AS DOUBLE)" if half else "CAST(CAST(0.1 AS FLOAT) AS DOUBLE)"
    huge = "CAST('inf' AS DOUBLE)" if half else "CAST(CAST(1e30 AS FLOAT) AS DOUBLE)"
    sql = re.sub(r"(?<![\w.])0\.1(?![\w.])", tenth, sql)
    return replace_columns(re.sub(r"\b1e30\b", huge, sql), {"f32": "CAST({} AS DOUBLE)", "f16": "CAST({} AS DOUBLE)"})
