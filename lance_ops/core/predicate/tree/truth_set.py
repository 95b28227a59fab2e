"""Sets of truth values in three-valued logic: the results that can occur among rows that were not read."""

from __future__ import annotations

from collections.abc import Callable
from enum import Flag, auto
from functools import cache

__all__ = ["TruthSet"]


class TruthSet(Flag):
    """A set of truth values, combined as SQL combines the values themselves (Kleene's logic).

    There are eight sets, so each combination is computed once and cached.
    """

    NONE = 0
    TRUE = auto()
    FALSE = auto()
    UNKNOWN = auto()
    ANY = TRUE | FALSE | UNKNOWN

    @cache
    def negated(self) -> TruthSet:
        """Return the values that NOT can give."""
        return self._each(lambda value: _NOT[value])

    @cache
    def both(self, other: TruthSet) -> TruthSet:
        """Return the values that AND can give: the lower of two values, in the order false, unknown, true."""
        return self._pairs(other, min)

    @cache
    def either(self, other: TruthSet) -> TruthSet:
        """Return the values that OR can give: the higher of two values in the same order."""
        return self._pairs(other, max)

    @cache
    def is_true(self) -> TruthSet:
        """Return the values that IS TRUE can give: never unknown."""
        return self._each(lambda value: TruthSet.TRUE if value is TruthSet.TRUE else TruthSet.FALSE)

    def _each(self, function: Callable[[TruthSet], TruthSet]) -> TruthSet:
        result = TruthSet.NONE
        for value in self:
            result |= function(value)
        return result

    def _pairs(self, other: TruthSet, choose: Callable[[int, int], int]) -> TruthSet:
        result = TruthSet.NONE
        for left in self:
            for right in other:
                result |= _BY_RANK[choose(_RANK[left], _RANK[right])]
        return result


_NOT = {TruthSet.TRUE: TruthSet.FALSE, TruthSet.FALSE: TruthSet.TRUE, TruthSet.UNKNOWN: TruthSet.UNKNOWN}
_BY_RANK = (TruthSet.FALSE, TruthSet.UNKNOWN, TruthSet.TRUE)
_RANK = {value: rank for rank, value in enumerate(_BY_RANK)}
