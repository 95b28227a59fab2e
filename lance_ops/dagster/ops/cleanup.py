"""The op that removes old versions and unneeded files."""

from __future__ import annotations

import dagster as dg
from pydantic import Field

from lance_ops import verbs
from lance_ops.dagster.declaration import DatasetConfig
from lance_ops.dagster.ops.planned import Planned, planned_op

__all__ = ["Cleanup", "cleanup_op"]


class Cleanup(Planned):
    """Overrides of the dataset's policy for one run. Tagged versions always stay."""

    older_than_days: float | None = Field(default=None, ge=0)
    retain_versions: int | None = Field(default=None, ge=1)
    delete_unverified: bool = Field(
        default=False, description="Also young files that no version names; only while nothing else writes."
    )


def cleanup_op(config: DatasetConfig) -> dg.OpDefinition:
    """Return the op that cleans up a dataset."""
    policy = config.maintenance.cleanup

    def to_verb(asked: Cleanup) -> verbs.Verb:
        """Return the run's limits if it gives any, else the policy's. The two are never mixed: that would surprise."""
        given = asked if asked.older_than_days is not None or asked.retain_versions is not None else policy
        return verbs.Cleanup(given.older_than_days, given.retain_versions, asked.delete_unverified)

    description = "Remove old versions and files nothing needs."
    return planned_op(config, Cleanup, verbs.Cleanup, description, to_verb)
