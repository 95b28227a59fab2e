"""Parse SQL text into predicates and expressions; the first use of most functions imports sqlglot.

Call `sql.parse_sql(...)`: importing the function by name would import sqlglot at once. `parse_plain` does not need it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from lance_ops.core.lazy_import import import_on_first_use

if TYPE_CHECKING:
    from lance_ops.core.predicate.sql.parsing import parse_sql, parse_sql_value
    from lance_ops.core.predicate.sql.plain_comparisons import parse_plain

__all__ = ["parse_plain", "parse_sql", "parse_sql_value"]

_MODULES = {"parse_plain": "plain_comparisons", "parse_sql": "parsing", "parse_sql_value": "parsing"}

if not TYPE_CHECKING:  # a type checker that sees it would accept any name
    __getattr__ = import_on_first_use(__name__, _MODULES)
