"""SQL as the reference implementation reads it, for sqlglot.

Back quotes make names. Single and double quotes both make text, where most dialects make names of the latter; a quote
inside text is doubled and backslashes mean themselves. `a = b IS NULL` asks whether the comparison is null. Functions
are left as calls by name: sqlglot's own trees for them differ from DataFusion's meaning here and there.
"""

from __future__ import annotations

from typing import Any, ClassVar

from sqlglot import parser, tokens
from sqlglot.dialects.dialect import Dialect

__all__ = ["LanceDialect"]

_CALLS_WITH_KEYWORDS = ("CAST", "TRY_CAST", "EXTRACT")


class LanceDialect(Dialect):
    class Tokenizer(tokens.Tokenizer):
        QUOTES: ClassVar = ["'", '"']
        IDENTIFIERS: ClassVar = ["`"]
        STRING_ESCAPES: ClassVar = ["'", '"']
        HEX_STRINGS: ClassVar = [("x'", "'"), ("X'", "'"), ("0x", "")]

    class Parser(parser.Parser):
        FUNCTIONS: ClassVar[dict[str, Any]] = {}
        IS_PREDICATE_PRECEDENCE: ClassVar = parser.IsPredicatePrecedence.LOW
        NO_PAREN_FUNCTIONS: ClassVar[dict[Any, Any]] = {}
        FUNCTION_PARSERS: ClassVar = {name: parser.Parser.FUNCTION_PARSERS[name] for name in _CALLS_WITH_KEYWORDS}
