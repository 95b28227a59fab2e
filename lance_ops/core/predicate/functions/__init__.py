"""The scalar functions that a filter may call."""

from __future__ import annotations

from typing import TYPE_CHECKING

from lance_ops.core.lazy_import import import_on_first_use

if TYPE_CHECKING:
    from lance_ops.core.predicate.functions.functions import FUNCTIONS, Function
    from lance_ops.core.predicate.functions.regular_expressions import FLAGS, re2_pattern

__all__ = [
    "FLAGS",
    "FUNCTIONS",
    "Function",
    "re2_pattern",
]

_MODULES = {
    "FLAGS": "regular_expressions",
    "FUNCTIONS": "functions",
    "Function": "functions",
    "re2_pattern": "regular_expressions",
}

if not TYPE_CHECKING:  # a type checker that sees it would accept any name
    __getattr__ = import_on_first_use(__name__, _MODULES)
