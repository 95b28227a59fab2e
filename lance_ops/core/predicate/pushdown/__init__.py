"""What an index or a zone map can answer of a predicate, and what remains."""

from lance_ops.core.predicate.pushdown.conjuncts import conjuncts, split
from lance_ops.core.predicate.pushdown.index_query import Bound, Equals, IndexQuery, NotNull, Nulls, Range, index_query

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
