"""Put rows in the place of those that a predicate names, in one commit."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import pyarrow as pa

from lance_ops.core.predicate import Predicate
from lance_ops.snapshot.commit import commit_operation, removing_on_failure
from lance_ops.snapshot.deletion import find_rows, offsets_found, plan_deletion
from lance_ops.snapshot.deletion_files import hide_rows
from lance_ops.snapshot.fragment_writer import data_paths, write_fragments
from lance_ops.snapshot.row_writer import output_version
from lance_ops.snapshot.runners import Runner
from lance_ops.snapshot.snapshot import Snapshot
from lance_ops.transactions import Update

__all__ = ["replace_rows"]


def replace_rows(
    snapshot: Snapshot,
    predicate: Predicate,
    batches: Iterable[pa.RecordBatch | pa.Table],
    runner: Runner,
    properties: Mapping[str, str] | None = None,
) -> Snapshot:
    """Delete the rows for which the predicate is true and add others; return the version made.

    When no row goes and none comes nothing is committed. Raises `SchemaMismatch` naming the field if the rows do not
    fit, and `RetryableConflict` when a concurrent commit touched the same rows: plan again on the newest version.
    """
    plan = plan_deletion(snapshot, predicate)
    offsets = offsets_found(runner.map(find_rows, plan.tasks))
    version = output_version(snapshot, None)
    new = tuple(write_fragments(snapshot.store, batches, snapshot.schema, version, durable=False))
    if not (offsets or new):
        return snapshot
    with removing_on_failure(snapshot.store, data_paths(new)):
        hidden = hide_rows(snapshot, offsets)
    operation = Update(
        removed_fragment_ids=hidden.removed,
        updated_fragments=hidden.updated,
        new_fragments=new,
        fields_for_preserving_frag_bitmap=tuple(node.id for node in snapshot.schema.walk()),
    )
    own_files = [*data_paths(new), *hidden.paths]
    return commit_operation(snapshot, operation, properties=properties, own_files=own_files, after=own_files)
