"""`sql`: ALTER TABLE … ADD | UPDATE COLUMNS … beside another writer: values come from the rows that get them."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest

from lance_ops.api import LanceDataset, write_dataset
from lance_ops.runners import InThreads
from lance_ops.spark import sql
from tests.spark.sql_access.shown_rows import stored

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark


def update_a_row(opened: LanceDataset) -> None:
    opened.update({"x": "100"}, "id = 1")


def delete_a_row(opened: LanceDataset) -> None:
    opened.delete("id = 1")


def add_a_row(opened: LanceDataset) -> None:
    write_dataset(pa.table({"id": [4], "x": [40]}), opened.uri, mode="append")


def compact(opened: LanceDataset) -> None:
    opened.optimize.compact_files()


def overtaken(uri: Path, change: Callable[[LanceDataset], None]) -> InThreads:
    """Return a runner beside which another writer changes the table while the first attempt runs its tasks."""

    class Overtaken(InThreads):
        def map(self, *args: Any, **kwargs: Any) -> Any:
            if LanceDataset(uri).version == 1:
                change(LanceDataset(uri))
            return super().map(*args, **kwargs)

    return Overtaken()


@pytest.fixture(params=[True, False], ids=["stable row ids", "addresses as row ids"])
def uri(request: pytest.FixtureRequest, lake: Path) -> Path:
    """A table of the lake in two fragments."""
    rows = pa.table({"id": range(4), "x": [0, 10, 20, 30]})
    write_dataset(rows, lake / "t.lance", max_rows_per_file=2, enable_stable_row_ids=request.param)
    return lake / "t.lance"


@pytest.mark.parametrize("key", ["_rowid", "_rowaddr"])
@pytest.mark.parametrize(
    ("change", "expected"),
    [
        (update_a_row, {0: 1, 1: 101, 2: 21, 3: 31}),
        (delete_a_row, {0: 1, 2: 21, 3: 31}),
        (compact, {0: 1, 1: 11, 2: 21, 3: 31}),
    ],
)
def test_new_values_of_rows_are_computed_again_after_a_conflict(
    spark: SparkSession, lake: Path, uri: Path, key: str, change: Callable[[LanceDataset], None], expected: Any
) -> None:
    text = f"ALTER TABLE t UPDATE COLUMNS x FROM (SELECT {key}, x + 1 AS x FROM t)"
    sql(spark, text, runner=overtaken(uri, change))
    assert dict(stored(lake, "t")) == expected


@pytest.mark.parametrize(
    "source",
    [
        "COLUMNS y FROM (SELECT _rowid, x + 1 AS y FROM t)",
        "COLUMNS y FROM (SELECT _rowaddr, x + 1 AS y FROM t)",
        "COLUMN y AS (x + 1)",
    ],
)
@pytest.mark.parametrize(
    ("change", "ids"),
    [(update_a_row, [0, 1, 2, 3]), (delete_a_row, [0, 2, 3]), (add_a_row, [0, 1, 2, 3, 4]), (compact, [0, 1, 2, 3])],
)
def test_values_of_new_columns_are_computed_again_after_a_conflict(
    spark: SparkSession, lake: Path, uri: Path, source: str, change: Callable[[LanceDataset], None], ids: list[int]
) -> None:
    sql(spark, f"ALTER TABLE t ADD {source}", runner=overtaken(uri, change))
    rows = stored(lake, "t")
    assert [row[0] for row in rows] == ids
    assert all(y == x + 1 for _, x, y in rows)
