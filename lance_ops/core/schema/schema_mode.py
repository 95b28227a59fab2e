"""What a write does with columns that its table does not have."""

from __future__ import annotations

from enum import Enum

__all__ = ["SchemaMode"]


class SchemaMode(Enum):
    """What a write does with columns or types that the table does not have: refuse, add, or take the rows' schema."""

    ERROR = "error"
    ADD = "add"
    OVERWRITE = "overwrite"
