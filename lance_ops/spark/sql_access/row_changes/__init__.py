"""INSERT, DELETE, UPDATE and TRUNCATE: Spark chooses the rows and computes their values, the library changes them.

The library also finds duplicates and deletes them, and erases rows from all versions.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from lance_ops.core.lazy_import import import_on_first_use

if TYPE_CHECKING:
    from lance_ops.spark.sql_access.row_changes.changed_rows import change_rows
    from lance_ops.spark.sql_access.row_changes.computed_rows import plain_types, visible_types
    from lance_ops.spark.sql_access.row_changes.duplicates import DUPLICATE_STATEMENTS
    from lance_ops.spark.sql_access.row_changes.erasure import ERASURE_STATEMENTS
    from lance_ops.spark.sql_access.row_changes.statements import ROW_STATEMENTS

__all__ = [
    "DUPLICATE_STATEMENTS",
    "ERASURE_STATEMENTS",
    "ROW_STATEMENTS",
    "change_rows",
    "plain_types",
    "visible_types",
]

_MODULES = {
    "DUPLICATE_STATEMENTS": "duplicates",
    "ERASURE_STATEMENTS": "erasure",
    "ROW_STATEMENTS": "statements",
    "change_rows": "changed_rows",
    "plain_types": "computed_rows",
    "visible_types": "computed_rows",
}

if not TYPE_CHECKING:  # a type checker that sees it would accept any name
    __getattr__ = import_on_first_use(__name__, _MODULES)
