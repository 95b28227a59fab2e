"""`sql`: the clauses of CREATE TABLE and ALTER TABLE, and DROP TABLE where nothing is."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest
from pyspark.errors import AnalysisException

from lance_ops.api import LanceDataset, write_dataset
from lance_ops.core.errors import DatasetNotFound, InvalidInput, UnsupportedFeature
from lance_ops.spark import write
from lance_ops.spark.data_source import WriteMode
from tests.spark.sql_access.shown_rows import stored

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark


def test_a_drop_of_a_table_that_is_not_there_does_nothing_if_it_says_so(run: Any, lake: Path) -> None:
    nothing = f"lance.`{lake}/new/path.lance`"
    run(f"DROP TABLE IF EXISTS {nothing}")
    run(f"DROP TABLE IF EXISTS {nothing} PURGE")
    assert not (lake / "new").exists()
    with pytest.raises(DatasetNotFound, match=r"new/path\.lance"):
        run(f"DROP TABLE {nothing}")
    with pytest.raises(InvalidInput, match="the end of the statement is needed in place of 'CASCADE'"):
        run(f"DROP TABLE IF EXISTS {nothing} CASCADE")


def test_a_new_table_has_a_comment_and_properties_in_its_first_version(run: Any, lake: Path) -> None:
    clauses = "USING lance COMMENT 'the week''s' TBLPROPERTIES ('team' = 'x', 'lance.Ops.tier' = 1)"
    for name, columns in (("declared", "(x BIGINT)"), ("selected", "")):
        query = "" if columns else "OPTIONS (data_storage_version = '2.1') AS SELECT 1L AS x"
        run(f"CREATE TABLE {name} {columns} {clauses} {query}")
        made = LanceDataset(lake / f"{name}.lance")
        assert (made.version, made.config()) == (1, {"comment": "the week's", "team": "x", "lance.Ops.tier": "1"})
    run("CREATE OR REPLACE TABLE declared TBLPROPERTIES ('team' = 'y') AS SELECT 2L AS x")
    replaced = LanceDataset(lake / "declared.lance")
    assert (replaced.version, replaced.config()["team"]) == (2, "y")


@pytest.mark.parametrize(
    ("clause", "message"),
    [
        (
            "TBLPROPERTIES ('data_storage_verison' = '2.1')",
            "no option 'data_storage_verison': .*'data_storage_version'",
        ),
        ("TBLPROPERTIES ('maxRowPerFile' = '2')", "did you mean 'max_rows_per_file'"),
        ("TBLPROPERTIES ('x.lance.encodng' = 'blob')", "no option 'x.lance.encodng': it resembles a hint"),
        ("TBLPROPERTIES ('version' = 3)", "option 'version' is for reading"),
        ("OPTIONS ('team' = 'x')", "no option 'team'"),
    ],
)
def test_an_option_that_is_written_wrong_is_no_property(run: Any, lake: Path, clause: str, message: str) -> None:
    with pytest.raises(InvalidInput, match=message):
        run(f"CREATE TABLE made (x BIGINT) USING lance {clause}")
    assert not (lake / "made.lance").exists()


def test_a_write_that_keeps_the_table_sets_no_property(spark: SparkSession, lake: Path) -> None:
    uri = lake / "numbers.lance"
    keys: dict[str, Any] = {"config.team": "x"}
    refused: list[tuple[WriteMode, dict[str, Any]]] = [("append", keys), ("overwrite", {**keys, "replace_where": "id"})]
    for mode, options in refused:
        with pytest.raises(InvalidInput, match=r"option 'config\.team' is for .*LanceDataset\.update_config"):
            write(spark.range(1), uri, mode, **options)
    assert write(spark.range(1), uri, "overwrite", overwrite_schema=True, **keys).config() == {"team": "x"}


def test_a_column_named_config_has_hints_like_any_other(run: Any, lake: Path) -> None:
    run("CREATE TABLE made (config ARRAY<FLOAT>) USING lance TBLPROPERTIES ('config.arrow.fixed-size-list.size' = 4)")
    made = LanceDataset(lake / "made.lance")
    assert (made.schema.field("config").type, made.config()) == (pa.list_(pa.float32(), 4), {})


def test_a_property_that_resembles_an_option_is_set_by_its_full_name(run: Any, lake: Path) -> None:
    run("CREATE TABLE made (x BIGINT) USING lance TBLPROPERTIES ('config.batches' = 'daily')")
    assert LanceDataset(lake / "made.lance").config() == {"batches": "daily"}


@pytest.mark.parametrize(
    ("clauses", "message"),
    [
        ("(x BIGINT) USING lance PARTITIONED BY (x)", "PARTITIONED BY of a Lance table .*SORT BY .*CREATE INDEX"),
        ("USING lance PARTITIONED BY (x) AS SELECT 1L AS x", "PARTITIONED BY of a Lance table"),
        ("(x BIGINT) USING lance CLUSTER BY (x)", "CLUSTER BY of a Lance table"),
        ("(x BIGINT) USING lance CLUSTERED BY (x) INTO 4 BUCKETS", "CLUSTERED BY of a Lance table"),
        ("(x BIGINT) USING lance COMMENT 'c' LOCATION '/data/p'", "LOCATION .*CREATE TABLE lance.`/data/p`"),
        ("(x BIGINT DEFAULT 0) USING lance", "DEFAULT for a column .*ADD COLUMN a AS"),
        ("(x BIGINT, y BIGINT GENERATED ALWAYS AS (x + 1)) USING lance", "GENERATED for a column"),
        ("(x BIGINT, PRIMARY KEY (x)) USING lance", "PRIMARY for a column .*unenforced-primary-key"),
        ("(x BIGINT PRIMARY KEY) USING lance", "PRIMARY for a column"),
    ],
)
def test_a_clause_that_a_table_does_not_have_is_refused_by_name(
    run: Any, lake: Path, clauses: str, message: str
) -> None:
    with pytest.raises(UnsupportedFeature, match=message):
        run(f"CREATE TABLE made {clauses}")
    assert not (lake / "made.lance").exists()


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ("ADD COLUMN a INT AFTER x", "AFTER for a column .*order the columns in SELECT"),
        ("ADD COLUMNS (a STRUCT<b: INT, c: INT> FIRST)", "FIRST for a column"),
        ("ADD COLUMN a INT DEFAULT 0", "DEFAULT for a column"),
        ("ADD COLUMN s.z DOUBLE", r"a new field of column s alone .*named_struct\('a', s\.a"),
    ],
)
def test_a_clause_of_a_new_column_is_refused_by_name(run: Any, lake: Path, change: str, message: str) -> None:
    with pytest.raises(UnsupportedFeature, match=message):
        run(f"ALTER TABLE numbers {change}")
    assert LanceDataset(lake / "numbers.lance").version == 1


def test_columns_may_have_the_names_of_clauses(run: Any, lake: Path) -> None:
    run("CREATE TABLE made (first INT, default STRUCT<after: INT>, check INT) USING lance")
    assert LanceDataset(lake / "made.lance").schema.names == ["first", "default", "check"]


def test_comments_are_set_and_removed(run: Any, lake: Path) -> None:
    path = f"lance.`{lake}/numbers.lance`"
    run("COMMENT ON TABLE numbers IS 'ten'")
    run(f"COMMENT ON COLUMN {path}.ID IS 'key'")
    run("COMMENT ON COLUMN numbers.s IS 'letter'")
    run("ALTER TABLE numbers ALTER COLUMN x COMMENT 'same'")
    run("ALTER TABLE numbers ALTER COLUMN s COMMENT NULL")
    opened = LanceDataset(lake / "numbers.lance")
    assert opened.config() == {"comment": "ten"}
    comments = [(field.metadata or {}).get(b"comment") for field in opened.schema]
    assert comments == [b"key", b"same", None]
    run(f"COMMENT ON TABLE {path} IS NULL")
    assert LanceDataset(lake / "numbers.lance").config() == {}
    with pytest.raises(InvalidInput, match="no column 'nope'"):
        run("COMMENT ON COLUMN numbers.nope IS 'x'")
    with pytest.raises(InvalidInput, match="a comment in quotes, or NULL"):
        run("COMMENT ON TABLE numbers IS 1")


def test_a_computed_column_takes_parameters(run: Any, lake: Path) -> None:
    run("ALTER TABLE numbers ADD COLUMN y AS (id + :more)", args={"more": 5})
    run("ALTER TABLE numbers ADD COLUMN z AS (concat(s, ?, '{}'))", args=["!"])
    assert stored(lake)[:2] == [(0, 0, "a", 5, "a!{}"), (1, 1, "b", 6, "b!{}")]
    with pytest.raises(AnalysisException, match="UNBOUND_SQL_PARAMETER"):
        run("ALTER TABLE numbers ADD COLUMN w AS (id + :more)")


def test_a_computed_column_reads_a_column_that_is_named_as_the_clock(run: Any, lake: Path) -> None:
    run("CREATE TABLE days (id BIGINT, `current_date` BIGINT) USING lance")
    run("INSERT INTO days VALUES (1, 5)")
    run("ALTER TABLE days ADD COLUMN y AS (current_date + 1)")
    run("ALTER TABLE days ADD COLUMN z AS (current_date() > DATE '2000-01-01')")
    assert stored(lake, "days") == [(1, 5, 6, True)]


def test_an_index_is_created_and_dropped_as_a_change_of_the_table(run: Any, lake: Path) -> None:
    run("ALTER TABLE numbers CREATE INDEX by_id USING btree (id)")
    run("ALTER TABLE numbers CREATE INDEX IF NOT EXISTS by_id USING btree (id)")
    run("ALTER TABLE numbers CREATE INDEX by_x USING zonemap (x)")
    shown = {row.name: row.type for row in run("SHOW INDEXES IN numbers").collect()}
    assert shown == {"by_id": "BTree", "by_x": "ZoneMap"}
    run("ALTER TABLE numbers DROP INDEX by_id")
    run("ALTER TABLE numbers DROP INDEX IF EXISTS by_id")
    assert [row.name for row in run("SHOW INDEXES IN numbers").collect()] == ["by_x"]
    with pytest.raises(InvalidInput, match="has an index 'by_x'"):
        run("ALTER TABLE numbers CREATE INDEX by_x USING btree (x)")


def test_a_with_before_an_insert_is_read_as_one_behind_the_table(run: Any, lake: Path) -> None:
    write_dataset(pa.table({"id": [0], "a": [0]}), lake / "t.lance")
    given = "WITH x AS (SELECT id FROM numbers WHERE id < 3), y AS (SELECT max(id) AS id FROM x)"
    run(f"{given} INSERT INTO t SELECT id, 1 FROM y")
    run(f"{given} INSERT INTO TABLE t (id) SELECT id FROM x WHERE id = 1")
    run("WITH x AS (SELECT 7L AS id) INSERT INTO t BY NAME SELECT id FROM x")
    run("WITH x AS (SELECT 1) INSERT INTO t VALUES (9, 9)")
    assert stored(lake, "t") == [(0, 0), (1, None), (2, 1), (7, None), (9, 9)]
    run("WITH x AS (SELECT 8L AS id) INSERT INTO t REPLACE WHERE id = 8 SELECT id, 8 FROM x")
    run(f"WITH x AS (SELECT 5L AS id) INSERT OVERWRITE lance.`{lake}/t.lance` SELECT id, 5 FROM x")
    assert stored(lake, "t") == [(5, 5)]
    with pytest.raises(UnsupportedFeature, match="WITH before INSERT"):
        run("WITH x AS (SELECT 1L AS id) INSERT INTO t WITH y AS (SELECT id FROM x) SELECT id, 1 FROM y")
