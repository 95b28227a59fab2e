"""Streams of appended rows, planned and read as Spark does it: offsets travel as JSON, tasks are pickled."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession
from pyspark.sql.streaming.datasource import ReadAllAvailable, ReadMaxFiles, ReadMaxRows
from pyspark.sql.types import StructType

from lance_ops.api import LanceDataset, MergeInsertBuilder, dataset, write_dataset
from lance_ops.core.errors import InvalidInput, VersionNotFound
from lance_ops.spark import sql
from lance_ops.spark.data_source import LanceSource
from lance_ops.transactions import Delete, Update
from lance_ops.writing import commit_operation
from tests.spark.streaming_query import Query

EVERYTHING = ReadAllAvailable()


def append(uri: str, *values: int) -> LanceDataset:
    """Append one version with a fragment for every two values."""
    return write_dataset(pa.table({"x": pa.array(values, pa.int64())}), uri, mode="append", max_rows_per_file=2)


def test_a_stream_reads_the_table_and_then_what_is_appended(dataset_uri: str) -> None:
    append(dataset_uri, 1, 2, 3)
    append(dataset_uri, 4).delete("x = 1")
    query = Query(dataset_uri)
    assert query.next() == [2, 3, 4]
    assert query.next() == []
    append(dataset_uri, 5)
    append(dataset_uri, 6, 7)
    query.restart()
    assert query.next() == [5, 6, 7]
    assert query.next() == []


@pytest.mark.parametrize("options", [{}, {"read_change_feed": "true", "starting_version": "1"}])
def test_a_relative_path_is_one_of_the_process_that_plans(
    dataset_uri: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, options: dict[str, str]
) -> None:
    write_dataset(pa.table({"x": [1, 2]}), dataset_uri, enable_stable_row_ids=True)
    monkeypatch.chdir(Path(dataset_uri).parent)
    query = Query(Path(dataset_uri).name, **options)
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    monkeypatch.chdir(elsewhere)  # as in a worker
    assert query.next() == [1, 2]


def test_a_stream_from_a_version_reads_what_that_version_appended(dataset_uri: str) -> None:
    for value in range(4):
        append(dataset_uri, value)
    assert Query(dataset_uri, startingVersion="3").next() == [2, 3]
    assert Query(dataset_uri, starting_version="1").next() == [0, 1, 2, 3]
    later = Query(dataset_uri, starting_version="6")
    assert later.next() == []
    append(dataset_uri, 4)
    append(dataset_uri, 5)
    assert later.next() == [5]


@pytest.mark.parametrize(
    ("options", "batches"),
    [
        ({"max_fragments_per_trigger": "2"}, [[0, 1, 2, 3], [4, 5, 6], [7, 8]]),
        ({"max_rows_per_trigger": "5"}, [[0, 1, 2, 3, 4], [5, 6, 7, 8]]),
        ({"max_rows_per_trigger": "1"}, [[0, 1], [2, 3], [4], [5, 6], [7, 8]]),
        ({}, [[0, 1, 2, 3, 4, 5, 6, 7, 8]]),
    ],
)
def test_a_limit_ends_a_micro_batch_between_fragments(
    dataset_uri: str, options: dict[str, str], batches: list[list[int]]
) -> None:
    append(dataset_uri, 0, 1, 2, 3, 4)
    append(dataset_uri, 5, 6, 7, 8)
    query = Query(dataset_uri, starting_version="1", **options)
    assert isinstance(query.reader.getDefaultReadLimit(), ReadMaxFiles | ReadMaxRows | ReadAllAvailable)
    found = []
    while rows := query.next():
        found.append(rows)
        query.restart()
    assert found == batches


def test_sparks_own_limit_comes_before_that_of_the_options(dataset_uri: str) -> None:
    append(dataset_uri, 0, 1, 2)
    assert Query(dataset_uri, max_rows_per_trigger="1").next(EVERYTHING) == [0, 1, 2]


def test_what_comes_after_the_start_of_an_available_now_query_is_not_read(dataset_uri: str) -> None:
    append(dataset_uri, 0, 1, 2)
    query = Query(dataset_uri, max_fragments_per_trigger="1")
    query.reader.prepareForTriggerAvailableNow()
    assert query.next() == [0, 1]
    append(dataset_uri, 3)
    assert query.next() == [2]
    assert query.next() == []
    query.restart()
    assert query.next() == [3]


@pytest.mark.parametrize("restarts", [False, True])
@pytest.mark.parametrize("options", [{}, {"max_fragments_per_trigger": "2"}])
def test_the_first_micro_batch_has_the_rows_that_it_was_planned_with(
    dataset_uri: str, options: dict[str, str], restarts: bool
) -> None:
    append(dataset_uri, 0, 1, 2, 3, 4)
    query = Query(dataset_uri, **options)
    query.plan()
    append(dataset_uri, 5)
    append(dataset_uri, 6, 7)
    if restarts:
        query.restart()
    found = query.run()
    while rows := query.next():
        found += rows
    assert found == [*range(8)]


def test_an_available_now_query_begins_with_the_version_that_was_newest_at_its_start(dataset_uri: str) -> None:
    append(dataset_uri, 0)
    query = Query(dataset_uri)
    query.reader.prepareForTriggerAvailableNow()
    append(dataset_uri, 1)
    query.offset = query.reader.initialOffset()
    assert query.next() == [0]
    query.restart()
    assert query.next() == [1]


def test_a_micro_batch_that_is_read_again_has_the_same_rows(dataset_uri: str) -> None:
    append(dataset_uri, 0, 1, 2)
    query = Query(dataset_uri, max_fragments_per_trigger="1")
    start = query.offset
    first, second = query.next(), query.next()
    opened = append(dataset_uri, 3)
    opened.delete("x = 0")
    opened.optimize.compact_files()
    query.restart()
    middle = {**start, "fragments": 1}
    assert query.rows(start, middle) == first
    assert query.rows(middle, query.offset) == second


def test_versions_that_only_rearrange_rows_add_none(dataset_uri: str) -> None:
    opened = append(dataset_uri, 0, 1, 2)
    query = Query(dataset_uri)
    assert query.next() == [0, 1, 2]
    opened.optimize.compact_files()
    opened.create_scalar_index("x", "BTREE")
    opened.add_columns({"y": "x + 1"})
    opened.update_config({"key": "value"})
    assert query.next() == []
    write_dataset(pa.table({"x": [9], "y": [10]}), dataset_uri, mode="append")
    assert query.next() == [9]


@pytest.mark.parametrize("version", ["2.0", "2.2"])
def test_a_stream_gives_nulls_for_columns_and_fields_that_came_after_a_version(dataset_uri: str, version: str) -> None:
    rows = pa.table({"x": [1], "s": [{"a": 2}]})
    opened = write_dataset(rows, dataset_uri, data_storage_version=version)
    query = Query(dataset_uri)
    opened.insert(rows)
    opened.add_columns({"y": "x + 1"})
    opened.add_columns(pa.schema([("z", pa.struct({"b": pa.int32()}))]))
    if version == "2.2":
        opened.add_columns(pa.schema([("s", pa.struct({"c": pa.string()}))]))
    query.restart()
    struct = {"a": 2} if version == "2.0" else {"a": 2, "c": None}
    expected = {"x": 1, "s": struct, "y": None, "z": None}
    assert query.values(query.offset, {"whole": 1, "version": 3, "fragments": 0}) == [expected] * 2
    filtered = Query(dataset_uri, starting_version="1", filter="y IS NULL", columns="y,x")
    assert filtered.values(filtered.offset, {"whole": 0, "version": 2, "fragments": 0}) == [{"y": None, "x": 1}]


def test_a_stream_refuses_a_column_that_an_unread_version_has_under_another_name(dataset_uri: str) -> None:
    append(dataset_uri, 0)
    query = Query(dataset_uri)
    opened = append(dataset_uri, 1)
    opened.alter_columns({"path": "x", "name": "renamed"})
    query.restart()
    start = query.offset
    with pytest.raises(InvalidInput, match="column 'renamed' is called 'x' in version 1, which .* rename it back"):
        query.next()
    opened.alter_columns({"path": "renamed", "name": "x"})
    query.restart()
    assert query.rows(start, query.offset) == [0, 1]


def test_a_version_that_changes_rows_stops_a_stream_unless_told_to_pass(dataset_uri: str) -> None:
    append(dataset_uri, 0, 1, 2)
    query, lenient = Query(dataset_uri), Query(dataset_uri, skip_changes="true")
    assert query.next() == lenient.next() == [0, 1, 2]
    dataset(dataset_uri).delete("x = 1")
    dataset(dataset_uri).update({"x": "7"}, "x = 2")
    append(dataset_uri, 8)
    with pytest.raises(InvalidInput, match=r"version 2 \(Delete\) did not only append rows.*skip_changes"):
        query.next()
    assert lenient.next() == [8]


def merge(uri: str) -> MergeInsertBuilder:
    """Begin a merge by column `x`."""
    return dataset(uri).merge_insert("x").when_not_matched_insert_all()


@pytest.mark.parametrize("skip_changes", ["false", "true"])
@pytest.mark.parametrize("stable", [False, True])
def test_the_rows_that_a_merge_inserts_and_does_not_update_are_appended(
    dataset_uri: str, skip_changes: str, stable: bool
) -> None:
    write_dataset(pa.table({"x": [0, 1]}), dataset_uri, enable_stable_row_ids=stable)
    query = Query(dataset_uri, skip_changes=skip_changes)
    assert query.next() == [0, 1]
    merge(dataset_uri).execute(pa.table({"x": [1, 2, 3]}))
    append(dataset_uri, 4)
    assert query.next() == [2, 3, 4]
    merge(dataset_uri).execute(pa.table({"x": [2]}))
    assert query.next() == []


def test_the_rows_that_a_merge_of_sql_inserts_are_appended(spark: SparkSession, dataset_uri: str) -> None:
    append(dataset_uri, 0, 1)
    query = Query(dataset_uri)
    assert query.next() == [0, 1]
    news = "(SELECT explode(array(1, 2)) AS x)"
    merge_text = f"MERGE INTO lance.`{dataset_uri}` t USING {news} n ON t.x = n.x WHEN NOT MATCHED THEN INSERT *"
    sql(spark, merge_text)
    assert query.next() == [2]


def test_a_deletion_and_an_update_of_no_row_do_not_stop_a_stream(dataset_uri: str) -> None:
    opened = append(dataset_uri, 0, 1)
    query = Query(dataset_uri)
    assert query.next() == [0, 1]
    for operation in (Delete((), (), "x = 9"), Update()):
        commit_operation(dataset(dataset_uri).snapshot, operation)
    assert dataset(dataset_uri).version == opened.version + 2
    assert query.next() == []


def test_a_merge_that_updates_and_inserts_stops_a_stream_which_says_what_is_skipped(dataset_uri: str) -> None:
    append(dataset_uri, 0, 1)
    query, lenient = Query(dataset_uri), Query(dataset_uri, skip_changes="true")
    assert query.next() == lenient.next() == [0, 1]
    merge(dataset_uri).when_matched_update_all().execute(pa.table({"x": [1, 2]}))
    with pytest.raises(InvalidInput, match=r"version 2 \(Update\) .* also the rows that they insert"):
        query.next()
    assert lenient.next() == []


def test_clean_up_may_remove_what_is_read_and_nothing_else(dataset_uri: str) -> None:
    append(dataset_uri, 0, 1)
    query, slow = Query(dataset_uri), Query(dataset_uri)
    assert query.next() == [0, 1]
    append(dataset_uri, 2).cleanup_old_versions(timedelta(0))
    assert query.next() == [2]
    with pytest.raises(VersionNotFound, match="start again with a new checkpoint"):
        slow.next()


def test_filter_columns_and_branch_apply_to_a_stream(dataset_uri: str) -> None:
    branch = append(dataset_uri, 0, 1).create_branch("trial")
    query = Query(dataset_uri, branch="trial", filter="x % 2 = 0", columns="x")
    write_dataset(pa.table({"x": [2, 3]}), branch, mode="append")
    assert query.next() == [0, 2]
    assert Query(dataset_uri).next() == [0, 1]
    first = dataset(dataset_uri, version=("trial", None)).versions()[0]["version"]
    assert Query(dataset_uri, branch="trial", starting_version=str(first)).next() == [0, 1, 2, 3]


def test_options_of_a_stream_are_refused_for_one_version(dataset_uri: str) -> None:
    append(dataset_uri, 0)
    source = LanceSource({"path": dataset_uri, "startingVersion": "1"})
    schema = source.schema()
    assert isinstance(schema, StructType)
    with pytest.raises(InvalidInput, match="'startingVersion' is for streams: use readStream"):
        source.reader(schema)


def test_a_switch_of_streams_that_is_off_goes_with_any_read(dataset_uri: str) -> None:
    append(dataset_uri, 0)
    source = LanceSource({"path": dataset_uri, "readChangeFeed": "false"})
    schema = source.schema()
    assert isinstance(schema, StructType)
    assert source.reader(schema).partitions()
    assert Query(dataset_uri, readChangeFeed="false").next() == [0]


@pytest.mark.parametrize("name", ["version", "tag", "timestampAsOf", "rows_needed"])
def test_a_stream_of_one_version_is_refused(dataset_uri: str, name: str) -> None:
    append(dataset_uri, 0).tags.create("1", 1)
    with pytest.raises(
        InvalidInput, match=f"'{name}' is not for streams: a stream begins at option 'starting_version'"
    ):
        Query(dataset_uri, **{name: "2999-01-01" if name == "timestampAsOf" else "1"})


def test_two_limits_are_refused(dataset_uri: str) -> None:
    append(dataset_uri, 0)
    with pytest.raises(InvalidInput, match="'max_rows_per_trigger' and 'max_fragments_per_trigger' are both limits"):
        Query(dataset_uri, max_rows_per_trigger="1", max_fragments_per_trigger="1")


def test_a_stream_of_changes_has_what_each_version_inserted_updated_and_deleted(dataset_uri: str) -> None:
    write_dataset(pa.table({"x": [0, 1, 2]}), dataset_uri, enable_stable_row_ids=True)
    query = Query(dataset_uri, readChangeFeed="true", startingVersion="1", max_versions_per_trigger="2")
    opened = append(dataset_uri, 3)
    opened.update({"x": "10"}, "x = 0")
    opened.delete("x = 1")
    opened.optimize.compact_files()

    def changes() -> list[tuple[Any, ...]]:
        start = query.offset
        query.next()
        query.restart()
        found = query.values(start, query.offset)
        return [(row["_commit_version"], row["_change_type"], row["_rowid"], row["x"]) for row in found]

    assert changes() == [(1, "insert", 0, 0), (1, "insert", 1, 1), (1, "insert", 2, 2), (2, "insert", 3, 3)]
    assert changes() == [(3, "update", 0, 10), (4, "delete", 1, None)]
    assert changes() == []  # the compaction changed none
    assert query.offset["version"] == opened.version + 1
    assert changes() == []
    opened.delete("x = 2")
    assert changes() == [(opened.version, "delete", 2, None)]
    assert query.reader.partitions(query.offset, query.offset) == []


def test_a_stream_of_changes_gives_nulls_for_columns_that_came_later(dataset_uri: str) -> None:
    write_dataset(pa.table({"x": [5]}), dataset_uri, enable_stable_row_ids=True).add_columns({"y": "x + 1"})
    query = Query(dataset_uri, read_change_feed="true", starting_version="1")
    (row,) = query.values({"version": 1}, {"version": 2})
    assert (row["x"], row["y"], row["_row_created_at_version"]) == (5, None, 1)


def test_a_stream_of_changes_refuses_a_column_that_a_version_has_under_another_name(dataset_uri: str) -> None:
    opened = write_dataset(pa.table({"x": [5]}), dataset_uri, enable_stable_row_ids=True)
    opened.alter_columns({"path": "x", "name": "renamed"})
    query = Query(dataset_uri, read_change_feed="true", starting_version="1")
    with pytest.raises(InvalidInput, match="column 'renamed' is called 'x' in version 1"):
        query.values({"version": 1}, {"version": 2})


def test_a_stream_of_changes_gives_the_columns_that_a_schema_names(dataset_uri: str) -> None:
    write_dataset(pa.table({"x": [5], "y": [6]}), dataset_uri, enable_stable_row_ids=True)
    source = LanceSource({"path": dataset_uri, "read_change_feed": "true", "starting_version": "1"})
    reader = source.streamReader(StructType().add("_CHANGE_TYPE", "string").add("X", "long"))
    rows = [row for part in reader.partitions({"version": 1}, {"version": 2}) for row in reader.read(part)]
    assert [batch.to_pylist() for batch in rows] == [[{"_CHANGE_TYPE": "insert", "X": 5}]]
    with pytest.raises(InvalidInput, match="a column 'amuont', and its changes do not"):
        source.streamReader(StructType().add("x", "long").add("amuont", "double")).initialOffset()


def test_a_stream_of_changes_says_what_it_needs(dataset_uri: str, tmp_path: Path) -> None:
    append(dataset_uri, 0)
    with pytest.raises(InvalidInput, match="enable_stable_row_ids"):
        Query(dataset_uri, read_change_feed="true", starting_version="1")
    stable = str(tmp_path / "stable.lance")
    write_dataset(pa.table({"x": [5]}), stable, enable_stable_row_ids=True)
    append(stable, 6).delete("x = 5")
    for options, message in (
        ({"read_change_feed": "true"}, "needs option 'starting_version'"),
        ({"readChangeFeed": "true"}, "option 'readChangeFeed' needs"),
        ({"read_change_feed": "true", "starting_version": "1", "filter": "x = 1"}, "'filter' does not go with"),
        ({"readChangeFeed": "true", "startingVersion": "1", "num_partitions": "2"}, "with 'readChangeFeed'"),
        ({"readChangeFeed": "true", "startingVersion": "1", "push_filters": "true"}, "'push_filters' does not go"),
        ({"starting_version": "1", "max_versions_per_trigger": "1"}, "with 'read_change_feed'"),
    ):
        with pytest.raises(InvalidInput, match=message):
            Query(stable, **options)
    late = Query(stable, read_change_feed="true", starting_version="1")
    start = late.offset
    dataset(stable).cleanup_old_versions(timedelta(0))
    late.plan()
    with pytest.raises(VersionNotFound, match="start again with a new checkpoint"):
        late.rows(start, late.offset)


def test_a_stream_of_changes_begins_where_it_can_compare_two_versions(dataset_uri: str) -> None:
    opened = write_dataset(pa.table({"x": [0]}), dataset_uri, enable_stable_row_ids=True)
    for value in (1, 2):
        opened = append(dataset_uri, value)
    opened.cleanup_old_versions(timedelta(0))
    for first in ("1", "3"):
        with pytest.raises(VersionNotFound, match=f"'startingVersion' is {first}.*begin after the oldest version"):
            Query(dataset_uri, readChangeFeed="true", startingVersion=first)
    query = Query(dataset_uri, readChangeFeed="true", startingVersion="4")
    append(dataset_uri, 3)
    assert query.next() == [3]


def test_a_stream_of_changes_of_a_branch_begins_after_its_first_version(dataset_uri: str) -> None:
    write_dataset(pa.table({"x": [0]}), dataset_uri, enable_stable_row_ids=True).add_columns({"y": "x + 1"})
    branch = append_with_y(dataset(dataset_uri).create_branch("trial"), 1)
    with pytest.raises(VersionNotFound, match="begin after the oldest version"):
        Query(dataset_uri, branch="trial", read_change_feed="true", starting_version="1")
    query = Query(dataset_uri, branch="trial", read_change_feed="true", starting_version=str(branch.version))
    assert query.next() == [1]


@pytest.mark.parametrize("feed", ["false", "true"])
def test_a_stream_over_a_table_that_has_fewer_versions_again_is_refused(dataset_uri: str, feed: str) -> None:
    write_dataset(pa.table({"x": [0]}), dataset_uri, enable_stable_row_ids=True)
    append(dataset_uri, 1)
    query = Query(dataset_uri, starting_version="1", read_change_feed=feed)
    assert query.next() == [0, 1]
    LanceDataset.drop(dataset_uri)
    write_dataset(pa.table({"x": [2]}), dataset_uri, enable_stable_row_ids=True)
    query.restart()
    with pytest.raises(InvalidInput, match="has read version 2, and the newest is 1.*with a new checkpoint"):
        query.next()


@pytest.mark.parametrize("feed", ["false", "true"])
def test_a_stream_over_a_table_that_was_made_again_and_has_as_many_versions_is_refused(
    dataset_uri: str, feed: str
) -> None:
    def make(*values: int) -> None:
        write_dataset(pa.table({"x": [0]}), dataset_uri, enable_stable_row_ids=True)
        for value in values:
            append(dataset_uri, value)

    make(1)
    query = Query(dataset_uri, starting_version="1", read_change_feed=feed)
    start = query.offset
    assert query.next() == [0, 1]
    LanceDataset.drop(dataset_uri)
    make(2, 3)
    query.restart()
    refusal = "version 2 is not the one that the stream has read.*a new checkpoint"
    with pytest.raises(InvalidInput, match=refusal):
        query.next()
    with pytest.raises(InvalidInput, match=refusal):
        query.rows(start, query.offset)


@pytest.mark.parametrize("feed", ["false", "true"])
def test_an_offset_without_the_moment_of_its_version_goes_on(dataset_uri: str, feed: str) -> None:
    write_dataset(pa.table({"x": [0]}), dataset_uri, enable_stable_row_ids=True)
    query = Query(dataset_uri, starting_version="1", read_change_feed=feed)
    assert query.next() == [0]
    del query.offset["made_at_ns"]
    kept = dict(query.offset)
    assert query.next() == []
    assert query.offset == kept
    append(dataset_uri, 1)
    query.restart()
    assert query.next() == [1]


def test_a_stream_whose_last_read_version_is_cleaned_up_goes_on(dataset_uri: str) -> None:
    append(dataset_uri, 1)
    query = Query(dataset_uri)
    assert query.next() == [1]
    append(dataset_uri, 2).cleanup_old_versions(timedelta(0))
    assert query.next() == [2]


def append_with_y(opened: LanceDataset, x: int) -> LanceDataset:
    return write_dataset(pa.table({"x": [x], "y": [x]}), opened, mode="append")


def test_a_stream_of_changes_whose_last_read_version_is_gone_says_what_to_do(dataset_uri: str) -> None:
    write_dataset(pa.table({"x": [0]}), dataset_uri, enable_stable_row_ids=True)
    query = Query(dataset_uri, read_change_feed="true", starting_version="1")
    assert query.next() == [0]
    append(dataset_uri, 1).cleanup_old_versions(timedelta(0))
    with pytest.raises(VersionNotFound, match="compares version 2 with the version before it; start again with a new"):
        query.next()


@pytest.mark.parametrize("name", ["_change_type", "_Commit_Version"])
def test_a_table_with_a_column_of_changes_has_no_stream_of_changes(dataset_uri: str, name: str) -> None:
    opened = write_dataset(pa.table({"x": [0]}), dataset_uri, enable_stable_row_ids=True)
    query = Query(dataset_uri, read_change_feed="true", starting_version="1")
    opened.add_columns({name: "x"})
    with pytest.raises(InvalidInput, match=f"column '{name}' has the name of a column of changes: rename it"):
        query.next()
    with pytest.raises(InvalidInput, match=f"column '{name}' has the name"):
        LanceSource({"path": dataset_uri, "read_change_feed": "true", "starting_version": "1"}).schema()
