"""A namespace with one small table, and what runs statements on it. Some modules have a lake of their own."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest

from lance_ops.api import write_dataset
from lance_ops.runners import InThreads
from lance_ops.spark import sql, use_namespace

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


@pytest.fixture
def lake(spark: SparkSession, tmp_path: Path) -> Iterator[Path]:
    """A namespace with ten numbers in two fragments."""
    numbers = {"id": pa.array(range(10), pa.int64()), "x": pa.array(range(10), pa.int32()), "s": ["a", "b"] * 5}
    write_dataset(pa.table(numbers), tmp_path / "numbers.lance", max_rows_per_file=5)
    use_namespace(spark, tmp_path)
    yield tmp_path
    use_namespace(spark, None)


@pytest.fixture
def run(spark: SparkSession, lake: Path) -> Any:
    """Run a statement with tasks in threads."""

    def run_statement(text: str, **options: Any) -> DataFrame:
        return sql(spark, text, runner=InThreads(), **options)

    return run_statement
