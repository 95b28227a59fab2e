"""The differences from pylance that a predicate may show; `docs/differences.md` explains them to users."""

from __future__ import annotations

import re
from collections.abc import Callable

from tests.fuzz.predicates.grammar import Node
from tests.fuzz.predicates.tables import COLUMNS, Kind

__all__ = ["reason_for"]

# Each error is searched in the message of the library that refuses what the other one answers.
_PYLANCE_REFUSES = (
    ("pylance has no CASE", "Expression 'CASE"),
    ("pylance has no intervals", "Expression 'INTERVAL"),
    ("pylance has no FLOOR and CEIL beside operators", "Expression '(FLOOR|CEIL)"),
    ("a literal of another type is compared by value", "could not convert to literal of type"),
    ("times of different units compare", r"Time(32|64)\("),
    ("fixed-size binary compares with binary", "Cannot infer common argument type.*FixedSizeBinary"),
    ("pylance has no coalesce of binary values", "Function 'coalesce'.*struct but got"),
    ("u64 can be negated", "Negation only supports"),
    ("decimals are cast to truth values", "Unsupported CAST from Decimal.* to Boolean"),
    ("a wall time that a zone skips or repeats has an instant", "Cannot cast timezone to different timezone"),
)
_WE_REFUSE = (
    ("decimals are divided as doubles", "operator [/%] on decimals"),
    ("an overflow is an error", "overflow of int64|out of bounds|not in range"),
)

_TYPES = {column.path: column.type for column in COLUMNS}
_NARROW = frozenset(["i8", "i16", "i32", "u8", "u16", "u32", "st.x"])
"""Columns of integers that arithmetic in their own type may not hold."""


def reason_for(predicate: Node, ours: str, theirs: str, *, wild: bool) -> str:
    """Return why the answers may differ; empty if they may not. `ours` and `theirs` are the errors, if there are any.

    `wild` is as for `tables.rows`.
    """
    if ours or theirs:
        refusals, error = (_WE_REFUSE, ours) if ours else (_PYLANCE_REFUSES, theirs)
        return next((reason for reason, pattern in refusals if re.search(pattern, error)), "")
    if wild and _has_floats(predicate):
        return "NaN and zero have no sign"
    return next((reason for reason, may_differ in _ANSWERS if may_differ(predicate)), "")


def _mixes_units(predicate: Node) -> bool:
    """Whether instants of different units or zones meet, or a literal with a fraction of a second."""
    kinds = {node.kind: node for node in predicate.walk() if node.kind in (Kind.INSTANT, Kind.ZONED, Kind.DATE)}
    types = {_TYPES[node.sql] for node in predicate.walk() if node.kind in kinds and node.sql in _TYPES}
    return len(types) > 1 or (bool(types) and re.search(r"\.00\d*1", predicate.sql) is not None)


def _has_floats(predicate: Node) -> bool:
    return any(node.kind is Kind.FLOAT for node in predicate.walk())


def _has_signed_floats(predicate: Node) -> bool:
    """Whether floats are computed in a way that gives -0.0 or a NaN with its sign bit set."""
    return _has_floats(predicate) and re.search(r"\(- |round|ceil|%|\*|-0\.0", predicate.sql) is not None


def _rounds_literals(predicate: Node) -> bool:
    """Whether a comparison of narrow floats with a literal that they do not hold is itself compared or tested."""
    inner = (part.sql for part in predicate.parts if part.kind is Kind.BOOLEAN)
    return any(re.search(r"\bf(16|32)\b", sql) and re.search(r"\b0\.1\b|1e30", sql) for sql in inner)


def _counts_years(predicate: Node) -> bool:
    return "date_part('year'" in predicate.sql


def _overflows_narrow_integers(predicate: Node) -> bool:
    """Whether there is arithmetic on integers narrower than 64 bits, which is computed in 64 bits here."""
    sums = (node for node in predicate.walk() if re.match(r"\(- |\(.* [-+*] ", node.sql) and node.kind is Kind.INTEGER)
    return any(part.sql in _NARROW for node in sums for part in node.walk())


def _compares_a_lenient_cast(predicate: Node) -> bool:
    return "TRY_CAST" in predicate.sql


_ANSWERS: tuple[tuple[str, Callable[[Node], bool]], ...] = (
    ("instants are compared in the finer unit", _mixes_units),
    ("NaN and zero have no sign", _has_signed_floats),
    ("a literal beside a float is rounded everywhere", _rounds_literals),
    ("a year may be any number", _counts_years),
    ("a TRY_CAST that fails is null", _compares_a_lenient_cast),
    ("narrow integers are computed in 64 bits", _overflows_narrow_integers),
)
"""Each reason for different rows, with a test of whether a predicate may show it."""
