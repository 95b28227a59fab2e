"""Build a predicate's tree from parts, with every name resolved and every type checked."""

from lance_ops.core.predicate.building.calls import call
from lance_ops.core.predicate.building.coerce import number_literal
from lance_ops.core.predicate.building.column_names import Name, resolve

__all__ = [
    "Name",
    "call",
    "number_literal",
    "resolve",
]
