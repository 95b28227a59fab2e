"""How sqlglot reads and writes the SQL of Spark 4."""

from __future__ import annotations

from sqlglot.dialects.spark import Spark

__all__ = ["SparkSql"]


class SparkSql(Spark):
    """Spark's dialect since release 4: two quotes within a text are one, as in `'it''s'`."""

    class Tokenizer(Spark.Tokenizer):
        """The first sign that escapes a quote is the one that sqlglot writes."""

        STRING_ESCAPES = ["'", '"', "\\"]  # noqa: RUF012 - sqlglot reads it from the class
