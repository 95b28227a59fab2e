"""The op that restores an old version as the newest one."""

from __future__ import annotations

from typing import Any

import dagster as dg
from pydantic import Field

from lance_ops.changing import restore
from lance_ops.core.errors import InvalidInput
from lance_ops.dagster.declaration import DatasetConfig
from lance_ops.dagster.ops.delete_rows import REASON_PROPERTY
from lance_ops.dagster.ops.verb import Work, verb_op
from lance_ops.refs import tagged_version

__all__ = ["Restore", "restore_op"]


class Restore(dg.Config):
    """Which version to restore, by number or by tag, and why."""

    version: int | None = Field(default=None, ge=1)
    tag: str | None = None
    reason: str = Field(description="Stands in the new version's transaction.")


def restore_op(config: DatasetConfig) -> dg.OpDefinition:
    """Return the op that restores a version of a dataset.

    Batches that were ingested after that version leave the table, and may be ingested again.
    """
    return verb_op(config, "restore", "Make an old version the newest again.", _restore, Restore)


def _restore(work: Work, asked: Restore) -> dict[str, Any]:
    if not asked.reason.strip():
        raise InvalidInput("reason is empty: say why the version comes back")
    match asked.version, asked.tag:
        case int(version), None:
            chosen = version
        case None, str(tag):
            chosen = tagged_version(work.snapshot, tag)
        case _:
            raise InvalidInput("give either a version or a tag to restore")
    restore(work.snapshot.at(chosen), {REASON_PROPERTY: asked.reason})
    return {"lance/restored_version": chosen, "lance/reason": asked.reason}
