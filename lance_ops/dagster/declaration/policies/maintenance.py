"""The declared policies of maintenance: its steps, its schedules, its indices, and the limits of health."""

from __future__ import annotations

from datetime import timedelta
from typing import Annotated, Literal, Self
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

import dagster as dg
from pydantic import AfterValidator, Field, model_validator

from lance_ops.dagster.declaration.declared_model import DeclaredModel, OptionalSection
from lance_ops.maintenance.cleanup import MOST_DAYS

__all__ = [
    "CleanupPolicy",
    "CompactionPolicy",
    "Cron",
    "HealthLimits",
    "IndexSpec",
    "Maintenance",
    "Timezone",
    "UpkeepPolicy",
    "VerificationPolicy",
]


def _checked_cron(cron: str) -> str:
    try:
        dg.ScheduleDefinition(name="checked", cron_schedule=cron, job_name="checked")
    except dg.DagsterInvalidDefinitionError as error:
        raise ValueError(f"not a cron schedule: {cron}") from error
    return cron


def _checked_timezone(name: str) -> str:
    try:
        ZoneInfo(name)
    except (ZoneInfoNotFoundError, ValueError) as error:
        raise ValueError(f"not a time zone: {name}") from error
    return name


Cron = Annotated[str, AfterValidator(_checked_cron)]
"""A schedule that Dagster accepts."""

Timezone = Annotated[str, AfterValidator(_checked_timezone)]
"""The name of a time zone that this machine knows."""


class IndexSpec(DeclaredModel):
    """An index that maintenance builds and keeps up to date."""

    column: str = Field(min_length=1, description="The indexed column.")
    type: Literal["BTREE", "ZONEMAP"] | None = Field(
        default=None, description="BTREE or ZONEMAP; null: the type of the table's index, or BTREE if it has none yet."
    )
    name: str | None = Field(default=None, description="Defaults to <column>_idx.")

    @property
    def index_name(self) -> str:
        """The given name, or the reference's default name for the column."""
        return self.name or f"{self.column}_idx"


class CompactionPolicy(DeclaredModel):
    """The targets of compaction."""

    target_rows_per_fragment: int = Field(
        default=1024 * 1024, ge=1, description="Compaction joins neighbouring fragments that have fewer rows."
    )
    materialize_deletions: bool = Field(
        default=True, description="Whether fragments are rewritten without deleted rows."
    )
    materialize_deletions_threshold: float = Field(
        default=0.1, ge=0, le=1, description="The deleted share of a fragment above which it is rewritten."
    )


class CleanupPolicy(DeclaredModel):
    """Which versions clean-up may remove; a tagged version always stays."""

    older_than_days: float | None = Field(
        default=14, ge=0, le=MOST_DAYS, description="Versions older than this may go."
    )
    retain_versions: int | None = Field(default=None, ge=1, description="How many of the newest versions stay.")

    @model_validator(mode="after")
    def _bounded(self) -> Self:
        if self.older_than_days is None and self.retain_versions is None:
            raise ValueError("give older_than_days, retain_versions or both")
        return self

    @property
    def older_than(self) -> timedelta | None:
        """The age from which clean-up may remove a version."""
        return None if self.older_than_days is None else timedelta(days=self.older_than_days)


class VerificationPolicy(DeclaredModel):
    """How much a run verifies, and when; runs continue one another, so all files have their turn."""

    max_megabytes: int | None = Field(
        default=1024, ge=1, description="Verify files of about this many MiB (1024² bytes) in a run; null: all of them."
    )
    cron: Cron | None = Field(default=None, description="When verification runs; null: only when somebody asks.")


class UpkeepPolicy(DeclaredModel):
    """When a sensor requests the job `<dataset>_upkeep`, and how many bytes that job may rewrite and verify.

    A step is owed if it pays back, or if a limit of `health` is exceeded and the step lowers the measure.
    """

    max_megabytes_per_run: int | None = Field(
        default=10_240, ge=1, description="Rewrite and verify at most this many MiB (1024² bytes) in a run."
    )
    max_megabytes_per_day: int | None = Field(
        default=None, ge=1, description="Rewrite and verify at most this many MiB in 24 hours."
    )
    payback_reads: float = Field(
        default=10.0, gt=0, description="A rewrite is owed if it saves its bytes within this many reads of the table."
    )
    min_removable_versions: int = Field(default=20, ge=1, description="Clean up when this many versions are removable.")
    verify_after_days: float | None = Field(
        default=None,
        gt=0,
        le=MOST_DAYS,
        description="Verify files, within the same budget, when the last pass over all of them ended this many days "
        "ago; null: only `maintenance.verification` and people ask for it.",
    )
    interval_seconds: int = Field(default=300, ge=1, description="How often the sensor measures.")

    @property
    def verify_after(self) -> timedelta | None:
        """The age from which a verification is due."""
        return None if self.verify_after_days is None else timedelta(days=self.verify_after_days)


class Maintenance(DeclaredModel):
    """Which steps the scheduled maintenance takes, and when."""

    compaction: CompactionPolicy = Field(default=CompactionPolicy(), description="How fragments are compacted.")
    cleanup: CleanupPolicy = Field(default=CleanupPolicy(), description="Which old versions are removed.")
    verification: VerificationPolicy = Field(
        default=VerificationPolicy(), description="How many files are compared with their checksums, and when."
    )
    upkeep: OptionalSection[UpkeepPolicy] = Field(
        default=None,
        description="When a sensor requests upkeep, and its budget; {} takes the defaults; left out: no sensor.",
    )
    cron: Cron | None = Field(
        default="30 3 * * *",
        description="When maintenance runs; null: only when somebody asks. With `upkeep` it is null by default, "
        "because the budget of upkeep does not bound what maintenance rewrites.",
    )
    timezone: Timezone = Field(default="UTC", description="The time zone of the schedules, such as Europe/Zurich.")

    @property
    def is_automatic(self) -> bool:
        """Whether a schedule or a sensor maintains the dataset; otherwise only people do, or a fleet."""
        return self.cron is not None or self.upkeep is not None

    @model_validator(mode="before")
    @classmethod
    def _upkeep_instead_of_a_schedule(cls, declared: object) -> object:
        if isinstance(declared, dict) and declared.get("upkeep") is not None:
            return {"cron": None, **declared}
        return declared


class HealthLimits(DeclaredModel):
    """Limits of the health checks. A check fails above its limit, and so does a maintenance run that ends above one.

    `hours_without_version` is the limit of the check `fresh`, which a sensor evaluates; no maintenance brings it down.
    """

    small_fragments: int = Field(
        default=100,
        ge=0,
        description="Fragments that hold less than three quarters of the rows that compaction aims at, and less than "
        "16 GiB.",
    )
    deleted_ratio: float = Field(default=0.2, ge=0, le=1, description="Deleted rows, as a share of all stored rows.")
    unindexed_ratio: float = Field(
        default=0.2, ge=0, le=1, description="Rows that an index does not cover, as a share."
    )
    versions: int = Field(
        default=1000,
        ge=1,
        description="Versions that `maintenance.cleanup` may remove. The check warns if it must keep more than that.",
    )
    hours_without_version: float | None = Field(
        default=None,
        ge=1 / 60,
        le=MOST_DAYS * 24,
        description="The check `fresh` fails if no version changed rows for this long; null: no check.",
    )
