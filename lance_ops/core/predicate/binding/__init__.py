"""Bind a predicate to a schema: resolve names, check types, and build the tree from its parts."""

from lance_ops.core.predicate.binding.calls import NODES, call
from lance_ops.core.predicate.binding.column_names import Name, field_of, resolve
from lance_ops.core.predicate.binding.listed_values import ListedValues, either, is_listed
from lance_ops.core.predicate.binding.literal_coercion import number_literal
from lance_ops.core.predicate.binding.moments import KEYWORDS, Clock, is_moment
from lance_ops.core.predicate.binding.result_types import result_type

__all__ = [
    "KEYWORDS",
    "NODES",
    "Clock",
    "ListedValues",
    "Name",
    "call",
    "either",
    "field_of",
    "is_listed",
    "is_moment",
    "number_literal",
    "resolve",
    "result_type",
]
