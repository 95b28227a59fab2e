"""The model of a declared dataset: the keys of its YAML file or of a component's attributes.

Texts may hold `${NAME}`. The models keep them as written; `DatasetConfig.table` and `RawFiles.location` expand them
when a run, a sensor or a check needs them.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Self

from pydantic import Field, field_validator, model_validator

from lance_ops.committers import files_uri, with_prefixes
from lance_ops.core.errors import ConfigError, InvalidInput
from lance_ops.dagster.declaration.declared_model import OptionalSection, Options
from lance_ops.dagster.declaration.environment import expand, expand_all, expand_location
from lance_ops.dagster.declaration.policies import AlertChannels, HealthLimits, IndexSpec, Maintenance
from lance_ops.dagster.declaration.presentation import ColumnNotes, HeadContent, ShownAssets
from lance_ops.dagster.declaration.raw_files import RawFiles
from lance_ops.dagster.declaration.runner_choice import RunnerChoice
from lance_ops.dagster.declaration.store_location import StoreLocation
from lance_ops.dagster.declaration.write_options import WriteOptions
from lance_ops.maintenance.ingest import BadBatches, ChangedBatches, IngestOptions
from lance_ops.writing import FragmentLimits

__all__ = ["DatasetConfig"]

_NAME = re.compile(r"[a-z][a-z0-9_]*(/[a-z][a-z0-9_]*)*")


class DatasetConfig(ShownAssets):
    """A declared dataset: its location, the source of its rows, and its maintenance.

    Base paths of its manifests are followed into other buckets only beneath `allowed_bases`.
    """

    name: str = Field(description="The head asset's key; groups and the name are separated by /.")
    uri: str = Field(description="Where the table is, or will be; ${NAME} is expanded when the table is opened.")
    storage_options: Options = Field(
        default_factory=dict, repr=False, description="Options of the table's object store; ${NAME} as in `uri`."
    )
    allowed_bases: tuple[str, ...] = Field(
        default=(), description="Prefixes beneath which base paths of manifests may lead into other buckets."
    )
    columns: dict[str, ColumnNotes] = Field(default_factory=dict, description="What people read about the columns.")
    head: HeadContent = Field(default=HeadContent(), description="What the head shows of the newest version.")
    raw: OptionalSection[RawFiles] = Field(
        default=None, description="The landing folder; without one, the dataset has no ingestion."
    )
    write: WriteOptions = Field(default=WriteOptions(), description="How fragments are written.")
    indices: tuple[IndexSpec, ...] = Field(default=(), description="The indices that maintenance keeps.")
    maintenance: Maintenance = Field(default=Maintenance(), description="What scheduled maintenance does, and when.")
    health: HealthLimits = Field(default=HealthLimits(), description="The limits of the health checks.")
    alerts: AlertChannels = Field(
        default=(), description="Who is told of failures, red checks, stale data and batches set aside."
    )
    runner: RunnerChoice = Field(
        default="code_location",
        description="What executes the tasks: threads, {spark: {master, conf}}, or the code location's `lance_runner`.",
    )

    @field_validator("name")
    @classmethod
    def _is_name(cls, name: str) -> str:
        if not _NAME.fullmatch(name):
            raise ValueError("use lower case letters, digits and _, with / between a group and a name")
        return name

    @model_validator(mode="after")
    def _distinct_indices(self) -> Self:
        names = [index.index_name for index in self.indices]
        doubled = sorted({name for name in names if names.count(name) > 1})
        if doubled:
            raise ValueError(f"two indices are named {doubled[0]}")
        return self

    @model_validator(mode="after")
    def _raw_and_write_agree(self) -> Self:
        if self.raw is not None and self.raw.changed == "replace" and self.write.batch_column is None:
            raise ValueError("raw.changed: replace finds the rows of a batch by write.batch_column: name a column")
        try:
            if self.raw is not None:
                self.ingest_options()
        except InvalidInput as error:
            raise ValueError(f"raw and write do not go together: {error}") from error
        return self

    def table(self, environment: Mapping[str, str] | None = None) -> StoreLocation:
        """Return the dataset's location with its variables expanded."""
        options = expand_all(self.storage_options, f"{self.name}: storage_options", environment)
        bases = [expand(base, f"{self.name}: allowed_bases", environment) for base in self.allowed_bases]
        return StoreLocation(expand_location(self.uri, f"{self.name}: uri", environment), with_prefixes(options, bases))

    def shares_table_with(self, other: DatasetConfig) -> bool:
        """Return whether both datasets have the same table, by their URIs. No variable in the URIs is expanded."""
        return files_uri(self.uri).rstrip("/") == files_uri(other.uri).rstrip("/")

    def landing(self) -> RawFiles:
        """Return the declaration of the landing folder; raise `ConfigError` if the dataset declares none."""
        if self.raw is None:
            raise ConfigError(f"{self.name}: raw is not configured, so there is nothing to ingest from")
        return self.raw

    def ingest_options(self) -> IngestOptions:
        """Return how batches are ingested; raise `ConfigError` if the dataset declares no landing folder."""
        raw, write = self.landing(), self.write
        return IngestOptions(
            column_types=write.column_types(),
            data_storage_version=write.data_storage_version,
            enable_stable_row_ids=write.enable_stable_row_ids,
            limits=FragmentLimits(write.max_rows_per_file),
            reading=raw.reading(),
            schema_mode=raw.schema_mode,
            missing_columns=raw.missing_columns,
            extra_columns=raw.extra_columns,
            case_sensitive=raw.case_sensitive,
            batch_column=write.batch_column,
            changed_batches=ChangedBatches.REPLACE if raw.changed == "replace" else ChangedBatches.REFUSE,
            bad_batches=BadBatches(raw.bad),
            mode=write.mode,
            keys=write.keys,
            history=write.history(),
        )
