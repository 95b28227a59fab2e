"""Delete the rows whose key is among given ones: a join, where a predicate would have to name each key.

The keys are a table in memory or, for more of them than one process should hold, rows of a dataset that tasks read.
"""

from __future__ import annotations

from collections.abc import Mapping

import pyarrow as pa

from lance_ops.changing import merge_insert
from lance_ops.changing.merge_insert import by_tasks
from lance_ops.runners import Runner
from lance_ops.snapshot import Snapshot
from lance_ops.transactions import Delete
from lance_ops.writing import commit_operation

__all__ = ["delete_by_keys"]


def delete_by_keys(
    snapshot: Snapshot,
    on: tuple[str, ...],
    keys: pa.Table | by_tasks.SourceRows,
    runner: Runner,
    properties: Mapping[str, str] | None = None,
) -> tuple[Snapshot, int]:
    """Delete the rows whose columns `on` have the values of a row of `keys`; return the snapshot and their number.

    `keys` has these columns and no others. A key may occur several times, and one with a null in it matches nothing. If
    no row matches, nothing is committed. Raises as `merge_insert` does.
    """
    request = merge_insert.MergeRequest(on, merge_insert.WhenMatched.DELETE, repeated_keys=True)
    if isinstance(keys, pa.Table):
        plan = merge_insert.plan_merge(snapshot, request, keys)
        matches = runner.map(merge_insert.find_matches, plan.tasks, plan.job)
        prepared = merge_insert.prepare_merge(plan, matches, runner)
    else:
        prepared = by_tasks.prepare_distributed_merge(by_tasks.plan_distributed_merge(snapshot, request, keys), runner)
    if not prepared.counts.deleted:
        return snapshot, 0
    found = prepared.operation
    predicate = f"({', '.join(on)}) IN (given keys)"
    operation = Delete(found.updated_fragments, found.removed_fragment_ids, predicate)
    committed = commit_operation(snapshot, operation, properties=properties, pending=prepared.pending)
    return committed, prepared.counts.deleted
