"""MERGE INTO: read the statement, and execute it by key or, after Spark has joined both tables, by row address."""

from __future__ import annotations

from typing import TYPE_CHECKING

from lance_ops.core.lazy_import import import_on_first_use

if TYPE_CHECKING:
    from lance_ops.spark.sql_access.merge.statement import MERGE_STATEMENTS

__all__ = ["MERGE_STATEMENTS"]

_MODULES = {"MERGE_STATEMENTS": "statement"}

if not TYPE_CHECKING:  # a type checker that sees it would accept any name
    __getattr__ = import_on_first_use(__name__, _MODULES)
