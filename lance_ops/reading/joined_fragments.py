"""Read rows of several fragments in one decode: the fragments are laid end to end and read as if they were one."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import accumulate, pairwise

import numpy as np
import pyarrow as pa

from lance_ops.core.arrow import empty_table
from lance_ops.core.errors import LanceOpsError
from lance_ops.core.ndarrays import Uint64Array
from lance_ops.core.schema import Schema
from lance_ops.file import (
    WHOLE_FILE_BYTES,
    AlikeFiles,
    Budget,
    FileRows,
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
    def open(
        cls, snapshot: Snapshot, fragments: Sequence[Fragment], schema: Schema, *, keep_open: bool = False
    ) -> JoinedFragments | None:
        """Open the fragments' files to read fields of `schema`; None if they must be read separately.

        Files that are alike are opened together, unless they are to stay open. Raises as `FragmentReader` does.
        """
        alike = None if keep_open else open_alike(snapshot, fragments, schema)
        if alike is not None:
            return cls(alike)
        files = _open_files(snapshot, fragments, schema)
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
            return empty_table(schema.to_arrow_storage())
        if isinstance(self._files, AlikeFiles):
            return _as_storage(self._files.read(schema, RowSet(offsets.astype(np.int64)), budget), schema)
        cuts = (0, *np.searchsorted(offsets, np.array(self.ends, np.uint64)).tolist())
        own = zip(self._files, (0, *self.ends[:-1]), pairwise(cuts), strict=True)
        rows = [(file, offsets[a:b].astype(np.int64) - first) for file, first, (a, b) in own if a < b]
        return _read_storage(
            [FileRows(file.reader, RowSet(within), file.view) for file, within in rows], schema, budget
        )


def read_fragments_together(
    snapshot: Snapshot, fragments: Sequence[Fragment], schema: Schema, offsets: Sequence[Uint64Array] | None = None
) -> pa.Table | None:
    """Return physical rows of fragments, one fragment after the other; None if they must be read separately.

    `offsets` are ascending ones of each fragment; all rows by default. The fragments must be read separately if one is
    corrupt, so that the error names its file, and if they are too large for one read. Larger files of which rows were
    chosen before are opened by themselves, because they stay open.
    """
    try:
        joined = JoinedFragments.open(
            snapshot, fragments, schema, keep_open=offsets is not None and _are_worth_keeping(snapshot, fragments)
        )
        if joined is None:
            return None
        if offsets is None:
            return joined.read(schema, 0, joined.ends[-1])
        firsts = (0, *joined.ends)
        chosen = [each + np.uint64(first) for each, first in zip(offsets, firsts, strict=False)]
        return joined.take(schema, np.concatenate(chosen))
    except (LanceOpsError, OSError):
        return None


def _are_worth_keeping(snapshot: Snapshot, fragments: Sequence[Fragment]) -> bool:
    """Return whether the fragments' files are not short, and rows of all of them were read before."""
    files = [file for fragment in fragments for file in fragment.files]
    are_short = all(file.file_size_bytes <= WHOLE_FILE_BYTES for file in files)
    return not are_short and snapshot.session.open_files.are_read_again(file.path for file in files)


def _read_storage(files: Sequence[FileRows], schema: Schema, budget: Budget | None = None) -> pa.Table:
    return _as_storage(read_files_together(files, schema, budget), schema)


def _as_storage(table: pa.Table, schema: Schema) -> pa.Table:
    """Return the columns as their storage types, as a `FragmentReader` does."""
    return pa.Table.from_arrays(table.columns, schema=schema.to_arrow_storage())


def _open_files(snapshot: Snapshot, fragments: Sequence[Fragment], schema: Schema) -> list[FileRows] | None:
    """Return all rows of each fragment's data file that holds all of `schema`; None to read them separately."""
    files = []
    for fragment in fragments:
        file = snapshot.reader(fragment).whole_file(schema)
        if file is None:
            return None
        files.append(FileRows(file[0], RowSlice(0, fragment.physical_rows), file[1]))
    return files if can_read_together([file.reader for file in files], schema) else None
