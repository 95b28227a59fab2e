"""The declaration of how a table's fragments are written."""

from __future__ import annotations

from pydantic import Field

from lance_ops.dagster.declaration.declared_model import DeclaredModel

__all__ = ["WriteOptions"]


class WriteOptions(DeclaredModel):
    """How fragments are written; the defaults are those of the reference."""

    max_rows_per_file: int = Field(default=1024 * 1024, ge=1, description="A fragment has at most so many rows.")
    data_storage_version: str = Field(default="stable", description="The file version of a new table.")
    enable_stable_row_ids: bool = Field(default=False, description="Chosen when the table is created, and for good.")
    columns: dict[str, str] = Field(
        default_factory=dict, description="Column to Arrow type, where the raw files' own type is not the table's."
    )
