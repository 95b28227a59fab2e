"""`sql`: MERGE INTO whose clauses or conditions read rows of the table, which Spark joins to the source."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest
from pyspark.errors import PySparkException

from lance_ops.api import LanceDataset, write_dataset
from lance_ops.core.errors import InvalidInput, LanceOpsError, TooManyConcurrentWriters, UnsupportedFeature
from lance_ops.runners import InThreads
from lance_ops.spark import OnSpark, sql
from lance_ops.spark.sql_access import statement
from lance_ops.spark.sql_access.merge import statement as statement_of_merge
from lance_ops.spark.sql_access.queries import run_query
from tests.spark.sql_access.merge.merging import START, add_rows, merge

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

pytestmark = pytest.mark.spark


def overtaken(uri: Path, *, always: bool = False) -> InThreads:
    """Return a runner beside which another writer changes a row while the first attempt, or any, runs its tasks."""

    class Overtaken(InThreads):
        def map(self, *args: Any, **kwargs: Any) -> Any:
            if always or LanceDataset(uri).version == 1:
                LanceDataset(uri).update({"x": "1000"}, "id = 2")
            return super().map(*args, **kwargs)

    return Overtaken()


@pytest.mark.parametrize("retry_timeout", [timedelta(seconds=30), timedelta(0)], ids=str)
def test_values_of_both_rows_are_computed_again_after_an_attempt_of_any_length(
    spark: SparkSession, lake: Path, monkeypatch: pytest.MonkeyPatch, retry_timeout: timedelta
) -> None:
    uri = lake / "t.lance"
    monkeypatch.setattr(statement, "_RETRY_TIMEOUT", retry_timeout)
    text = "MERGE INTO t USING news n ON t.id = n.id WHEN MATCHED THEN UPDATE SET x = t.x + n.x"
    sql(spark, text, runner=overtaken(uri))
    assert LanceDataset(uri).to_table(filter="id = 2")["x"].to_pylist() == [1021]
    assert LanceDataset(uri).version == 3


def test_a_merge_that_joins_begins_no_attempt_after_its_time(
    spark: SparkSession, lake: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    uri = lake / "t.lance"
    monkeypatch.setattr(statement, "_RETRY_TIMEOUT", timedelta(0))
    text = "MERGE INTO t USING news n ON t.id = n.id WHEN MATCHED THEN UPDATE SET x = t.x + n.x"
    with pytest.raises(TooManyConcurrentWriters, match="gave up after 2 attempts, because 0 s are over"):
        sql(spark, text, runner=overtaken(uri, always=True))
    assert LanceDataset(uri).to_table(filter="id = 3")["x"].to_pylist() == [30]


@pytest.mark.parametrize(
    ("clauses", "counts", "expected"),
    [
        pytest.param(
            "WHEN MATCHED AND t.x > 20 THEN DELETE",
            (2, 0, 2, 0),
            [(1, 10, "a"), (2, 20, "b"), (3, 3, "kept"), (4, None, "d")],
            id="a condition on the table",
        ),
        pytest.param(
            "WHEN MATCHED AND t.x > 20 THEN DELETE WHEN MATCHED AND t.x < 5 THEN DELETE",
            (3, 0, 3, 0),
            [(1, 10, "a"), (2, 20, "b"), (4, None, "d")],
            id="several deletions",
        ),
        pytest.param(
            "WHEN MATCHED THEN DELETE WHEN NOT MATCHED AND n.flag THEN INSERT *",
            (5, 0, 4, 1),
            [(1, 10, "a"), (4, None, "d"), (5, 50, "E")],
            id="all matched rows",
        ),
        pytest.param(
            "WHEN MATCHED AND t.x > 20 AND n.flag THEN DELETE WHEN MATCHED AND n.x = -1 THEN UPDATE SET x = 0",
            (1, 0, 1, 0),
            [(1, 10, "a"), (2, 20, "b"), (3, 3, "kept"), (3, 30, "c"), (4, None, "d")],
            id="an update that no row of the key takes part in",
        ),
    ],
)
def test_rows_that_share_a_key_are_deleted_one_by_one(
    spark: SparkSession, lake: Path, clauses: str, counts: tuple[int, ...], expected: list[tuple[Any, ...]]
) -> None:
    add_rows(lake, (2, 22, "again"), (3, 3, "kept"))
    assert merge(spark, lake, f"t USING news n ON t.id = n.id {clauses}") == (counts, expected)


@pytest.mark.parametrize(
    ("clauses", "of_key_3"),
    [
        ("WHEN MATCHED AND t.x > 25 THEN UPDATE SET x = t.x + 1", [3, 31]),
        ("WHEN MATCHED AND t.x > 25 THEN DELETE WHEN MATCHED THEN UPDATE SET x = n.x", [5]),
        ("WHEN MATCHED THEN UPDATE SET x = t.x + n.x WHEN NOT MATCHED THEN INSERT *", [8, 35]),
        ("WHEN MATCHED AND n.x < t.x THEN UPDATE SET *", [3, 5]),
    ],
)
def test_rows_that_share_a_key_are_updated_one_by_one(
    spark: SparkSession, lake: Path, clauses: str, of_key_3: list[int]
) -> None:
    add_rows(lake, (3, 3, "kept"))
    _, rows = merge(spark, lake, f"t USING news n ON t.id = n.id {clauses}")
    assert [row[1] for row in rows if row[0] == 3] == of_key_3


def test_rows_that_share_a_key_outside_the_source_do_not_count(spark: SparkSession, lake: Path) -> None:
    add_rows(lake, (1, 3, "kept"))
    counts, rows = merge(spark, lake, "t USING news n ON t.id = n.id WHEN MATCHED THEN UPDATE SET x = t.x + n.x")
    assert counts == (2, 2, 0, 0)
    assert rows == [(1, 3, "kept"), (1, 10, "a"), (2, 41, "b"), (3, 35, "c"), (4, None, "d")]


def test_null_keys_match_nothing_where_rows_are_joined(spark: SparkSession, lake: Path) -> None:
    add_rows(lake, (None, 1, "null"), (None, 2, "null"))
    source = "(SELECT id, x, s FROM news WHERE id = 2 UNION ALL SELECT NULL, 7, 'new')"
    clauses = "WHEN MATCHED THEN UPDATE SET x = t.x + 1 WHEN NOT MATCHED THEN INSERT *"
    assert tuple(sql(spark, f"MERGE INTO t USING {source} n ON t.id = n.id {clauses}").collect()[0]) == (2, 1, 0, 1)
    nulls = LanceDataset(lake / "t.lance").to_table(filter="id IS NULL")["x"].to_pylist()
    assert sorted(nulls) == [1, 2, 7]


@pytest.mark.parametrize("ansi", ["true", "false"])
def test_values_of_several_types_become_the_type_of_their_column(spark: SparkSession, lake: Path, ansi: str) -> None:
    exact = 2**53 + 1
    write_dataset(pa.table({"id": [2, 3], "x": [exact, exact], "s": ["b", "c"]}), lake / "big.lance")
    spark.conf.set("spark.sql.ansi.enabled", ansi)
    try:
        on = "MERGE INTO big t USING news n ON t.id = n.id"
        clauses = "WHEN MATCHED AND n.flag THEN UPDATE SET x = 7D, s = 5 WHEN MATCHED THEN UPDATE SET s = n.s"
        sql(spark, f"{on} {clauses} WHEN NOT MATCHED THEN INSERT (id, x, s) VALUES (n.id, 5.0BD, 'new')")
        rows = LanceDataset(lake / "big.lance").to_table().sort_by("id").to_pylist()
        assert [tuple(row.values()) for row in rows] == [(2, 7, "5"), (3, exact, "C"), (5, 5, "new")]
        with pytest.raises(PySparkException, match=r"CAST_OVERFLOW|CAST_INVALID_INPUT|does not fit column 'x'"):
            sql(spark, f"{on} WHEN MATCHED AND n.flag THEN UPDATE SET x = 1e30D WHEN MATCHED THEN UPDATE SET s = n.s")
    finally:
        spark.conf.unset("spark.sql.ansi.enabled")


def test_expressions_of_a_clause_are_evaluated_on_its_own_rows_alone(spark: SparkSession, lake: Path) -> None:
    zero = "(SELECT 3L AS id, 0 AS x UNION ALL SELECT 8L, 2 UNION ALL SELECT 9L, 0)"
    clauses = """
    WHEN MATCHED AND t.x > 5 THEN DELETE WHEN MATCHED THEN UPDATE SET x = 0
    WHEN NOT MATCHED AND n.x <> 0 THEN INSERT (id, x) VALUES (n.id, CAST(10 / n.x AS INT))
    """
    counts, rows = merge(spark, lake, f"t USING {zero} n ON t.id = n.id {clauses}")
    assert counts == (2, 0, 1, 1)
    assert rows == [(1, 10, "a"), (2, 20, "b"), (4, None, "d"), (8, 5, None)]


def test_columns_may_have_any_name(spark: SparkSession, lake: Path) -> None:
    names = ["_is_matched", "_IS_DELETED", "action", "address", "column_0", "key_0"]
    write_dataset(pa.table({"id": [2, 3], "x": [1, 2], **{name: [True, False] for name in names}}), lake / "odd.lance")
    clauses = (
        "WHEN MATCHED AND n.flag THEN DELETE WHEN MATCHED THEN UPDATE SET _is_deleted = t._is_matched, x = t.x + 1"
    )
    sql(spark, f"MERGE INTO odd t USING news n ON t.id = n.id {clauses}")
    assert LanceDataset(lake / "odd.lance").to_table().to_pylist() == [{"id": 3, "x": 3, **dict.fromkeys(names, False)}]


@pytest.mark.parametrize("in_tasks", [False, True])
@pytest.mark.parametrize("second", ["true", "false"])
def test_a_row_that_gets_two_values_or_is_deleted_and_gets_one_is_refused(
    spark: SparkSession, lake: Path, second: str, in_tasks: bool
) -> None:
    twice = f"(SELECT /*+ REPARTITION(2) */ * FROM VALUES (2L, {second}), (2L, false) AS q(id, gone))"
    clauses = "WHEN MATCHED AND n.gone THEN DELETE WHEN MATCHED THEN UPDATE SET x = t.x + 1"
    runner = OnSpark(spark, least_bytes=0) if in_tasks else InThreads()
    with pytest.raises(InvalidInput, match=r"several source rows match one row of the table.*: id = 2; leave one"):
        sql(spark, f"MERGE INTO t USING {twice} n ON t.id = n.id {clauses}", runner=runner)
    assert LanceDataset(lake / "t.lance").version == 1
    assert [path.name for path in (lake / "t.lance" / "data").iterdir()] == [
        fragment.files[0].path for fragment in LanceDataset(lake / "t.lance").snapshot.fragments
    ]


def test_a_row_is_deleted_once_by_several_source_rows(spark: SparkSession, lake: Path) -> None:
    twice = "(SELECT * FROM VALUES (2L, 1), (2L, 2) AS q(id, x))"
    assert merge(spark, lake, f"t USING {twice} n ON t.id = n.id AND t.x > n.x WHEN MATCHED THEN DELETE")[0][0] == 1


def test_a_merge_that_updates_and_deletes_runs_in_tasks_of_spark(spark: SparkSession, lake: Path) -> None:
    clauses = "WHEN MATCHED AND n.flag THEN DELETE WHEN MATCHED THEN UPDATE SET * WHEN NOT MATCHED THEN INSERT *"
    sql(spark, f"MERGE INTO t USING news n ON t.id = n.id {clauses}", runner=OnSpark(spark, least_bytes=0))
    rows = LanceDataset(lake / "t.lance").to_table().sort_by("id").to_pylist()
    assert [tuple(row.values()) for row in rows] == [(1, 10, "a"), (3, 5, "C"), (4, None, "d"), (5, 50, "E")]


def test_a_value_that_spark_would_cut_is_not_kept_by_way_of_spark(spark: SparkSession, lake: Path) -> None:
    times = pa.table({"id": [2], "x": [0], "at": pa.array([1], pa.timestamp("ns"))})
    write_dataset(times, lake / "times.lance")
    on = "MERGE INTO times t USING news n ON t.id = n.id WHEN MATCHED THEN UPDATE SET x = n.x"
    moment = "TIMESTAMP_NTZ '2026-01-01 00:00:00'"
    both = on.replace("MATCHED THEN", "MATCHED AND n.flag THEN")
    with pytest.raises(UnsupportedFeature, match="sets column 'at' beside an UPDATE that does not: Spark does"):
        sql(spark, f"{both} WHEN MATCHED THEN UPDATE SET at = {moment}")
    sql(spark, f"{on} + t.x WHEN NOT MATCHED THEN INSERT (id, at) VALUES (n.id, {moment})")
    assert LanceDataset(lake / "times.lance").to_table(filter="id = 2")["at"].cast(pa.int64()).to_pylist() == [1]


@pytest.mark.parametrize("in_tasks", [False, True])
@pytest.mark.parametrize(
    ("on", "clauses", "left"),
    [
        ("t.id = n.id", "WHEN MATCHED AND year(t.at) = 1970 THEN DELETE", []),
        ("t.at = n.at", "WHEN MATCHED AND n.flag THEN DELETE WHEN MATCHED THEN UPDATE SET x = 7", [7]),
        ("t.at = n.at", "WHEN MATCHED THEN UPDATE SET x = 7", [7]),
        (
            "t.at = n.at",
            "WHEN MATCHED THEN UPDATE SET x = 7 WHEN NOT MATCHED THEN INSERT (at, x) VALUES (n.at, 7)",
            [7],
        ),
        ("t.at = n.at", "WHEN MATCHED THEN DELETE", []),
    ],
)
def test_nanoseconds_of_the_table_are_read_where_spark_cuts_none(
    spark: SparkSession, lake: Path, on: str, clauses: str, left: list[int], in_tasks: bool
) -> None:
    uri, runner = lake / "times.lance", OnSpark(spark) if in_tasks else InThreads()
    source = "(SELECT 2L AS id, false AS flag, TIMESTAMP_NTZ '1970-01-01 00:00:00.000004' AS at)"
    text = f"MERGE INTO times t USING {source} n ON {on} {clauses}"
    write_dataset(pa.table({"id": [2], "x": [0], "at": pa.array([4_001], pa.timestamp("ns"))}), uri)
    with pytest.raises(UnsupportedFeature, match="'at', whose values are not all whole microseconds"):
        sql(spark, text, runner=runner)
    assert LanceDataset(uri).version == 1
    write_dataset(pa.table({"id": [2], "x": [0], "at": pa.array([4_000], pa.timestamp("ns"))}), uri, mode="overwrite")
    sql(spark, text, runner=runner)
    assert LanceDataset(uri).to_table()["x"].to_pylist() == left


@pytest.mark.parametrize(
    ("clauses", "is_refused"),
    [
        ("ON t.id = n.id WHEN NOT MATCHED THEN INSERT (id, fine) VALUES (n.id, n.at)", True),
        ("ON t.id = n.id WHEN MATCHED THEN UPDATE SET fine = timestampadd(DAY, 1, at) + t.x * INTERVAL 1 DAY", True),
        ("ON t.fine = at WHEN MATCHED THEN DELETE", True),
        ("ON t.id = n.id WHEN NOT MATCHED AND year(at) = 1970 THEN INSERT (id) VALUES (id)", True),
        ("ON t.id = n.id WHEN NOT MATCHED THEN INSERT (id, coarse) VALUES (id, at)", False),
        ("ON t.id = n.id WHEN NOT MATCHED THEN INSERT (id, fine) VALUES (id, whole)", False),
    ],
)
def test_nanoseconds_of_a_table_that_is_the_source_are_not_cut(
    spark: SparkSession, lake: Path, clauses: str, is_refused: bool
) -> None:
    def moments(kind: str) -> pa.Array:
        return pa.array([0], pa.timestamp(kind))

    write_dataset(pa.table({"id": [1], "x": [1], "fine": moments("ns"), "coarse": moments("us")}), lake / "to.lance")
    fine = pa.array([4_001], pa.timestamp("ns"))
    write_dataset(pa.table({"key": [7], "moment": fine, "whole": moments("ns")}), lake / "from.lance")
    write_dataset(pa.table({"key": [8]}), lake / "from.lance", mode="overwrite")
    text = f"MERGE INTO `to` t USING `from` VERSION AS OF 1 AS n(id, at, whole) {clauses}"
    if is_refused:
        with pytest.raises(UnsupportedFeature, match="its source's column 'moment', whose values are not all whole"):
            sql(spark, text, runner=InThreads())
    else:
        sql(spark, text, runner=InThreads())
    assert LanceDataset(lake / "to.lance").count_rows() == 2 - is_refused


@pytest.mark.parametrize("nanos", [4_000, 4_001])
@pytest.mark.parametrize("clause", ["", " VERSION AS OF 'main'"])
@pytest.mark.parametrize("later", [{}, {"new": [0]}])
def test_a_source_that_changes_meanwhile_is_checked_and_merged_in_one_version(
    spark: SparkSession,
    lake: Path,
    monkeypatch: pytest.MonkeyPatch,
    nanos: int,
    clause: str,
    later: dict[str, Any],
) -> None:
    def moments(value: int) -> dict[str, Any]:
        return {"id": pa.array([1]), "at": pa.array([value], pa.timestamp("ns"))}

    def overtaken(*args: Any) -> DataFrame:
        frame = run_query(*args)
        write_dataset(pa.table({**moments(8_001 - nanos), **later}), lake / "from.lance", mode="overwrite")
        return frame

    monkeypatch.setattr(statement_of_merge, "run_query", overtaken)
    write_dataset(pa.table(moments(0)), lake / "to.lance")
    write_dataset(pa.table(moments(nanos)), lake / "from.lance")
    text = f"MERGE INTO `to` t USING `from`{clause} AS n ON t.id = n.id WHEN MATCHED THEN UPDATE SET at = n.at"
    if nanos % 1_000:
        with pytest.raises(UnsupportedFeature, match="its source's column 'at', whose values are not all whole"):
            sql(spark, text, runner=InThreads())
    else:
        sql(spark, text, runner=InThreads())
    merged = 0 if nanos % 1_000 else nanos
    assert LanceDataset(lake / "to.lance").to_table()["at"].cast(pa.int64()).to_pylist() == [merged]


@pytest.mark.parametrize(
    ("text", "counts", "expected"),
    [
        ("ON t.id > n.id AND n.x > 20 WHEN MATCHED THEN DELETE", (2, 0, 2, 0), [(1, 10, "a"), (2, 20, "b")]),
        ("ON t.id + 1 = n.id WHEN MATCHED AND n.flag THEN DELETE", (2, 0, 2, 0), [(2, 20, "b"), (3, 30, "c")]),
        (
            "ON t.id = n.id AND t.x > 25 WHEN NOT MATCHED THEN INSERT *",
            (2, 0, 0, 2),
            [(1, 10, "a"), (2, 20, "b"), (2, 21, "B"), (3, 30, "c"), (4, None, "d"), (5, 50, "E")],
        ),
        (
            "ON t.id = n.id AND n.flag WHEN MATCHED THEN UPDATE SET x = 0 WHEN NOT MATCHED BY SOURCE THEN DELETE",
            (4, 1, 3, 0),
            [(2, 0, "b")],
        ),
        (
            "ON t.id = n.id WHEN MATCHED THEN UPDATE SET id = t.id + n.x",
            (2, 2, 0, 0),
            [(1, 10, "a"), (4, None, "d"), (8, 30, "c"), (23, 20, "b")],
        ),
        (
            "ON t.id = n.id WHEN NOT MATCHED THEN INSERT (x) VALUES (n.x)",
            (1, 0, 0, 1),
            [*START, (None, 50, None)],
        ),
    ],
)
def test_on_may_be_any_condition_and_a_key_any_value(
    spark: SparkSession, lake: Path, text: str, counts: tuple[int, ...], expected: list[tuple[Any, ...]]
) -> None:
    assert merge(spark, lake, f"t USING news n {text}") == (counts, expected)


@pytest.mark.parametrize(
    ("stored", "given", "is_equal"),
    [
        pytest.param(pa.array([0.1], pa.float32()), "CAST(0.1 AS DOUBLE)", False, id="a float and a double"),
        pytest.param(
            pa.array([20454], pa.int32()).cast(pa.date32()),
            "TIMESTAMP '2026-01-01 12:00:00'",
            False,
            id="a date and a moment",
        ),
        pytest.param(pa.array(["a"]), "'A' COLLATE UTF8_LCASE", True, id="texts of another collation"),
        pytest.param(pa.array([1], pa.int64()), "CAST(1 AS DOUBLE)", True, id="an integer and a double"),
        pytest.param(pa.array([1], pa.int64()), "1.50BD", False, id="an integer and a decimal"),
        pytest.param(pa.array([0.1], pa.float16()), "CAST(0.1 AS FLOAT)", False, id="a half float and a float"),
    ],
)
@pytest.mark.parametrize("value", ["n.x", "t.x + n.x"])
def test_a_key_of_another_type_matches_what_it_equals_in_spark(
    spark: SparkSession, lake: Path, stored: pa.Array, given: str, is_equal: bool, value: str
) -> None:
    write_dataset(pa.table({"k": stored, "x": [1]}), lake / "keyed.lance")
    on = "t.k = n.k" if "COLLATE" not in given else "t.k COLLATE UTF8_LCASE = n.k"
    source = f"(SELECT {given} AS k, 5L AS x) n ON {on}"
    counts = sql(spark, f"MERGE INTO keyed t USING {source} WHEN MATCHED THEN UPDATE SET x = {value}").collect()[0]
    assert counts["num_updated_rows"] == is_equal


def test_a_key_between_two_units_of_the_table_is_neither_matched_nor_inserted(spark: SparkSession, lake: Path) -> None:
    seconds = pa.array([1_767_225_600], pa.timestamp("s"))
    write_dataset(pa.table({"k": seconds, "x": [1]}), lake / "keyed.lance")
    on = "MERGE INTO keyed t USING (SELECT TIMESTAMP_NTZ '2026-01-01 00:00:00.5' AS k, 5L AS x) n ON t.k = n.k"
    with pytest.raises(LanceOpsError, match="column 'k'"):
        sql(spark, f"{on} WHEN MATCHED THEN UPDATE SET x = t.x + n.x WHEN NOT MATCHED THEN INSERT *")
    assert LanceDataset(lake / "keyed.lance").version == 1


@pytest.mark.parametrize(
    ("kind", "far", "near"),
    [
        (pa.timestamp("ns", "UTC"), "TIMESTAMP '9999-12-31 00:00:00'", "timestamp_micros(1)"),
        (pa.duration("ns"), "INTERVAL '-200000 00:00:00' DAY TO SECOND", "make_dt_interval(0, 0, 0, 0.000001)"),
    ],
    ids=str,
)
def test_a_time_beyond_nanoseconds_is_no_key_of_them(
    spark: SparkSession, lake: Path, kind: pa.DataType, far: str, near: str
) -> None:
    write_dataset(pa.table({"k": pa.array([1_000], kind), "x": [1]}), lake / "keyed.lance")
    source = f"(SELECT {far} AS k UNION ALL SELECT {near})"
    on = f"MERGE INTO keyed t USING {source} n ON t.k = n.k"
    sql(spark, f"{on} WHEN MATCHED THEN UPDATE SET x = 5", runner=InThreads())
    assert LanceDataset(lake / "keyed.lance").to_table()["x"].to_pylist() == [5]
    with pytest.raises(LanceOpsError, match="'k'"):
        sql(spark, f"{on} WHEN NOT MATCHED THEN INSERT (k) VALUES (n.k)", runner=InThreads())


_UNLIKE_ANY = {
    "int32": (pa.int32(), "3000000000L"),
    "uint8": (pa.uint8(), "-1L"),
    "uint64": (pa.uint64(), "-1L"),
    "uint64 and decimal": (pa.uint64(), "99999999999999999999BD"),
    "int64 and decimal": (pa.int64(), "-9223372036854775809BD"),
    "decimal": (pa.decimal128(5, 0), "100000L"),
    "decimals": (pa.decimal128(30, 2), "12345678901234567890123456789.00BD"),
}
"""Types of keys, and a number of a wider type that is no such key."""


@pytest.mark.parametrize("in_tasks", [False, True])
@pytest.mark.parametrize(("kind", "other"), [pytest.param(*each, id=name) for name, each in _UNLIKE_ANY.items()])
def test_a_number_that_no_key_can_be_leaves_the_join_by_key(
    spark: SparkSession, lake: Path, monkeypatch: pytest.MonkeyPatch, kind: pa.DataType, other: str, in_tasks: bool
) -> None:
    def fail(*_: object) -> None:
        raise AssertionError("Spark joins the whole table")

    monkeypatch.setattr(statement_of_merge, "changes_by_join", fail)
    uri, runner = lake / "keyed.lance", OnSpark(spark) if in_tasks else InThreads()
    write_dataset(pa.table({"id": pa.array([2, 3, 4], kind), "x": [0, 0, 0]}), uri)
    of_two = f"(SELECT CAST(2 AS DECIMAL(38, 2)) AS id UNION ALL SELECT {other} UNION ALL SELECT {other})"
    source = of_two if pa.types.is_decimal(kind) and kind.scale else of_two.replace("(38, 2)", "(20, 0)")
    on = f"MERGE INTO keyed t USING {source} n ON t.id = n.id"
    sql(spark, f"{on} WHEN MATCHED THEN UPDATE SET x = 1", runner=runner)
    assert LanceDataset(uri).to_table().sort_by("id")["x"].to_pylist() == [1, 0, 0]
    sql(
        spark,
        f"{on} WHEN MATCHED THEN UPDATE SET x = 2 WHEN NOT MATCHED BY SOURCE AND t.id = 3 THEN DELETE",
        runner=runner,
    )
    assert LanceDataset(uri).to_table().sort_by("id")["x"].to_pylist() == [2, 0]
    sql(spark, f"{on} WHEN MATCHED THEN DELETE", runner=runner)
    assert LanceDataset(uri).count_rows() == 1
    with pytest.raises(LanceOpsError, match="'id'"):
        sql(spark, f"{on} WHEN NOT MATCHED THEN INSERT (id) VALUES (n.id)", runner=runner)


def test_integers_of_any_length_are_joined(spark: SparkSession, lake: Path) -> None:
    kinds = {"short": pa.int16(), "unsigned": pa.uint64(), "decimal": pa.decimal128(12, 0)}
    for name, kind in kinds.items():
        write_dataset(pa.table({"id": pa.array([2, 3], kind), "x": [1, 1]}), lake / f"{name}.lance")
        clauses = "WHEN MATCHED THEN UPDATE SET x = t.x + n.x WHEN NOT MATCHED THEN INSERT (id, x) VALUES (n.id, n.x)"
        sql(spark, f"MERGE INTO {name} t USING news n ON t.id = n.id {clauses}")
        rows = LanceDataset(lake / f"{name}.lance").to_table().cast(pa.schema([("id", "int64"), ("x", "int64")]))
        assert sorted(zip(*rows.to_pydict().values(), strict=True)) == [(2, 22), (3, 6), (5, 50)]
