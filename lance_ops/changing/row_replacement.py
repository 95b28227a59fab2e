"""Put rows in the place of those that hold some values in a column, in one commit.

The transaction names each value it replaces, `lance_ops.replaces.<column>=<value>`. So replacements of one value at the
same moment come one after the other, also where no row held it before and none is deleted; those of others do not meet.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import pyarrow as pa
import pyarrow.compute as pc

from lance_ops.changing.deletion import find_rows, offsets_found, plan_deletion
from lance_ops.core.schema import Schema
from lance_ops.core.versions import FileVersion
from lance_ops.reading import bind_filter
from lance_ops.snapshot import Snapshot
from lance_ops.transactions import REPLACES_PREFIX, Abandonable, PendingFiles, Update
from lance_ops.writing import (
    Runner,
    choose_file_version,
    commit_operation,
    retry_conflicts,
    write_deletion_files,
    write_fragments,
)

__all__ = ["replace_rows"]


def replace_rows(
    snapshot: Snapshot, column: str, values: pa.Array, rows: pa.Table, runner: Runner, conflict_retries: int = 10
) -> Snapshot:
    """Delete the rows whose `column` holds one of the values and add others; return the version made.

    After a conflict with concurrent traffic, the rows to delete are looked for again on the newest version. When no row
    goes and none comes nothing is committed. Raises `SchemaMismatch` naming the field if the rows do not fit, and
    `TooManyConcurrentWriters` when the retries are used up.
    """
    condition = pc.field(column).isin(values)
    properties = {f"{REPLACES_PREFIX}{column}={value}": "" for value in values.to_pylist()}
    new = _NewRows(rows)

    def attempt(current: Snapshot) -> Snapshot:
        with new.abandoned_on_failure():
            plan = plan_deletion(current, bind_filter(current, condition))
            offsets = offsets_found(runner.map(find_rows, plan.tasks))
            pending = new.written_for(current)
            if not (offsets or pending.fragments):
                return current
            deletions = write_deletion_files(current, offsets)
        operation = Update(
            removed_fragment_ids=deletions.removed_fragment_ids,
            updated_fragments=deletions.updated_fragments,
            new_fragments=pending.fragments,
            fields_for_preserving_frag_bitmap=tuple(node.id for node in current.schema.walk()),
        )
        files = pending.kept_on_failure() + deletions.pending
        return commit_operation(current, operation, properties=properties, pending=files)

    with new.abandoned_unless_committed():
        return retry_conflicts(snapshot, attempt, conflict_retries)


@dataclass
class _NewRows(Abandonable):
    """The rows to add, in data files that each attempt to commit takes over from the attempt before."""

    rows: pa.Table
    pending: PendingFiles = field(default_factory=PendingFiles)
    _format: tuple[Schema, FileVersion] | None = None

    def written_for(self, snapshot: Snapshot) -> PendingFiles:
        """Return files of the snapshot's schema and version; write them again if these changed or a file is gone."""
        wanted = snapshot.schema, choose_file_version(snapshot, None)
        if wanted != self._format or not all(store.exists(path) for store, path in self.pending.files):
            self.abandon()
            self.pending = write_fragments(snapshot.store, self.rows.to_batches(), *wanted, durable=False)
            self._format = wanted
        return self.pending

    def abandon(self) -> None:
        """Delete the files that were written last."""
        self.pending.abandon()
