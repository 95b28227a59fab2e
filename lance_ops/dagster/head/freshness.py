"""The check `fresh`: whether rows changed lately. A compaction, an index or a configuration is no news from the source.

The metadata of the head's newest event says which version changed rows last, so only versions without an event are
read. Time passes without a run: a sensor evaluates the check, and reports it when it turns red or green.
"""

# No postponed annotations in this module: Dagster compares the annotation of `context` with its own class.

from datetime import UTC, datetime, timedelta

import dagster as dg

from lance_ops.core.records import dataclass
from lance_ops.dagster.declaration import DatasetConfig, DatasetNames
from lance_ops.dagster.head.recorded_versions import newest_change, recorded_versions
from lance_ops.dagster.opening import open_if_exists
from lance_ops.maintenance.health import LastChange, last_change

__all__ = ["FRESH", "Freshness", "build_freshness_check", "build_freshness_sensor", "freshness"]

FRESH = "fresh"
"""The name of the check."""

_EVENTS = 20
"""How many of the head's newest events are read: concurrent runs record their versions in any order."""


@dataclass(frozen=True)
class Freshness:
    """How long ago rows changed last, compared with the limit; no change is known of a table that does not exist."""

    change: LastChange | None
    limit: timedelta
    now: datetime

    @property
    def age(self) -> timedelta | None:
        """The time since rows changed; None if it is not known."""
        committed = self.change.committed_at if self.change else None
        return None if committed is None else self.now - committed

    @property
    def passed(self) -> bool:
        """Whether rows changed within the limit, or the time of the last change is not known."""
        return self.age is None or self.age < self.limit

    def evaluation(self, head: dg.AssetKey) -> dg.AssetCheckEvaluation:
        """Return the result of the check."""
        metadata: dict[str, float | int] = {"lance/limit": self.limit / timedelta(hours=1)}
        if self.change is not None:
            metadata["lance/version"] = self.change.version
        if self.age is not None:
            metadata["lance/value"] = self.age / timedelta(hours=1)
        return dg.AssetCheckEvaluation(
            head,
            FRESH,
            self.passed,
            {name: dg.MetadataValue.float(float(value)) for name, value in metadata.items()},
            severity=dg.AssetCheckSeverity.ERROR,
            description=self._sentence,
        )

    @property
    def _sentence(self) -> str:
        if self.change is None:
            return "there is no version yet: the first batch makes the dataset"
        if self.change.committed_at is None:
            return f"rows changed last in version {self.change.version}, whose writer did not say when"
        when = f"{self.change.committed_at:%Y-%m-%d %H:%M} UTC"
        hours = f"{self.limit / timedelta(hours=1):g} hours"
        relation = "within" if self.passed else "before"
        return f"rows changed last in version {self.change.version} of {when}, {relation} the last {hours}"


def freshness(instance: dg.DagsterInstance, config: DatasetConfig, now: datetime | None = None) -> Freshness:
    """Return how fresh the dataset's rows are. Reads the versions that the head has no event of, newest first."""
    newest = open_if_exists(config)
    change = None
    if newest is not None:
        recorded = [each for each in recorded_versions(instance, config, _EVENTS) if each.version <= newest.version]
        told = newest_change(recorded, newest.version)
        known = max((each.version for each in recorded), default=0) if told else 0
        change = last_change(newest, known) or told
    return Freshness(change, _limit(config), now or datetime.now(UTC))


def build_freshness_check(config: DatasetConfig) -> dg.AssetChecksDefinition:
    """Return the check of a dataset that declares `health.hours_without_version`."""
    names = DatasetNames(config.name)

    @dg.asset_check(
        asset=names.head,
        name=FRESH,
        description=f"Rows were inserted, updated or deleted within {config.health.hours_without_version:g} hours.",
        additional_deps=[names.batches] if config.raw is not None else None,
    )
    def fresh(context: dg.AssetCheckExecutionContext) -> dg.AssetCheckResult:
        found = freshness(context.instance, config).evaluation(names.head)
        return dg.AssetCheckResult(passed=found.passed, description=found.description, metadata=dict(found.metadata))

    return fresh


def build_freshness_sensor(config: DatasetConfig, interval_seconds: int = 60) -> dg.SensorDefinition:
    """Return the sensor that reports the check when its result changes; its cursor is the last result."""
    names = DatasetNames(config.name)

    @dg.sensor(
        name=names.of("freshness"),
        minimum_interval_seconds=interval_seconds,
        default_status=dg.DefaultSensorStatus.RUNNING,
        description=f"Reports the check {FRESH} of {config.name} when it turns red or green.",
    )
    def fresh(context: dg.SensorEvaluationContext) -> dg.SensorResult:
        found = freshness(context.instance, config).evaluation(names.head)
        result = "green" if found.passed else "red"
        if result == context.cursor:
            return dg.SensorResult(skip_reason=dg.SkipReason(f"still {result}: {found.description}"), cursor=result)
        return dg.SensorResult(asset_events=[found], cursor=result)

    return fresh


def _limit(config: DatasetConfig) -> timedelta:
    hours = config.health.hours_without_version
    return timedelta.max if hours is None else timedelta(hours=hours)
