"""Conditions on text: prefixes, suffixes, substrings, LIKE and regular expressions."""

from __future__ import annotations

import pyarrow as pa
import pyarrow.compute as pc

from lance_ops.core.predicate.functions import re2_pattern
from lance_ops.core.predicate.tree.column_stats import Bounds, Relations, Statistics, successor
from lance_ops.core.predicate.tree.nodes import Expression, Predicate, Values
from lance_ops.core.predicate.tree.sql_spelling import spell_text
from lance_ops.core.predicate.tree.truth_set import TruthSet
from lance_ops.core.records import dataclass

__all__ = ["Contains", "EndsWith", "Like", "RegexMatches", "StartsWith", "TextCondition"]


@dataclass(frozen=True)
class TextCondition(Predicate):
    """A condition on text with a literal pattern; unknown where the text is null."""

    operand: Expression
    pattern: str

    @property
    def children(self) -> tuple[Expression, ...]:
        return (self.operand,)

    @property
    def prefix(self) -> str:
        """A prefix of every text that satisfies the condition."""
        return ""

    def possible_truths(self, stats: Statistics) -> TruthSet:
        bounds = self.operand.bounds(stats)
        result = TruthSet.UNKNOWN if bounds.nulls else TruthSet.NONE
        if not bounds.values:
            return result
        prefix = self.prefix.encode("utf-8", "surrogatepass")
        candidates = Bounds(prefix, successor(prefix), upper_open=True, nulls=False, nans=False)
        if bounds.relations_to(candidates) & Relations.EQUAL:
            result |= TruthSet.TRUE
        return result if self._holds_between(bounds) else result | TruthSet.FALSE

    def _holds_between(self, bounds: Bounds) -> bool:
        """Whether all values within the bounds are known to satisfy the condition."""
        return False


@dataclass(frozen=True)
class StartsWith(TextCondition):
    """Whether a text starts with the pattern."""

    @property
    def prefix(self) -> str:
        return self.pattern

    def evaluate(self, batch: pa.RecordBatch) -> Values:
        return pc.starts_with(self.operand.evaluate(batch), self.pattern)

    def to_sql(self) -> str:
        return f"starts_with({self.operand.to_sql()}, {spell_text(self.pattern)})"

    def _holds_between(self, bounds: Bounds) -> bool:
        prefix = self.pattern.encode("utf-8", "surrogatepass")
        if bounds.lower is None or bounds.upper is None or bounds.upper_open:
            return False
        return bool(bounds.lower.startswith(prefix) and bounds.upper.startswith(prefix))


@dataclass(frozen=True)
class EndsWith(TextCondition):
    """Whether a text ends with the pattern."""

    def evaluate(self, batch: pa.RecordBatch) -> Values:
        return pc.ends_with(self.operand.evaluate(batch), self.pattern)

    def to_sql(self) -> str:
        return f"ends_with({self.operand.to_sql()}, {spell_text(self.pattern)})"


@dataclass(frozen=True)
class Contains(TextCondition):
    """Whether a text contains the pattern."""

    def evaluate(self, batch: pa.RecordBatch) -> Values:
        return pc.match_substring(self.operand.evaluate(batch), self.pattern)

    def to_sql(self) -> str:
        return f"contains({self.operand.to_sql()}, {spell_text(self.pattern)})"


@dataclass(frozen=True)
class Like(TextCondition):
    """Whether a text matches a pattern: `%` matches any text, `_` one character; a backslash escapes the next one."""

    ignore_case: bool = False

    @property
    def prefix(self) -> str:
        if self.ignore_case:
            return ""
        known = ""
        for char, special in like_parts(self.pattern):
            if special:
                break
            known += char
        return known

    def evaluate(self, batch: pa.RecordBatch) -> Values:
        return pc.match_like(self.operand.evaluate(batch), self.pattern, ignore_case=self.ignore_case)

    def to_sql(self) -> str:
        word = "ILIKE" if self.ignore_case else "LIKE"
        return f"{self.operand.to_operand_sql()} {word} {spell_text(self.pattern)}"


@dataclass(frozen=True)
class RegexMatches(TextCondition):
    """Whether a regular expression matches anywhere in a text."""

    ignore_case: bool = False

    def evaluate(self, batch: pa.RecordBatch) -> Values:
        pattern = re2_pattern(self.pattern)
        return pc.match_substring_regex(self.operand.evaluate(batch), pattern, ignore_case=self.ignore_case)

    def to_sql(self) -> str:
        flags = ", 'i'" if self.ignore_case else ""
        return f"regexp_like({self.operand.to_sql()}, {spell_text(self.pattern)}{flags})"


def like_parts(pattern: str, escape: str = "\\") -> list[tuple[str, bool]]:
    """Split a LIKE pattern into pairs: an unescaped character, and whether it is a wildcard."""
    parts = []
    chars = iter(pattern)
    for char in chars:
        if char == escape:
            parts.append((next(chars, escape), False))
        else:
            parts.append((char, char in "%_"))
    return parts
