"""CREATE TABLE, DROP TABLE and ALTER TABLE."""

from __future__ import annotations

from typing import TYPE_CHECKING

from lance_ops.core.lazy_import import import_on_first_use

if TYPE_CHECKING:
    from lance_ops.spark.sql_access.table_definition.alteration import ALTERATION_STATEMENTS
    from lance_ops.spark.sql_access.table_definition.creation import CREATION_STATEMENTS

__all__ = ["ALTERATION_STATEMENTS", "CREATION_STATEMENTS"]

_MODULES = {
    "ALTERATION_STATEMENTS": "alteration",
    "CREATION_STATEMENTS": "creation",
}

if not TYPE_CHECKING:  # a type checker that sees it would accept any name
    __getattr__ = import_on_first_use(__name__, _MODULES)
