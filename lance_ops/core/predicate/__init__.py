"""Predicates: one tree for filters of scans, pruning by statistics, index searches and Spark's pushed filters.

`parse_filter` makes a `Predicate` from SQL text or from a pyarrow expression; `binding.build` makes one from parts.

    columns()              the columns that it reads
    mask(batch)            which rows match, in three-valued logic
    may_match(statistics)  whether any row that the statistics describe may match
    to_sql()               the predicate as text

`split_servable` and `column_query` say which part of a predicate an index can answer.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from lance_ops.core.lazy_import import import_on_first_use

if TYPE_CHECKING:
    from lance_ops.core.predicate.assignment import Assignment, parse_assignment, parse_value
    from lance_ops.core.predicate.binding import result_type
    from lance_ops.core.predicate.parse import parse_filter
    from lance_ops.core.predicate.pushdown import (
        Bound,
        ColumnQuery,
        Equals,
        NotNull,
        Nulls,
        Range,
        column_query,
        conjuncts,
        split_servable,
    )
    from lance_ops.core.predicate.tree import (
        And,
        Arithmetic,
        ArithmeticOp,
        BooleanValue,
        Call,
        Case,
        Cast,
        Column,
        ColumnStats,
        Compare,
        CompareOp,
        Contains,
        EndsWith,
        Expression,
        In,
        IsNull,
        IsTrue,
        Like,
        ListElement,
        Literal,
        Minus,
        Not,
        Or,
        Predicate,
        RegexMatches,
        StartsWith,
        Statistics,
        StructField,
        TruthSet,
        Values,
    )
    from lance_ops.core.predicate.types import compute_type, computed, convert

__all__ = [
    "And",
    "Arithmetic",
    "ArithmeticOp",
    "Assignment",
    "BooleanValue",
    "Bound",
    "Call",
    "Case",
    "Cast",
    "Column",
    "ColumnQuery",
    "ColumnStats",
    "Compare",
    "CompareOp",
    "Contains",
    "EndsWith",
    "Equals",
    "Expression",
    "In",
    "IsNull",
    "IsTrue",
    "Like",
    "ListElement",
    "Literal",
    "Minus",
    "Not",
    "NotNull",
    "Nulls",
    "Or",
    "Predicate",
    "Range",
    "RegexMatches",
    "StartsWith",
    "Statistics",
    "StructField",
    "TruthSet",
    "Values",
    "column_query",
    "compute_type",
    "computed",
    "conjuncts",
    "convert",
    "parse_assignment",
    "parse_filter",
    "parse_value",
    "result_type",
    "split_servable",
]

_MODULES = {
    "And": "tree",
    "Arithmetic": "tree",
    "ArithmeticOp": "tree",
    "Assignment": "assignment",
    "BooleanValue": "tree",
    "Bound": "pushdown",
    "Call": "tree",
    "Case": "tree",
    "Cast": "tree",
    "Column": "tree",
    "ColumnQuery": "pushdown",
    "ColumnStats": "tree",
    "Compare": "tree",
    "CompareOp": "tree",
    "Contains": "tree",
    "EndsWith": "tree",
    "Equals": "pushdown",
    "Expression": "tree",
    "In": "tree",
    "IsNull": "tree",
    "IsTrue": "tree",
    "Like": "tree",
    "ListElement": "tree",
    "Literal": "tree",
    "Minus": "tree",
    "Not": "tree",
    "NotNull": "pushdown",
    "Nulls": "pushdown",
    "Or": "tree",
    "Predicate": "tree",
    "Range": "pushdown",
    "RegexMatches": "tree",
    "StartsWith": "tree",
    "Statistics": "tree",
    "StructField": "tree",
    "TruthSet": "tree",
    "Values": "tree",
    "column_query": "pushdown",
    "compute_type": "types",
    "computed": "types",
    "conjuncts": "pushdown",
    "convert": "types",
    "parse_assignment": "assignment",
    "parse_filter": "parse",
    "parse_value": "assignment",
    "result_type": "binding",
    "split_servable": "pushdown",
}

if not TYPE_CHECKING:  # a type checker that sees it would accept any name
    __getattr__ = import_on_first_use(__name__, _MODULES)
