"""The op that removes old versions and unneeded files; it is a dry run unless the configuration says otherwise."""

from __future__ import annotations

from dataclasses import asdict
from datetime import timedelta
from typing import Any

import dagster as dg
from pydantic import Field

from lance_ops.dagster.declaration import CleanupPolicy, DatasetConfig, DatasetNames
from lance_ops.dagster.markdown import size_text, table
from lance_ops.dagster.ops.verb import Work, verb_op
from lance_ops.maintenance.cleanup import (
    CleanupOptions,
    CleanupStats,
    CleanupTasks,
    cleanup_old_versions,
    explain_cleanup_old_versions,
)

__all__ = ["Cleanup", "cleanup_op"]

_MAX_FILES_SHOWN = 50


class Cleanup(dg.Config):
    """Overrides of the dataset's policy for one run. Tagged versions always stay."""

    older_than_days: float | None = Field(default=None, ge=0)
    retain_versions: int | None = Field(default=None, ge=1)
    delete_unverified: bool = Field(
        default=False, description="Also young files that no version names; only while nothing else writes."
    )
    dry_run: bool = Field(default=True, description="Show what would go and remove nothing.")


def cleanup_op(config: DatasetConfig) -> dg.OpDefinition:
    """Return the op that cleans up a dataset."""
    policy = config.maintenance.cleanup
    head = DatasetNames(config.name).head

    def cleanup(work: Work, asked: Cleanup) -> dict[str, Any]:
        options = _options(policy, asked)
        tasks = CleanupTasks(work.runner)
        explained = explain_cleanup_old_versions(
            work.snapshot, options, include_files=True, max_files=_MAX_FILES_SHOWN, tasks=tasks
        )
        plan = _plan_markdown(explained.stats, explained.candidate_files, explained.warnings)
        metadata: dict[str, Any] = {"lance/dry_run": asked.dry_run, "lance/plan": dg.MetadataValue.md(plan)}
        stats = explained.stats if asked.dry_run else cleanup_old_versions(work.snapshot, options, tasks)
        metadata |= {f"lance/{name}": value for name, value in asdict(stats).items()}
        # Clean-up commits no version, so an observation of the head records it.
        what = "dry run of clean-up" if asked.dry_run else "clean-up"
        work.context.log_event(dg.AssetObservation(head, description=what, metadata=metadata))
        return metadata

    return verb_op(config, "cleanup", "Remove old versions and files nothing needs.", cleanup, Cleanup)


def _options(policy: CleanupPolicy, asked: Cleanup) -> CleanupOptions:
    """Return the run's limits if it gives any, else the policy's. The two are never mixed, as that would surprise."""
    given = asked.older_than_days is not None or asked.retain_versions is not None
    older_than = timedelta(days=asked.older_than_days) if asked.older_than_days is not None else None
    return CleanupOptions(
        older_than=older_than if given else policy.older_than,
        retain_versions=asked.retain_versions if given else policy.retain_versions,
        delete_unverified=asked.delete_unverified,
        error_if_tagged_old_versions=False,
    )


def _plan_markdown(stats: CleanupStats, files: tuple[str, ...], warnings: tuple[str, ...]) -> str:
    counts = table(
        ["versions", "data files", "deletion files", "index files", "transactions", "size"],
        [
            (
                stats.old_versions,
                stats.data_files_removed,
                stats.deletion_files_removed,
                stats.index_files_removed,
                stats.transaction_files_removed,
                size_text(stats.bytes_removed),
            )
        ],
    )
    listed = [f"- `{path}`" for path in files]
    return "\n".join([counts, "", *[f"- {warning}" for warning in warnings], *listed])
