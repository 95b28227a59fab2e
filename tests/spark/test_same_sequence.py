"""One sequence of work through Python, SQL and the command line: the same operations, versions and rows.

Load, index, merge 1%, delete 0.1%, backfill, refresh the index, compact, vacuum, and find a row by the index. Each step
must run in tasks of Spark. The columns are some of TPC-H's `lineitem` and `orders`, with invented values.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from datetime import date, timedelta
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

import lance
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from lance_ops.api import dataset
from lance_ops.cli.extras import spark_master
from lance_ops.maintenance.health import timeline
from lance_ops.spark import OnSpark, sql, use_namespace, write
from lance_ops.spark.running import row_job
from tests.cli.calls import answer, text
from tests.spark.recorded_jobs import RecordedJobs, record_jobs

if TYPE_CHECKING:
    from pyspark.sql import Row, SparkSession

pytestmark = [pytest.mark.spark, pytest.mark.interop]

ORDERS = 5000
LINES = 4
FILES = 4
WITHDRAWN = range(300, 305)
OPERATIONS = [
    *("Overwrite", "CreateIndex", "Update", "Delete", "Merge", "CreateIndex"),
    *("ReserveFragments", "Rewrite"),  # a compaction takes ids for its fragments first
]
BEGUN = {
    "load": "",
    "index": "index",
    "merge": "merge (rows)",
    "delete": "merge (join)",
    "backfill": "add columns to",
    "refresh": "extend index of",
    "compact": "compact",
    "vacuum": "delete files of",
}
"""By step, how the description of one of its jobs on Spark begins."""

Steps: TypeAlias = Mapping[str, Callable[[], object]]


def lineitem(first_order: int, stop_order: int, price: float) -> pa.Table:
    keys = [(order, line) for order in range(first_order, stop_order) for line in range(1, LINES + 1)]
    return pa.table(
        {
            "l_orderkey": pa.array([order for order, _ in keys], pa.int64()),
            "l_linenumber": pa.array([line for _, line in keys], pa.int32()),
            "l_quantity": [float(order % 50 + 1) for order, _ in keys],
            "l_extendedprice": [price + (order * LINES + line) % 10 for order, line in keys],
            "l_discount": [line / 8 for _, line in keys],
            "l_shipdate": [date(1995, 1, 1) + timedelta(order % 365 + line) for order, line in keys],
            "l_comment": [f"line {line} of order {order}" for order, line in keys],
        }
    )


def orders() -> pa.Table:
    return pa.table(
        {
            "o_orderkey": pa.array(range(ORDERS), pa.int64()),
            "o_custkey": pa.array([order % 700 for order in range(ORDERS)], pa.int64()),
            "o_orderstatus": ["W" if order in WITHDRAWN else "OF"[order % 2] for order in range(ORDERS)],
        }
    )


@dataclass(frozen=True)
class Sources:
    """Folders and files with rows: lines in four files, changed lines of 45 orders and lines of 5 new ones, and orders.

    `withdrawn` has the keys of withdrawn orders under the name of the column of `lineitem`.
    """

    lines: Path
    changes: Path
    orders: Path
    withdrawn: Path


@pytest.fixture
def sources(tmp_path: Path) -> Sources:
    made = Sources(tmp_path / "lines", *(tmp_path / f"{name}.parquet" for name in ("changes", "orders", "withdrawn")))
    made.lines.mkdir()
    for number in range(FILES):
        rows = lineitem(number * ORDERS // FILES, (number + 1) * ORDERS // FILES, 1.0)
        pq.write_table(rows, made.lines / f"{number}.parquet")
    pq.write_table(lineitem(ORDERS - 45, ORDERS + 5, 100.0), made.changes)
    pq.write_table(orders(), made.orders)
    pq.write_table(pa.table({"l_orderkey": pa.array(WITHDRAWN, pa.int64())}), made.withdrawn)
    return made


@pytest.fixture
def lake(spark: SparkSession, tmp_path: Path) -> Iterator[Path]:
    """The folder whose datasets SQL knows by name."""
    folder = tmp_path / "lake"
    folder.mkdir()
    use_namespace(spark, folder)
    yield folder
    use_namespace(spark, None)


class Door:
    """One way to work on the dataset at `uri`: its steps by their names in `BEGUN`, and a query."""

    def __init__(self, tasks: OnSpark, uri: str, sources: Sources) -> None:
        self.tasks, self.spark, self.uri, self.sources = tasks, tasks.session, uri, sources

    def steps(self) -> Steps:
        raise NotImplementedError

    def find(self) -> tuple[list[dict[str, Any]], str]:
        """Return the last line of order 4999, and the plan by which it is found."""
        raise NotImplementedError


class Python(Door):
    def steps(self) -> Steps:
        return {
            "load": lambda: write(self.spark.read.parquet(str(self.sources.lines)), self.uri),
            "index": lambda: dataset(self.uri).create_scalar_index("l_orderkey", "BTREE", runner=self.tasks),
            "merge": self.merge,
            "delete": self.delete,
            "backfill": lambda: dataset(self.uri).add_columns(
                {"l_charge": "l_extendedprice * (1 - l_discount)"}, runner=self.tasks
            ),
            "refresh": lambda: dataset(self.uri).optimize.optimize_indices(runner=self.tasks),
            "compact": lambda: dataset(self.uri).optimize.compact_files(runner=self.tasks),
            "vacuum": lambda: dataset(self.uri).cleanup_old_versions(retain_versions=1, runner=self.tasks),
        }

    def merge(self) -> None:
        merge = dataset(self.uri).merge_insert(["l_orderkey", "l_linenumber"])
        merge.when_matched_update_all().when_not_matched_insert_all()
        merge.execute(self.spark.read.parquet(str(self.sources.changes)), runner=self.tasks)

    def delete(self) -> None:
        withdrawn = self.spark.read.parquet(str(self.sources.orders)).where("o_orderstatus = 'W'")
        keys = withdrawn.selectExpr("o_orderkey AS l_orderkey")
        dataset(self.uri).delete_by_keys(keys, "l_orderkey", runner=self.tasks)

    def find(self) -> tuple[list[dict[str, Any]], str]:
        scanner = dataset(self.uri).scanner(filter="l_orderkey = 4999 AND l_linenumber = 4")
        return scanner.to_table().to_pylist(), scanner.explain_plan(verbose=True)


class Sql(Door):
    def steps(self) -> Steps:
        table, sources = Path(self.uri).stem, self.sources
        statements = {
            "load": f"CREATE TABLE {table} USING lance AS SELECT * FROM parquet.`{sources.lines}`",
            "index": f"CREATE INDEX l_orderkey_idx ON {table} (l_orderkey) USING BTREE",
            "merge": f"MERGE INTO {table} t USING (SELECT * FROM parquet.`{sources.changes}`) s "
            "ON t.l_orderkey = s.l_orderkey AND t.l_linenumber = s.l_linenumber "
            "WHEN MATCHED THEN UPDATE SET * WHEN NOT MATCHED THEN INSERT *",
            "delete": f"DELETE FROM {table} WHERE l_orderkey IN "
            f"(SELECT o_orderkey FROM parquet.`{sources.orders}` WHERE o_orderstatus = 'W')",
            "backfill": f"ALTER TABLE {table} ADD COLUMN l_charge AS (l_extendedprice * (1 - l_discount))",
            "refresh": f"REFRESH INDEX l_orderkey_idx ON {table}",
            "compact": f"OPTIMIZE {table}",
            "vacuum": f"VACUUM {table} RETAIN 0 HOURS",
        }
        return {name: partial(self.sql, statement) for name, statement in statements.items()}

    def find(self) -> tuple[list[dict[str, Any]], str]:
        query = f"SELECT * FROM {Path(self.uri).stem} WHERE l_orderkey = 4999 AND l_linenumber = 4"
        ((plan,),) = self.sql(f"EXPLAIN {query}")
        return [row.asDict() for row in self.sql(query)], plan

    def sql(self, statement: str) -> list[Row]:
        return sql(self.spark, statement, runner=self.tasks).collect()


class CommandLine(Door):
    def steps(self) -> Steps:
        sources, uri = self.sources, self.uri
        commands = {
            "load": ("ingest", uri, *sorted(map(str, sources.lines.iterdir()))),
            "index": ("reindex", uri, "--create", "l_orderkey"),
            "merge": ("merge", uri, str(sources.changes), "--on", "l_orderkey", "--on", "l_linenumber"),
            "delete": ("delete", uri, "--keys", str(sources.withdrawn), "--on", "l_orderkey"),
            "backfill": ("add-columns", uri, "l_charge=l_extendedprice * (1 - l_discount)"),
            "refresh": ("reindex", uri),
            "compact": ("compact", uri),
            "vacuum": ("cleanup", uri, "--retain-versions", "1"),
        }
        on_spark = ("--spark", str(self.spark.sparkContext.master))
        return {name: partial(answer, *words, *on_spark) for name, words in commands.items()}

    def find(self) -> tuple[list[dict[str, Any]], str]:
        where = ("query", self.uri, "--where", "l_orderkey = 4999 AND l_linenumber = 4")
        row: dict[str, Any] = answer(*where)
        return [row], text(*where, "--explain")


def test_python_sql_and_the_command_line_make_the_same_versions_by_tasks(
    tasks: OnSpark, jobs: RecordedJobs, lake: Path, sources: Sources, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(spark_master, "OnSpark", partial(OnSpark, least_bytes=0))
    written = record_jobs(monkeypatch, row_job)
    tables = []
    for kind in (Python, Sql, CommandLine):
        door = kind(tasks, str(lake / f"{kind.__name__.lower()}.lance"), sources)
        steps = door.steps()
        assert steps.keys() == BEGUN.keys()
        for name, step in steps.items():
            if name == "vacuum":
                assert [each.operation for each in timeline(dataset(door.uri).snapshot)] == OPERATIONS, door.uri
            step()
            ran = jobs.take() + (written.take() if name == "load" else [])
            assert any(each.startswith(BEGUN[name]) for each in ran), (door.uri, name, ran)
        assert [each["version"] for each in dataset(door.uri).versions()] == [len(OPERATIONS)], door.uri
        found, plan = door.find()
        assert [{**row, "l_shipdate": str(row["l_shipdate"])} for row in found] == [
            {
                "l_orderkey": 4999,
                "l_linenumber": 4,
                "l_quantity": 50.0,
                "l_extendedprice": 100.0,
                "l_discount": 0.5,
                "l_shipdate": "1995-09-16",
                "l_comment": "line 4 of order 4999",
                "l_charge": 50.0,
            }
        ]
        assert "ScalarIndexQuery: query=[l_orderkey = 4999]" in plan, door.uri
        assert "unindexed fragments scanned: 0" in plan, door.uri
        read = lance.dataset(door.uri)
        assert read.version == len(OPERATIONS)
        assert "ScalarIndexQuery" in read.scanner(filter="l_orderkey = 4999").explain_plan()
        tables.append(read.to_table().sort_by([("l_orderkey", "ascending"), ("l_linenumber", "ascending")]))
    assert tables[0] == tables[1] == tables[2]
    rows = tables[0].to_pylist()
    kept = [(order, line) for order in range(ORDERS + 5) if order not in WITHDRAWN for line in range(1, LINES + 1)]
    assert [(row["l_orderkey"], row["l_linenumber"]) for row in rows] == kept
    assert all(row["l_charge"] == row["l_extendedprice"] * (1 - row["l_discount"]) for row in rows)
    assert sum(row["l_extendedprice"] >= 100 for row in rows) == 50 * LINES
