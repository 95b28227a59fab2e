"""Bind a predicate to a schema: resolve names, check types, and build the tree from its parts."""

from __future__ import annotations

from typing import TYPE_CHECKING

from lance_ops.core.lazy_import import import_on_first_use

if TYPE_CHECKING:
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

_MODULES = {
    "CURRENT_TIME_KEYWORDS": "current_time",
    "NODES": "calls",
    "Clock": "current_time",
    "ListedValues": "listed_values",
    "Name": "column_names",
    "call": "calls",
    "either": "listed_values",
    "field_of": "column_names",
    "is_listed": "listed_values",
    "number_literal": "literal_coercion",
    "resolve": "column_names",
    "result_type": "result_types",
    "returns_current_time": "current_time",
}

if not TYPE_CHECKING:  # a type checker that sees it would accept any name
    __getattr__ = import_on_first_use(__name__, _MODULES)
