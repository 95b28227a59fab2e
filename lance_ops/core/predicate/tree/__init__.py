"""The nodes of a predicate's tree; each can be evaluated, tested against statistics, and printed as SQL."""

from __future__ import annotations

from typing import TYPE_CHECKING

from lance_ops.core.lazy_import import import_on_first_use

if TYPE_CHECKING:
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

_MODULES = {
    "NANOSECONDS": "sql_spelling",
    "TRUE": "logic",
    "TYPES": "sql_spelling",
    "UNKNOWN": "logic",
    "And": "logic",
    "Arithmetic": "arithmetic",
    "ArithmeticOp": "arithmetic",
    "BooleanValue": "logic",
    "Call": "values",
    "Case": "case_when",
    "Cast": "values",
    "Column": "values",
    "ColumnStats": "column_stats",
    "Compare": "conditions",
    "CompareOp": "conditions",
    "ComputedNumber": "values",
    "Contains": "patterns",
    "EndsWith": "patterns",
    "Expression": "nodes",
    "In": "conditions",
    "IsNull": "conditions",
    "IsTrue": "logic",
    "Like": "patterns",
    "ListElement": "nested_values",
    "Literal": "values",
    "Minus": "arithmetic",
    "Not": "logic",
    "Or": "logic",
    "PointNumber": "values",
    "Predicate": "nodes",
    "RegexMatches": "patterns",
    "StartsWith": "patterns",
    "Statistics": "column_stats",
    "StructField": "nested_values",
    "TruthSet": "truth_set",
    "Values": "nodes",
    "all_of": "logic",
    "any_of": "logic",
    "arithmetic_type": "arithmetic",
    "case": "case_when",
    "like_parts": "patterns",
    "negate": "logic",
    "order_key": "column_stats",
    "spell_path": "sql_spelling",
}

if not TYPE_CHECKING:  # a type checker that sees it would accept any name
    __getattr__ = import_on_first_use(__name__, _MODULES)
