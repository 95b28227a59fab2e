"""Rows of several fragments, decoded together."""

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
    """Return physical rows of fragments, one fragment after the other; None where they have to be read one by one.

    So have those of which a file is corrupt, for an error that names it, and those too large for one read.
    """
    try:
        readers = [snapshot.reader(fragment).whole_file(schema) for fragment, _ in parts]
        known = [reader for reader in readers if reader is not None]
        if len(known) < len(readers) or not can_read_together(known, schema):
            return None
        return read_files_together(
            [FileRows(*pair) for pair in zip(known, (rows for _, rows in parts), strict=True)], schema
        )
    except (CorruptFile, ReadTooLarge):
        return None
