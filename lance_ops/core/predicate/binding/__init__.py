"""Bind a predicate to a schema: resolve names, check types, and build the tree from its parts."""

from lance_ops.core.predicate.binding.calls import NODES, call
from lance_ops.core.predicate.binding.column_names import Name, field_of, resolve
from lance_ops.core.predicate.binding.current_time import CURRENT_TIME_KEYWORDS, Clock, returns_current_time
from lance_ops.core.predicate.binding.listed_values import ListedValues, either, is_listed
from lance_ops.core.predicate.binding.literal_coercion import number_literal
from lance_ops.core.predicate.binding.result_types import result_type

__all__ = [
    "CURRENT_TIME_KEYWORDS",
    "NODES",
    "Clock",
    "ListedValues",
    "Name",
    "call",
    "either",
    "field_of",
    "is_listed",
    "number_literal",
    "resolve",
    "result_type",
    "returns_current_time",
]
