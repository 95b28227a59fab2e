"""Parse SQL text into predicates and expressions; the first use imports sqlglot.

Call `sql.parse_sql(...)`: importing the function by name would import sqlglot at once.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from lance_ops.core.lazy_import import import_on_first_use

if TYPE_CHECKING:
    from lance_ops.core.predicate.sql.parsing import parse_sql, parse_sql_value

__all__ = ["parse_sql", "parse_sql_value"]

if not TYPE_CHECKING:  # a type checker that sees it would accept any name
    __getattr__ = import_on_first_use(__name__, {"parse_sql": "parsing", "parse_sql_value": "parsing"})
