"""The declaration of raw files: where they land, how they form batches, and what a file may hold and cost."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal, Self

from pydantic import Field, field_validator, model_validator

from lance_ops.core.schema import SchemaMode
from lance_ops.dagster.declaration.declared_model import DeclaredModel, Options
from lance_ops.dagster.declaration.environment import expand_all, expand_location
from lance_ops.dagster.declaration.patterns import KeyPattern, PathGlob
from lance_ops.dagster.declaration.store_location import StoreLocation
from lance_ops.maintenance.ingest import ExtraColumns, MissingColumns, RawLimits, RawReading, TextReading

__all__ = ["RawFileLimits", "RawFiles", "RawText"]


class RawFileLimits(DeclaredModel):
    """What one raw file may hold and cost; a run refuses a file beyond a limit and names the limit."""

    file_bytes: int = Field(default=16 * 1024**3, ge=1, description="The file's size in bytes.")
    rows: int = Field(default=1_000_000_000, ge=1, description="The file's rows.")
    columns: int = Field(default=10_000, ge=1, description="Fields at all levels.")
    depth: int = Field(default=60, ge=1, le=60, description="Levels of nested fields and JSON values.")
    expansion: int = Field(
        default=1000, ge=1, description="Decoded bytes for each stored byte; 256 MiB are always allowed."
    )
    row_bytes: int = Field(
        default=64 * 1024**2, ge=1, le=1024**3, description="The bytes of one row of CSV or JSON, decompressed."
    )
    memory_bytes: int = Field(
        default=2 * 1024**3, ge=64 * 1024**2, description="What an isolated file may take at once."
    )
    seconds: float = Field(default=300, gt=0, description="How long an isolated file may take until its next rows.")

    @model_validator(mode="after")
    def _has_no_flaw(self) -> Self:
        if flaw := self.limits().flaw():
            raise ValueError(flaw)
        return self

    def limits(self) -> RawLimits:
        """Return the limits as `maintenance.ingest` takes them."""
        return RawLimits(**self.model_dump())


class RawText(DeclaredModel):
    """How CSV and JSON are read; the defaults are those of ingestion."""

    delimiter: str = Field(default=",", description="The text between the cells of CSV.")
    quote: str = Field(default='"', description="The text around cells of CSV; empty: none.")
    escape: str = Field(default="", description="The text before quotes in cells of CSV; empty: quotes are doubled.")
    header: bool = Field(
        default=True,
        description="Whether CSV begins with the names of its columns; without one they are those of write.columns.",
    )
    encoding: str = Field(default="utf-8", description="The encoding of CSV and JSON.")
    null_values: tuple[str, ...] | None = Field(default=None, description="Cells of CSV that are null.")
    empty_as_null: bool = Field(default=False, description="Whether empty cells of text columns are null, too.")
    date_formats: tuple[str, ...] = Field(default=(), description="Forms of dates, such as %d.%m.%Y, besides ISO 8601.")
    timestamp_formats: tuple[str, ...] = Field(default=(), description="Forms of timestamps, besides ISO 8601.")
    decimal_point: str = Field(
        default=".", description="The character between whole part and fraction of numbers in CSV."
    )
    thousands: str = Field(default="", description="The character between groups of three digits in CSV; empty: none.")
    skip_lines: int = Field(
        default=0, ge=0, description="The number of lines to skip at the beginning of CSV, before its header."
    )
    distinct_names: bool = Field(
        default=False,
        description="Number the repeated and empty names of CSV's header; otherwise the file is refused.",
    )

    @model_validator(mode="after")
    def _has_no_flaw(self) -> Self:
        if flaw := self.reading().flaw():
            raise ValueError(flaw)
        return self

    def reading(self) -> TextReading:
        """Return the options as `maintenance.ingest` takes them."""
        return TextReading(**self.model_dump())


class RawFiles(DeclaredModel):
    """Where raw files land, how they form batches, and what becomes of those that are not as expected."""

    uri: str = Field(repr=False, description="The landing folder; ${NAME} is expanded when it is listed.")
    storage_options: Options = Field(
        default_factory=dict,
        repr=False,
        description="Options of the folder's fsspec file system, such as key and secret.",
    )
    glob: str = Field(
        default="**", min_length=1, description="Which files below the folder count; ** spans folders, * does not."
    )
    batch: Literal["file", "folder"] = Field(default="file", description="What one batch is: a file, or a folder.")
    key: str | None = Field(
        default=None,
        description="A regular expression (RE2) searched in a file's path below the folder; group `key` is the key.",
    )
    unmatched: Literal["set_aside", "ignore"] = Field(
        default="set_aside",
        description="What to do with a complete file in whose path `key` is not found: set it aside, so that the "
        "check landing_readable fails and names it, or ignore it, as if `glob` left it out.",
    )
    settle_seconds: float = Field(
        default=60, ge=0, description="A file younger than this may still be growing; without a marker it waits."
    )
    marker: str | None = Field(
        default=None,
        pattern=r"^[^/]+$",
        description="A file name, such as _SUCCESS, without which a folder's files do not count.",
    )
    max_wait_hours: float | None = Field(
        default=24,
        gt=0,
        le=87_600,
        description="A batch that waits for its marker or its bytes for longer than this after its last file arrived "
        "fails the check batches_settled; null: it may wait for ever.",
    )
    max_files_per_tick: int = Field(default=1000, ge=1, description="The rest of a backlog waits for the next tick.")
    changed: Literal["refuse", "append", "replace"] = Field(
        default="refuse",
        description="What to do with a batch that changed after it was ingested: report it, ingest it as a new one, "
        "or exchange its rows in one version, by write.batch_column.",
    )
    empty: Literal["wait", "refuse", "ignore"] = Field(
        default="wait",
        description="What to do with a file of 0 bytes: take it as still being written, refuse its batch once it is "
        "old enough, or leave it out.",
    )
    vanished: Literal["keep", "refuse"] = Field(
        default="keep",
        description="What to do when the files of a batch are gone: show it, and keep its rows; or fail the check "
        "batches_settled too, until they are back.",
    )
    schema_mode: SchemaMode = Field(
        default=SchemaMode.ERROR,
        description="What to do with columns that the table lacks: refuse the batch, add them and widen types, or "
        "make the newest batch the whole table.",
    )
    missing_columns: MissingColumns = Field(
        default=MissingColumns.FILL, description="What to do with a file that lacks a column: nulls, or refuse it."
    )
    extra_columns: ExtraColumns = Field(
        default=ExtraColumns.REFUSE,
        description="With schema_mode error: refuse or ignore a file's column that the table lacks.",
    )
    case_sensitive: bool = Field(default=False, description="Whether names of columns match by case, too.")
    text: RawText = Field(default=RawText(), description="How CSV and JSON are read.")
    bad: Literal["set_aside", "refuse"] = Field(
        default="set_aside",
        description="What to do with a batch that is not read or does not fit: ingest the others of its run, or none.",
    )
    limits: RawFileLimits = Field(default=RawFileLimits(), description="What one file may hold and cost.")
    isolated: bool = Field(
        default=True, description="Whether files are decoded in a process of its own, which a hostile file may end."
    )
    links: Literal["refuse", "follow"] = Field(
        default="refuse",
        description="What to do with symbolic links in a local folder: set them aside, or follow them anywhere.",
    )

    @field_validator("glob")
    @classmethod
    def _is_glob(cls, pattern: str) -> str:
        return PathGlob(pattern).pattern

    @field_validator("key")
    @classmethod
    def _has_key(cls, pattern: str | None) -> str | None:
        return None if pattern is None else KeyPattern(pattern).pattern

    @model_validator(mode="after")
    def _takes_extra_columns_once(self) -> Self:
        if self.schema_mode is not SchemaMode.ERROR and self.extra_columns is ExtraColumns.IGNORE:
            raise ValueError(f"schema_mode {self.schema_mode.value} takes extra columns: leave extra_columns out")
        return self

    def location(self, environment: Mapping[str, str] | None = None) -> StoreLocation:
        """Expand the variables."""
        return StoreLocation(
            expand_location(self.uri, "raw.uri", environment),
            expand_all(self.storage_options, "raw.storage_options", environment),
        )

    def reading(self) -> RawReading:
        """Return the limits, the isolation and the text options as `maintenance.ingest` takes them."""
        return RawReading(self.limits.limits(), self.isolated, self.text.reading())
