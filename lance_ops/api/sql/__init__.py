"""SQL queries over one dataset, under the reference's names."""

from lance_ops.api.sql.query import SqlQuery, SqlQueryBuilder

__all__ = ["SqlQuery", "SqlQueryBuilder"]
