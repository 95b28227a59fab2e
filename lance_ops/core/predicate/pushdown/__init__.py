"""Split a predicate into the part that an index or a zone map can answer and the rest."""

from lance_ops.core.predicate.pushdown.column_queries import (
    Bound,
    ColumnQuery,
    Equals,
    NotNull,
    Nulls,
    Range,
    column_query,
)
from lance_ops.core.predicate.pushdown.conjunctions import conjuncts, split_servable

__all__ = [
    "Bound",
    "ColumnQuery",
    "Equals",
    "NotNull",
    "Nulls",
    "Range",
    "column_query",
    "conjuncts",
    "split_servable",
]
