"""How sqlglot reads and writes the SQL of Spark 4."""

from __future__ import annotations

import sqlglot
from sqlglot import exp
from sqlglot.dialects.spark import Spark
from sqlglot.errors import SqlglotError
from sqlglot.tokenizer_core import TokenType

from lance_ops.core.errors import InvalidInput
from lance_ops.spark.sql_access.words import without_line_comments

__all__ = ["SparkSql", "parse"]


def parse(text: str) -> exp.Expr:
    """Return the tree of one statement; raise `InvalidInput` with the reason if sqlglot does not parse it."""
    try:
        return sqlglot.parse_one(without_line_comments(text), dialect=SparkSql)
    except SqlglotError as error:
        raise InvalidInput(str(error).splitlines()[0]) from error
    except RecursionError as error:
        raise InvalidInput("nested too deeply") from error
    except Exception as error:  # sqlglot fails by any error on syntax that it half knows, as `|> LIMIT 3`
        raise InvalidInput("unknown syntax") from error


class SparkSql(Spark):
    """Spark's dialect since release 4: two quotes within a text are one, as in `'it''s'`, and `insert` is a name."""

    class Tokenizer(Spark.Tokenizer):
        """The first sign that escapes a quote is the one that sqlglot writes."""

        STRING_ESCAPES = ["'", '"', "\\"]  # noqa: RUF012 - sqlglot reads it from the class

    class Parser(Spark.Parser):  # type: ignore[misc, valid-type]  # a metaclass of sqlglot sets it
        """Spark reserves no word outside of ANSI mode; sqlglot takes the words of other changes for names itself."""

        ID_VAR_TOKENS = Spark.Parser.ID_VAR_TOKENS | {TokenType.INSERT}
