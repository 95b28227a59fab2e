"""Make a table of very many fragments, whose files are links to the file of the first one."""

from __future__ import annotations

import shutil
from dataclasses import replace
from pathlib import Path

import pyarrow as pa

import lance_ops
from lance_ops.snapshot import Snapshot
from lance_ops.transactions import Append
from lance_ops.writing import commit_operation

__all__ = ["linked_table"]

_LINKS_OF_FILE = 30_000  # some file systems allow 65,000


def linked_table(uri: str, rows: pa.Table, num_fragments: int) -> Snapshot:
    """Make a table whose fragments each have these rows, and a file with a name of its own."""
    made = lance_ops.write_dataset(rows, uri)
    first = made.snapshot.manifest.fragments[0]
    data = Path(uri, "data")
    linked = data / first.files[0].path
    fragments = []
    for number in range(1, num_fragments):
        name = f"{number:024b}{number:026x}.lance"
        if number % _LINKS_OF_FILE:
            (data / name).hardlink_to(linked)
        else:
            linked = Path(shutil.copy(linked, data / name))
        fragments.append(replace(first, files=(replace(first.files[0], path=name),)))
    commit_operation(made.snapshot, Append(tuple(fragments)))
    return lance_ops.dataset(uri).snapshot
