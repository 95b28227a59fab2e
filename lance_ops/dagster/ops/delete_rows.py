"""The op that deletes rows by predicate or by keys for a stated reason, such as a bad delivery."""

from __future__ import annotations

import dagster as dg
from pydantic import Field

from lance_ops import verbs
from lance_ops.dagster.declaration import DatasetConfig
from lance_ops.dagster.ops.planned import Planned, planned_op

__all__ = ["DeleteRows", "delete_rows_op"]


class DeleteRows(Planned):
    """Which rows to delete, and why."""

    predicate: str | None = Field(default=None, description="A SQL condition, such as tailnum = 'N725MQ'.")
    key_files: list[str] = Field(
        default_factory=list, description="Instead: raw files, or one dataset (.lance), that hold the keys of the rows."
    )
    on: list[str] = Field(default_factory=list, description="The columns of the key, in both.")
    reason: str = Field(default="", description="Stands in the version's transaction, beside the batches and tokens.")
    at_most_rows: int | None = Field(default=None, description="Refuse when more rows match.", ge=0)


def delete_rows_op(config: DatasetConfig) -> dg.OpDefinition:
    """Return the op that deletes rows of a dataset."""
    return planned_op(config, DeleteRows, verbs.DeleteRows, "Delete rows by predicate, or by keys.")
