"""Replace all rows that have given values in a column, or match a condition, by other rows, in one commit.

The transaction names each value that it replaces: `lance_ops.replaces.<column>=<value>`. So two concurrent replacements
of one value conflict, even if no row has the value and none is deleted. Replacements of other values do not conflict.
A condition is named as `lance_ops.replaces.where=<SQL>`, in the same way.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field

import pyarrow as pa
import pyarrow.compute as pc
from pyroaring import BitMap

from lance_ops.changing.deletion import find_rows, plan_deletion
from lance_ops.core.errors import RetryableConflict
from lance_ops.core.predicate import Predicate
from lance_ops.core.records import dataclass
from lance_ops.core.schema import Schema
from lance_ops.core.versions import FileVersion
from lance_ops.reading import UserFilter, bind_filter
from lance_ops.refs import keeping_version
from lance_ops.runners import Runner
from lance_ops.snapshot import Snapshot
from lance_ops.table.rows import join_bitmaps
from lance_ops.transactions import REPLACES_PREFIX, Abandonable, PendingFiles, Update
from lance_ops.writing import (
    CONFLICT_RETRIES,
    WrittenDeletions,
    choose_file_version,
    commit_operation,
    retry_conflicts,
    write_deletion_files,
    write_fragments,
)

__all__ = ["replace_matching", "replace_rows"]


def replace_rows(
    snapshot: Snapshot,
    column: str,
    values: pa.Array,
    rows: pa.Table,
    runner: Runner,
    conflict_retries: int = CONFLICT_RETRIES,
) -> Snapshot:
    """Delete the rows whose `column` has one of the values, and add `rows`; return the snapshot after it.

    After a conflict with a concurrent transaction, the rows to delete are searched again on the newest version. If no
    row is deleted or added, nothing is committed. Raises `SchemaMismatch` naming the field if the rows do not fit, and
    `TooManyConcurrentWriters` when the retries are used up.
    """
    condition = pc.field(column).isin(values)
    properties = {f"{REPLACES_PREFIX}{column}={value}": "" for value in values.to_pylist()}
    new = _NewRows(rows)

    def attempt(current: Snapshot) -> Snapshot:
        with new.abandoned_on_failure():
            offsets = _find(current, bind_filter(current, condition), runner)
            pending = new.written_for(current)
            if not (offsets or pending.fragments):
                return current
            deletions = write_deletion_files(current, offsets, runner)
        return _commit(current, deletions, pending, properties)

    with new.abandoned_unless_committed():
        return retry_conflicts(snapshot, keeping_version(attempt, snapshot), conflict_retries)


def replace_matching(
    snapshot: Snapshot,
    condition: UserFilter,
    pending: PendingFiles,
    runner: Runner,
    properties: Mapping[str, str] | None = None,
    conflict_retries: int = CONFLICT_RETRIES,
) -> Snapshot:
    """Delete the rows that match a condition, and add fragments that were written for the snapshot's schema.

    After a conflict the rows to delete are searched again on the newest version, as in `replace_rows`. Raises
    `RetryableConflict` if another writer changed the schema meanwhile. The files are deleted unless the commit may have
    landed.
    """

    def attempt(current: Snapshot) -> Snapshot | None:
        if current.schema != snapshot.schema:
            return None
        predicate = bind_filter(current, condition)
        offsets = _find(current, predicate, runner)
        if not (offsets or pending.fragments):
            return current
        named = {f"{REPLACES_PREFIX}where={predicate.to_sql()}": "", **(properties or {})}
        return _commit(current, write_deletion_files(current, offsets, runner), pending, named)

    with pending.abandoned_unless_committed():
        made = retry_conflicts(snapshot, keeping_version(attempt, snapshot), conflict_retries)
        if made is None:
            raise RetryableConflict(f"{snapshot.uri}: the schema changed after the rows were written: write them again")
    return made


def _find(current: Snapshot, predicate: Predicate, runner: Runner) -> dict[int, BitMap]:
    plan = plan_deletion(current, predicate)
    return join_bitmaps(found.offsets for found in runner.map(find_rows, plan.tasks, plan.job))


def _commit(
    current: Snapshot, deletions: WrittenDeletions, pending: PendingFiles, properties: Mapping[str, str]
) -> Snapshot:
    """Commit on this very version; a failure leaves the pending files, which the caller owns."""
    operation = Update(
        removed_fragment_ids=deletions.removed_fragment_ids,
        updated_fragments=deletions.updated_fragments,
        new_fragments=pending.fragments,
        fields_for_preserving_frag_bitmap=tuple(node.id for node in current.schema.walk()),
    )
    files = pending.kept_on_failure() + deletions.pending
    return commit_operation(current, operation, properties=properties, pending=files)


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
