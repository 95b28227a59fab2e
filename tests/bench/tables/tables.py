"""The tables that are measured: they grow in fragments, in columns, or in versions. This library writes them.

A table has a folder of its own: the table itself is `SOURCE` there, and rows to append are an Arrow file beside it.
"""

from __future__ import annotations

import os
import shutil
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

import lance_ops
from lance_ops.committers.version_hint import VERSION_HINT_PATH
from tests.bench.table_cases import write_versions

__all__ = ["APPENDED", "COLD", "SOURCE", "Table", "copy_table", "rows", "rows_to_append"]

SOURCE = "source"
APPENDED = 100
COLD = "cold"
"""The axis of tables that new processes open. They grow in nothing."""

_ROWS, _ROWS_OF_WIDE = 1_000_000, 1_000
_BUCKETS = 1_000
_TO_APPEND = "rows_to_append.arrow"


@dataclass(frozen=True)
class Table:
    """A table of `size` fragments, columns or versions, as `axis` says; `deleted` takes 1% of each fragment's rows."""

    axis: str
    size: int
    deleted: bool = False

    @property
    def name(self) -> str:
        """The axis, the size and, of tables that differ in it, the share of deleted rows."""
        share = ["1%" if self.deleted else "0%"] if self.axis == "fragments" else []
        return "/".join([self.axis, str(self.size), *share])

    def prepare(self, root: Path, scale: float) -> None:
        """Write the table, with `scale` times the default number of rows, and the rows to append to it."""
        root.mkdir()
        match self.axis:
            case "columns":
                appended = self._write_columns(root / SOURCE, max(2 * APPENDED, round(_ROWS_OF_WIDE * scale)))
            case "versions":
                appended = self._write_versions(root / SOURCE)
            case _:
                appended = self._write_fragments(root / SOURCE, max(1_000, round(_ROWS * scale)))
        with pa.ipc.new_file(root / _TO_APPEND, appended.schema) as file:
            file.write_table(appended)

    def _write_fragments(self, folder: Path, num_rows: int) -> pa.Table:
        table = rows(0, num_rows)
        dataset = lance_ops.write_dataset(table, str(folder), max_rows_per_file=-(-num_rows // self.size))
        dataset.create_scalar_index("id", "BTREE")
        if self.deleted:
            dataset.delete("id % 100 = 3")
        return rows(num_rows, APPENDED)

    def _write_columns(self, folder: Path, num_rows: int) -> pa.Table:
        table = pa.table(
            {f"c{column}": np.arange(num_rows, dtype=np.int32) * (column + 1) for column in range(self.size)}
        )
        lance_ops.write_dataset(table, str(folder))
        return table[:APPENDED]

    def _write_versions(self, folder: Path) -> pa.Table:
        """Write `size` versions of a table of one row or two, the last of them a commit."""
        write_versions(folder, max(1, self.size - 1))
        appended = lance_ops.dataset(str(folder)).to_table()
        if self.size > 1:
            lance_ops.write_dataset(appended, str(folder), mode="append")
        return appended


def rows(first_id: int, num_rows: int) -> pa.Table:
    """Return rows whose ids, from `first_id` on, are in no order, as keys of customers are."""
    rng = np.random.default_rng(first_id)
    ids = first_id + rng.permutation(num_rows)
    return pa.table(
        {
            "id": ids,
            "bucket": rng.integers(0, _BUCKETS, num_rows, dtype=np.int32),
            "value": rng.normal(size=num_rows),
            "name": pc.binary_join_element_wise("customer", pa.array(rng.permutation(ids)).cast(pa.string()), "-"),
        }
    )


def rows_to_append(uri: str) -> pa.Table:
    """Return the rows that lie beside a table."""
    return pa.ipc.open_file(pa.memory_map(str(Path(uri).with_name(_TO_APPEND)))).read_all()


def copy_table(source: Path, target: Path) -> None:
    """Copy a table by hard links, which is safe since nobody changes its files; then commit to the copy.

    The version hint, the only file that changes, holds for its own folder alone. The commit leaves the copy with one of
    its own, as every table has that this library wrote to last; so both contenders find what a user finds.
    """
    shutil.copytree(source, target, copy_function=os.link, ignore=shutil.ignore_patterns(Path(VERSION_HINT_PATH).name))
    lance_ops.dataset(str(target)).update_config({"copied": "true"})
