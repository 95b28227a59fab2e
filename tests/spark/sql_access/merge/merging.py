"""Merges into one small table, and the rows they left."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from lance_ops.api import LanceDataset, write_dataset
from lance_ops.runners import InThreads
from lance_ops.spark import sql

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

START = [(1, 10, "a"), (2, 20, "b"), (3, 30, "c"), (4, None, "d")]
NEWS = [(2, 21, "B", True), (3, 5, "C", False), (5, 50, "E", True)]


def merge(spark: SparkSession, lake: Path, text: str) -> tuple[tuple[int, ...], list[tuple[Any, ...]]]:
    """Return the counts (affected, updated, deleted, inserted) and the rows."""
    counts = tuple(sql(spark, f"MERGE INTO {text}", runner=InThreads()).collect()[0])
    rows = [tuple(row.values()) for row in LanceDataset(lake / "t.lance").to_table().to_pylist()]
    return counts, sorted(rows, key=lambda row: (row[0] is None, row))


def add_rows(lake: Path, *rows: tuple[int | None, int, str]) -> None:
    """Append rows to the table; their keys may be there already."""
    uri = lake / "t.lance"
    new = pa.Table.from_pylist([dict(zip(("id", "x", "s"), row, strict=True)) for row in rows])
    write_dataset(new.cast(LanceDataset(uri).schema), uri, mode="append")
