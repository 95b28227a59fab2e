"""A namespace with a table and a source of merges."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa
import pytest

from lance_ops.api import write_dataset
from lance_ops.spark import use_namespace
from tests.spark.sql_access.merge.merging import NEWS, START

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@pytest.fixture
def lake(spark: SparkSession, tmp_path: Path) -> Iterator[Path]:
    """A table of three columns, and a source with one more; the source's columns are in another order."""
    table = pa.Table.from_pylist([dict(zip(("id", "x", "s"), row, strict=True)) for row in START])
    write_dataset(
        table.cast(pa.schema([("id", pa.int64()), ("x", pa.int32()), ("s", pa.string())])), tmp_path / "t.lance"
    )
    news = pa.Table.from_pylist([dict(zip(("ID", "x", "s", "flag"), row, strict=True)) for row in NEWS])
    write_dataset(news.select(["flag", "s", "x", "ID"]), tmp_path / "news.lance")
    use_namespace(spark, tmp_path)
    yield tmp_path
    use_namespace(spark, None)
