"""Compare a dataset's health with its declared limits; checks and jobs report the resulting verdicts."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import dagster as dg

from lance_ops.core.errors import CorruptFile
from lance_ops.core.records import dataclass
from lance_ops.dagster.declaration import DatasetConfig, DatasetNames
from lance_ops.dagster.evaluations import not_looked_warning
from lance_ops.dagster.head.owed import debt_policy
from lance_ops.dagster.markdown import size_text, table
from lance_ops.maintenance.debt import count_removable_versions
from lance_ops.maintenance.health import HealthReport, HealthThresholds, health
from lance_ops.snapshot import Snapshot

__all__ = ["HEALTH_CHECKS", "Measured", "Verdict", "health_markdown", "judge", "measure"]

HEALTH_CHECKS = {
    "small_fragments": "Few fragments are small: with less than three quarters of the rows that a compaction aims at, "
    "and less than 16 GiB.",
    "deleted_ratio": "Few of the stored rows are deleted.",
    "unindexed_ratio": "Every declared index is there and covers nearly all rows.",
    "versions": "Old versions are cleaned up.",
}
"""The checks that one measurement answers, with the description of each."""


@dataclass(frozen=True)
class Verdict:
    """A measured number and its limit; `advice` says which job brings the number down.

    `value` is None if it could not be measured. `warning` says why, or what no job brings down. It fails no run.
    """

    name: str
    value: float | None
    limit: float
    advice: str
    warning: str | None = None

    @property
    def passed(self) -> bool:
        """Whether the number is within the limit, as far as it is known."""
        return self.value is None or self.value <= self.limit

    @property
    def sentence(self) -> str:
        """The verdict in words."""
        if self.value is None:
            return f"{self.name} is unknown: {self.warning}"
        relation = "within" if self.passed else "above"
        sentence = f"{self.name} is {self.value:.4g}, {relation} the limit of {self.limit:.4g}"
        return "; ".join([sentence, *([] if self.passed else [self.advice]), *([self.warning] if self.warning else [])])

    @property
    def metadata(self) -> dict[str, Any]:
        """The numbers, so that the UI can plot them."""
        value = {} if self.value is None else {"lance/value": float(self.value)}
        return {**value, "lance/limit": float(self.limit)}

    def evaluation(self, head: dg.AssetKey) -> dg.AssetCheckEvaluation:
        """Return the result of the check."""
        if self.value is None:
            return not_looked_warning(head, self.name, str(self.warning))
        warns = self.passed and self.warning is not None
        severity = dg.AssetCheckSeverity.WARN if warns else dg.AssetCheckSeverity.ERROR
        return dg.AssetCheckEvaluation(
            head, self.name, self.passed and not warns, self.metadata, severity=severity, description=self.sentence
        )


@dataclass(frozen=True)
class Measured:
    """The measures of a version, and how many of the versions the declared clean-up may remove.

    The number is None if a tag or a branch that may hold versions cannot be read. `why_uncounted` then names it.
    """

    report: HealthReport
    num_removable_versions: int | None
    why_uncounted: str | None = None


def measure(config: DatasetConfig, snapshot: Snapshot) -> Measured:
    """Measure a version. A fragment is small as `HealthThresholds` says, by the declared compaction's target."""
    policy = debt_policy(config)
    report = health(snapshot, HealthThresholds(small_fragment_rows=policy.limits.small_fragment_rows))
    try:
        return Measured(report, count_removable_versions(snapshot, policy.cleanup))
    except CorruptFile as error:  # the other measures and their jobs need no tag and no branch
        return Measured(report, None, f"{error}: clean-up needs this file, so bring it back or remove it")


def judge(config: DatasetConfig, measured: Measured) -> tuple[Verdict, ...]:
    """Compare a measurement with the declared limits; return one verdict for each of `HEALTH_CHECKS`.

    The last fragment of a healthy table may be small, so one small fragment is not counted.
    """
    report = measured.report
    limits, names = config.health, DatasetNames(config.name)
    run_compact = f"run {names.of('compact')}"
    coverage = {index.name: index.indexed_ratio for index in report.indices}
    wanted = [coverage.get(index.index_name, 0.0) for index in config.indices]
    return (
        Verdict("small_fragments", max(report.num_small_fragments - 1, 0), limits.small_fragments, run_compact),
        Verdict("deleted_ratio", report.deleted_ratio, limits.deleted_ratio, run_compact),
        Verdict("unindexed_ratio", 1 - min(wanted, default=1.0), limits.unindexed_ratio, f"run {names.of('reindex')}"),
        Verdict(
            "versions",
            measured.num_removable_versions,
            limits.versions,
            f"run {names.of('cleanup')}",
            _warning_of_versions(config, measured),
        ),
    )


def health_markdown(measured: Measured, verdicts: Sequence[Verdict]) -> str:
    """Return the measurement and the verdicts as two tables."""
    report = measured.report
    numbers = table(
        ["version", "rows", "fragments", "small", "deleted rows", "versions", "removable", "size"],
        [
            (
                report.version,
                f"{report.num_rows:,}",
                report.num_fragments,
                report.num_small_fragments,
                f"{report.num_deleted_rows:,}",
                report.num_versions,
                "unknown" if measured.num_removable_versions is None else measured.num_removable_versions,
                size_text(report.size_bytes),
            )
        ],
    )
    lines = [
        (
            v.name,
            "unknown" if v.value is None else f"{v.value:.4g}",
            f"{v.limit:.4g}",
            v.advice if not v.passed else v.warning or "ok",
        )
        for v in verdicts
    ]
    return f"{numbers}\n\n{table(['check', 'value', 'limit', 'verdict'], lines)}"


def _warning_of_versions(config: DatasetConfig, measured: Measured) -> str | None:
    """Return why the removable versions are not known, or what to declare if those kept alone are above the limit."""
    if measured.num_removable_versions is None:
        return measured.why_uncounted
    num_kept = measured.report.num_versions - measured.num_removable_versions
    if num_kept <= config.health.versions:
        return None
    declared = config.maintenance.cleanup
    rules = {"older_than_days": declared.older_than_days, "retain_versions": declared.retain_versions}
    given = " or ".join(f"maintenance.cleanup.{name} ({rule:g})" for name, rule in rules.items() if rule is not None)
    return f"clean-up keeps {num_kept:,} versions: lower {given}, remove tags, or raise health.versions"
