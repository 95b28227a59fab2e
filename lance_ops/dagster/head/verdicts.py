"""Compare a dataset's health with its declared limits; checks and jobs report the resulting verdicts."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import dagster as dg

from lance_ops.core.records import dataclass
from lance_ops.dagster.declaration import DatasetConfig, DatasetNames
from lance_ops.dagster.markdown import size_text, table
from lance_ops.maintenance.health import HealthReport, HealthThresholds, health, rows_of_small_fragments
from lance_ops.snapshot import Snapshot

__all__ = ["HEALTH_CHECKS", "Verdict", "health_markdown", "judge", "measure"]

HEALTH_CHECKS = {
    "small_fragments": "Few fragments have less than three quarters of the rows that a compaction aims at.",
    "deleted_ratio": "Few of the stored rows are deleted.",
    "unindexed_ratio": "Every declared index is there and covers nearly all rows.",
    "versions": "Old versions are cleaned up.",
}
"""The checks that one measurement answers, with the description of each."""


@dataclass(frozen=True)
class Verdict:
    """A measured number and its limit; `advice` says which job brings the number down."""

    name: str
    value: float
    limit: float
    advice: str

    @property
    def passed(self) -> bool:
        """Whether the number is within the limit."""
        return self.value <= self.limit

    @property
    def sentence(self) -> str:
        """The verdict in words."""
        relation = "within" if self.passed else "above"
        sentence = f"{self.name} is {self.value:.4g}, {relation} the limit of {self.limit:.4g}"
        return sentence if self.passed else f"{sentence}; {self.advice}"

    @property
    def metadata(self) -> dict[str, Any]:
        """The numbers, so that the UI can plot them."""
        return {"lance/value": float(self.value), "lance/limit": float(self.limit)}

    def evaluation(self, head: dg.AssetKey) -> dg.AssetCheckEvaluation:
        """Return the result of the check."""
        return dg.AssetCheckEvaluation(
            head, self.name, self.passed, self.metadata, severity=dg.AssetCheckSeverity.ERROR, description=self.sentence
        )


def measure(config: DatasetConfig, snapshot: Snapshot) -> HealthReport:
    """Measure a version. A fragment is small below three quarters of the declared compaction's target."""
    target = config.maintenance.compaction.target_rows_per_fragment
    return health(snapshot, HealthThresholds(small_fragment_rows=rows_of_small_fragments(target)))


def judge(config: DatasetConfig, report: HealthReport) -> tuple[Verdict, ...]:
    """Compare a measurement with the declared limits; return one verdict for each of `HEALTH_CHECKS`.

    The last fragment of a healthy table may be small, so one small fragment is not counted.
    """
    limits, names = config.health, DatasetNames(config.name)
    run_compact = f"run {names.of('compact')}"
    coverage = {index.name: index.indexed_ratio for index in report.indices}
    wanted = [coverage.get(index.index_name, 0.0) for index in config.indices]
    return (
        Verdict("small_fragments", max(report.num_small_fragments - 1, 0), limits.small_fragments, run_compact),
        Verdict("deleted_ratio", report.deleted_ratio, limits.deleted_ratio, run_compact),
        Verdict("unindexed_ratio", 1 - min(wanted, default=1.0), limits.unindexed_ratio, f"run {names.of('reindex')}"),
        Verdict("versions", report.num_versions, limits.versions, f"run {names.of('cleanup')}"),
    )


def health_markdown(report: HealthReport, verdicts: Sequence[Verdict]) -> str:
    """Return the measurement and the verdicts as two tables."""
    numbers = table(
        ["version", "rows", "fragments", "small", "deleted rows", "versions", "size"],
        [
            (
                report.version,
                f"{report.num_rows:,}",
                report.num_fragments,
                report.num_small_fragments,
                f"{report.num_deleted_rows:,}",
                report.num_versions,
                size_text(report.size_bytes),
            )
        ],
    )
    lines = [(v.name, f"{v.value:.4g}", f"{v.limit:.4g}", "ok" if v.passed else v.advice) for v in verdicts]
    return f"{numbers}\n\n{table(['check', 'value', 'limit', 'verdict'], lines)}"
