"""Computed columns with pylance's values in another type."""

from __future__ import annotations

import re
from collections.abc import Callable

import pyarrow as pa

from tests.fuzz.predicates.answers import Answer
from tests.fuzz.predicates.grammar import Node
from tests.fuzz.predicates.tables import COLUMNS, Kind

__all__ = ["TYPE_REASONS", "type_reason"]

_UNITS = ("s", "ms", "us", "ns")
_INSTANTS = {column.path: column.type for column in COLUMNS if column.kind in (Kind.INSTANT, Kind.ZONED)}


def type_reason(node: Node, ours: Answer, theirs: Answer) -> tuple[str, ...]:
    """Return why equal values have different types; empty if that is not known, or if the types are equal."""
    if ours.type == theirs.type or ours.type is None or theirs.type is None:
        return ()
    found = (reason for reason, is_so in _REASONS.items() if is_so(node, ours.type, theirs.type))
    return tuple(found)[:1]


def _columns(node: Node) -> set[str]:
    return {part.sql for part in node.walk()}


def _is_view(node: Node, ours: pa.DataType, theirs: pa.DataType) -> bool:
    """Whether pylance joins or maps text into views, or joins large text into large text."""
    made = re.match(r"concat\(", node.sql) or (
        "dictionary" in _columns(node) and re.match(r"(lower|upper|btrim)\(", node.sql)
    )
    is_large = pa.types.is_large_string(theirs) and "large_s" in _columns(node)
    return bool(made) and pa.types.is_string(ours) and (pa.types.is_string_view(theirs) or is_large)


def _is_dictionary(node: Node, ours: pa.DataType, theirs: pa.DataType) -> bool:
    is_kept = "dictionary" in _columns(node) and re.match(r"(nullif|coalesce)\(", node.sql)
    return bool(is_kept) and pa.types.is_dictionary(theirs) and theirs.value_type == ours


def _is_half(node: Node, ours: pa.DataType, theirs: pa.DataType) -> bool:
    wide = pa.float64() if node.sql.startswith("round(") else pa.float16()
    return "f16" in _columns(node) and pa.types.is_float32(ours) and theirs == wide


def _is_finer(node: Node, ours: pa.DataType, theirs: pa.DataType) -> bool:
    """Whether instants of different units are combined, which gives the finest unit here."""
    if not (pa.types.is_timestamp(ours) and pa.types.is_timestamp(theirs)) or ours.tz != theirs.tz:
        return False
    units = {_INSTANTS[path].unit for path in _columns(node) & _INSTANTS.keys()}
    if "timestamp '" in node.sql or " AS TIMESTAMP)" in node.sql:
        units.add("us")
    is_finer = _UNITS.index(ours.unit) > _UNITS.index(theirs.unit)
    return node.sql.startswith("coalesce(") and {ours.unit, theirs.unit} <= units and is_finer


def _is_constant(node: Node, ours: pa.DataType, theirs: pa.DataType) -> bool:
    """Whether instants come from dates and literals only."""
    known = re.search(r"timestamp '| AS TIMESTAMP\)", node.sql) and not _has_instants(node)
    return bool(known) and (ours, theirs) == (pa.timestamp("us"), pa.timestamp("ns"))


def _has_instants(node: Node) -> bool:
    """Whether a column of instants is read, other than for its date."""
    if node.sql.startswith("CAST(") and node.kind is Kind.DATE:
        return False
    return node.sql in _INSTANTS or any(map(_has_instants, node.parts))


_REASONS: dict[str, Callable[[Node, pa.DataType, pa.DataType], bool]] = {
    "computed text is text and not a view": _is_view,
    "a value computed from a dictionary is text": _is_dictionary,
    "computed half floats have the type of floats": _is_half,
    "instants are combined in the finer unit": _is_finer,
    "instants of dates and literals are in microseconds": _is_constant,
}
TYPE_REASONS = tuple(_REASONS)
"""Each reason for another type."""
