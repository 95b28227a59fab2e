"""The model of a declared fleet: the attributes of a component, or what stands beneath `fleet:` in a YAML file.

fleet:
name: lake
root: s3://lake/silver
exclude: [scratch/*]
budget: {max_megabytes: 50000, max_minutes: 240}
failure_threshold: 0.1
policy: {cleanup: {older_than_days: 14}}
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import timedelta
from pathlib import Path

from pydantic import Field

from lance_ops.core.errors import ConfigError
from lance_ops.dagster.declaration import (
    AlertChannels,
    CleanupPolicy,
    CompactionPolicy,
    Cron,
    DeclaredModel,
    Options,
    RunnerChoice,
    ShownAssets,
    StoreLocation,
    Timezone,
    expand_all,
    expand_location,
    load_declaration,
)
from lance_ops.maintenance.cleanup import MOST_DAYS, CleanupOptions
from lance_ops.maintenance.compaction import CompactionOptions
from lance_ops.maintenance.debt import DebtPolicy, Rates
from lance_ops.maintenance.fleet import Budget

__all__ = ["FLEET_COMPONENT_TYPE", "FleetBudget", "FleetConfig", "FleetPolicy", "load_fleets"]

FLEET_COMPONENT_TYPE = "lance_ops.dagster.LanceFleetComponent"
"""The `type` of a `defs.yaml` that declares a fleet."""


class FleetBudget(DeclaredModel):
    """What the maintenance of one night may cost. A bound that is null does not apply."""

    max_megabytes: int | None = Field(default=None, ge=1, description="Rewrite and verify at most this many MiB.")
    max_minutes: float | None = Field(default=None, gt=0, description="Begin no table after this many minutes.")
    max_tables: int | None = Field(default=None, ge=1, description="Maintain at most this many tables.")


class FleetPolicy(DeclaredModel):
    """What tables owe: the targets of the steps, and from when on a step is worth its bytes."""

    compaction: CompactionPolicy = Field(default=CompactionPolicy(), description="How fragments are compacted.")
    cleanup: CleanupPolicy = Field(default=CleanupPolicy(), description="Which old versions are removed.")
    payback_reads: float = Field(
        default=10.0, gt=0, description="A rewrite is owed if it saves its bytes within this many reads of the table."
    )
    min_removable_versions: int = Field(default=20, ge=1, description="Clean up when this many versions are removable.")
    verify_after_days: float | None = Field(
        default=None,
        gt=0,
        le=MOST_DAYS,
        description="Spend what is left on tables whose files were not verified for this many days.",
    )


class FleetConfig(ShownAssets):
    """A declared fleet: every Lance table beneath a root, whoever made it.

    Tables that datasets of the same code location maintain are left out.
    """

    name: str = Field(pattern=r"^[a-z][a-z0-9_]*(/[a-z][a-z0-9_]*)*$", description="The name of the asset.")
    root: str = Field(description="A folder or prefix; ${NAME} is expanded by the run.")
    storage_options: Options = Field(default_factory=dict, repr=False, description="Options of the object store.")
    exclude: tuple[str, ...] = Field(
        default=(),
        description="Leave out tables whose path beneath `root` matches one of these globs; * matches /, too.",
    )
    budget: FleetBudget = Field(default=FleetBudget(), description="What a night may cost.")
    failure_threshold: float = Field(
        default=0.1, ge=0, le=1, description="The run fails if a larger share of the tables fails."
    )
    policy: FleetPolicy = Field(default=FleetPolicy(), description="What tables owe.")
    cron: Cron | None = Field(default="0 1 * * *", description="When a night begins; null: only when somebody asks.")
    timezone: Timezone = Field(default="UTC", description="The time zone of the schedule, such as Europe/Zurich.")
    alerts: AlertChannels = Field(
        default=(), description="Who is told of nights that fail, and of nights in which a table failed."
    )
    runner: RunnerChoice = Field(default="threads", description="What executes the tasks; as for a dataset.")

    def location(self, environment: Mapping[str, str] | None = None) -> StoreLocation:
        """Return the root with its variables expanded."""
        return StoreLocation(
            expand_location(self.root, f"{self.name}: root", environment),
            expand_all(self.storage_options, f"{self.name}: storage_options", environment),
        )

    def night_budget(self) -> Budget:
        """Return the budget as `maintenance.fleet` takes it."""
        given = self.budget
        return Budget(
            None if given.max_megabytes is None else given.max_megabytes * 1024**2,
            None if given.max_minutes is None else given.max_minutes * 60,
            given.max_tables,
        )

    def debt_policy(self) -> DebtPolicy:
        """Return the policy as `maintenance.debt` takes it."""
        given = self.policy
        return DebtPolicy(
            rates=Rates(payback_reads=given.payback_reads),
            compaction=CompactionOptions(**given.compaction.model_dump()),
            cleanup=CleanupOptions(given.cleanup.older_than, given.cleanup.retain_versions),
            min_removable_versions=given.min_removable_versions,
        )

    @property
    def verify_after(self) -> timedelta | None:
        """The age from which a verification is due."""
        days = self.policy.verify_after_days
        return None if days is None else timedelta(days=days)


class _FleetDocument(DeclaredModel):
    fleet: FleetConfig


def load_fleets(folder: Path) -> tuple[FleetConfig, ...]:
    """Read every `*.yaml` in `folder`; raise `ConfigError`, which names file and key, also for a name given twice."""
    declared: dict[str, FleetConfig] = {}
    for path in sorted(folder.glob("*.yaml")):
        fleet = load_declaration(path, _FleetDocument).fleet
        if fleet.name in declared:
            raise ConfigError(f"{path}: fleet.name: {fleet.name} is declared twice")
        declared[fleet.name] = fleet
    return tuple(declared.values())
