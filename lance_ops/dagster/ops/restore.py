"""The op that restores an old version as the newest one."""

from __future__ import annotations

import dagster as dg
from pydantic import Field

from lance_ops import verbs
from lance_ops.dagster.declaration import DatasetConfig
from lance_ops.dagster.ops.planned import Planned, planned_op

__all__ = ["Restore", "restore_op"]


class Restore(Planned):
    """Which version to restore, by number or by tag, and why."""

    version: int | None = Field(default=None, ge=1)
    tag: str | None = None
    reason: str = Field(default="", description="Stands in the new version's transaction.")


def restore_op(config: DatasetConfig) -> dg.OpDefinition:
    """Return the op that restores a version of a dataset.

    Batches that were ingested after that version leave the table, and may be ingested again.
    """
    return planned_op(config, Restore, verbs.Restore, "Make an old version the newest again.")
