"""Write updated rows, and new rows after them, as fragments; updated rows keep their stable row ids."""

from __future__ import annotations

from types import TracebackType
from typing import Self

import numpy as np
import pyarrow as pa

from lance_ops.core.ndarrays import Uint64Array
from lance_ops.core.versions import FileVersion
from lance_ops.snapshot import Snapshot
from lance_ops.table import Fragment
from lance_ops.table.rows import RowIds, encode_row_ids
from lance_ops.writing.fragment_writer import FragmentWriter
from lance_ops.writing.write_targets import WriteTargets

__all__ = ["UpdatedRowWriter"]


class UpdatedRowWriter:
    """Writes whole rows of a snapshot's schema. In a table of stable row ids, updated rows keep their ids.

    Updated rows must come before new ones: the commit gives ids to the rows behind those that have one. The files are
    not durable yet.
    """

    def __init__(self, snapshot: Snapshot, version: FileVersion, targets: WriteTargets | None = None) -> None:
        self.keeps_ids = snapshot.manifest.uses_stable_row_ids
        """Whether the table has stable row ids, so that `write_updated` needs the ids of its rows."""
        self._writer = FragmentWriter(snapshot.store, snapshot.schema, version, targets=targets, durable=False)
        self._row_ids: list[Uint64Array] = []

    def write_updated(self, rows: pa.Table, row_ids: Uint64Array | None) -> None:
        """Add new values of rows that have these ids; raise `SchemaMismatch` if they do not fit the table."""
        self._writer.write(rows)
        if self.keeps_ids:
            assert row_ids is not None
            self._row_ids.append(row_ids)

    def write_new(self, rows: pa.Table) -> None:
        """Add rows that the table does not have yet."""
        self._writer.write(rows)

    def finish(self) -> tuple[Fragment, ...]:
        """Close the last file and return the fragments, their ids unassigned."""
        fragments = self._writer.finish()
        if not self._row_ids:
            return tuple(fragments)
        row_ids, at, with_ids = np.concatenate(self._row_ids), 0, []
        for fragment in fragments:
            part = row_ids[at : at + fragment.physical_rows]
            with_ids.append(fragment.with_sequences(row_ids=encode_row_ids(RowIds.of(part))) if len(part) else fragment)
            at += fragment.physical_rows
        return tuple(with_ids)

    def __enter__(self) -> Self:
        self._writer.__enter__()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._writer.__exit__(kind, error, trace)
