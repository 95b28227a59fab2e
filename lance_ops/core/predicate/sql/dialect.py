"""The SQL dialect of the reference, as a sqlglot dialect.

Back quotes delimit names. Single and double quotes both delimit text; in most dialects double quotes delimit names. A
quote inside text is doubled, and a backslash is an ordinary character. `a = b IS NULL` tests whether the comparison is
null. Words of statements, such as `comment` and `outer`, are names of columns. Functions stay calls by name, because
sqlglot's trees for some of them differ from their meaning in DataFusion.
"""

from __future__ import annotations

from typing import Any, ClassVar

from sqlglot import parser, tokens
from sqlglot.dialects.dialect import Dialect

__all__ = ["LanceDialect"]

_CALLS_WITH_KEYWORDS = ("CAST", "TRY_CAST", "EXTRACT")
# Words of statements and queries. A filter has no use for them, and columns may have these names.
_NAMES = frozenset(
    """
    alter analyze any begin cache call comment commit copy create cross delete desc describe drop except execute explain
    fetch for glob grant having inner insert intersect into join kill lateral load merge notnull on optimize outer
    partitioned_by pivot pragma prepare qualify regexp rename returning revoke rlike rollback set show tablesample
    truncate uncache union unpivot update use using vacuum where with xor
    """.upper().split()
)


class LanceDialect(Dialect):
    class Tokenizer(tokens.Tokenizer):
        QUOTES: ClassVar = ["'", '"']
        IDENTIFIERS: ClassVar = ["`"]
        STRING_ESCAPES: ClassVar = ["'", '"']
        KEYWORDS: ClassVar = {word: kind for word, kind in tokens.Tokenizer.KEYWORDS.items() if word not in _NAMES}
        HEX_STRINGS: ClassVar = [("x'", "'"), ("X'", "'"), ("0x", "")]

    class Parser(parser.Parser):
        FUNCTIONS: ClassVar[dict[str, Any]] = {}
        IS_PREDICATE_PRECEDENCE: ClassVar = parser.IsPredicatePrecedence.LOW
        NO_PAREN_FUNCTIONS: ClassVar[dict[Any, Any]] = {}
        FUNCTION_PARSERS: ClassVar = {name: parser.Parser.FUNCTION_PARSERS[name] for name in _CALLS_WITH_KEYWORDS}
