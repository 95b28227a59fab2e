"""The kinds of steps that pay debt."""

from __future__ import annotations

from enum import Enum

__all__ = ["StepKind"]


class StepKind(Enum):
    """The steps that pay debt, in the order in which one table takes them."""

    COMPACT = "compact"
    REINDEX = "reindex"
    CLEANUP = "cleanup"
