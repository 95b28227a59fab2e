"""Histories of rows: each change closes a row and adds one, in one version."""

from __future__ import annotations

from datetime import date, datetime, timedelta
from typing import TYPE_CHECKING, Any

import lance
import pyarrow as pa
import pytest

import lance_ops
from lance_ops.errors import InvalidInput, TooManyConcurrentWriters, UnsupportedFeature
from lance_ops.runners import InThreads
from lance_ops.spark import merge_history

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

pytestmark = pytest.mark.spark

SCHEMA = pa.schema(
    [
        ("id", pa.int64()),
        ("price", pa.float64()),
        ("valid_from", pa.date32()),
        ("valid_to", pa.date32()),
        ("current", pa.bool_()),
    ]
)


def day(number: int) -> date:
    return date(2026, 1, number)


def frame(spark: SparkSession, *rows: tuple[int | None, float | None, int]) -> DataFrame:
    made = ", ".join(
        f"({'NULL' if key is None else key}, {'NULL' if price is None else price}D, DATE '{day(at)}')".replace(
            "NULLD", "CAST(NULL AS DOUBLE)"
        ).replace("nanD", "double('NaN')")
        for key, price, at in rows
    )
    return spark.sql(
        f"SELECT CAST(id AS BIGINT) AS id, price, valid_from FROM VALUES {made} AS t(id, price, valid_from)"
    )


def shown(dataset: Any) -> list[tuple[Any, ...]]:
    rows = dataset.to_table().to_pylist()
    ordered = sorted(rows, key=lambda row: (row["id"], row["valid_from"]))
    return [
        (row["id"], row["price"], row["valid_from"].day, row["valid_to"] and row["valid_to"].day, row["current"])
        for row in ordered
    ]


def test_changes_close_rows_and_add_rows_in_one_version_and_a_replay_does_nothing(
    spark: SparkSession, dataset_uri: str
) -> None:
    first = [(7, 1.0, day(1), None, True), (8, None, day(1), None, True), (9, 3.0, day(1), None, True)]
    columns = [pa.array(values, kind.type) for values, kind in zip(zip(*first, strict=True), SCHEMA, strict=True)]
    dataset = lance_ops.write_dataset(pa.Table.from_arrays(columns, schema=SCHEMA), dataset_uri)
    # 7 changes twice and repeats itself, 8 says the same, 10 is new.
    changes = frame(spark, (7, 2.0, 5), (7, 2.0, 6), (7, 1.0, 7), (8, None, 5), (10, 4.0, 5))
    assert merge_history(dataset, changes, "id") == {"num_added_rows": 3, "num_closed_rows": 1}
    expected = [
        (7, 1.0, 1, 5, False),
        (7, 2.0, 5, 7, False),
        (7, 1.0, 7, None, True),
        (8, None, 1, None, True),
        (9, 3.0, 1, None, True),
        (10, 4.0, 5, None, True),
    ]
    assert (shown(dataset), dataset.version) == (expected, 2)
    again = merge_history(dataset, changes, ["id"])
    assert (again, dataset.latest_version) == ({"num_added_rows": 0, "num_closed_rows": 0}, 2)


def history(uri: str, *rows: tuple[int, float, int, int | None, bool]) -> Any:
    """Write rows of key, price, first day, last day and whether they are current."""
    table = [
        dict(zip(SCHEMA.names, (key, price, day(begin), end and day(end), current), strict=True))
        for key, price, begin, end, current in rows
    ]
    return lance_ops.write_dataset(pa.Table.from_pylist(table, schema=SCHEMA), uri)


def test_a_key_that_has_ended_comes_back_once(spark: SparkSession, dataset_uri: str) -> None:
    dataset = history(dataset_uri, (7, 1.0, 1, 5, False), (8, float("nan"), 1, None, True))
    # The change of the third is true then; that of the tenth begins again, and that of the eleventh repeats it.
    changes = frame(spark, (7, 1.0, 3), (7, 1.0, 10), (7, 1.0, 11), (8, float("nan"), 2))
    assert merge_history(dataset, changes, "id") == {"num_added_rows": 1, "num_closed_rows": 0}
    assert [row[2:] for row in shown(dataset) if row[0] == 7] == [(1, 5, False), (10, None, True)]
    assert merge_history(dataset, changes, "id") == {"num_added_rows": 0, "num_closed_rows": 0}


def test_a_change_within_a_row_that_has_ended_ends_it_earlier(spark: SparkSession, dataset_uri: str) -> None:
    dataset = history(dataset_uri, (7, 1.0, 1, 5, False))
    merge_history(dataset, frame(spark, (7, 2.0, 3)), "id")
    assert [row[1:] for row in shown(dataset)] == [(1.0, 1, 3, False), (2.0, 3, None, True)]


def test_rows_that_overlap_stay_where_no_change_follows_them(spark: SparkSession, dataset_uri: str) -> None:
    dataset = history(dataset_uri, (7, 1.0, 1, 9, False), (7, 2.0, 5, None, True), (8, 1.0, 1, None, True))
    assert merge_history(dataset, frame(spark, (7, 2.0, 5)), "id") == {"num_added_rows": 0, "num_closed_rows": 0}
    assert lance_ops.dataset(dataset_uri).version == 1
    assert merge_history(dataset, frame(spark, (7, 3.0, 10)), "id") == {"num_added_rows": 1, "num_closed_rows": 1}
    of_key = [row[1:] for row in shown(dataset) if row[0] == 7]
    assert of_key == [(1.0, 1, 9, False), (2.0, 5, 10, False), (3.0, 10, None, True)]


@pytest.mark.parametrize("runner", [None, InThreads()], ids=["Spark", "threads"])
def test_columns_are_found_by_the_case_rule_of_the_session(
    spark: SparkSession, dataset_uri: str, runner: InThreads | None
) -> None:
    dataset = history(dataset_uri, (7, 1.0, 1, None, True))
    changes = frame(spark, (7, 2.0, 5)).selectExpr("valid_from AS Valid_From", "price AS PRICE", "id AS Id")
    names: dict[str, Any] = {"valid_from": "VALID_FROM", "valid_to": "VALID_TO", "current": "Current"}
    spark.conf.set("spark.sql.caseSensitive", "true")
    try:
        with pytest.raises(InvalidInput, match="the changes have no column 'ID'; they have Valid_From, PRICE, Id"):
            merge_history(dataset, changes, "ID", runner=runner, **names)
        with pytest.raises(InvalidInput, match="has no column 'VALID_TO'; it has id, price"):
            merge_history(dataset, frame(spark, (7, 2.0, 5)), "id", valid_to="VALID_TO", runner=runner)
    finally:
        spark.conf.unset("spark.sql.caseSensitive")
    done = merge_history(dataset, changes, "ID", runner=runner, **names)
    assert done == {"num_added_rows": 1, "num_closed_rows": 1}
    assert shown(dataset) == [(7, 1.0, 1, 5, False), (7, 2.0, 5, None, True)]


def test_a_name_may_hold_a_back_quote(spark: SparkSession, dataset_uri: str) -> None:
    names = {name: f"`{name} `` 1" for name in SCHEMA.names}
    rows = history(dataset_uri, (7, 1.0, 1, None, True)).to_table()
    lance.write_dataset(rows.rename_columns(list(names.values())), f"{dataset_uri}.odd")  # new tables have none here
    dataset = lance_ops.dataset(f"{dataset_uri}.odd")
    changes = frame(spark, (7, 2.0, 5)).toDF(*(names[name] for name in ("id", "price", "valid_from")))
    columns: dict[str, Any] = {name: names[name] for name in ("valid_from", "valid_to", "current")}
    done = merge_history(dataset, changes, names["id"], runner=InThreads(), **columns)
    assert done == {"num_added_rows": 1, "num_closed_rows": 1}
    found = sorted(tuple(row.values()) for row in dataset.to_table().to_pylist())
    assert found == [(7, 1.0, day(1), day(5), False), (7, 2.0, day(5), None, True)]


def test_two_runs_do_not_make_two_current_rows_of_one_key(spark: SparkSession, dataset_uri: str) -> None:
    dataset = history(dataset_uri, (8, 1.0, 1, None, True))
    stale = lance_ops.dataset(dataset_uri)
    merge_history(dataset, frame(spark, (7, 1.0, 2)), "id")
    assert merge_history(stale, frame(spark, (7, 2.0, 3)), "id") == {"num_added_rows": 1, "num_closed_rows": 1}
    assert [row[1:] for row in shown(stale) if row[0] == 7] == [(1.0, 2, 3, False), (2.0, 3, None, True)]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ((7, 2.0, 4), "another value before the row that is current: id = 7"),
        ((7, 2.0, 5), "two values at one moment: id = 7"),
        ((None, 2.0, 6), "a null in the key or the moment: id = None"),
    ],
    ids=["late", "at once", "null"],
)
def test_a_change_that_is_not_the_next_one_is_refused(
    spark: SparkSession, dataset_uri: str, change: tuple[int | None, float, int], message: str
) -> None:
    rows = [{"id": 7, "price": 1.0, "valid_from": day(5), "valid_to": None, "current": True}]
    dataset = lance_ops.write_dataset(pa.Table.from_pylist(rows, schema=SCHEMA), dataset_uri)
    with pytest.raises(InvalidInput, match=message):
        merge_history(dataset, frame(spark, change, (8, 1.0, 6)), "id")
    with pytest.raises(InvalidInput, match="no column 'key'"):
        merge_history(dataset, frame(spark, change), "key")
    assert dataset.latest_version == 1


@pytest.mark.parametrize(
    ("types", "given", "message"),
    [
        (
            {"valid_from": pa.timestamp("ns")},
            ("7L", "TIMESTAMP_NTZ '2026-01-02'"),
            "'valid_from': Spark cuts its nanos",
        ),
        ({"price": pa.duration("ns")}, ("7L", "DATE '2026-01-02'"), "column 'price': Spark cuts its nanoseconds"),
        (
            {"id": pa.float32()},
            ("0.1D", "DATE '2026-01-02'"),
            "key 'id', which is float in the table and double in the",
        ),
        ({"id": pa.float16()}, ("CAST(0.1 AS FLOAT)", "DATE '2026-01-02'"), "key 'id', which Spark reads as float"),
        ({}, ("7L", "TIMESTAMP '2026-01-02 12:00:00'"), "key 'valid_from', which is date in the table and timestamp"),
        ({"price": pa.float16()}, ("7L", "DATE '2026-01-02'"), "column 'price': Spark reads its half floats as float"),
        (
            {"price": pa.list_(pa.float16())},
            ("7L", "DATE '2026-01-02'"),
            "column 'price': Spark reads its half floats as float",
        ),
        (
            {"price": pa.list_(pa.float32())},
            ("7L", "DATE '2026-01-02'"),
            "'price', which is array<float> in the table and array<double> in the changes .cast it to array<float>",
        ),
    ],
    ids=[
        "a moment in nanoseconds",
        "a value in nanoseconds",
        "a float and a double",
        "a half float",
        "a date",
        "halves",
        "a list of halves",
        "a list of doubles",
    ],
)
def test_columns_that_spark_reads_otherwise_than_the_merge_are_refused(
    spark: SparkSession, dataset_uri: str, types: dict[str, pa.DataType], given: tuple[str, str], message: str
) -> None:
    """The row to close would match nothing, so the merge would add it again: two rows of one key would be current."""
    fields = [field.with_type(types.get(field.name, field.type)) for field in SCHEMA]
    values = {"id": 0.1 if "id" in types else 7, "price": None, "valid_from": datetime(2026, 1, 1), "valid_to": None}
    columns = [pa.array([value], field.type) for value, field in zip((*values.values(), True), fields, strict=True)]
    dataset = lance_ops.write_dataset(pa.Table.from_arrays(columns, schema=pa.schema(fields)), dataset_uri)
    prices = {pa.duration("ns"): "INTERVAL '1' SECOND", pa.list_(pa.float32()): "array(1.1D)"}
    price = prices.get(types.get("price"), "2.0D")
    changes = spark.sql(f"SELECT {given[0]} AS id, {price} AS price, {given[1]} AS valid_from")
    with pytest.raises(UnsupportedFeature, match=message):
        merge_history(dataset, changes, "id")
    assert lance_ops.dataset(dataset_uri).version == 1


@pytest.mark.parametrize(
    ("kind", "price"),
    [
        (pa.float32(), "1.1D"),
        (pa.float32(), "1.1"),
        (pa.decimal128(10, 2), "1.005D"),
        (pa.date32(), "TIMESTAMP_NTZ '{}'"),
    ],
    ids=["a double", "a decimal", "a double as decimal", "a moment as date"],
)
def test_a_value_is_compared_in_the_type_of_its_column(
    spark: SparkSession, dataset_uri: str, kind: pa.DataType, price: str
) -> None:
    fields = [field.with_type(kind) if field.name == "price" else field for field in SCHEMA]
    dataset = lance_ops.write_dataset(pa.schema(fields).empty_table(), dataset_uri)
    text = "SELECT 7L AS id, {} AS price, DATE '2026-01-{}' AS valid_from"
    value = price.format("2026-01-01 12:00:00")
    for at, expected in (("01", 1), ("01", 0), ("02", 0)):  # a change, its replay, and a day without a change
        done = merge_history(dataset, spark.sql(text.format(value, at)), "id", runner=InThreads())
        assert done == {"num_added_rows": expected, "num_closed_rows": 0}
    assert dataset.version == 2


def overtaken(uri: str, *, always: bool = False) -> InThreads:
    """Return a runner beside which another writer changes the rows while the first attempt, or any, runs its tasks."""

    class Overtaken(InThreads):
        def map(self, *args: Any, **kwargs: Any) -> Any:
            if always or lance_ops.dataset(uri).version == 1:
                lance_ops.dataset(uri).update({"price": "9.0"})
            return super().map(*args, **kwargs)

    return Overtaken()


@pytest.mark.parametrize("retry_timeout", [timedelta(seconds=30), timedelta(0)], ids=str)
def test_changes_are_compared_with_the_newest_rows_after_an_attempt_of_any_length(
    spark: SparkSession, dataset_uri: str, retry_timeout: timedelta
) -> None:
    rows = [{"id": 7, "price": 1.0, "valid_from": day(1), "valid_to": None, "current": True}]
    dataset = lance_ops.write_dataset(pa.Table.from_pylist(rows, schema=SCHEMA), dataset_uri)
    changes = frame(spark, (7, 9.0, 5), (7, 2.0, 6))
    done = merge_history(dataset, changes, "id", retry_timeout=retry_timeout, runner=overtaken(dataset_uri))
    assert done["num_added_rows"] == 1
    assert shown(dataset) == [(7, 9.0, 1, 6, False), (7, 2.0, 6, None, True)]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"retry_timeout": timedelta(0)}, "gave up after 2 attempts, because 0 s are over"),
        ({"conflict_retries": 1}, "gave up after 2 attempts, because no retry is left"),
    ],
    ids=["time", "retries"],
)
def test_changes_that_lose_each_attempt_are_given_up_with_the_limit(
    spark: SparkSession, dataset_uri: str, options: dict[str, Any], message: str
) -> None:
    rows = [{"id": 7, "price": 1.0, "valid_from": day(1), "valid_to": None, "current": True}]
    dataset = lance_ops.write_dataset(pa.Table.from_pylist(rows, schema=SCHEMA), dataset_uri)
    with pytest.raises(TooManyConcurrentWriters, match=message):
        merge_history(dataset, frame(spark, (7, 2.0, 6)), "id", runner=overtaken(dataset_uri, always=True), **options)
    assert shown(lance_ops.dataset(dataset_uri)) == [(7, 9.0, 1, None, True)]
