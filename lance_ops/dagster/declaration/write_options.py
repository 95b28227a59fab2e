"""The declaration of how batches become rows of a table, and how its fragments are written."""

from __future__ import annotations

import pyarrow as pa
from pydantic import Field, field_validator

from lance_ops.core.errors import LanceOpsError
from lance_ops.core.schema import arrow_type_of, check_column_name
from lance_ops.core.versions import FileVersion
from lance_ops.dagster.declaration.declared_model import DeclaredModel
from lance_ops.maintenance.ingest import HistoryColumns, IngestMode

__all__ = ["WriteOptions"]


class WriteOptions(DeclaredModel):
    """How rows enter the table, and how fragments are written; the latter's defaults are those of the reference."""

    mode: IngestMode = Field(
        default=IngestMode.APPEND,
        description="Append rows; merge them by write.keys (upsert); or keep the history of each key's rows (scd2).",
    )
    keys: tuple[str, ...] = Field(default=(), description="The columns by which upsert and scd2 merge rows.")
    valid_from: str = Field(default="valid_from", description="With scd2, the files' column of when a row begins.")
    valid_to: str = Field(default="valid_to", description="With scd2, the table's column of when a row ends.")
    current: str = Field(default="current", description="With scd2, the table's column of whether a row has no end.")

    max_rows_per_file: int = Field(default=1024 * 1024, ge=1, description="A fragment has at most this many rows.")
    data_storage_version: str = Field(default="stable", description="The file version of a new table.")
    enable_stable_row_ids: bool = Field(default=False, description="Chosen when the table is created, and for good.")
    columns: dict[str, str] = Field(
        default_factory=dict,
        description="Column to Arrow type, where the raw files' own type is not the table's; it leads text files.",
    )
    batch_column: str | None = Field(
        default=None, description="A text column for the key of each row's batch, by which batches are replaced."
    )

    @field_validator("data_storage_version")
    @classmethod
    def _is_file_version(cls, version: str) -> str:
        try:
            FileVersion.parse(version)
        except LanceOpsError as error:
            raise ValueError(str(error)) from error
        return version

    @field_validator("batch_column", "valid_from", "valid_to", "current")
    @classmethod
    def _is_column_name(cls, name: str | None) -> str | None:
        if name is not None:
            _check_name(name)
        return name

    @field_validator("columns")
    @classmethod
    def _has_types(cls, columns: dict[str, str]) -> dict[str, str]:
        for name, kind in columns.items():
            _check_name(name)
            try:
                arrow_type_of(kind, (), name)
            except LanceOpsError as error:
                raise ValueError(str(error)) from error
        return columns

    def history(self) -> HistoryColumns:
        """Return the columns of a history as `maintenance.ingest` takes them."""
        return HistoryColumns(self.valid_from, self.valid_to, self.current)

    def column_types(self) -> dict[str, pa.DataType]:
        """Return the declared types as `maintenance.ingest` takes them."""
        return {name: arrow_type_of(kind, (), name) for name, kind in self.columns.items()}


def _check_name(name: str) -> None:
    """Raise `ValueError` for a name that no column of a table may have."""
    try:
        check_column_name(name)
    except LanceOpsError as error:
        raise ValueError(str(error)) from error
