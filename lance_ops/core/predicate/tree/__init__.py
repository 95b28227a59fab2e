"""The nodes of a predicate's tree: what each evaluates to, rules out by statistics, and prints as SQL."""

from lance_ops.core.predicate.tree.case_when import Case, case
from lance_ops.core.predicate.tree.column_stats import ColumnStats, Statistics, order_key
from lance_ops.core.predicate.tree.conditions import Compare, CompareOp, In, IsNull
from lance_ops.core.predicate.tree.logic import TRUE, UNKNOWN, And, Holds, IsTrue, Not, Or, all_of, any_of, negate
from lance_ops.core.predicate.tree.nodes import Expression, Predicate, Values
from lance_ops.core.predicate.tree.patterns import Contains, EndsWith, Like, Matches, StartsWith, like_parts
from lance_ops.core.predicate.tree.spelling import NANOSECONDS, spell_path
from lance_ops.core.predicate.tree.truth import Truths
from lance_ops.core.predicate.tree.values import (
    Arithmetic,
    ArithmeticOp,
    Call,
    Cast,
    Column,
    Literal,
    Negate,
    arithmetic_type,
)

__all__ = [
    "NANOSECONDS",
    "TRUE",
    "UNKNOWN",
    "And",
    "Arithmetic",
    "ArithmeticOp",
    "Call",
    "Case",
    "Cast",
    "Column",
    "ColumnStats",
    "Compare",
    "CompareOp",
    "Contains",
    "EndsWith",
    "Expression",
    "Holds",
    "In",
    "IsNull",
    "IsTrue",
    "Like",
    "Literal",
    "Matches",
    "Negate",
    "Not",
    "Or",
    "Predicate",
    "StartsWith",
    "Statistics",
    "Truths",
    "Values",
    "all_of",
    "any_of",
    "arithmetic_type",
    "case",
    "like_parts",
    "negate",
    "order_key",
    "spell_path",
]
