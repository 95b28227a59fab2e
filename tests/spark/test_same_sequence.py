"""One sequence of work through Python, SQL and the command line: the same operations, versions and rows.

Load, index, merge 1%, delete 0.1%, backfill, refresh the index, compact, vacuum, and find a row by the index.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import lance
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from lance_ops.api import dataset
from lance_ops.maintenance.health import timeline
from lance_ops.spark import OnSpark, sql, use_namespace
from tests.cli.calls import answer, text

if TYPE_CHECKING:
    from pyspark.sql import Row, SparkSession

pytestmark = [pytest.mark.spark, pytest.mark.interop]

ROWS = 20_000
FILES = 4
OPERATIONS = [
    *("Overwrite", "CreateIndex", "Update", "Delete", "Merge", "CreateIndex"),
    *("ReserveFragments", "Rewrite"),  # a compaction takes ids for its fragments first
]


def items(start: int, stop: int, price: float) -> pa.Table:
    ids = range(start, stop)
    return pa.table(
        {
            "id": pa.array(ids, pa.int64()),
            "price": pa.array([price + row % 10 for row in ids], pa.float64()),
            "quantity": pa.array([row % 7 for row in ids], pa.float64()),
            "note": [f"item {row}" for row in ids],
        }
    )


@pytest.fixture
def landing(tmp_path: Path) -> Path:
    """Four files of rows, and one of changes: 180 rows that exist and 20 that do not."""
    folder = tmp_path / "landing"
    folder.mkdir()
    for number in range(FILES):
        rows = items(number * ROWS // FILES, (number + 1) * ROWS // FILES, 1.0)
        pq.write_table(rows, folder / f"{number}.parquet")
    (tmp_path / "changes").mkdir()
    pq.write_table(items(ROWS - 180, ROWS + 20, 100.0), tmp_path / "changes" / "0.parquet")
    return folder


@pytest.fixture
def lake(spark: SparkSession, tmp_path: Path) -> Iterator[Path]:
    """The folder whose datasets SQL knows by name."""
    folder = tmp_path / "lake"
    folder.mkdir()
    use_namespace(spark, folder)
    yield folder
    use_namespace(spark, None)


class Door:
    """One way to work on the dataset at `uri`: `change` makes its versions, `vacuum` removes all but the last one."""

    def __init__(self, spark: SparkSession, uri: str, landing: Path) -> None:
        self.spark, self.uri, self.landing = spark, uri, landing
        self.changes = landing.parent / "changes"

    def change(self) -> None:
        raise NotImplementedError

    def vacuum(self) -> None:
        raise NotImplementedError

    def find(self) -> tuple[list[dict[str, Any]], str]:
        """Return the rows with id 19999, and the plan by which they are found."""
        raise NotImplementedError


class Python(Door):
    def change(self) -> None:
        on_spark = OnSpark(self.spark)
        self.spark.read.parquet(str(self.landing)).write.format("lance").mode("append").save(self.uri)
        items = dataset(self.uri)
        items.create_scalar_index("id", "BTREE", runner=on_spark)
        merge = items.merge_insert("id").when_matched_update_all().when_not_matched_insert_all()
        merge.execute(self.spark.read.parquet(str(self.changes)), runner=on_spark)
        items.delete("id >= 300 AND id < 320", runner=on_spark)
        items.add_columns({"total": "price * quantity"}, runner=on_spark)
        items.optimize.optimize_indices(runner=on_spark)
        items.optimize.compact_files(runner=on_spark)

    def vacuum(self) -> None:
        dataset(self.uri).cleanup_old_versions(retain_versions=1)

    def find(self) -> tuple[list[dict[str, Any]], str]:
        scanner = dataset(self.uri).scanner(filter="id = 19999")
        return scanner.to_table().to_pylist(), scanner.explain_plan(verbose=True)


class Sql(Door):
    def change(self) -> None:
        self.sql(f"CREATE TABLE {self.name} USING lance AS SELECT * FROM parquet.`{self.landing}`")
        self.sql(f"CREATE INDEX id_idx ON {self.name} (id) USING BTREE")
        self.sql(
            f"MERGE INTO {self.name} t USING (SELECT * FROM parquet.`{self.changes}`) s ON t.id = s.id "
            "WHEN MATCHED THEN UPDATE SET * WHEN NOT MATCHED THEN INSERT *"
        )
        self.sql(f"DELETE FROM {self.name} WHERE id >= 300 AND id < 320")
        self.sql(f"ALTER TABLE {self.name} ADD COLUMN total AS (price * quantity)")
        self.sql(f"REFRESH INDEX id_idx ON {self.name}")
        self.sql(f"OPTIMIZE {self.name}")

    def vacuum(self) -> None:
        self.sql(f"VACUUM {self.name} RETAIN 0 HOURS")

    def find(self) -> tuple[list[dict[str, Any]], str]:
        query = f"SELECT * FROM {self.name} WHERE id = 19999"
        ((plan,),) = self.sql(f"EXPLAIN {query}")
        return [row.asDict() for row in self.sql(query)], plan

    @property
    def name(self) -> str:
        return Path(self.uri).stem

    def sql(self, statement: str) -> list[Row]:
        return sql(self.spark, statement).collect()


class CommandLine(Door):
    def change(self) -> None:
        tasks = ("--spark", str(self.spark.sparkContext.master))
        answer("ingest", self.uri, *sorted(map(str, self.landing.iterdir())), *tasks)
        answer("reindex", self.uri, "--create", "id", *tasks)
        answer("merge", self.uri, str(self.changes / "0.parquet"), "--on", "id", *tasks)
        answer("delete", self.uri, "id >= 300 AND id < 320", *tasks)
        answer("add-columns", self.uri, "total=price * quantity", *tasks)
        answer("reindex", self.uri, *tasks)
        answer("compact", self.uri, *tasks)

    def vacuum(self) -> None:
        answer("cleanup", self.uri, "--retain-versions", "1")

    def find(self) -> tuple[list[dict[str, Any]], str]:
        row: dict[str, Any] = answer("query", self.uri, "--where", "id = 19999", "--json")
        return [row], text("query", self.uri, "--where", "id = 19999", "--explain")


def test_python_sql_and_the_command_line_make_the_same_versions(spark: SparkSession, lake: Path, landing: Path) -> None:
    doors = [door(spark, str(lake / f"{door.__name__.lower()}.lance"), landing) for door in (Python, Sql, CommandLine)]
    tables = []
    for door in doors:
        door.change()
        made = dataset(door.uri)
        assert [each.operation for each in timeline(made.snapshot)] == OPERATIONS, door.uri
        door.vacuum()
        assert [each["version"] for each in made.versions()] == [len(OPERATIONS)], door.uri
        found, plan = door.find()
        assert found == [{"id": 19_999, "price": 109.0, "quantity": 0.0, "note": "item 19999", "total": 0.0}]
        assert "ScalarIndexQuery: query=[id = 19999]" in plan, door.uri
        assert "unindexed fragments scanned: 0" in plan, door.uri
        read = lance.dataset(door.uri)
        assert read.version == len(OPERATIONS)
        assert "ScalarIndexQuery" in read.scanner(filter="id = 19999").explain_plan()
        tables.append(read.to_table().sort_by("id"))
    assert tables[0] == tables[1] == tables[2]
    rows = tables[0].to_pylist()
    assert [row["id"] for row in rows] == [*range(300), *range(320, ROWS + 20)]
    assert all(row["total"] == row["price"] * row["quantity"] for row in rows)
