"""Price the debt of a declared dataset by its own targets and limits, and show it."""

from __future__ import annotations

from collections.abc import Sequence

from lance_ops.dagster.declaration import DatasetConfig, UpkeepPolicy
from lance_ops.dagster.head.owed.verification_age import VerificationDue
from lance_ops.dagster.markdown import size_text, table
from lance_ops.maintenance.cleanup import CleanupOptions
from lance_ops.maintenance.compaction import CompactionOptions
from lance_ops.maintenance.debt import DebtPolicy, Due, Rates, TableDebt, WantedIndex
from lance_ops.maintenance.health import HealthThresholds, rows_of_small_fragments

__all__ = ["debt_markdown", "debt_policy", "debts_markdown"]


def debt_policy(config: DatasetConfig) -> DebtPolicy:
    """Return the policy that the declaration states. What turns a health check red is owed.

    The check of small fragments does not count the last one, so the limit is one more.
    """
    maintenance, limits = config.maintenance, config.health
    upkeep = maintenance.upkeep or UpkeepPolicy()
    target = maintenance.compaction.target_rows_per_fragment
    return DebtPolicy(
        rates=Rates(payback_reads=upkeep.payback_reads),
        limits=HealthThresholds(
            small_fragment_rows=rows_of_small_fragments(target),
            max_small_fragments=limits.small_fragments + 1,
            max_deleted_ratio=limits.deleted_ratio,
            min_indexed_ratio=1 - limits.unindexed_ratio,
            max_versions=limits.versions,
        ),
        compaction=CompactionOptions(
            target_rows_per_fragment=target,
            materialize_deletions=maintenance.compaction.materialize_deletions,
            materialize_deletions_threshold=maintenance.compaction.materialize_deletions_threshold,
        ),
        cleanup=CleanupOptions(
            older_than=maintenance.cleanup.older_than, retain_versions=maintenance.cleanup.retain_versions
        ),
        indices=tuple(WantedIndex(index.index_name, index.column, index.type or "BTREE") for index in config.indices),
        min_removable_versions=upkeep.min_removable_versions,
    )


def debt_markdown(dues: Sequence[Due], verification: VerificationDue | None = None) -> str:
    """Return dues as a table; the verification is the last one."""
    header = ["step", "owed", "why", "a read or look-up gains", "rewrites", "frees at least"]
    lines = [*map(_line, dues), *([] if verification is None else [verification.line])]
    return table(header, lines) if lines else "No step would help."


def debts_markdown(before: TableDebt, after: TableDebt) -> str:
    """Return what a payment changed as a table."""

    def numbers(debt: TableDebt) -> tuple[object, ...]:
        report = debt.health
        return (
            debt.version,
            f"{report.num_fragments:,}",
            f"{report.deleted_ratio:.1%}",
            "" if report.indexed_ratio is None else f"{report.indexed_ratio:.1%}",
            f"{debt.inventory.num_versions:,}",
            f"{debt.read_amplification:.2f}",
            ", ".join(due.key for due in debt.owed) or "nothing",
        )

    header = ["", "version", "fragments", "deleted", "indexed", "versions", "read amplification", "owed"]
    return table(header, [("before", *numbers(before)), ("after", *numbers(after))])


def _line(due: Due) -> tuple[object, ...]:
    sizes = (size_text(due.gain_bytes), size_text(due.cost_bytes), size_text(due.freed_bytes))
    return (due.key, due.owed_text, due.why, *sizes)
