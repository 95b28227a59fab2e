"""The declaration of what people see: notes on columns, and what the head shows of each version."""

from __future__ import annotations

from pydantic import Field

from lance_ops.dagster.declaration.declared_model import DeclaredModel

__all__ = ["ColumnNotes", "HeadContent"]


class ColumnNotes(DeclaredModel):
    """What people read about a column."""

    description: str = Field(description="Instead of the description in the metadata of the table's field.")


class HeadContent(DeclaredModel):
    """What the head shows besides measures."""

    sample_rows: int = Field(
        default=0, ge=0, le=100, description="The last rows of the newest version; none by default: they may be secret."
    )
