"""Translate `pyarrow.compute` expressions into predicates."""

from lance_ops.core.predicate.arrow.arrow_expression import parse_arrow

__all__ = [
    "parse_arrow",
]
