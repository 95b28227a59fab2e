"""The nodes of a predicate's tree; each can be evaluated, tested against statistics, and printed as SQL."""

from lance_ops.core.predicate.tree.arithmetic import Arithmetic, ArithmeticOp, Minus, arithmetic_type
from lance_ops.core.predicate.tree.case_when import Case, case
from lance_ops.core.predicate.tree.column_stats import ColumnStats, Statistics, order_key
from lance_ops.core.predicate.tree.conditions import Compare, CompareOp, In, IsNull
from lance_ops.core.predicate.tree.logic import (
    TRUE,
    UNKNOWN,
    And,
    BooleanValue,
    IsTrue,
    Not,
    Or,
    all_of,
    any_of,
    negate,
)
from lance_ops.core.predicate.tree.nested_values import ListElement, StructField
from lance_ops.core.predicate.tree.nodes import Expression, Predicate, Values
from lance_ops.core.predicate.tree.patterns import Contains, EndsWith, Like, RegexMatches, StartsWith, like_parts
from lance_ops.core.predicate.tree.sql_spelling import NANOSECONDS, TYPES, spell_path
from lance_ops.core.predicate.tree.truth_set import TruthSet
from lance_ops.core.predicate.tree.values import Call, Cast, Column, ComputedNumber, Literal, PointNumber

__all__ = [
    "NANOSECONDS",
    "TRUE",
    "TYPES",
    "UNKNOWN",
    "And",
    "Arithmetic",
    "ArithmeticOp",
    "BooleanValue",
    "Call",
    "Case",
    "Cast",
    "Column",
    "ColumnStats",
    "Compare",
    "CompareOp",
    "ComputedNumber",
    "Contains",
    "EndsWith",
    "Expression",
    "In",
    "IsNull",
    "IsTrue",
    "Like",
    "ListElement",
    "Literal",
    "Minus",
    "Not",
    "Or",
    "PointNumber",
    "Predicate",
    "RegexMatches",
    "StartsWith",
    "Statistics",
    "StructField",
    "TruthSet",
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
