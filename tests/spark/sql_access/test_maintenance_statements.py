"""`sql`: statements that keep tables in order, and tell about them."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest
from pyspark.errors import AnalysisException

from lance_ops.api import LanceDataset, dataset, write_dataset
from lance_ops.core.errors import (
    DatasetAlreadyExists,
    IndexNotFound,
    InvalidInput,
    ReferenceNotFound,
    UnsupportedFeature,
)
from lance_ops.maintenance.indexing.segment_builder import SegmentBuilder
from lance_ops.spark import OnSpark, sql
from tests.spark.sql_access.shown_rows import first, stored

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark


def test_a_table_is_optimized_and_vacuumed(run: Any, lake: Path) -> None:
    run("DELETE FROM numbers WHERE id = 3")
    options = "target_rows_per_fragment = 100, max_commits = 2, max_seconds = 600.5, worst_first = true"
    metrics = first(run(f"OPTIMIZE numbers WITH ({options})"))["metrics"]
    assert (metrics["fragmentsAdded"], metrics["fragmentsRemoved"]) == (1, 2)
    assert len(LanceDataset(lake / "numbers.lance").get_fragments()) == 1
    assert run("VACUUM numbers DRY RUN").collect() == []
    assert run(f"VACUUM numbers RETAIN {10**14} HOURS DRY RUN").collect() == []
    listed = {row.path for row in run("VACUUM numbers RETAIN 0 HOURS DRY RUN").collect()}
    assert {Path(path).suffix for path in listed} >= {".lance", ".manifest"}
    before = len(LanceDataset(lake / "numbers.lance").versions())
    removed = first(run("VACUUM numbers RETAIN 0 HOURS"))["metrics"]
    assert (removed["versionsRemoved"], removed["dataFilesRemoved"]) == (before - 1, 2)
    assert [row[0] for row in stored(lake)] == [0, 1, 2, 4, 5, 6, 7, 8, 9]
    for text, message in (
        ("OPTIMIZE numbers WITH (nope = 1)", "no option 'nope'"),
        ("OPTIMIZE numbers WITH (worst_first = 1)", "true or false for worst_first is needed in place of '1'"),
        ("OPTIMIZE numbers WITH (max_commits = x)", "a whole number for max_commits is needed in place of 'x'"),
        ("OPTIMIZE numbers WITH (max_seconds = x)", "a number for max_seconds is needed in place of 'x'"),
        ("OPTIMIZE numbers ZORDER BY (id) SORT BY (x)", "the end of the statement is needed in place of 'SORT'"),
        ("OPTIMIZE numbers SORT BY (x) ZORDER BY (id)", "the end of the statement is needed in place of 'ZORDER'"),
        ("VACUUM numbers RETAIN 2 DAYS", "HOURS"),
        ("VACUUM numbers NOW", "the end"),
        ("VACUUM numbers WITH (older_than = 1)", "VACUUM has no option 'older_than'"),
        ("VACUUM numbers WITH (before_version = 3)", "no option 'before_version': write retain_versions = n"),
        ("VACUUM numbers RETAIN 1 HOURS RETAIN 2 HOURS", "the end of the statement is needed in place of 'RETAIN'"),
        ("VACUUM numbers RETAIN 1 HOURS WITH (before_timestamp_millis = 1)", "RETAIN and before_timestamp_millis both"),
        ("VACUUM numbers WITH (before_timestamp_millis = 99999999999999999999)", "is no moment"),
        ("VACUUM numbers WITH (delete_rate_limit = 0)", "delete_rate_limit must be at least 1"),
    ):
        with pytest.raises(InvalidInput, match=message):
            run(text)
    with pytest.raises(UnsupportedFeature, match="WHERE"):
        run("OPTIMIZE numbers WHERE id = 1")
    with pytest.raises(UnsupportedFeature, match="defer_index_remap"):
        run("OPTIMIZE numbers WITH (defer_index_remap = true)")


def test_the_options_of_the_reference_are_understood(run: Any, lake: Path) -> None:
    run("DELETE FROM numbers WHERE id < 4")
    options = "num_threads = 4, batch_size = 8192, max_rows_per_group = 1024, defer_index_remap = false"
    for switch, removed in (("false", 0), ("true", 1)):
        limits = f"target_rows_per_fragment = 1, materialize_deletions = {switch}, {options}"
        metrics = first(run(f"OPTIMIZE TABLE numbers WITH ({limits})"))["metrics"]
        assert metrics["fragmentsRemoved"] == removed
    lost = lake / "numbers.lance" / "data" / f"{7:024x}.lance"
    lost.touch()
    assert run("VACUUM numbers DRY RUN").collect() == []
    listed = run("VACUUM TABLE numbers DRY RUN WITH (delete_unverified = true)").collect()
    assert [Path(row.path).name for row in listed] == [lost.name]


def test_the_clauses_of_a_vacuum_stand_in_any_order(run: Any, lake: Path) -> None:
    run("DELETE FROM numbers WHERE id = 3")
    assert run("VACUUM numbers DRY RUN RETAIN 168 HOURS").collect() == []
    assert run("VACUUM numbers DRY RUN RETAIN 0 HOURS").count() > 0
    after_all = "WITH (before_timestamp_millis = 4102444800000)"
    assert run("VACUUM numbers DRY RUN WITH (before_timestamp_millis = 1000)").collect() == []
    assert first(run(f"VACUUM numbers {after_all}"))["metrics"]["versionsRemoved"] == 1


def test_a_vacuum_keeps_as_many_versions_as_it_is_told(run: Any, lake: Path) -> None:
    for row in range(3):
        run(f"DELETE FROM numbers WHERE id = {row}")
    kept = "WITH (retain_versions = 2, delete_rate_limit = 1000)"
    listed = {Path(path).name for (path,) in run(f"VACUUM numbers RETAIN 0 HOURS {kept} DRY RUN").collect()}
    assert len([name for name in listed if name.endswith(".manifest")]) == 2
    assert first(run(f"VACUUM numbers RETAIN 0 HOURS {kept}"))["metrics"]["versionsRemoved"] == 2
    assert [each["version"] for each in LanceDataset(lake / "numbers.lance").versions()] == [3, 4]


def test_a_vacuum_keeps_tagged_versions_unless_it_is_to_refuse_them(run: Any, lake: Path) -> None:
    run("CREATE TAG kept ON numbers VERSION AS OF 1")
    for row in range(2):
        run(f"DELETE FROM numbers WHERE id = {row}")
    listed = {Path(path).name for (path,) in run("VACUUM numbers RETAIN 0 HOURS DRY RUN").collect()}
    assert len([name for name in listed if name.endswith(".manifest")]) == 1
    for end in ("", " DRY RUN"):
        with pytest.raises(InvalidInput, match="kept"):
            run(f"VACUUM numbers RETAIN 0 HOURS WITH (error_if_tagged_old_versions = true){end}")
    assert first(run("VACUUM numbers RETAIN 0 HOURS"))["metrics"]["versionsRemoved"] == 1
    assert [each["version"] for each in LanceDataset(lake / "numbers.lance").versions()] == [1, 3]
    assert run("SELECT count(*) AS n FROM numbers VERSION AS OF 'kept'").collect()[0].n == 10


def test_a_dry_run_lists_every_file(run: Any, lake: Path) -> None:
    lost = [lake / "numbers.lance" / "data" / f"{number:024x}.lance" for number in range(1_001)]
    for path in lost:
        path.touch()
        os.utime(path, (0, 0))
    assert run("VACUUM numbers DRY RUN").count() == len(lost)


def test_statistics_are_measured_of_all_or_some_columns(run: Any, lake: Path) -> None:
    run("UPDATE numbers SET s = NULL WHERE id = 1")
    measured = {row.col_name: row for row in run("ANALYZE TABLE numbers COMPUTE STATISTICS").collect()}
    assert tuple(measured["id"]) == ("id", "bigint", 10, 0, "0", "9", 10)
    assert tuple(measured["s"]) == ("s", "string", 10, 1, "a", "b", 2)
    assert run("ANALYZE TABLE numbers COMPUTE STATISTICS FOR ALL COLUMNS").collect() == [*measured.values()]
    chosen = run("ANALYZE TABLE numbers COMPUTE STATISTICS FOR COLUMNS S, x")
    assert [row.col_name for row in chosen.collect()] == ["s", "x"]


def test_a_damaged_file_is_found_by_verify(run: Any, lake: Path) -> None:
    assert run("VERIFY TABLE numbers").collect() == run("VERIFY numbers QUICK").collect() == []
    lost = next((lake / "numbers.lance" / "data").iterdir())
    lost.unlink()
    (found,) = run("VERIFY numbers QUICK").collect()
    assert (found.severity, found.kind, Path(found.path).name) == ("damaged", "missing file", lost.name)
    with pytest.raises(InvalidInput, match="the end of the statement is needed in place of 'SLOWLY'"):
        run("VERIFY numbers SLOWLY")


def test_a_table_is_cloned_with_and_without_its_files(run: Any, lake: Path) -> None:
    run("DELETE FROM numbers WHERE id > 4")
    made = first(run("CREATE TABLE copy DEEP CLONE numbers VERSION AS OF 1"))
    assert made == {"path": str(lake / "copy.lance"), "source_version": 1}
    run("CREATE TABLE short CLONE numbers")
    run(f"CREATE TABLE lance.`{lake}/thin.lance` SHALLOW CLONE lance.`{lake}/numbers.lance`")
    assert [len(stored(lake, name)) for name in ("copy", "short", "thin")] == [10, 5, 5]
    held = [(lake / f"{name}.lance" / "data").exists() for name in ("copy", "short", "thin")]
    assert held == [True, True, False]
    assert run("CREATE TABLE IF NOT EXISTS copy CLONE numbers").collect() == []
    assert len(stored(lake, "copy")) == 10
    with pytest.raises(DatasetAlreadyExists):
        run("CREATE TABLE copy CLONE numbers")
    with pytest.raises(UnsupportedFeature, match="OR REPLACE TABLE … CLONE"):
        run("CREATE OR REPLACE TABLE copy CLONE numbers")


def test_a_clone_of_no_lance_table_is_left_to_spark(run: Any) -> None:
    with pytest.raises(AnalysisException):
        run("CREATE TABLE copy DEEP CLONE of_delta")


def test_properties_are_set_unset_and_migrate_the_files(run: Any, lake: Path) -> None:
    write_dataset(pa.table({"x": [1, 2]}), lake / "old.lance", data_storage_version="2.0")
    run("ALTER TABLE old SET TBLPROPERTIES ('owner' = 'ops', 'data_storage_version' = '2.2', 'tier' = 1)")
    opened = LanceDataset(lake / "old.lance")
    assert (opened.data_storage_version, opened.config()) == ("2.2", {"owner": "ops", "tier": "1"})
    assert stored(lake, "old") == [(1,), (2,)]
    run("ALTER TABLE old UNSET TBLPROPERTIES ('tier')")
    run("ALTER TABLE old UNSET TBLPROPERTIES IF EXISTS ('owner', 'nope')")
    assert LanceDataset(lake / "old.lance").config() == {}
    with pytest.raises(InvalidInput, match="has no property nope: write UNSET TBLPROPERTIES IF EXISTS"):
        run("ALTER TABLE old UNSET TBLPROPERTIES ('nope')")
    with pytest.raises(InvalidInput, match="3.7"):
        run("ALTER TABLE old SET TBLPROPERTIES ('data_storage_version' = '3.7')")


def test_statements_that_read_or_copy_all_files_run_on_the_workers(spark: SparkSession, lake: Path) -> None:
    jobs: list[str] = []

    class Recording(OnSpark):
        def map(self, function: Any, tasks: Any, job: Any = None, discard: Any = None) -> Any:
            jobs.append(f"{job}, {len(tasks)}")
            return super().map(function, tasks, job, discard)

    runner = Recording(spark, least_bytes=0)
    (lake / "more.csv").write_text("id,x,s\n10,10,c\n")
    for text in (
        "ANALYZE TABLE numbers COMPUTE STATISTICS",
        "VERIFY numbers",
        "CREATE TABLE copy CLONE numbers",
        "ALTER TABLE copy SET TBLPROPERTIES ('data_storage_version' = '2.1')",
        "ALTER TABLE copy ALTER COLUMN x SET NOT NULL",
        f"COPY INTO numbers FROM '{lake}/more.csv'",
    ):
        sql(spark, text, runner=runner)
    assert [text.partition(",")[0] for text in jobs] == [
        "measure columns of numbers v1",
        "verify numbers v1",
        "clone numbers v1",
        "migrate to 2.1",
        "look for nulls in copy v3",
        "ingest into numbers v1",
    ]
    assert [*stored(lake, "copy"), (10, 10, "c")] == stored(lake)


def test_a_table_is_clustered(run: Any, lake: Path) -> None:
    run("OPTIMIZE numbers ZORDER BY (s, id)")
    scanned = LanceDataset(lake / "numbers.lance").to_table().column("id").to_pylist()
    assert sorted(scanned) == list(range(10))
    assert scanned != list(range(10))


def test_indices_are_created_refreshed_shown_and_dropped(run: Any, lake: Path) -> None:
    run("CREATE INDEX by_id ON numbers (id)")
    run("CREATE INDEX IF NOT EXISTS by_id ON numbers USING btree (id)")
    run("CREATE INDEX by_x ON TABLE numbers (x) USING BTREE")
    run("INSERT INTO numbers VALUES (10, 10, 'a')")
    shown = {row.name: row for row in run("SHOW INDEXES IN numbers").collect()}
    assert (shown["by_id"].columns, shown["by_id"].numIndexedRows, shown["by_id"].numUnindexedRows) == (["id"], 10, 1)
    run("REFRESH INDEX by_id ON numbers")
    counts = {row.name: row.numUnindexedRows for row in run("SHOW INDEX ON numbers").collect()}
    assert counts == {"by_id": 0, "by_x": 1}
    run("REFRESH INDEX ON numbers")
    run("INSERT INTO numbers VALUES (11, 11, 'b')")
    run("REFRESH INDEXES ON numbers")
    run("DROP INDEX by_id ON numbers")
    run("DROP INDEX IF EXISTS by_id ON numbers")
    assert [(row.name, row.numUnindexedRows) for row in run("SHOW INDEXES FROM numbers").collect()] == [("by_x", 0)]
    with pytest.raises(InvalidInput, match="has an index 'by_x'"):
        run("CREATE INDEX by_x ON numbers (x)")
    for text in ("DROP INDEX nope ON numbers", "REFRESH INDEX nope ON numbers"):
        with pytest.raises(IndexNotFound, match="nope"):
            run(text)
    with pytest.raises(InvalidInput, match="nope is no Lance table"):
        run("DROP INDEX by_x ON nope")


def test_an_index_that_another_session_creates_meanwhile_is_not_replaced(
    run: Any, lake: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    train = SegmentBuilder.train
    table, waiting = lake / "numbers.lance", ["by_one", "by_two"]

    def trained(*arguments: Any) -> Any:
        made, name = train(*arguments), arguments[-1]
        if name in waiting:
            waiting.remove(name)
            dataset(table).create_scalar_index("x", "BTREE", name)
        return made

    monkeypatch.setattr(SegmentBuilder, "train", trained)
    with pytest.raises(InvalidInput, match="has an index 'by_one': DROP INDEX"):
        run("CREATE INDEX by_one ON numbers (id)")
    run("ALTER TABLE numbers CREATE INDEX IF NOT EXISTS by_two (id)")
    assert {row.name: row.columns for row in run("SHOW INDEXES IN numbers").collect()} == {
        "by_one": ["x"],
        "by_two": ["x"],
    }


def test_history_detail_and_restore(run: Any, lake: Path) -> None:
    run("DELETE FROM numbers WHERE id > 4")
    history = run("DESCRIBE HISTORY numbers").collect()
    assert [(row.version, row.operation, row.operationMetrics["numRows"]) for row in history] == (
        [(2, "Delete", 5), (1, "Overwrite", 10)]
    )
    assert run("DESC HISTORY numbers LIMIT 1").count() == 1
    detail = first(run("DESCRIBE DETAIL numbers"))
    assert (detail["format"], detail["version"], detail["numRows"]) == ("lance", 2, 5)
    assert detail["sizeInBytes"] > 0
    assert first(run("RESTORE TABLE numbers TO VERSION AS OF 1")) == {"version": 3, "restored_version": 1}
    assert len(stored(lake)) == 10
    run(f"RESTORE numbers TO TIMESTAMP AS OF '{history[0].timestamp}'")
    assert len(stored(lake)) == 5
    assert first(run("RESTORE numbers VERSION AS OF 3")) == {"version": 5, "restored_version": 3}


def test_a_table_is_not_restored_to_a_version_of_a_branch(run: Any, lake: Path) -> None:
    run("CREATE BRANCH trial ON numbers")
    trial = f"lance.`{lake}/numbers.lance/tree/trial`"
    run(f"DELETE FROM {trial}")
    dataset(str(lake / "numbers.lance")).tags.create("tried", ("trial", 2))
    for name in ("tried", "trial", "trial@v2"):
        with pytest.raises(
            InvalidInput, match=r"restore it by its path \(RESTORE lance.`.*/tree/trial` TO VERSION AS OF"
        ):
            run(f"RESTORE numbers TO VERSION AS OF '{name}'")
    assert first(run(f"RESTORE {trial} TO VERSION AS OF 'tried'")) == {"version": 3, "restored_version": 2}


def test_tags_and_branches(run: Any, lake: Path) -> None:
    run("DELETE FROM numbers WHERE id > 4")
    run("CREATE TAG old ON numbers VERSION AS OF 1")
    run("ALTER TABLE numbers CREATE TAG IF NOT EXISTS `new`")
    run("CREATE OR REPLACE TAG moved ON numbers AS OF VERSION 1")
    run("ALTER TABLE numbers CREATE OR REPLACE TAG moved AS OF VERSION 2")
    assert [tuple(row) for row in run("SHOW TAGS IN numbers").collect()] == (
        [("moved", 2, None), ("new", 2, None), ("old", 1, None)]
    )
    run("CREATE BRANCH trial ON numbers VERSION AS OF 'old'")
    assert [tuple(row) for row in run("SHOW BRANCHES IN numbers").collect()] == [("trial", None, 1)]
    assert run("SELECT count(*) AS n FROM numbers VERSION AS OF 'trial'").collect()[0].n == 10
    for text in ("CREATE OR REPLACE BRANCH trial ON numbers", "ALTER TABLE numbers CREATE OR REPLACE BRANCH trial"):
        with pytest.raises(UnsupportedFeature, match="REPLACE BRANCH trial of .*DROP BRANCH first"):
            run(text)
    run("DROP BRANCH trial ON numbers")
    run("DROP TAG old ON numbers")
    run("ALTER TABLE numbers DROP TAG IF EXISTS old")
    assert run("SHOW TAGS IN numbers").count() == 2
    assert run("SHOW BRANCHES IN numbers").count() == 0
    with pytest.raises(ReferenceNotFound):
        run("DROP TAG old ON numbers")
