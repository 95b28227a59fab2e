"""MERGE INTO: read the statement, choose the rows that the library's merge by key reads, and execute it.

A statement whose source alone gives these rows is executed from it; every other one joins both tables first.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from lance_ops.core.lazy_import import import_on_first_use

if TYPE_CHECKING:
    from lance_ops.spark.sql_access.merge.statement import MERGE_STATEMENTS

__all__ = ["MERGE_STATEMENTS"]

_MODULES = {"MERGE_STATEMENTS": "statement"}

if not TYPE_CHECKING:  # a type checker that sees it would accept any name
    __getattr__ = import_on_first_use(__name__, _MODULES)
