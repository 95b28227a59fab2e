"""SQL over Lance tables without a JAR: statements, views and table functions."""

from __future__ import annotations

from typing import TYPE_CHECKING

from lance_ops.core.lazy_import import import_on_first_use

if TYPE_CHECKING:
    from lance_ops.spark.sql_access.execution import sql, use_namespace
    from lance_ops.spark.sql_access.table_functions import register_functions
    from lance_ops.spark.sql_access.views import create_view

__all__ = ["create_view", "register_functions", "sql", "use_namespace"]

_MODULES = {
    "create_view": "views",
    "register_functions": "table_functions",
    "sql": "execution",
    "use_namespace": "execution",
}

if not TYPE_CHECKING:  # a type checker that sees it would accept any name
    __getattr__ = import_on_first_use(__name__, _MODULES)
