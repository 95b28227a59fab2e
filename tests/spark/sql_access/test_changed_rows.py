"""`sql`: rows that Spark chooses and the library changes, where names, types or other writers may mislead."""

from __future__ import annotations

from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest
from pyspark.errors import PySparkException

import lance_ops
from lance_ops.api import LanceDataset, write_dataset
from lance_ops.core.errors import InvalidInput, UnsupportedFeature
from lance_ops.runners import InThreads
from lance_ops.spark import frame_write, sql
from lance_ops.spark.data_source import WritePlan
from lance_ops.spark.sql_access import queries
from lance_ops.spark.sql_access.row_changes import statements
from lance_ops.spark.sql_access.table_references import Tables
from tests.spark.sql_access.shown_rows import first, stored

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

pytestmark = pytest.mark.spark

_FROM_ITSELF = "MERGE INTO numbers t USING (SELECT id, x + 1 AS x FROM numbers) n ON t.id = n.id"


def overtaken(uri: Path, updates: dict[str, str], where: str) -> InThreads:
    """Return a runner beside which another writer changes rows while the first attempt runs its tasks."""

    class Overtaken(InThreads):
        def map(self, *args: Any, **kwargs: Any) -> Any:
            if LanceDataset(uri).version == 1:
                LanceDataset(uri).update(updates, where)
            return super().map(*args, **kwargs)

    return Overtaken()


@pytest.mark.parametrize(
    ("text", "after"),
    [
        ("DELETE FROM numbers WHERE id IN (SELECT id FROM numbers WHERE x < 3)", {0: 0, 1: 0, 2: 500}),
        ("DELETE FROM numbers WHERE x < 3", {2: 500}),
        ("DELETE FROM numbers WHERE x + 0 < 3", {2: 500}),
        ("UPDATE numbers SET x = x + (SELECT max(x) FROM numbers) WHERE x + 0 < 3 OR id = 2", {2: 1000}),
        (f"{_FROM_ITSELF} WHEN MATCHED THEN UPDATE SET x = n.x", {1: 2, 2: 501}),
        (f"{_FROM_ITSELF} WHEN MATCHED AND t.x < 600 THEN UPDATE SET x = n.x + t.x", {1: 3, 2: 1001}),
    ],
)
def test_a_change_that_lost_to_another_is_of_the_version_after_it(
    spark: SparkSession, lake: Path, text: str, after: dict[int, int]
) -> None:
    uri = lake / "numbers.lance"
    sql(spark, text, runner=overtaken(uri, {"x": "500"}, "id = 2"))
    found = {row[0]: row[1] for row in stored(lake)}
    if text.startswith("DELETE"):
        assert [found.get(number) for number in range(3)] == [None, None, 500]
    else:
        assert {number: found[number] for number in after} == after
    assert LanceDataset(uri).version == 3


@pytest.mark.parametrize("when", ["before the plan", "before the commit"])
@pytest.mark.parametrize("change", ["update", "append"])
def test_an_overwrite_from_the_table_itself_keeps_what_another_writer_changed(
    run: Any, lake: Path, monkeypatch: pytest.MonkeyPatch, when: str, change: str
) -> None:
    uri = lake / "numbers.lance"
    place, name = (frame_write, "plan_write") if when == "before the plan" else (WritePlan, "commit")
    go_on = getattr(place, name)

    def overtaken(*args: Any, **named: Any) -> Any:
        if LanceDataset(uri).version == 1 and change == "update":
            LanceDataset(uri).update({"x": "500"}, "id = 2")
        elif LanceDataset(uri).version == 1:
            write_dataset(pa.table({"id": [99], "x": pa.array([9], pa.int32()), "s": ["z"]}), uri, mode="append")
        return go_on(*args, **named)

    monkeypatch.setattr(place, name, overtaken)
    head = "OVERWRITE numbers" if when == "before the plan" else "INTO numbers REPLACE WHERE id >= 0"
    run(f"INSERT {head} SELECT id, x + 1, s FROM lance.`{lake}/./numbers.lance`")
    changed = {2: 501} if change == "update" else {99: 9}
    assert {row[0]: row[1] for row in stored(lake)} == {number: number + 1 for number in range(10)} | changed


@pytest.mark.parametrize("when", ["before the plan", "before the commit"])
@pytest.mark.parametrize("change", ["update", "append", "compaction"])
def test_a_replacement_from_the_table_itself_keeps_what_another_writer_changed(
    run: Any, lake: Path, monkeypatch: pytest.MonkeyPatch, when: str, change: str
) -> None:
    uri, ran = lake / "numbers.lance", list[str]()
    place, name = (frame_write, "plan_write") if when == "before the plan" else (WritePlan, "commit")
    go_on = getattr(place, name)

    def overtaken(*args: Any, **named: Any) -> Any:
        ran.append(when)
        if len(ran) == 1 and change == "update":
            LanceDataset(uri).update({"x": "500"}, "id = 2")
        elif len(ran) == 1 and change == "append":
            write_dataset(pa.table({"id": [99], "x": pa.array([9], pa.int32()), "s": ["z"]}), uri, mode="append")
        elif len(ran) == 1:
            LanceDataset(uri).optimize.compact_files()
        return go_on(*args, **named)

    monkeypatch.setattr(place, name, overtaken)
    run("CREATE OR REPLACE TABLE numbers USING lance AS SELECT id, x + 1 AS x FROM numbers")
    changed = {"update": {2: 501}, "append": {99: 10}, "compaction": {}}[change]
    assert dict(stored(lake)) == {number: number + 1 for number in range(10)} | changed
    assert len(ran) == 1 + bool(changed)


@pytest.mark.parametrize(
    "head", ["INSERT OVERWRITE numbers", "CREATE OR REPLACE TABLE numbers USING lance AS"], ids=["insert", "create"]
)
def test_a_statement_whose_version_clean_up_removes_after_the_commit_runs_once(
    run: Any, lake: Path, monkeypatch: pytest.MonkeyPatch, head: str
) -> None:
    uri = lake / "numbers.lance"
    commit = WritePlan.commit

    def overtaken(*args: Any, **named: Any) -> Any:
        made = commit(*args, **named)
        LanceDataset(uri).delete("id = 9")
        LanceDataset(uri).cleanup_old_versions(retain_versions=1)
        return made

    monkeypatch.setattr(WritePlan, "commit", overtaken)
    run(f"{head} SELECT id, x + 1 AS x, s FROM numbers")
    assert {row[0]: row[1] for row in stored(lake)} == {number: number + 1 for number in range(9)}


def test_an_overwrite_by_other_rows_runs_its_query_once(run: Any, lake: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    uri = lake / "numbers.lance"
    commit, run_query, ran = WritePlan.commit, queries.run_query, list[str]()

    def overtaken(*args: Any, **named: Any) -> Any:
        LanceDataset(uri).update({"x": "500"}, "id = 2")
        return commit(*args, **named)

    def noted(text: str, tables: Tables) -> DataFrame:
        ran.append(text)
        return run_query(text, tables)

    monkeypatch.setattr(WritePlan, "commit", overtaken)
    monkeypatch.setattr(queries, "run_query", noted)
    run("INSERT OVERWRITE numbers VALUES (1, 2, 'c')")
    assert (stored(lake), len(ran)) == ([(1, 2, "c")], 1)


@pytest.mark.parametrize(
    "condition", ["", "WHERE id > 2", "WHERE numbers.s IN ('a', 'b') AND NOT x = 3", "WHERE s IS DISTINCT FROM 'b'"]
)
def test_a_condition_that_means_the_same_to_both_needs_no_query_of_spark(
    run: Any, lake: Path, monkeypatch: pytest.MonkeyPatch, condition: str
) -> None:
    def fail(*_: object) -> None:
        raise AssertionError("Spark was asked")

    shown = run(f"SELECT id FROM numbers {condition}").count()
    monkeypatch.setattr(statements, "delete_computed", fail)
    assert first(run(f"DELETE FROM numbers {condition}")) == {"num_affected_rows": shown}
    with pytest.raises(AssertionError, match="Spark was asked"):
        run("DELETE FROM numbers WHERE id + 1 = 2")


def test_a_column_that_is_named_like_an_address_is_not_one(run: Any, lake: Path) -> None:
    write_dataset(pa.table({"id": [1, 2], "_ROWADDR": [1, 0]}), lake / "odd.lance")
    for text in (
        "UPDATE odd SET id = id + 1",
        "DELETE FROM odd WHERE id + 1 = 2",
        "MERGE INTO odd t USING (SELECT 1L AS id) n ON t.id = n.id WHEN MATCHED AND t.id > 0 THEN DELETE",
    ):
        with pytest.raises(UnsupportedFeature, match="a column '_rowaddr'"):
            run(text)


@pytest.mark.parametrize("columns", [["action", "address"], ["UPDATE", "_", "__", "value_0", "___"]])
def test_a_column_may_have_the_name_of_what_travels_beside_it(run: Any, lake: Path, columns: list[str]) -> None:
    at = pa.array([[datetime(2026, 1, 1)]], pa.list_(pa.timestamp("us")))
    write_dataset(pa.table({"id": [1], "at": at, **{name: [0] for name in columns}}), lake / "odd.lance")
    values = ", ".join(f"`{name}` = id + 1" for name in columns)
    moment = "at = array(TIMESTAMP '2026-02-01 00:00:00')"
    run(f"UPDATE odd SET {values}, {moment}")
    source = "(SELECT 1L AS key) n ON odd.id = n.key WHEN MATCHED AND odd.id = 1 THEN UPDATE SET"
    run(f"MERGE INTO odd USING {source} {moment}, `{columns[0]}` = `{columns[0]}` * 10")
    row = LanceDataset(lake / "odd.lance").to_table().to_pylist()[0]
    assert row == {"id": 1, "at": [datetime(2026, 2, 1)], **dict.fromkeys(columns, 2), columns[0]: 20}


@pytest.mark.parametrize("clause", ["", " AND t.x >= 0"])
def test_a_merge_by_key_and_a_joined_one_assign_alike(run: Any, lake: Path, clause: str) -> None:
    run("CREATE TABLE typed (id BIGINT, x INT, d DECIMAL(10, 2), s STRING, l ARRAY<INT>) USING lance")
    run("INSERT INTO typed VALUES (1, 1, 1, 'a', array(1)), (2, 2, 2, 'b', array(2))")
    on = "MERGE INTO typed t USING (SELECT 1L AS id) n ON t.id = n.id"
    run(f"{on} WHEN MATCHED{clause} THEN UPDATE SET d = 1.555, x = 7.9D, s = 2.50, l = NULL")
    rows = LanceDataset(lake / "typed.lance").to_table(filter="id = 1").to_pylist()
    assert [(row["x"], str(row["d"]), row["s"], row["l"]) for row in rows] == [(7, "1.56", "2.50", None)]
    with pytest.raises(PySparkException, match="a value does not fit column 'x' of type int"):
        run(f"{on} WHEN MATCHED{clause} THEN UPDATE SET x = 3000000000")
    with pytest.raises(InvalidInput, match="'l' of type array<int> gets a int"):
        run("UPDATE typed SET l = 1")


def test_a_column_is_set_once(run: Any, lake: Path) -> None:
    on = "MERGE INTO numbers t USING (SELECT 1L AS id) n ON t.id = n.id WHEN"
    for clause in ("MATCHED THEN UPDATE SET x = 1, x = 2", "MATCHED THEN UPDATE SET x = 1, X = 2"):
        with pytest.raises(InvalidInput, match="column 'x' is set twice"):
            run(f"{on} {clause}")
    with pytest.raises(InvalidInput, match="twice"):
        run(f"{on} NOT MATCHED THEN INSERT (id, x, x) VALUES (1, 2, 3)")
    assert LanceDataset(lake / "numbers.lance").version == 1


def test_fields_of_structs_join_and_choose(run: Any, lake: Path) -> None:
    rows = {"k": [{"a": 1, "b": "x"}, {"a": 2, "b": "y"}], "v": [10, 20]}
    write_dataset(pa.table(rows), lake / "deep.lance")
    source = "(SELECT named_struct('a', 2L, 'b', 'y') AS k, 5L AS v) n(k, v)"
    on = "t.k.a = n.k.a"
    assert first(
        run(f"MERGE INTO deep t USING {source} ON {on} WHEN MATCHED AND t.k.b = n.k.b THEN UPDATE SET v = n.v")
    )
    assert LanceDataset(lake / "deep.lance").to_table()["v"].to_pylist() == [10, 5]
    assert first(run("DELETE FROM deep WHERE k.a IN (SELECT 2L AS a)")) == {"num_affected_rows": 1}


def test_the_source_of_a_merge_may_name_its_columns_whatever_it_is(run: Any, lake: Path) -> None:
    write_dataset(pa.table({"key": [3], "value": [33]}), lake / "pairs.lance")
    run("MERGE INTO numbers t USING pairs AS q(k, v) ON t.id = q.k WHEN MATCHED THEN UPDATE SET x = q.v")
    assert stored(lake)[3][1] == 33


def test_blobs_are_written_by_a_change(run: Any, lake: Path) -> None:
    rows = pa.table({"id": [1, 2], "b": lance_ops.blob_array([b"a", b"b" * 100_000])})
    write_dataset(rows, lake / "blobs.lance", data_storage_version="2.2")
    run("UPDATE blobs SET b = X'4142' WHERE id + 0 = 1")
    run("UPDATE blobs SET id = id + 10")
    opened = LanceDataset(lake / "blobs.lance")
    found = dict(zip(opened.to_table(["id"])["id"].to_pylist(), opened.take_blobs("b", indices=[0, 1]), strict=True))
    assert {key: blob and blob.read() for key, blob in found.items()} == {11: b"AB", 12: b"b" * 100_000}


def test_a_value_is_one_for_each_row(run: Any, lake: Path) -> None:
    with pytest.raises(UnsupportedFeature, match="several rows, as the value of one row"):
        run("UPDATE numbers SET x = explode(array(1, 2))")
    assert LanceDataset(lake / "numbers.lance").version == 1


@pytest.mark.parametrize(
    "value", ["s.at", "(SELECT max(at) FROM fine)", "at + INTERVAL 1 HOUR", "coalesce(fine.at, at)"]
)
def test_nanoseconds_are_not_cut_by_a_new_value(run: Any, lake: Path, value: str) -> None:
    moments = pa.array([1], pa.timestamp("ns"))
    struct = pa.StructArray.from_arrays([moments], ["at"])
    write_dataset(pa.table({"at": moments, "s": struct}), lake / "fine.lance")
    with pytest.raises(UnsupportedFeature, match="Spark cuts the nanoseconds"):
        run(f"UPDATE fine SET at = {value}")
    run("UPDATE fine SET at = TIMESTAMP_NTZ '2026-01-01 00:00:00'")
    assert LanceDataset(lake / "fine.lance").to_table()["s"].to_pylist()[0]["at"].value == 1
