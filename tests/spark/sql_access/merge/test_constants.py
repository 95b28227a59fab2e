"""`sql`: MERGE INTO with parameters and subqueries in ON, conditions and values.

The expected rows are those of a query with a plain join, in the same session and with the same parameters.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest
from pyspark.errors import AnalysisException

from lance_ops.api import LanceDataset, write_dataset
from lance_ops.core.errors import InvalidInput, UnsupportedFeature
from lance_ops.runners import InThreads
from lance_ops.spark import sql
from lance_ops.spark.sql_access.merge import statement as statement_of_merge
from tests.spark.sql_access.merge.merging import START, merge

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark

_ON = "t USING news n ON t.id = n.id"
_NEW = "FROM news n LEFT ANTI JOIN t ON t.id = n.id"
_ARGS = {"least": 15, "added": 7, "text": "it's \\ ünd", "since": date(2026, 1, 31)}


@pytest.mark.parametrize(
    ("merged", "expected"),
    [
        pytest.param(
            f"""
            {_ON} WHEN MATCHED AND t.x > :least THEN UPDATE SET x = n.x + :added, s = concat(t.s, :text)
            WHEN NOT MATCHED AND DATE '2026-02-01' > :since THEN INSERT (id, x, s) VALUES (id, :added, :text)
            WHEN NOT MATCHED BY SOURCE AND t.x < :least THEN UPDATE SET x = :least
            """,
            f"""
            SELECT t.id, CASE WHEN n.id IS NULL THEN if(t.x < :least, :least, t.x) WHEN t.x > :least THEN n.x + :added
            ELSE t.x END, if(n.id IS NOT NULL AND t.x > :least, concat(t.s, :text), t.s)
            FROM t LEFT JOIN news n ON t.id = n.id UNION ALL SELECT id, :added, :text {_NEW}
            """,
            id="parameters in clauses",
        ),
        pytest.param(
            "t USING (SELECT * FROM news WHERE x > :added) n ON t.id = n.id AND t.x > :least WHEN MATCHED THEN DELETE",
            "SELECT t.* FROM t LEFT ANTI JOIN news n ON t.id = n.id AND t.x > :least AND n.x > :added",
            id="parameters in the source and in ON",
        ),
        pytest.param(
            f"""
            {_ON} WHEN MATCHED AND n.x < (SELECT avg(x) FROM t WHERE x >= :least)
            THEN UPDATE SET x = (SELECT max(x) FROM t) WHEN NOT MATCHED AND EXISTS (SELECT 1 FROM news WHERE x = 5)
            THEN INSERT (id, s) VALUES (id, (WITH q AS (SELECT max(s) AS m FROM news) SELECT m FROM q))
            WHEN NOT MATCHED BY SOURCE AND NOT EXISTS(SELECT id FROM t WHERE t.id > 3) THEN DELETE
            """,
            f"""
            SELECT t.id, if(n.x < (SELECT avg(x) FROM t WHERE x >= :least), (SELECT max(x) FROM t), t.x), t.s
            FROM t LEFT JOIN news n ON t.id = n.id UNION ALL SELECT id, NULL, (SELECT max(s) FROM news) {_NEW}
            """,
            id="subqueries in clauses",
        ),
        pytest.param(
            "t USING news n ON t.id = n.id AND t.x < (SELECT max(x) FROM news WHERE flag)-20 WHEN MATCHED THEN DELETE",
            "SELECT t.* FROM t LEFT ANTI JOIN news n ON t.id = n.id AND t.x < 30",
            id="a subquery in ON",
        ),
    ],
)
def test_parameters_and_subqueries_are_what_they_are_in_a_query(
    spark: SparkSession, lake: Path, merged: str, expected: str
) -> None:
    used = {name: value for name, value in _ARGS.items() if f":{name}" in expected}
    wanted = [tuple(row) for row in sql(spark, expected, used).collect()]
    sql(spark, f"MERGE INTO {merged}", _ARGS, runner=InThreads())
    left = [tuple(row.values()) for row in LanceDataset(lake / "t.lance").to_table().to_pylist()]
    assert sorted(left) == sorted(wanted)
    assert sorted(left) != START


_VALUES = {
    "null": (None, pa.int32()),
    "truth": (True, pa.bool_()),
    "integer": (-(2**31), pa.int32()),
    "long": (-(2**63), pa.int64()),
    "double": (0.1 + 0.2, pa.float64()),
    "decimal": (Decimal("-12345678901234567890.123456789"), pa.decimal128(38, 9)),
    "text": ("'\\n\" ?:{x} ü\n\0", pa.string()),
    "empty text": ("", pa.string()),
    "bytes": (b"\x00\xff", pa.binary()),
    "date": (date(1582, 10, 4), pa.date32()),
    "moment": (datetime(1583, 10, 31, 1, 30, 0, 123_456, UTC), pa.timestamp("us", "UTC")),
    "duration": (timedelta(days=-3, microseconds=1), pa.duration("us")),
}


@pytest.mark.parametrize(("value", "kind"), [pytest.param(*each, id=name) for name, each in _VALUES.items()])
def test_a_parameter_has_its_value_and_its_type(spark: SparkSession, lake: Path, value: Any, kind: pa.DataType) -> None:
    write_dataset(pa.table({"id": [1], "v": pa.array([None], kind), "type": [""]}), lake / "values.lance")
    text = "MERGE INTO values v USING (SELECT 1 AS id) n ON v.id = n.id WHEN MATCHED THEN UPDATE SET"
    sql(spark, f"{text} v = :value, type = typeof(:value)", {"value": value})
    [row] = LanceDataset(lake / "values.lance").to_table().to_pylist()
    asked = sql(spark, "SELECT typeof(:value) AS type", {"value": value}).collect()
    assert (row["v"], row["type"]) == (value, asked[0]["type"])


@pytest.fixture
def summer_ends(spark: SparkSession) -> Iterator[None]:
    """A time zone in which an hour comes twice."""
    before = spark.conf.get("spark.sql.session.timeZone")
    spark.conf.set("spark.sql.session.timeZone", "Europe/Berlin")
    yield
    spark.conf.set("spark.sql.session.timeZone", str(before))


@pytest.mark.usefixtures("summer_ends")
def test_a_moment_of_an_hour_that_comes_twice_stays_the_same(spark: SparkSession, lake: Path) -> None:
    moments = [datetime(2026, 10, 25, hour, 30, tzinfo=UTC) for hour in (0, 1)]
    hours = {"id": [0, 1], "at": pa.array([None, None], pa.timestamp("us", "UTC"))}
    write_dataset(pa.table(hours), lake / "hours.lance")
    write_dataset(pa.table({"moment": moments}), lake / "moments.lance")
    for number, value in enumerate(["min(moment)", "max(moment)"]):
        text = f"MERGE INTO hours h USING (SELECT {number} AS id) n ON h.id = n.id WHEN MATCHED THEN UPDATE SET"
        sql(spark, f"{text} at = (SELECT {value} FROM moments)")
    assert LanceDataset(lake / "hours.lance").to_table().sort_by("id")["at"].to_pylist() == moments


def test_a_parameter_leaves_the_merge_by_key(spark: SparkSession, lake: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object) -> None:
        raise AssertionError("Spark joins the whole table")

    monkeypatch.setattr(statement_of_merge, "changes_by_join", fail)
    clauses = "WHEN MATCHED THEN UPDATE SET s = :text WHEN NOT MATCHED BY SOURCE AND x < :least THEN DELETE"
    sql(spark, f"MERGE INTO {_ON} {clauses}", _ARGS, runner=InThreads())
    left = [tuple(row.values()) for row in LanceDataset(lake / "t.lance").to_table().sort_by("id").to_pylist()]
    assert left == [(2, 20, _ARGS["text"]), (3, 30, _ARGS["text"]), (4, None, "d")]


@pytest.mark.parametrize(
    ("merged", "args", "error", "reason"),
    [
        (f"{_ON} AND t.x > ? WHEN MATCHED THEN DELETE", [1], InvalidInput, "behind USING needs a name, as in :since"),
        (f"{_ON} WHEN MATCHED AND n.x = :none THEN DELETE", {"n": 1}, AnalysisException, "UNBOUND_SQL_PARAMETER"),
        (f"{_ON} WHEN MATCHED AND n.x = :none THEN DELETE", None, AnalysisException, "UNBOUND_SQL_PARAMETER"),
        (f"{_ON} WHEN MATCHED AND n.x = :l[0] THEN DELETE", {"l": [1]}, UnsupportedFeature, ":l in .* type array<int>"),
        (
            f"{_ON} WHEN MATCHED AND n.x IN (SELECT 5) THEN DELETE",
            None,
            UnsupportedFeature,
            "a subquery of several rows",
        ),
        (
            f"{_ON} WHEN MATCHED AND n.x = (SELECT max(m.x) FROM news m WHERE m.id = t.id) THEN DELETE",
            None,
            UnsupportedFeature,
            "a subquery that reads a row of the merge",
        ),
        (
            f"{_ON} WHEN NOT MATCHED AND EXISTS (SELECT 1 FROM news m WHERE m.id = n.id) THEN INSERT *",
            None,
            UnsupportedFeature,
            "a subquery that reads a row of the merge",
        ),
    ],
)
def test_what_has_no_single_value_is_refused(
    spark: SparkSession, lake: Path, merged: str, args: Any, error: type[Exception], reason: str
) -> None:
    with pytest.raises(error, match=reason):
        sql(spark, f"MERGE INTO {merged}", args, runner=InThreads())
    assert LanceDataset(lake / "t.lance").version == 1


def test_a_subquery_reads_the_version_that_the_merge_changes(spark: SparkSession, lake: Path) -> None:
    merge(spark, lake, f"{_ON} WHEN NOT MATCHED THEN INSERT *")
    counts, rows = merge(
        spark,
        lake,
        "t USING (SELECT 9L AS id) n ON t.id = n.id WHEN NOT MATCHED THEN INSERT (id, x) "
        "VALUES (id, (SELECT count(*) FROM t))",
    )
    assert counts == (1, 0, 0, 1)
    assert rows[-1] == (9, 5, None)
