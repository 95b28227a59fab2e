"""Bind a predicate to a schema: resolve names, check types, and build the tree from its parts."""

from lance_ops.core.predicate.binding.calls import call
from lance_ops.core.predicate.binding.column_names import Name, resolve
from lance_ops.core.predicate.binding.literal_coercion import number_literal

__all__ = [
    "Name",
    "call",
    "number_literal",
    "resolve",
]
