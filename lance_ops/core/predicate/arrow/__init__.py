"""Translate `pyarrow.compute` expressions into predicates."""

from __future__ import annotations

from typing import TYPE_CHECKING

from lance_ops.core.lazy_import import import_on_first_use

if TYPE_CHECKING:
    from lance_ops.core.predicate.arrow.arrow_expression import parse_arrow

__all__ = [
    "parse_arrow",
]

_MODULES = {
    "parse_arrow": "arrow_expression",
}

if not TYPE_CHECKING:  # a type checker that sees it would accept any name
    __getattr__ = import_on_first_use(__name__, _MODULES)
