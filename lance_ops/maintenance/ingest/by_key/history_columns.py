"""The columns that say from when to when a row of a history was true."""

from __future__ import annotations

from lance_ops.core.records import dataclass

__all__ = ["HistoryColumns"]


@dataclass(frozen=True)
class HistoryColumns:
    """The names of the columns of a history. Raw files have the first one; the table gets all three."""

    valid_from: str = "valid_from"
    valid_to: str = "valid_to"
    current: str = "current"

    @property
    def derived(self) -> tuple[str, ...]:
        """The columns that no raw file has."""
        return self.valid_to, self.current
