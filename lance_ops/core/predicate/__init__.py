"""One predicate tree for scans, statistics, indices and Spark's pushed filters.

`parse_filter` makes it from SQL text or a pyarrow expression, `build` from parts. A `Predicate` says which columns it
needs (`columns`), which rows of a batch match (`mask`, three-valued), whether rows known by statistics alone may
(`may_match`), and how it is spelled (`to_sql`). `split` and `index_query` say which part of it an index can answer.
"""

from lance_ops.core.predicate.assign import Assignment, parse_assignment, parse_value
from lance_ops.core.predicate.parse import parse_filter
from lance_ops.core.predicate.pushdown.conjuncts import conjuncts, split
from lance_ops.core.predicate.pushdown.index_query import Bound, Equals, IndexQuery, NotNull, Nulls, Range, index_query
from lance_ops.core.predicate.tree.case import Case
from lance_ops.core.predicate.tree.column_stats import ColumnStats, Statistics
from lance_ops.core.predicate.tree.conditions import Compare, CompareOp, In, IsNull
from lance_ops.core.predicate.tree.logic import And, Holds, IsTrue, Not, Or
from lance_ops.core.predicate.tree.nodes import Expression, Predicate
from lance_ops.core.predicate.tree.patterns import Contains, EndsWith, Like, Matches, StartsWith
from lance_ops.core.predicate.tree.values import Arithmetic, ArithmeticOp, Call, Cast, Column, Literal, Negate

__all__ = [
    "And",
    "Arithmetic",
    "ArithmeticOp",
    "Assignment",
    "Bound",
    "Call",
    "Case",
    "Cast",
    "Column",
    "ColumnStats",
    "Compare",
    "CompareOp",
    "Contains",
    "EndsWith",
    "Equals",
    "Expression",
    "Holds",
    "In",
    "IndexQuery",
    "IsNull",
    "IsTrue",
    "Like",
    "Literal",
    "Matches",
    "Negate",
    "Not",
    "NotNull",
    "Nulls",
    "Or",
    "Predicate",
    "Range",
    "StartsWith",
    "Statistics",
    "conjuncts",
    "index_query",
    "parse_assignment",
    "parse_filter",
    "parse_value",
    "split",
]
