"""What an index or a zone map can answer of a predicate, and what remains."""

from lance_ops.core.predicate.pushdown.conjunctions import conjuncts, split
from lance_ops.core.predicate.pushdown.index_queries import (
    Bound,
    Equals,
    IndexQuery,
    NotNull,
    Nulls,
    Range,
    index_query,
)

__all__ = [
    "Bound",
    "Equals",
    "IndexQuery",
    "NotNull",
    "Nulls",
    "Range",
    "conjuncts",
    "index_query",
    "split",
]
