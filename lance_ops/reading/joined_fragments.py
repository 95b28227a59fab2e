"""Read rows of several fragments in one decode: the fragments are laid end to end and read as if they were one."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import accumulate, pairwise

import numpy as np
import pyarrow as pa

from lance_ops.core.errors import CorruptFile, ReadTooLarge
from lance_ops.core.ndarrays import Uint64Array
from lance_ops.core.schema import Schema
from lance_ops.file import (
    AlikeFiles,
    Budget,
    FileRows,
    RowSelection,
    RowSet,
    RowSlice,
    can_read_together,
    read_files_together,
)
from lance_ops.snapshot import Snapshot, open_alike
from lance_ops.table import Fragment

__all__ = ["JoinedFragments", "read_fragments_together"]


class JoinedFragments:
    """Fragments laid end to end: a row's offset is its physical offset plus the rows of the fragments before."""

    def __init__(self, files: AlikeFiles | Sequence[FileRows]) -> None:
        """Take all rows of the data file of each fragment; see `open`."""
        self._files = files
        counts = files.num_rows.tolist() if isinstance(files, AlikeFiles) else [each.rows.count for each in files]
        self.ends = tuple(accumulate(counts))
        """The offset at which each fragment ends."""

    @classmethod
    def open(cls, snapshot: Snapshot, fragments: Sequence[Fragment], schema: Schema) -> JoinedFragments | None:
        """Open the fragments' files to read fields of `schema`; None if they must be read separately.

        Raises as `FragmentReader` does.
        """
        alike = open_alike(snapshot, fragments, schema)
        if alike is not None:
            return cls(alike)
        files = _open_files(
            snapshot, [(fragment, RowSlice(0, fragment.physical_rows)) for fragment in fragments], schema
        )
        return None if files is None else cls(files)

    def read(self, schema: Schema, start: int, stop: int, *, budget: Budget | None = None) -> pa.Table:
        """Return the rows from `start` to `stop`, at least one; raises as `read_files_together` does."""
        if isinstance(self._files, AlikeFiles):
            return _as_storage(self._files.read(schema, RowSlice(start, stop), budget), schema)
        bounds = zip(self._files, pairwise((0, *self.ends)), strict=True)
        parts = [(file, max(start, first) - first, min(stop, end) - first) for file, (first, end) in bounds]
        files = [FileRows(file.reader, RowSlice(a, b), file.view) for file, a, b in parts if a < b]
        return _read_storage(files, schema, budget)

    def take(self, schema: Schema, offsets: Uint64Array, *, budget: Budget | None = None) -> pa.Table:
        """Return the rows at these ascending offsets; raises as `read_files_together` does."""
        if not len(offsets):
            return schema.to_arrow_storage().empty_table()
        if isinstance(self._files, AlikeFiles):
            return _as_storage(self._files.read(schema, RowSet(offsets.astype(np.int64)), budget), schema)
        cuts = (0, *np.searchsorted(offsets, np.array(self.ends, np.uint64)).tolist())
        own = zip(self._files, (0, *self.ends[:-1]), pairwise(cuts), strict=True)
        rows = [(file, offsets[a:b].astype(np.int64) - first) for file, first, (a, b) in own if a < b]
        return _read_storage(
            [FileRows(file.reader, RowSet(within), file.view) for file, within in rows], schema, budget
        )


def read_fragments_together(
    snapshot: Snapshot, parts: Sequence[tuple[Fragment, RowSelection]], schema: Schema
) -> pa.Table | None:
    """Return physical rows of fragments, one fragment after the other; None if they must be read separately.

    They must if a file is corrupt, so that the error names it, and if they are too large for one read.
    """
    try:
        files = _open_files(snapshot, parts, schema)
        return None if files is None else _read_storage(files, schema)
    except (CorruptFile, ReadTooLarge):
        return None


def _read_storage(files: Sequence[FileRows], schema: Schema, budget: Budget | None = None) -> pa.Table:
    return _as_storage(read_files_together(files, schema, budget), schema)


def _as_storage(table: pa.Table, schema: Schema) -> pa.Table:
    """Return the columns as their storage types, as a `FragmentReader` does."""
    return pa.Table.from_arrays(table.columns, schema=schema.to_arrow_storage())


def _open_files(
    snapshot: Snapshot, parts: Sequence[tuple[Fragment, RowSelection]], schema: Schema
) -> list[FileRows] | None:
    """Return the rows of each fragment's data file that holds all of `schema`; None to read them separately."""
    files = []
    for fragment, rows in parts:
        file = snapshot.reader(fragment).whole_file(schema)
        if file is None:
            return None
        files.append(FileRows(file[0], rows, file[1]))
    return files if can_read_together([file.reader for file in files], schema) else None
