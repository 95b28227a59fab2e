"""The functions that return the current time: `now()`, `current_date` and their other names.

A filter or an expression reads the clock once, when it is parsed. The value is then a literal, so an index can serve
it, and every task of a plan has the same one. As in the reference the time is UTC's, without a time zone.
"""

from __future__ import annotations

import time
from collections.abc import Callable

import pyarrow as pa

from lance_ops.core.cached_property import cached_property
from lance_ops.core.errors import InvalidFilter
from lance_ops.core.predicate.tree import Expression, Literal

__all__ = ["CURRENT_TIME_KEYWORDS", "Clock", "returns_current_time"]

_NANOSECONDS_A_DAY = 86_400 * 10**9

CURRENT_TIME_KEYWORDS = frozenset(["current_date", "current_time", "current_timestamp"])
"""The names that SQL calls without parentheses."""


class Clock:
    """The time at which one text is parsed. The first call reads the clock, and later calls get the same time."""

    @cached_property
    def _nanoseconds(self) -> int:
        return time.time_ns()

    def call(self, name: str, num_arguments: int) -> Expression:
        """Return what one of the functions returns, as a literal; raise `InvalidFilter` if it is given arguments."""
        if num_arguments:
            raise InvalidFilter(f"{name} takes no arguments")
        kind, ticks = _FUNCTIONS[name.lower()]
        return Literal(pa.scalar(ticks(self._nanoseconds), kind))


def returns_current_time(name: str) -> bool:
    """Whether a function of that name returns the current time."""
    return name.lower() in _FUNCTIONS


_NOW = (pa.timestamp("ns"), lambda nanoseconds: nanoseconds)
_DAY = (pa.date32(), lambda nanoseconds: nanoseconds // _NANOSECONDS_A_DAY)
_TIME = (pa.time64("ns"), lambda nanoseconds: nanoseconds % _NANOSECONDS_A_DAY)
_FUNCTIONS: dict[str, tuple[pa.DataType, Callable[[int], int]]] = {
    "now": _NOW,
    "current_timestamp": _NOW,
    "current_date": _DAY,
    "today": _DAY,
    "current_time": _TIME,
}
