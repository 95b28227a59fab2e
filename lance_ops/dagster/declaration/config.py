"""The models of a declared dataset: the keys of its YAML file or of a component's attributes.

Every model is frozen and refuses unknown keys. Texts may hold `${NAME}`. The models keep them as written;
`DatasetConfig.table` and `RawFiles.location` expand them when a run, a sensor or a check needs them.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Literal, Self
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

import dagster as dg
from pydantic import BaseModel, ConfigDict, Field, field_validator, model_validator

from lance_ops.committers import with_prefixes
from lance_ops.core.errors import ConfigError
from lance_ops.core.redaction import REDACTED, public_uri
from lance_ops.dagster.declaration.environment import expand, expand_all
from lance_ops.dagster.declaration.patterns import KeyPattern, PathGlob
from lance_ops.maintenance.ingest import RawLimits, RawReading

__all__ = [
    "CleanupPolicy",
    "CompactionPolicy",
    "DatasetConfig",
    "HealthLimits",
    "IndexSpec",
    "Maintenance",
    "RawFileLimits",
    "RawFiles",
    "StoreLocation",
    "VerificationPolicy",
    "WriteOptions",
]

_NAME = re.compile(r"[a-z][a-z0-9_]*(/[a-z][a-z0-9_]*)*")


Options = dict[str, str]


@dataclass(frozen=True)
class StoreLocation:
    """A URI and its storage options, with variables expanded; `repr` never shows a secret."""

    uri: str = field(repr=False)
    storage_options: Mapping[str, str] = field(default_factory=dict, repr=False)

    @property
    def public_uri(self) -> str:
        """The URI without password and query."""
        if "://" not in self.uri:
            return self.uri
        return public_uri(self.uri).partition("?")[0].replace(f"{REDACTED}@", "")

    def __repr__(self) -> str:
        return f"StoreLocation({self.public_uri!r})"


class _Model(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class RawFileLimits(_Model):
    """What one raw file may hold and cost; a run refuses a file beyond a limit and names the limit."""

    file_bytes: int = Field(default=16 * 1024**3, ge=1)
    rows: int = Field(default=1_000_000_000, ge=1)
    columns: int = Field(default=10_000, ge=1, description="Fields at all levels.")
    depth: int = Field(default=60, ge=1, le=60, description="Levels of nested fields and JSON values.")
    expansion: int = Field(
        default=1000, ge=1, description="Decoded bytes for each stored byte; 256 MiB are always allowed."
    )
    memory_bytes: int = Field(
        default=2 * 1024**3, ge=64 * 1024**2, description="What an isolated file may take at once."
    )
    seconds: float = Field(default=300, gt=0, description="How long an isolated file may take until its next rows.")


class RawFiles(_Model):
    """Where raw files land, and how they form batches."""

    uri: str = Field(repr=False, description="The landing folder; ${NAME} is expanded when it is listed.")
    storage_options: Options = Field(
        default_factory=dict,
        repr=False,
        description="Options of the folder's fsspec file system, such as key and secret.",
    )
    glob: str = Field(default="**", description="Which files below the folder count; ** spans folders, * does not.")
    batch: Literal["file", "folder"] = Field(default="file", description="What one batch is: a file, or a folder.")
    key: str | None = Field(
        default=None,
        description="A regular expression (RE2) searched in a file's path below the folder; group `key` is the key.",
    )
    settle_seconds: float = Field(
        default=60, ge=0, description="A file younger than this may still be growing; without a marker it waits."
    )
    marker: str | None = Field(
        default=None, description="A file name, such as _SUCCESS, without which a folder's files do not count."
    )
    max_files_per_tick: int = Field(default=1000, ge=1, description="The rest of a backlog waits for the next tick.")
    changed: Literal["refuse", "append"] = Field(
        default="refuse",
        description="What to do with a batch that changed after it was ingested: report it, or ingest it as a new one.",
    )
    bad: Literal["set_aside", "refuse"] = Field(
        default="set_aside",
        description="What to do with a batch that is not read or does not fit: ingest the others of its run, or none.",
    )
    limits: RawFileLimits = RawFileLimits()
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

    def location(self, environment: Mapping[str, str] | None = None) -> StoreLocation:
        """Expand the variables."""
        return StoreLocation(
            expand(self.uri, "raw.uri", environment).rstrip("/"),
            expand_all(self.storage_options, "raw.storage_options", environment),
        )

    def reading(self) -> RawReading:
        """Return the limits and the isolation as `maintenance.ingest` takes them."""
        return RawReading(RawLimits(**self.limits.model_dump()), self.isolated)


class WriteOptions(_Model):
    """How fragments are written; the defaults are those of the reference."""

    max_rows_per_file: int = Field(default=1024 * 1024, ge=1)
    data_storage_version: str = "stable"
    enable_stable_row_ids: bool = Field(default=False, description="Chosen when the table is created, and for good.")
    columns: dict[str, str] = Field(
        default_factory=dict, description="Column to Arrow type, where the raw files' own type is not the table's."
    )


class IndexSpec(_Model):
    """An index that maintenance builds and keeps up to date."""

    column: str
    type: Literal["BTREE"] = "BTREE"
    name: str | None = None

    @property
    def index_name(self) -> str:
        """The given name, or the reference's default name for the column."""
        return self.name or f"{self.column}_idx"


class CompactionPolicy(_Model):
    """The targets of compaction."""

    target_rows_per_fragment: int = Field(default=1024 * 1024, ge=1)
    materialize_deletions: bool = True
    materialize_deletions_threshold: float = Field(default=0.1, ge=0, le=1)


class CleanupPolicy(_Model):
    """Which versions clean-up may remove; a tagged version always stays."""

    older_than_days: float | None = Field(default=14, ge=0)
    retain_versions: int | None = Field(default=None, ge=1)

    @model_validator(mode="after")
    def _bounded(self) -> Self:
        if self.older_than_days is None and self.retain_versions is None:
            raise ValueError("give older_than_days, retain_versions or both")
        return self

    @property
    def older_than(self) -> timedelta | None:
        """The age from which clean-up may remove a version."""
        return None if self.older_than_days is None else timedelta(days=self.older_than_days)


class VerificationPolicy(_Model):
    """How much a run verifies, and when; runs continue one another, so all files have their turn."""

    max_megabytes: int | None = Field(
        default=1024, ge=1, description="Verify files of about so many megabytes in a run; null: all of them."
    )
    cron: str | None = None

    @field_validator("cron")
    @classmethod
    def _is_cron(cls, cron: str | None) -> str | None:
        return _checked_cron(cron)


class Maintenance(_Model):
    """Which steps the scheduled maintenance takes, and when."""

    compaction: CompactionPolicy = CompactionPolicy()
    cleanup: CleanupPolicy = CleanupPolicy()
    verification: VerificationPolicy = VerificationPolicy()
    cron: str | None = "30 3 * * *"
    timezone: str = "UTC"

    @field_validator("cron")
    @classmethod
    def _is_cron(cls, cron: str | None) -> str | None:
        return _checked_cron(cron)

    @field_validator("timezone")
    @classmethod
    def _is_timezone(cls, name: str) -> str:
        try:
            ZoneInfo(name)
        except (ZoneInfoNotFoundError, ValueError) as error:
            raise ValueError(f"not a time zone: {name}") from error
        return name


class HealthLimits(_Model):
    """Limits of the health checks. A check fails above its limit, and so does a maintenance run that ends above one."""

    small_fragments: int = Field(default=100, ge=0)
    deleted_ratio: float = Field(default=0.2, ge=0, le=1)
    unindexed_ratio: float = Field(default=0.2, ge=0, le=1)
    versions: int = Field(default=1000, ge=1)
    hours_without_version: float | None = Field(default=None, gt=0)


class DatasetConfig(_Model):
    """A declared dataset: its location, the source of its rows, and its maintenance.

    Base paths of its manifests are followed into other buckets only beneath `allowed_bases`.
    """

    name: str
    uri: str
    storage_options: Options = Field(default_factory=dict, repr=False)
    allowed_bases: tuple[str, ...] = ()
    description: str | None = None
    owners: tuple[str, ...] = ()
    raw: RawFiles | None = None
    write: WriteOptions = WriteOptions()
    indices: tuple[IndexSpec, ...] = ()
    maintenance: Maintenance = Maintenance()
    health: HealthLimits = HealthLimits()

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

    def table(self, environment: Mapping[str, str] | None = None) -> StoreLocation:
        """Return the dataset's location with its variables expanded."""
        options = expand_all(self.storage_options, f"{self.name}: storage_options", environment)
        bases = [expand(base, f"{self.name}: allowed_bases", environment) for base in self.allowed_bases]
        return StoreLocation(
            expand(self.uri, f"{self.name}: uri", environment).rstrip("/"), with_prefixes(options, bases)
        )

    def landing(self) -> RawFiles:
        """Return the declaration of the landing folder; raise `ConfigError` if the dataset declares none."""
        if self.raw is None:
            raise ConfigError(f"{self.name}: raw is not configured, so there is nothing to ingest from")
        return self.raw


def _checked_cron(cron: str | None) -> str | None:
    """Return a schedule; raise `ValueError` for one that Dagster refuses."""
    try:
        if cron is not None:
            dg.ScheduleDefinition(name="checked", cron_schedule=cron, job_name="checked")
    except dg.DagsterInvalidDefinitionError as error:
        raise ValueError(f"not a cron schedule: {cron}") from error
    return cron
