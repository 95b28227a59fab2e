"""The op that merges small fragments, drops deleted rows, and remaps the indices."""

from __future__ import annotations

import dagster as dg
from pydantic import Field

from lance_ops import verbs
from lance_ops.dagster.declaration import DatasetConfig
from lance_ops.dagster.ops.planned import Planned, planned_op

__all__ = ["Compact", "compact_op"]


class Compact(Planned):
    """Overrides of the dataset's policy for one run, and its bounds."""

    target_rows_per_fragment: int | None = Field(default=None, ge=1)
    materialize_deletions_threshold: float | None = Field(default=None, ge=0, le=1)
    max_source_bytes: int | None = Field(default=None, ge=1, description="Rewrite at most so many bytes.")
    max_source_fragments: int | None = Field(default=None, ge=1, description="Rewrite at most so many fragments.")
    max_seconds: float | None = Field(default=None, ge=0, description="Begin no task after so many seconds.")
    max_commits: int = Field(default=1, ge=1, description="A conflict loses only the work of its commit.")
    worst_first: bool = Field(default=False, description="Begin where most fragments and deleted rows go away.")
    cluster_by: list[str] = Field(default_factory=list, description="Sort all rows by these columns instead.")
    z_order: bool = Field(default=False, description="Sort along a Z curve through the columns.")


def compact_op(config: DatasetConfig) -> dg.OpDefinition:
    """Return the op that compacts a dataset."""
    policy = config.maintenance.compaction

    def to_verb(asked: Compact) -> verbs.Verb:
        target, threshold = asked.target_rows_per_fragment, asked.materialize_deletions_threshold
        return verbs.Compact(
            target_rows_per_fragment=policy.target_rows_per_fragment if target is None else target,
            materialize_deletions=policy.materialize_deletions,
            materialize_deletions_threshold=policy.materialize_deletions_threshold if threshold is None else threshold,
            max_source_bytes=asked.max_source_bytes,
            max_source_fragments=asked.max_source_fragments,
            max_seconds=asked.max_seconds,
            max_commits=asked.max_commits,
            worst_first=asked.worst_first,
            cluster_by=tuple(asked.cluster_by),
            cluster_order="z_order" if asked.z_order else "linear",
        )

    return planned_op(config, Compact, verbs.Compact, "Merge small fragments and drop deleted rows.", to_verb)
