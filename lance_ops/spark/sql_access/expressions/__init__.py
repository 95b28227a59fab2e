"""Expressions of a statement that changes a table, in the SQL of this library and with the types of Spark."""

from __future__ import annotations

from typing import TYPE_CHECKING

from lance_ops.core.lazy_import import import_on_first_use

if TYPE_CHECKING:
    from lance_ops.spark.sql_access.expressions.scope import SessionRules, Side, quoted_path
    from lance_ops.spark.sql_access.expressions.written_expressions import (
        ExpressionWriter,
        conjuncts,
        parse_expression,
    )

__all__ = ["ExpressionWriter", "SessionRules", "Side", "conjuncts", "parse_expression", "quoted_path"]

_MODULES = {
    "ExpressionWriter": "written_expressions",
    "SessionRules": "scope",
    "Side": "scope",
    "conjuncts": "written_expressions",
    "parse_expression": "written_expressions",
    "quoted_path": "scope",
}

if not TYPE_CHECKING:  # a type checker that sees it would accept any name
    __getattr__ = import_on_first_use(__name__, _MODULES)
