"""Streams over versions whose columns differ: a stream knows a column by its field id, never by its name."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

from lance_ops.api import LanceDataset, dataset, write_dataset
from lance_ops.core.errors import InvalidInput, VersionNotFound
from tests.spark.streaming_query import Query

FEED = pytest.mark.parametrize("feed", ["false", "true"])
FROM_THE_START = {"starting_version": "1"}


def make(uri: str, columns: dict[str, Any]) -> LanceDataset:
    return write_dataset(pa.table(columns), uri, enable_stable_row_ids=True)


def read(uri: str, *names: str, feed: str = "false", **options: str) -> list[tuple[Any, ...]]:
    """Return some columns of all rows of a stream that begins at version 1; of a feed, those that were inserted."""
    query = Query(uri, read_change_feed=feed, **FROM_THE_START, **options)
    return rows_of(query, *names)


def rows_of(query: Query, *names: str) -> list[tuple[Any, ...]]:
    """Return some columns of what a query has not read yet; of a feed, only of inserted rows."""
    start = query.offset
    query.offset = query.reader.latestOffset(start, query.reader.getDefaultReadLimit())
    rows = query.values(start, query.offset)
    return [tuple(row[name] for name in names) for row in rows if row.get("_change_type", "insert") == "insert"]


def swap(uri: str, one: str, other: str) -> None:
    """Give two columns, or two fields of a struct, each other's names."""
    parent = one.rpartition(".")[0]
    first, second = one.rpartition(".")[2], other.rpartition(".")[2]
    for name, new in ((first, "between"), (second, first), ("between", second)):
        path = f"{parent}.{name}" if parent else name
        dataset(uri).alter_columns({"path": path, "name": new})


@FEED
def test_columns_that_exchanged_their_names_are_refused(dataset_uri: str, feed: str) -> None:
    make(dataset_uri, {"a": [1, 2], "b": [10, 20]})
    swap(dataset_uri, "a", "b")
    with pytest.raises(InvalidInput, match=r"column 'b' is called 'a' in version 1, which .* rename it back"):
        read(dataset_uri, "a", "b", feed=feed)
    swap(dataset_uri, "a", "b")
    assert read(dataset_uri, "a", "b", feed=feed) == [(1, 10), (2, 20)]


def test_columns_that_exchanged_their_names_are_refused_by_spark(spark: SparkSession, dataset_uri: str) -> None:
    make(dataset_uri, {"a": [1, 2], "b": [10, 20]})
    swap(dataset_uri, "a", "b")
    stream = spark.readStream.format("lance").option("starting_version", 1).load(dataset_uri)
    query = stream.writeStream.format("memory").queryName("swapped").trigger(availableNow=True).start()
    with pytest.raises(Exception, match="column 'b' is called 'a' in version 1"):
        query.awaitTermination()


@FEED
def test_fields_of_a_struct_that_exchanged_their_names_are_refused(dataset_uri: str, feed: str) -> None:
    make(dataset_uri, {"s": [{"x": 1, "y": 10}]})
    swap(dataset_uri, "s.x", "s.y")
    with pytest.raises(InvalidInput, match=r"column 's\.y' is called 's\.x' in version 1"):
        read(dataset_uri, "s", feed=feed)


@pytest.mark.parametrize("names", [("a", "b"), ("s.x", "s.y")])
def test_a_stream_that_needs_no_renamed_column_is_not_refused(dataset_uri: str, names: tuple[str, str]) -> None:
    make(dataset_uri, {"a": [1], "b": [10], "s": [{"x": 1, "y": 10}], "c": [3]})
    swap(dataset_uri, *names)
    assert read(dataset_uri, "c", columns="c") == [(3,)]
    with pytest.raises(InvalidInput, match="is called"):
        read(dataset_uri, "c", columns="c", filter=f"{names[0]} = 1")


@FEED
@pytest.mark.parametrize("rename", [False, True])
@pytest.mark.parametrize("value", ["'new'", "7"])
def test_a_new_column_with_the_name_of_another_one_is_null_in_earlier_versions(
    dataset_uri: str, feed: str, rename: bool, value: str
) -> None:
    opened = make(dataset_uri, {"id": [1], "v": ["12"]})
    if rename:
        opened.alter_columns({"path": "v", "name": "w"})
        opened.add_columns({"v": value})
        opened.drop_columns(["w"])
    else:
        opened.drop_columns(["v"])
        opened.add_columns({"v": value})
    write_dataset(dataset(dataset_uri).to_table(), dataset_uri, mode="append")
    new = value.strip("'")
    assert read(dataset_uri, "id", "v", feed=feed) == [(1, None), (1, new if "'" in value else int(new))]


@FEED
def test_a_new_column_of_another_type_with_the_name_and_the_id_of_a_dropped_one_is_null(
    dataset_uri: str, feed: str
) -> None:
    opened = make(dataset_uri, {"id": [1]})
    opened.add_columns({"v": "'12'"})
    opened = write_dataset(pa.table({"id": [2], "v": ["13"]}), dataset_uri, mode="append")
    opened.delete("true")
    opened.drop_columns(["v"])
    opened.add_columns({"v": "7"})
    first, last = (dataset(dataset_uri, version=version).snapshot.schema.field("v") for version in (2, 6))
    assert first.id == last.id  # no file has the old one any more
    query = Query(dataset_uri, read_change_feed=feed, starting_version="3", skip_changes=str(feed == "false").lower())
    assert rows_of(query, "id", "v") == [(2, None)]


def test_a_filter_tests_the_new_column_not_the_dropped_one(dataset_uri: str) -> None:
    opened = make(dataset_uri, {"id": [1], "v": ["old"]})
    opened.create_scalar_index("v", "BTREE")
    opened.drop_columns(["v"])
    opened.add_columns({"v": "'new'"})
    assert read(dataset_uri, "id", columns="id", filter="v = 'old'") == []
    assert read(dataset_uri, "id", columns="id", filter="v IS NULL") == [(1,)]


@FEED
def test_a_column_that_got_another_type_keeps_its_values(dataset_uri: str, feed: str) -> None:
    opened = make(dataset_uri, {"id": [1], "v": pa.array([12], pa.int32()), "s": [{"a": 5, "b": 6}]})
    opened.alter_columns({"path": "v", "data_type": pa.int64()})
    opened.add_columns({"later": "v"})
    assert read(dataset_uri, "v", "later", feed=feed) == [(12, None)]


@FEED
def test_columns_of_before_an_overwrite_are_known_by_name(dataset_uri: str, feed: str) -> None:
    make(dataset_uri, {"a": [1], "b": [10]})
    write_dataset(pa.table({"c": [200], "b": [20], "a": [2]}), dataset_uri, mode="overwrite")
    rows = read(dataset_uri, "a", "b", "c", feed=feed, **({} if feed == "true" else {"skip_changes": "true"}))
    assert rows == [(1, 10, None), (2, 20, 200)][: 2 if feed == "true" else 1]


@FEED
def test_a_stream_that_runs_while_its_columns_change_is_refused(dataset_uri: str, feed: str) -> None:
    make(dataset_uri, {"a": [1], "b": [10]})
    query = Query(dataset_uri, read_change_feed=feed, **FROM_THE_START)
    assert rows_of(query, "a", "b") == [(1, 10)]
    swap(dataset_uri, "a", "b")
    write_dataset(pa.table({"b": [2], "a": [20]}), dataset_uri, mode="append")
    read_so_far = query.offset
    with pytest.raises(InvalidInput, match="column 'a' of version 1, .* is called 'b' in version 5: load it again"):
        rows_of(query, "a", "b")
    query.restart()
    query.offset = read_so_far
    assert rows_of(query, "a", "b") == [(20, 2)]


def test_a_stream_that_runs_while_its_column_is_dropped_is_refused(dataset_uri: str) -> None:
    make(dataset_uri, {"a": [1], "b": [10]})
    query = Query(dataset_uri, **FROM_THE_START)
    assert rows_of(query, "a", "b") == [(1, 10)]
    dataset(dataset_uri).drop_columns(["b"])
    write_dataset(pa.table({"a": [2]}), dataset_uri, mode="append")
    with pytest.raises(InvalidInput, match="column 'b' of version 1, .* is not in version 3: load it again"):
        rows_of(query, "a")


def test_a_stream_outlives_the_version_that_it_was_loaded_from(dataset_uri: str) -> None:
    opened = make(dataset_uri, {"a": [1]})
    query = Query(dataset_uri)
    assert rows_of(query, "a") == [(1,)]
    write_dataset(pa.table({"a": [2]}), opened, mode="append").cleanup_old_versions(timedelta(0))
    query.reader = query.source.streamReader(query.schema)  # a second query over the frame
    assert rows_of(query, "a") == [(2,)]


def test_a_column_that_cannot_be_followed_back_says_what_to_do(dataset_uri: str) -> None:
    opened = make(dataset_uri, {"id": [1], "v": ["old"]})
    opened.tags.create("first", 1)
    opened.drop_columns(["v"])
    opened.add_columns({"v": "'new'"})
    dataset(dataset_uri).cleanup_old_versions(timedelta(0), error_if_tagged_old_versions=False)
    query = Query(dataset_uri, **FROM_THE_START)
    end = {**query.offset, "version": 2}
    with pytest.raises(VersionNotFound, match="start again with a new checkpoint"):
        query.values(query.offset, end)
