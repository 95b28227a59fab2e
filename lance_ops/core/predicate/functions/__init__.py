"""The scalar functions that a filter may call."""

from lance_ops.core.predicate.functions.functions import FUNCTIONS, Function
from lance_ops.core.predicate.functions.regular_expressions import FLAGS, re2_pattern

__all__ = [
    "FLAGS",
    "FUNCTIONS",
    "Function",
    "re2_pattern",
]
