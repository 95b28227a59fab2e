"""Create a table of a random schema and change it: every version that a verb commits is opened and read.

A verb may refuse a schema with an error of this library. Then it leaves no file behind and no version.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa

import lance_ops
from lance_ops.errors import LanceOpsError

__all__ = ["Outcome", "plain_values", "run_history"]


@dataclass(frozen=True)
class Outcome:
    """Which verbs committed, and the errors of those that did not."""

    committed: tuple[str, ...]
    refused: tuple[str, ...]


def run_history(
    folder: Path, table: pa.Table, version: str, name: str, added: pa.Field, check_others: Callable[[str], object]
) -> Outcome:
    """Create a table, append to it, add a column and rename one; `check_others` opens each version elsewhere.

    Raises `AssertionError` if a version cannot be read as it was written, or if a refused verb left something behind.
    Any other exception is one that this library should not raise.
    """
    uri = str(folder / "table")
    steps: dict[str, tuple[Callable[[], object], int]] = {
        "create": (lambda: lance_ops.write_dataset(table, uri, data_storage_version=version), 1),
        "append": (lambda: lance_ops.write_dataset(table, uri, mode="append"), 2),
        "add": (lambda: lance_ops.dataset(uri).add_columns(added), 2),
        "rename": (lambda: _rename_first(uri, name), 2),
    }
    committed: list[str] = []
    refused: list[str] = []
    for verb, (act, times) in steps.items():
        before = _files(folder)
        try:
            act()
        except LanceOpsError as error:
            refused.append(f"{verb}: {error}")
            assert _files(folder) == before, f"{verb} left files: {_files(folder) - before}"
            if verb == "create":
                break
            continue
        committed.append(verb)
        _check_read(uri, table, table.num_rows * (times if "append" in committed else 1))
        check_others(uri)
    return Outcome(tuple(committed), tuple(refused))


def _rename_first(uri: str, name: str) -> None:
    dataset = lance_ops.dataset(uri)
    if dataset.snapshot.schema.fields:
        dataset.alter_columns({"path": dataset.snapshot.schema.names[0], "name": name})


def _check_read(uri: str, table: pa.Table, num_rows: int) -> None:
    opened = lance_ops.dataset(uri)
    opened.validate()
    assert opened.count_rows() == num_rows
    found = opened.to_table(with_row_id=True)
    found.validate(full=True)
    assert found.num_rows == num_rows
    for at in range(table.num_columns):
        if not opened.snapshot.schema.fields[at].holds_blobs_v2 and not opened.snapshot.schema.fields[at].is_blob_v1:
            wanted = _plain(table.column(at)) * (num_rows // max(table.num_rows, 1))
            assert _plain(found.column(at)) == wanted, f"column {at} of {table.schema}"


def plain_values(table: pa.Table) -> list[list[Any]]:
    """Return the values of each column as Python objects, those of extension types as their storage."""
    return [_plain(column) for column in table.columns]


def _plain(column: pa.ChunkedArray) -> list[Any]:
    """Return the values as Python objects, those of extension types as their storage."""
    chunks = [chunk.storage if isinstance(chunk, pa.ExtensionArray) else chunk for chunk in column.chunks]
    return [value for chunk in chunks for value in chunk.to_pylist(maps_as_pydicts=None)]


def _files(folder: Path) -> set[str]:
    return {os.path.join(place, name) for place, _, names in os.walk(folder) for name in names}
