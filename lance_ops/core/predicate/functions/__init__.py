"""The scalar functions that a filter may call."""

from lance_ops.core.predicate.functions.functions import FUNCTIONS, Function

__all__ = [
    "FUNCTIONS",
    "Function",
]
