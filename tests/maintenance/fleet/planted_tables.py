"""Tables of a fleet that owe work."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pyarrow as pa

import lance_ops

__all__ = ["copy", "plant"]


def plant(place: Path, num_fragments: int) -> str:
    """Write a table of so many fragments in one version."""
    table = pa.table({"id": range(2 * num_fragments)})
    return lance_ops.write_dataset(table, str(place), max_rows_per_file=2).uri


def copy(source: str, place: Path) -> None:
    """Copy a table by links: no verb changes a file of a table in place."""
    shutil.copytree(source, place, copy_function=os.link)
