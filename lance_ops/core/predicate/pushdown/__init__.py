"""Split a predicate into the part that an index or a zone map can answer and the rest."""

from __future__ import annotations

from typing import TYPE_CHECKING

from lance_ops.core.lazy_import import import_on_first_use

if TYPE_CHECKING:
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

_MODULES = {
    "Bound": "column_queries",
    "ColumnQuery": "column_queries",
    "Equals": "column_queries",
    "NotNull": "column_queries",
    "Nulls": "column_queries",
    "Range": "column_queries",
    "column_query": "column_queries",
    "conjuncts": "conjunctions",
    "split_servable": "conjunctions",
}

if not TYPE_CHECKING:  # a type checker that sees it would accept any name
    __getattr__ = import_on_first_use(__name__, _MODULES)
