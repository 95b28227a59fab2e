"""What an ingestion may be told: the schema, how files are read, and what becomes of batches that change or are bad."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field
from enum import Enum

import pyarrow as pa

from lance_ops.core.errors import InvalidInput
from lance_ops.core.records import dataclass
from lance_ops.core.schema import CaseRule, SchemaMode
from lance_ops.maintenance.ingest.by_key import HistoryColumns
from lance_ops.maintenance.ingest.raw_files import RawReading
from lance_ops.maintenance.ingest.raw_rows import ExtraColumns, MissingColumns
from lance_ops.writing import FragmentLimits

__all__ = ["BadBatches", "ChangedBatches", "IngestMode", "IngestOptions"]


class ChangedBatches(Enum):
    """What becomes of a batch that was ingested with other content: a refusal, or its rows are exchanged."""

    REFUSE = "refuse"
    REPLACE = "replace"


class BadBatches(Enum):
    """What ingestion does with a batch if one of its files is unreadable or does not fit the table.

    `REFUSE` fails the whole ingestion. `SET_ASIDE` ingests the other batches, and says which ones are left and why.
    """

    REFUSE = "refuse"
    SET_ASIDE = "set_aside"


class IngestMode(Enum):
    """What becomes of rows: they are appended, or merged by key, or are changes in the histories of their keys."""

    APPEND = "append"
    UPSERT = "upsert"
    HISTORY = "scd2"


@dataclass(frozen=True)
class IngestOptions:
    """Schema and format of a table to create, limits of fragments, how to read raw files, and how much a task reads.

    `schema` is that of a new table; with `schema_mode` `add` or `overwrite`, also the one to which an existing table
    changes. Without it, files tell it, but for the types in `column_types`, and the names of CSV without a header are
    those of `column_types`. `batch_column` names a text column that holds the key of each row's batch, by which
    `changed_batches` can replace the rows of a batch. With `mode` `UPSERT` or `HISTORY`, rows are merged by the columns
    `keys`. Of rows with one key the last counts, in the order of batches, files and rows.
    """

    schema: pa.Schema | None = None
    column_types: Mapping[str, pa.DataType] = field(default_factory=dict)
    data_storage_version: str = "stable"
    enable_stable_row_ids: bool = False
    limits: FragmentLimits = field(default_factory=FragmentLimits)
    reading: RawReading = field(default_factory=RawReading)
    max_bytes_per_task: int = 256 * 1024**2
    max_files_per_task: int = 64
    schema_mode: SchemaMode = SchemaMode.ERROR
    missing_columns: MissingColumns = MissingColumns.FILL
    extra_columns: ExtraColumns = ExtraColumns.REFUSE
    case_sensitive: bool = False
    batch_column: str | None = None
    changed_batches: ChangedBatches = ChangedBatches.REFUSE
    bad_batches: BadBatches = BadBatches.REFUSE
    mode: IngestMode = IngestMode.APPEND
    keys: tuple[str, ...] = ()
    history: HistoryColumns = field(default_factory=HistoryColumns)

    def __post_init__(self) -> None:
        if self.schema_mode is not SchemaMode.ERROR and self.extra_columns is ExtraColumns.IGNORE:
            raise InvalidInput(
                f"schema mode {self.schema_mode.value!r} takes extra columns, and they are to be ignored"
            )
        if self.changed_batches is ChangedBatches.REPLACE and self.batch_column is None:
            raise InvalidInput("the rows of a changed batch are found by the batch column: name one")
        if self.mode is not IngestMode.APPEND and not self.keys:
            raise InvalidInput(f"mode {self.mode.value!r} needs keys: name the columns by which rows are found")
        if self.mode is IngestMode.APPEND and self.keys:
            raise InvalidInput("mode 'append' takes no keys: leave them out, or choose mode 'upsert' or 'scd2'")
        if self.mode is not IngestMode.APPEND and self.schema_mode is SchemaMode.OVERWRITE:
            raise InvalidInput(
                f"mode {self.mode.value!r} merges rows, and schema mode 'overwrite' replaces all of them"
            )
        if self.mode is IngestMode.HISTORY and self.changed_batches is ChangedBatches.REPLACE:
            raise InvalidInput("a history keeps what batches said: ingest a changed batch as one of its own")

    @property
    def case_rule(self) -> CaseRule:
        """The rule by which names of files are matched with the table's."""
        return CaseRule(self.case_sensitive)

    @property
    def own_columns(self) -> tuple[str, ...]:
        """The table's columns that no raw file has."""
        label = () if self.batch_column is None else (self.batch_column,)
        return label + (self.history.derived if self.mode is IngestMode.HISTORY else ())

    @property
    def required_columns(self) -> tuple[str, ...]:
        """The columns that every row of a raw file needs a value of."""
        return self.keys + ((self.history.valid_from,) if self.mode is IngestMode.HISTORY else ())
