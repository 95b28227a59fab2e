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
from lance_ops.table import Fragment
from lance_ops.transactions import REPLACES_PREFIX, Update, delete_paths, removing_on_failure, removing_unless_committed
from lance_ops.writing import (
    Runner,
    commit_operation,
    data_paths,
    hide_rows,
    output_version,
    retry_conflicts,
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
        with removing_on_failure(current.store, new.paths):
            plan = plan_deletion(current, bind_filter(current, condition))
            offsets = offsets_found(runner.map(find_rows, plan.tasks))
            fragments = new.as_fragments(current)
            if not (offsets or fragments):
                return current
            hidden = hide_rows(current, offsets)
        operation = Update(
            removed_fragment_ids=hidden.removed,
            updated_fragments=hidden.updated,
            new_fragments=fragments,
            fields_for_preserving_frag_bitmap=tuple(node.id for node in current.schema.walk()),
        )
        after = [*new.paths, *hidden.paths]
        return commit_operation(current, operation, properties=properties, own_files=hidden.paths, after=after)

    with removing_unless_committed(snapshot.store, new.paths):
        return retry_conflicts(snapshot, attempt, conflict_retries)


@dataclass
class _NewRows:
    """Rows in data files of no version yet, which an attempt to commit takes over from the one before."""

    rows: pa.Table
    paths: list[str] = field(default_factory=list)
    _fragments: tuple[Fragment, ...] = ()
    _written_for: tuple[Schema, FileVersion] | None = None

    def as_fragments(self, snapshot: Snapshot) -> tuple[Fragment, ...]:
        """Return fragments with the snapshot's fields, written anew if other ones were, or if their files are gone."""
        wanted = snapshot.schema, output_version(snapshot, None)
        if wanted != self._written_for or not all(map(snapshot.store.exists, self.paths)):
            delete_paths(snapshot.store, self.paths)
            self._fragments = tuple(write_fragments(snapshot.store, self.rows.to_batches(), *wanted, durable=False))
            self._written_for, self.paths[:] = wanted, data_paths(self._fragments)
        return self._fragments
