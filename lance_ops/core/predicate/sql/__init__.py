"""SQL text as predicates and expressions; sqlglot, which reads it, is imported with the first text.

Say `sql.parse_sql(...)`: importing the functions themselves would bring it at once.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from lance_ops.core.lazy_import import import_on_first_use

if TYPE_CHECKING:
    from lance_ops.core.predicate.sql.parsing import parse_sql, parse_sql_value

__all__ = ["parse_sql", "parse_sql_value"]

if not TYPE_CHECKING:  # a checker that saw it would accept any name at all
    __getattr__ = import_on_first_use(__name__, {"parse_sql": "parsing", "parse_sql_value": "parsing"})
