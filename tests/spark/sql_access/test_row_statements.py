"""`sql`: INSERT, DELETE and UPDATE, by conditions and by queries."""

from __future__ import annotations

from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from lance_ops.api import LanceDataset
from lance_ops.core.errors import InvalidInput, SchemaMismatch, UnsupportedFeature
from tests.spark.sql_access.shown_rows import first, stored

pytestmark = pytest.mark.spark


def test_rows_are_inserted_by_position_by_columns_and_by_name(run: Any, lake: Path) -> None:
    run("INSERT INTO numbers VALUES (10, 1, 'k'), (11, 2, 'l')")
    run(f"INSERT INTO lance.`{lake}/numbers.lance` (s, id) SELECT 'm', 12")
    run("INSERT INTO TABLE numbers BY NAME SELECT 13L AS id, 'n' AS S")
    run("INSERT INTO numbers WITH q AS (SELECT * FROM numbers@v1) SELECT id + 100, x, s FROM q WHERE id = 3")
    assert LanceDataset(lake / "numbers.lance").version == 5
    added = [(10, 1, "k"), (11, 2, "l"), (12, None, "m"), (13, None, "n"), (103, 3, "b")]
    assert [row for row in stored(lake) if row[0] >= 10] == added
    with pytest.raises(SchemaMismatch, match=r"2 columns for 3 of the table \(id, x, s\)"):
        run("INSERT INTO numbers VALUES (1, 2)")
    with pytest.raises(UnsupportedFeature, match="PARTITION"):
        run("INSERT INTO numbers PARTITION (s = 'a') SELECT 1, 2")
    with pytest.raises(SchemaMismatch, match="'nope' is not in the table"):
        run("INSERT INTO numbers BY NAME SELECT 1L AS id, 2 AS nope")
    with pytest.raises(InvalidInput, match="no option 'nope'"):
        run("CREATE TABLE other USING lance TBLPROPERTIES ('nope' = 1) AS SELECT 1 AS id")


def test_whole_numbers_are_inserted_into_decimals_that_hold_them(run: Any, lake: Path) -> None:
    run("CREATE TABLE prices (id BIGINT, price DECIMAL(10, 2)) USING lance")
    run("INSERT INTO prices VALUES (1, 5)")
    source = "(SELECT 1L AS id, 7L AS price) AS s ON prices.id = s.id"
    run(f"MERGE INTO prices USING {source} WHEN MATCHED THEN UPDATE SET price = s.price")
    assert stored(lake, "prices") == [(1, Decimal("7.00"))]
    with pytest.raises(SchemaMismatch, match="'price'.*does not fit in precision 10"):
        run("INSERT INTO prices VALUES (2, 100000000)")


def test_rows_are_replaced_all_or_those_that_match(run: Any, lake: Path) -> None:
    run("INSERT INTO numbers REPLACE WHERE id >= 2 VALUES (5, 50, 'new')")
    assert stored(lake) == [(0, 0, "a"), (1, 1, "b"), (5, 50, "new")]
    run("INSERT OVERWRITE numbers SELECT id, x, s FROM numbers WHERE id = 1")
    opened = LanceDataset(lake / "numbers.lance")
    assert stored(lake) == [(1, 1, "b")]
    assert opened.schema.field("x").type == pa.int32()


def test_rows_are_deleted_by_a_condition_and_by_a_query(run: Any, lake: Path) -> None:
    assert first(run("DELETE FROM numbers n WHERE n.id < 3 AND s = 'a'")) == {"num_affected_rows": 2}
    run("CREATE TABLE gone USING lance AS SELECT * FROM VALUES (5), (5), (NULL), (77) AS t(key)")
    assert first(run("DELETE FROM numbers WHERE id IN (SELECT key FROM gone WHERE key < 100)")) == {
        "num_affected_rows": 1
    }
    assert [row[0] for row in stored(lake)] == [1, 3, 4, 6, 7, 8, 9]
    text = "DELETE FROM numbers n WHERE n.s = 'b' AND (id IN (SELECT x FROM numbers WHERE x IN (1, 3, 4))) AND n.x > 1"
    assert first(run(text)) == {"num_affected_rows": 1}
    assert [row[0] for row in stored(lake)] == [1, 4, 6, 7, 8, 9]
    run("DELETE FROM numbers")
    assert stored(lake) == []
    run("INSERT INTO numbers VALUES (1, 1, 'x')")
    run("TRUNCATE TABLE numbers")
    assert stored(lake) == []


def test_rows_are_updated(run: Any, lake: Path) -> None:
    text = "UPDATE numbers AS n SET n.x = CASE WHEN id > 8 THEN 0 ELSE x * 10 END, s = upper(s) || '!' WHERE id >= 8"
    assert first(run(text)) == {"num_affected_rows": 2}
    assert stored(lake)[-2:] == [(8, 80, "A!"), (9, 0, "B!")]
    with pytest.raises(InvalidInput, match="'x' is set twice"):
        run("UPDATE numbers SET x = 1, numbers.x = 2")
    with pytest.raises(InvalidInput, match="no column 'nope'"):
        run("UPDATE numbers SET nope = 1")


def test_rows_are_updated_by_a_query(run: Any, lake: Path) -> None:
    run("CREATE TABLE seen USING lance AS SELECT * FROM VALUES (3L), (5L), (5L), (NULL), (77L) AS t(key)")
    text = (
        "UPDATE numbers n SET n.x = x * 10 + ascii(s), s = 'seen' WHERE n.id IN (SELECT key FROM seen WHERE key < 100)"
    )
    assert first(run(text)) == {"num_affected_rows": 2}
    assert [row for row in stored(lake) if row[2] == "seen"] == [(3, 30 + ord("b"), "seen"), (5, 50 + ord("b"), "seen")]
    text = f"UPDATE lance.`{lake}/numbers.lance` SET x = 0 WHERE s IN (WITH q AS (SELECT 'a') SELECT * FROM q)"
    assert first(run(text)) == {"num_affected_rows": 5}
    assert [row[1] for row in stored(lake) if row[2] == "a"] == [0] * 5
    text = r"UPDATE numbers SET x = -1, s = '\t' WHERE id IN (SELECT key FROM seen) AND x != 0 AND s != '\t' AND id < 5"
    assert first(run(text)) == {"num_affected_rows": 1}
    assert [row for row in stored(lake) if row[1] == -1] == [(3, -1, "\t")]
    assert first(run("UPDATE numbers SET x = -2 WHERE s IN (SELECT 'b') AND x > 1")) == {"num_affected_rows": 2}
    assert [row[:2] for row in stored(lake) if row[2] == "b"] == [(1, 1), (7, -2), (9, -2)]
    run("UPDATE numbers SET x = 2 WHERE s = 'b'")
    for changed, reason in (
        ("x = -x WHERE s IN (SELECT 'b')", "several rows of the key s = 'b'"),
        ("x = x + 1 WHERE s IN (SELECT 'b') AND x > 1", "several rows of the key s = 'b'"),
        ("x = 1 WHERE id IN (SELECT 2L) OR x = 1", "SELECT"),
        ("x = 1 WHERE id IN (SELECT 2L) AND x IN (SELECT 1)", "SELECT"),
        ("id = 1 WHERE id IN (SELECT 2L)", "which changes the column that finds the rows"),
        ("x = 1 WHERE EXISTS (SELECT 1)", "EXISTS"),
        ("x = 1 WHERE id NOT IN (SELECT 2L)", "SELECT"),
        ("x = 1 WHERE id IN (SELECT 1L, 2L)", "2 columns for 1"),
        ("x = (SELECT 1) WHERE id IN (SELECT 1L)", "a subquery"),
    ):
        with pytest.raises((InvalidInput, UnsupportedFeature, SchemaMismatch), match=reason):
            run(f"UPDATE numbers SET {changed}")
