"""The op that merges small fragments, drops deleted rows, and remaps the indices."""

from __future__ import annotations

from typing import Any

import dagster as dg
from pydantic import Field

from lance_ops.dagster.declaration import CompactionPolicy, DatasetConfig
from lance_ops.dagster.markdown import table
from lance_ops.dagster.ops.verb import Work, verb_op
from lance_ops.maintenance.compaction import CompactionOptions, CompactionPlan, compact_files, plan_compaction

__all__ = ["Compact", "compact_op"]


class Compact(dg.Config):
    """Overrides of the dataset's policy for one run."""

    target_rows_per_fragment: int | None = Field(default=None, ge=1)
    materialize_deletions_threshold: float | None = Field(default=None, ge=0, le=1)
    dry_run: bool = Field(default=False, description="Show the groups that would be rewritten and rewrite none.")


def compact_op(config: DatasetConfig) -> dg.OpDefinition:
    """Return the op that compacts a dataset."""
    policy = config.maintenance.compaction

    def compact(work: Work, asked: Compact) -> dict[str, Any]:
        options = _options(policy, asked)
        plan = plan_compaction(work.snapshot, options)
        metadata: dict[str, Any] = {
            "lance/dry_run": asked.dry_run,
            "lance/plan": dg.MetadataValue.md(_plan_markdown(work, plan)),
        }
        if plan.tasks and not asked.dry_run:
            _, metrics = compact_files(work.snapshot, options, work.runner)
            metadata["lance/fragments_removed"] = metrics.fragments_removed
            metadata["lance/fragments_added"] = metrics.fragments_added
        return metadata

    return verb_op(config, "compact", "Merge small fragments and drop deleted rows.", compact, Compact)


def _options(policy: CompactionPolicy, asked: Compact) -> CompactionOptions:
    target = asked.target_rows_per_fragment
    threshold = asked.materialize_deletions_threshold
    return CompactionOptions(
        target_rows_per_fragment=policy.target_rows_per_fragment if target is None else target,
        materialize_deletions=policy.materialize_deletions,
        materialize_deletions_threshold=policy.materialize_deletions_threshold if threshold is None else threshold,
    )


def _plan_markdown(work: Work, plan: CompactionPlan) -> str:
    if not plan.tasks:
        return "Nothing to rewrite."
    snapshot = work.snapshot
    lines = []
    for task in plan.tasks:
        fragments = [snapshot.fragments_by_id[fragment_id] for fragment_id in task.fragment_ids]
        live = sum(snapshot.num_live_rows(fragment) for fragment in fragments)
        deleted = sum(fragment.physical_rows for fragment in fragments) - live
        ids = f"{task.fragment_ids[0]} … {task.fragment_ids[-1]}"
        lines.append((len(fragments), ids, f"{live:,}", f"{deleted:,}"))
    return table(["fragments", "ids", "rows", "deleted rows to drop"], lines)
