"""Read rows of several fragments in one decode, for takes and for compactions of small files."""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa

from lance_ops.core.errors import CorruptFile, ReadTooLarge
from lance_ops.core.schema import Schema
from lance_ops.file import FileRows, RowSelection, can_read_together, read_files_together
from lance_ops.snapshot import Snapshot
from lance_ops.table import Fragment

__all__ = ["read_fragments_together"]


def read_fragments_together(
    snapshot: Snapshot, parts: Sequence[tuple[Fragment, RowSelection]], schema: Schema
) -> pa.Table | None:
    """Return physical rows of fragments, one fragment after the other; None if they must be read separately.

    They must if a file is corrupt, so that the error names it, and if they are too large for one read.
    """
    try:
        readers = [snapshot.reader(fragment).whole_file(schema) for fragment, _ in parts]
        files = [reader for reader in readers if reader is not None]
        if len(files) < len(readers) or not can_read_together(files, schema):
            return None
        selections = [rows for _, rows in parts]
        return read_files_together([FileRows(*pair) for pair in zip(files, selections, strict=True)], schema)
    except (CorruptFile, ReadTooLarge):
        return None
