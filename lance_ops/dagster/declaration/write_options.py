"""The declaration of how a table's fragments are written."""

from __future__ import annotations

import pyarrow as pa
from pydantic import Field, field_validator

from lance_ops.core.errors import LanceOpsError
from lance_ops.core.schema import arrow_type_of
from lance_ops.dagster.declaration.declared_model import DeclaredModel

__all__ = ["WriteOptions"]


class WriteOptions(DeclaredModel):
    """How fragments are written; the defaults are those of the reference."""

    max_rows_per_file: int = Field(default=1024 * 1024, ge=1, description="A fragment has at most so many rows.")
    data_storage_version: str = Field(default="stable", description="The file version of a new table.")
    enable_stable_row_ids: bool = Field(default=False, description="Chosen when the table is created, and for good.")
    columns: dict[str, str] = Field(
        default_factory=dict,
        description="Column to Arrow type, where the raw files' own type is not the table's; it leads text files.",
    )
    batch_column: str | None = Field(
        default=None, description="A text column for the key of each row's batch, by which batches are replaced."
    )

    @field_validator("columns")
    @classmethod
    def _has_types(cls, columns: dict[str, str]) -> dict[str, str]:
        for name, kind in columns.items():
            try:
                arrow_type_of(kind, (), name)
            except LanceOpsError as error:
                raise ValueError(str(error)) from error
        return columns

    def column_types(self) -> dict[str, pa.DataType]:
        """Return the declared types as `maintenance.ingest` takes them."""
        return {name: arrow_type_of(kind, (), name) for name, kind in self.columns.items()}
