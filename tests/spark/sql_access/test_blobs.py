"""`sql`, `table` and views with blobs: what is written gets their bytes, and what is shown is chosen."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest

import lance_ops
from lance_ops.api import LanceDataset, write_dataset
from lance_ops.core.errors import InvalidInput, LanceOpsError, UnsupportedFeature
from lance_ops.runners import InThreads
from lance_ops.spark import OnSpark, create_view, sql, table

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark

LONG = b"b" * 100_000
"""A value beside the data file."""


@pytest.fixture
def docs(lake: Path) -> Path:
    """The lake with a table of blobs, by the version of its files: `docs_2_1` and `docs_2_2`."""
    for version in ("2.1", "2.2"):
        marked = pa.field("content", pa.large_binary(), metadata={"lance-encoding:blob": "true"})
        schema = pa.schema([("id", pa.int64()), marked])
        rows = pa.table({"id": [1, 2, 3], "content": [b"a", LONG, None]}, schema=schema)
        write_dataset(rows, lake / f"docs_{version.replace('.', '_')}.lance", data_storage_version=version)
    return lake


def bytes_of(lake: Path, name: str, column: str = "content") -> dict[int, bytes | None]:
    """Return the bytes by id; the column must be one of blobs."""
    opened = LanceDataset(lake / f"{name}.lance")
    field = opened.snapshot.schema.field(column)
    assert field.is_blob_v1 or field.is_blob_v2, field
    rows = opened.to_table(["id", column], blob_handling="all_binary")
    return dict(zip(rows["id"].to_pylist(), rows[column].to_pylist(), strict=True))


@pytest.mark.parametrize("source", ["docs_2_1", "docs_2_2"])
def test_a_table_from_a_query_holds_the_bytes_as_blobs(run: Any, docs: Path, source: str) -> None:
    run(f"CREATE TABLE copy USING lance AS SELECT id, content FROM {source} WHERE id < 3")
    assert bytes_of(docs, "copy") == {1: b"a", 2: LONG}
    run(f"CREATE TABLE old USING lance TBLPROPERTIES ('data_storage_version' = '2.1') AS SELECT * FROM {source}")
    assert bytes_of(docs, "old") == {1: b"a", 2: LONG, 3: None}
    run(f"CREATE OR REPLACE TABLE copy USING lance AS SELECT * FROM {source} WHERE id = 2")
    assert bytes_of(docs, "copy") == {2: LONG}


@pytest.mark.parametrize("source", ["docs_2_1", "docs_2_2"])
@pytest.mark.parametrize("target", ["docs_2_1", "docs_2_2"])
def test_inserted_rows_bring_their_bytes(run: Any, docs: Path, source: str, target: str) -> None:
    run(f"INSERT INTO {target} SELECT id + 10, content FROM {source}")
    assert bytes_of(docs, target) == {1: b"a", 2: LONG, 3: None, 11: b"a", 12: LONG, 13: None}
    run(f"INSERT OVERWRITE {target} BY NAME SELECT content, id FROM {source} VERSION AS OF 1 WHERE id = 2")
    assert bytes_of(docs, target) == {2: LONG}


def test_a_merge_brings_the_bytes_of_its_source_by_key_and_by_join(run: Any, docs: Path) -> None:
    run("CREATE TABLE t USING lance AS SELECT id, content FROM docs_2_2 WHERE id = 3")
    merge = "MERGE INTO t USING docs_2_2 s ON t.id = s.id WHEN MATCHED THEN UPDATE SET *"
    run(f"{merge} WHEN NOT MATCHED THEN INSERT *")
    assert bytes_of(docs, "t") == {1: b"a", 2: LONG, 3: None}
    run(
        "MERGE INTO t USING docs_2_1 s ON t.id = s.id + 1 WHEN MATCHED AND t.id > 2 THEN UPDATE SET content = s.content"
        " WHEN NOT MATCHED THEN INSERT (id, content) VALUES (s.id + 10, s.content)"
    )
    assert bytes_of(docs, "t") == {1: b"a", 2: LONG, 3: LONG, 13: None}


@pytest.mark.parametrize("in_tasks", [False, True])
@pytest.mark.parametrize("source", ["docs_2_1", "docs_2_2"])
def test_values_by_row_bring_the_bytes(spark: SparkSession, docs: Path, source: str, in_tasks: bool) -> None:
    runner = OnSpark(spark) if in_tasks else InThreads()
    write_dataset(pa.table({"id": [1, 2, 3]}), docs / "t.lance", data_storage_version="2.1")
    for name, verb in (("t", "ADD"), ("docs_2_1", "UPDATE")):
        rows = f"SELECT old._rowid, new.content FROM {name} old JOIN {source} new ON old.id = new.id + 1"
        sql(spark, f"ALTER TABLE {name} {verb} COLUMNS content FROM ({rows})", runner=runner)
    added = LanceDataset(docs / "t.lance").to_table(blob_handling="all_binary")["content"].to_pylist()
    assert added == [None, b"a", LONG]
    assert bytes_of(docs, "docs_2_1") == {1: b"a", 2: b"a", 3: LONG}


def test_blobs_that_no_column_file_can_hold_are_refused(spark: SparkSession, docs: Path) -> None:
    write_dataset(pa.table({"id": [1, 2]}), docs / "t.lance", data_storage_version="2.2")
    source = "FROM t JOIN docs_2_2 s ON t.id = s.id"
    for text in (
        f"ALTER TABLE t ADD COLUMNS content FROM (SELECT t._rowid, s.content {source})",
        "ALTER TABLE docs_2_2 UPDATE COLUMNS content FROM (SELECT _rowid, content FROM docs_2_2)",
    ):
        with pytest.raises(UnsupportedFeature, match="'content': blobs of file version 2.2 .*merge_insert.* new table"):
            sql(spark, text)
    with pytest.raises(UnsupportedFeature, match="'content': blobs of file version 2.2"):
        sql(spark, text, runner=InThreads())
    sql(spark, f"ALTER TABLE t ADD COLUMNS c FROM (SELECT t._rowid, CAST(s.content AS BINARY) AS c {source})")
    assert LanceDataset(docs / "t.lance").to_table()["c"].to_pylist() == [b"a", LONG]


def test_a_caller_chooses_what_queries_read_of_blobs(spark: SparkSession, run: Any, docs: Path) -> None:
    uri = str(docs / "docs_2_2.lance")
    query = "SELECT content FROM docs_2_2 WHERE id = 2"
    create_view(spark, "of_bytes", uri, blob_handling="all_binary")
    for frame in (
        run(query, blob_handling="all_binary"),
        table(spark, uri, blob_handling="all_binary").where("id = 2").select("content").load(),
        spark.sql("SELECT content FROM of_bytes WHERE id = 2"),
    ):
        assert [bytes(row.content) for row in frame.collect()] == [LONG]
    for frame in (run(query), table(spark, uri).where("id = 2").load(), run(query, blob_handling="blobs_descriptions")):
        assert [row.content.size for row in frame.collect()] == [len(LONG)]
    run("CREATE TABLE sizes USING lance AS SELECT content.size FROM docs_2_2", blob_handling="blobs_descriptions")
    assert LanceDataset(docs / "sizes.lance").to_table()["size"].to_pylist()[:2] == [1, len(LONG)]
    run("UPDATE docs_2_2 SET content = concat(content, X'41') WHERE id = 1", blob_handling="all_binary")
    assert bytes_of(docs, "docs_2_2")[1] == b"aA"
    run("ALTER TABLE docs_2_2 ADD COLUMN num_bytes AS (length(content))", blob_handling="all_binary")
    assert LanceDataset(docs / "docs_2_2.lance").to_table(["id", "num_bytes"], filter="id < 3").to_pylist() == [
        {"id": 2, "num_bytes": len(LONG)},
        {"id": 1, "num_bytes": 2},
    ]
    with pytest.raises(LanceOpsError, match="content"):
        run("UPDATE docs_2_2 SET content = content WHERE id = 2")
    for call in (
        lambda: sql(spark, "SELECT 1", blob_handling="bytes"),  # type: ignore[arg-type]
        lambda: table(spark, uri, blob_handling="bytes"),  # type: ignore[arg-type]
        lambda: create_view(spark, "v", uri, blob_handling="bytes"),  # type: ignore[arg-type]
    ):
        with pytest.raises(InvalidInput, match="'blob_handling' is 'all_binary' or 'blobs_descriptions', not 'bytes'"):
            call()


def test_a_declared_column_of_bytes_is_one_of_blobs_by_the_hint(run: Any, docs: Path) -> None:
    hint = "TBLPROPERTIES ('content.lance.encoding' = 'blob')"
    run(f"CREATE TABLE d (id BIGINT, content BINARY) USING lance {hint}")
    run("INSERT INTO d VALUES (1, X'4142')")
    assert bytes_of(docs, "d") == {1: b"AB"}
    run(f"CREATE TABLE e USING lance {hint} AS SELECT 1L AS id, X'43' AS content")
    assert bytes_of(docs, "e") == {1: b"C"}
    run("CREATE TABLE f USING lance AS SELECT 1L AS id, X'43' AS content")
    run(f"CREATE OR REPLACE TABLE f USING lance {hint} AS SELECT 2L AS id, X'44' AS content")
    assert bytes_of(docs, "f") == {2: b"D"}
    with pytest.raises(InvalidInput, match="column 'id': lance.encoding 'blob' is for bytes, not int64"):
        run("CREATE TABLE g (id BIGINT) USING lance TBLPROPERTIES ('id.lance.encoding' = 'blob')")


def test_a_large_table_of_blobs_is_read_by_tasks(
    spark: SparkSession, docs: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("lance_ops.spark.small_read.MOST_BYTES", 0)
    sql(spark, "CREATE TABLE copy USING lance AS SELECT * FROM docs_2_2")
    assert bytes_of(docs, "copy") == {1: b"a", 2: LONG, 3: None}
    rows = pa.table({"id": [1], "content": lance_ops.blob_array([b"new"])})
    write_dataset(rows, docs / "copy.lance", mode="append")
    sql(spark, "INSERT INTO docs_2_1 SELECT 9, content FROM copy WHERE id = 2")
    assert bytes_of(docs, "docs_2_1")[9] == LONG
