"""SHOW and DESCRIBE: what is told about tables, their columns and their history."""

from __future__ import annotations

from typing import TYPE_CHECKING

from lance_ops.core.lazy_import import import_on_first_use

if TYPE_CHECKING:
    from lance_ops.spark.sql_access.shown_tables.columns import COMMENT, shown_columns
    from lance_ops.spark.sql_access.shown_tables.descriptions import DESCRIBE_STATEMENTS
    from lance_ops.spark.sql_access.shown_tables.listings import SHOW_STATEMENTS

__all__ = ["COMMENT", "DESCRIBE_STATEMENTS", "SHOW_STATEMENTS", "shown_columns"]

_MODULES = {
    "COMMENT": "columns",
    "DESCRIBE_STATEMENTS": "descriptions",
    "SHOW_STATEMENTS": "listings",
    "shown_columns": "columns",
}

if not TYPE_CHECKING:  # a type checker that sees it would accept any name
    __getattr__ = import_on_first_use(__name__, _MODULES)
