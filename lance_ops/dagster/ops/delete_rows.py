"""The op that deletes rows by predicate for a stated reason, such as an erasure request or a bad delivery."""

from __future__ import annotations

from typing import Any

import dagster as dg
from pydantic import Field

from lance_ops.changing import commit_deletion, find_rows, plan_deletion
from lance_ops.core.errors import InvalidInput
from lance_ops.dagster.declaration import DatasetConfig
from lance_ops.dagster.ops.verb import Work, verb_op
from lance_ops.reading import bind_filter
from lance_ops.snapshot import Snapshot
from lance_ops.writing import retry_conflicts

__all__ = ["REASON_PROPERTY", "DeleteRows", "delete_rows_op"]

REASON_PROPERTY = "lance_ops.reason"
"""The property of a transaction that states the reason for it."""

_CONFLICT_RETRIES = 10


class DeleteRows(dg.Config):
    """Which rows to delete, and why."""

    predicate: str = Field(description="A SQL condition on the dataset's columns, such as tailnum = 'N725MQ'.")
    reason: str = Field(description="Stands in the version's transaction, beside the batches and tokens.")
    at_most_rows: int | None = Field(default=None, description="Refuse when more rows match.", ge=0)
    dry_run: bool = Field(default=False, description="Count the rows and delete none.")


def delete_rows_op(config: DatasetConfig) -> dg.OpDefinition:
    """Return the op that deletes rows of a dataset."""
    return verb_op(config, "delete_rows", "Delete the rows that match a predicate.", _delete_rows, DeleteRows)


def _delete_rows(work: Work, options: DeleteRows) -> dict[str, Any]:
    if not options.predicate.strip():
        raise InvalidInput("predicate is empty: name the rows to delete; 'true' stands for all of them")
    if not options.reason.strip():
        raise InvalidInput("reason is empty: say why the rows go")
    predicate = bind_filter(work.snapshot, options.predicate)

    def attempt(current: Snapshot) -> int:
        plan = plan_deletion(current, predicate)
        found = work.runner.map(find_rows, plan.tasks, plan.job)
        num_rows = sum(rows.num_rows for rows in found)
        if options.at_most_rows is not None and num_rows > options.at_most_rows:
            raise InvalidInput(
                f"{num_rows:,} rows match and at_most_rows is {options.at_most_rows:,}: nothing was deleted"
            )
        if not options.dry_run:
            commit_deletion(plan, found, {REASON_PROPERTY: options.reason})
        return num_rows

    num_rows = retry_conflicts(work.snapshot, attempt, _CONFLICT_RETRIES)
    return {
        "lance/predicate": options.predicate,
        "lance/reason": options.reason,
        "lance/matching_rows": num_rows,
        "lance/dry_run": options.dry_run,
    }
