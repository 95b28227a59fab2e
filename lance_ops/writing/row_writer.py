"""Write rows that an update moves, and new ones after them, as fragments that know the moved rows' ids."""

from __future__ import annotations

from dataclasses import replace
from types import TracebackType
from typing import Self

import numpy as np
import pyarrow as pa

from lance_ops.core.errors import InvalidInput
from lance_ops.core.ndarrays import Uint64Array
from lance_ops.core.versions import FileVersion
from lance_ops.snapshot import Snapshot
from lance_ops.table import Fragment
from lance_ops.table.rows import RowIds, encode_row_ids
from lance_ops.writing.fragment_writer import FragmentWriter
from lance_ops.writing.write_targets import WriteTargets

__all__ = ["RowWriter", "output_version"]


class RowWriter:
    """A `FragmentWriter` of a snapshot's whole rows. Moved rows keep their ids in a table of stable row ids.

    Moved rows must come before new ones: a fragment's rows beyond those it has ids for get theirs at commit. Who
    commits the fragments makes their files durable.
    """

    def __init__(self, snapshot: Snapshot, version: FileVersion, targets: WriteTargets | None = None) -> None:
        self.keeps_ids = snapshot.manifest.uses_stable_row_ids
        """Whether rows have ids that they keep, so that moved ones must come with theirs."""
        self._writer = FragmentWriter(snapshot.store, snapshot.schema, version, targets=targets, durable=False)
        self._row_ids: list[Uint64Array] = []

    def write_moved(self, rows: pa.Table, row_ids: Uint64Array | None) -> None:
        """Add rows that stood elsewhere under these ids; raise `SchemaMismatch` if they do not fit the table."""
        self._writer.write(rows)
        if self.keeps_ids:
            assert row_ids is not None
            self._row_ids.append(row_ids)

    def write_new(self, rows: pa.Table) -> None:
        """Add rows that were nowhere before."""
        self._writer.write(rows)

    def finish(self) -> tuple[Fragment, ...]:
        """Close the last file and return the fragments, their ids unassigned."""
        fragments = self._writer.finish()
        if not self._row_ids:
            return tuple(fragments)
        row_ids, at, known = np.concatenate(self._row_ids), 0, []
        for fragment in fragments:
            part = row_ids[at : at + fragment.physical_rows]
            known.append(replace(fragment, row_ids=encode_row_ids(RowIds.of(part))) if len(part) else fragment)
            at += fragment.physical_rows
        return tuple(known)

    def __enter__(self) -> Self:
        self._writer.__enter__()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._writer.__exit__(kind, error, trace)


def output_version(snapshot: Snapshot, asked: str | None) -> FileVersion:
    """Return the version of files to write: the table's unless asked otherwise.

    Raises `InvalidInput` for a version of the other family (0.1 against 2.x), which no table mixes.
    """
    table = snapshot.file_version
    version = table if asked is None else FileVersion.parse(asked)
    if version is not table and FileVersion.V0_1 in (version, table):
        raise InvalidInput(f"{snapshot.uri} has files of version {table.value}, and {version.value} cannot be mixed in")
    return version
