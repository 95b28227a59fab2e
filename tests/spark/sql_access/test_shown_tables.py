"""`sql`: SHOW and DESCRIBE of one table."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest
from pyspark.errors import AnalysisException

from lance_ops.api import LanceDataset, write_dataset
from lance_ops.core.errors import InvalidInput, UnsupportedFeature
from tests.spark.sql_access.shown_rows import first

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark


def test_columns_are_shown_with_their_comments(run: Any, lake: Path) -> None:
    run("CREATE TABLE kept (id BIGINT NOT NULL COMMENT 'it''s the key', v STRING) USING lance")
    assert [row.col_name for row in run("SHOW COLUMNS IN kept").collect()] == ["id", "v"]
    assert [row.col_name for row in run(f"SHOW COLUMNS FROM lance.`{lake}/kept.lance`").collect()] == ["id", "v"]
    described = [tuple(row) for row in run("DESCRIBE kept").collect()]
    assert described == [("id", "bigint", "it's the key"), ("v", "string", None)]


@pytest.mark.parametrize("word", ["EXTENDED", "FORMATTED", "TABLE EXTENDED"])
def test_an_extended_description_tells_what_the_table_is(run: Any, lake: Path, word: str) -> None:
    run("CREATE TABLE kept (id BIGINT) USING lance COMMENT 'all' TBLPROPERTIES ('team' = 'x', 'a.b' = 1)")
    rows = [tuple(row) for row in run(f"DESCRIBE {word} kept").collect()]
    assert rows[:3] == [("id", "bigint", None), ("", "", ""), ("# Detailed Table Information", "", "")]
    told = {name: value for name, value, _ in rows[3:]}
    assert told.pop("Last Modified")
    assert told == {
        "Provider": "lance",
        "Location": str(lake / "kept.lance"),
        "Version": "1",
        "Data Storage Version": "2.2",
        "Comment": "all",
        "Table Properties": "[a.b=1,team=x]",
    }


def test_properties_are_shown(run: Any) -> None:
    assert run("SHOW TBLPROPERTIES numbers").collect() == []
    run("ALTER TABLE numbers SET TBLPROPERTIES ('team' = 'x', 'a.b' = 1)")
    assert [tuple(row) for row in run("SHOW TBLPROPERTIES numbers").collect()] == [("a.b", "1"), ("team", "x")]
    assert [tuple(row) for row in run("SHOW TBLPROPERTIES numbers (team)").collect()] == [("team", "x")]
    assert [tuple(row) for row in run("SHOW TBLPROPERTIES numbers ('nope')").collect()] == [("nope", None)]


def test_the_statement_that_is_shown_makes_a_table_like_this_one(run: Any, lake: Path) -> None:
    fields = [
        pa.field("id", pa.int64(), nullable=False, metadata={"comment": "it's"}),
        pa.field("v", pa.list_(pa.float32(), 4)),
        pa.field("h", pa.float16()),
        pa.field("a b", pa.struct([("x", pa.int32()), ("y", pa.list_(pa.string()))])),
    ]
    schema = pa.schema(fields)
    write_dataset(schema.empty_table(), lake / "old.lance", data_storage_version="2.1", enable_stable_row_ids=True)
    run("ALTER TABLE old SET TBLPROPERTIES ('batches' = 'daily\\\\', 'comment' = 'it''s old')")
    text = first(run("SHOW CREATE TABLE old"))["createtab_stmt"]
    assert text.startswith(f"CREATE TABLE lance.`{lake}/old.lance` (\n  id BIGINT NOT NULL COMMENT 'it\\'s',\n")
    run(text.replace("old.lance", "new.lance"))
    old, new = LanceDataset(lake / "old.lance"), LanceDataset(lake / "new.lance")
    assert new.schema.equals(old.schema, check_metadata=False)
    assert new.schema.field("id").metadata[b"comment"] == b"it's"
    assert (new.data_storage_version, new.has_stable_row_ids) == ("2.1", True)
    assert new.config() == old.config() == {"batches": "daily\\", "comment": "it's old"}


@pytest.mark.parametrize("name", ["history", "detail", "extended"])
def test_a_table_may_have_the_name_of_a_word_of_describe(run: Any, lake: Path, name: str) -> None:
    write_dataset(pa.table({"x": [1]}), lake / f"{name}.lance")
    for verb in ("DESCRIBE", "DESC"):
        assert [row.col_name for row in run(f"{verb} {name}").collect()] == ["x"]
    assert run(f"DESCRIBE HISTORY {name}").count() == 1


def test_tables_of_spark_are_shown_by_spark(run: Any, spark: SparkSession) -> None:
    spark.range(1).createOrReplaceTempView("of_spark")
    assert [row.col_name for row in run("SHOW COLUMNS IN of_spark").collect()] == ["id"]
    for text in ("SHOW COLUMNS IN nope", "SHOW TBLPROPERTIES nope", "SHOW CREATE TABLE nope", "DESCRIBE nope"):
        with pytest.raises(AnalysisException, match="TABLE_OR_VIEW_NOT_FOUND"):
            run(text)


@pytest.mark.parametrize("word", ["IN", "FROM"])
def test_columns_of_a_table_in_a_database_are_shown_by_spark(
    run: Any, spark: SparkSession, monkeypatch: pytest.MonkeyPatch, word: str
) -> None:
    with pytest.raises(UnsupportedFeature, match="one of the namespace, without a database") as raised:
        run(f"SHOW COLUMNS IN numbers {word} nope")
    assert "TABLE_OR_VIEW_NOT_FOUND" in str(raised.value.__cause__)
    given = list[str]()
    monkeypatch.setattr(spark, "sql", given.append)
    run(f"SHOW COLUMNS IN numbers {word} default")
    assert given == [f"SHOW COLUMNS IN numbers {word} default"]


@pytest.mark.parametrize("verb", ["DESCRIBE DETAIL", "DESC HISTORY", "VACUUM", "OPTIMIZE"])
def test_a_path_in_quotes_is_answered_with_the_name_to_write(run: Any, verb: str) -> None:
    with pytest.raises(InvalidInput, match=r"'/data/p' is no name of a Lance table: write lance\.`/data/p`"):
        run(f"{verb} '/data/p'")
