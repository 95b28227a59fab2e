"""SQL queries over one dataset, under the reference's names."""

from __future__ import annotations

from typing import TYPE_CHECKING

from lance_ops.core.lazy_import import import_on_first_use

if TYPE_CHECKING:
    from lance_ops.api.sql.query import SqlQuery, SqlQueryBuilder

__all__ = ["SqlQuery", "SqlQueryBuilder"]

_MODULES = {
    "SqlQuery": "query",
    "SqlQueryBuilder": "query",
}

if not TYPE_CHECKING:  # a type checker that sees it would accept any name
    __getattr__ = import_on_first_use(__name__, _MODULES)
