"""Writes in tasks and on the driver without a Spark session: attempts, failures, replays."""

from __future__ import annotations

import pickle
from collections.abc import Callable
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyspark.sql.types import LongType, StructType

from lance_ops.api import dataset, write_dataset
from lance_ops.core.errors import (
    DatasetAlreadyExists,
    InvalidFilter,
    InvalidInput,
    RetryableConflict,
    SchemaMismatch,
    VersionNotFound,
)
from lance_ops.spark.data_source import (
    FragmentsWritten,
    LanceStreamWriter,
    LanceWriter,
    SourceOptions,
    WriteMode,
    WritePlan,
    plan_write,
)
from lance_ops.spark.partitioning import group_evenly

SCHEMA = pa.schema([("x", pa.int64())])


def plan(uri: str, mode: WriteMode = "append", *, batch: str | None = None, schema: pa.Schema = SCHEMA) -> WritePlan:
    return plan_write(SourceOptions.parse({"path": uri, **({"batch": batch} if batch else {})}), schema, mode)


def rows(*values: int) -> list[pa.RecordBatch]:
    return [pa.record_batch([pa.array(values, pa.int64())], schema=SCHEMA)]


def written(uri: str) -> list[int]:
    return sorted(dataset(uri).to_table().column("x").to_pylist())


def files(uri: str) -> set[str]:
    return {path.name for path in Path(uri, "data").iterdir()}


def named(message: FragmentsWritten) -> set[str]:
    return {file.path for fragment in message.fragments for file in fragment.files}


def test_of_two_attempts_at_a_task_only_the_reported_one_is_committed(dataset_uri: str) -> None:
    writer = LanceWriter(plan(dataset_uri))
    slow, quick = writer.write(iter(rows(1, 2))), writer.write(iter(rows(1, 2)))
    other = writer.write(iter(rows(3)))
    assert not named(slow) & named(quick)
    writer.commit([quick, other])
    assert written(dataset_uri) == [1, 2, 3]
    assert files(dataset_uri) == named(slow) | named(quick) | named(other)


def test_stable_row_ids_are_an_option_of_the_first_write(dataset_uri: str) -> None:
    options = SourceOptions.parse({"path": dataset_uri, "enable_stable_row_ids": "true"})
    for value in (1, 2):
        first = plan_write(options, SCHEMA)
        first.commit(first.write(rows(value)))
    assert dataset(dataset_uri).to_table(with_row_id=True).column("_rowid").to_pylist() == [0, 1]
    assert dataset(dataset_uri).has_stable_row_ids
    plain = SourceOptions.parse({"path": dataset_uri + "2"})
    plan_write(plain, SCHEMA).commit([])
    with pytest.raises(InvalidInput, match="created without stable row ids"):
        plan_write(replace(options, path=dataset_uri + "2"), SCHEMA)


@pytest.mark.parametrize("wrap", [lambda kind: kind, pa.list_, lambda kind: pa.map_(pa.string(), kind)])
def test_a_struct_without_all_fields_is_refused_before_a_task_starts(
    dataset_uri: str, wrap: Callable[[pa.DataType], pa.DataType]
) -> None:
    whole, part = pa.struct({"a": pa.int64(), "b": pa.int64()}), pa.struct({"a": pa.int64()})
    plan(dataset_uri, schema=pa.schema({"s": wrap(whole)})).commit([])
    with pytest.raises(SchemaMismatch, match=r"column 's.*' has fields a, not a, b: give each one, NULL where"):
        plan(dataset_uri, schema=pa.schema({"s": wrap(part)}))
    assert plan(dataset_uri, schema=pa.schema({"S": wrap(whole)})).schema.names == ["s"]


@pytest.mark.parametrize("mode", ["append", "overwrite", "create"])
def test_rows_without_a_column_are_refused_before_they_replace_or_make_a_table(
    dataset_uri: str, mode: WriteMode
) -> None:
    plan(dataset_uri).commit(plan(dataset_uri).write(rows(0)))
    for uri in (dataset_uri, dataset_uri + "2"):
        with pytest.raises(SchemaMismatch, match="the rows to write have no column"):
            plan(uri, mode, schema=pa.schema([]))
    assert not Path(dataset_uri + "2").exists()


def test_abort_after_a_failed_task_deletes_what_the_others_wrote(dataset_uri: str) -> None:
    plan(dataset_uri).commit(plan(dataset_uri).write(rows(0)))
    before = files(dataset_uri)
    writer = LanceWriter(plan(dataset_uri))
    message = writer.write(iter(rows(1)))
    writer.abort([message, None])
    assert files(dataset_uri) == before


def test_abort_without_task_reports_deletes_what_the_tasks_of_this_write_wrote(dataset_uri: str) -> None:
    other = LanceWriter(plan(dataset_uri)).write(iter(rows(0)))  # of another write, which is not committed yet
    writer = LanceWriter(plan(dataset_uri))
    in_task, in_abort = (pickle.loads(pickle.dumps(writer)) for _ in range(2))
    assert named(in_task.write(iter(rows(1)))) < files(dataset_uri)
    in_abort.abort([None, None])
    assert files(dataset_uri) == named(other)


def test_abort_of_a_micro_batch_deletes_what_reported_tasks_wrote(dataset_uri: str) -> None:
    options, schema = SourceOptions.parse({"path": dataset_uri}), StructType().add("x", LongType())
    in_task, in_abort = LanceStreamWriter(options, schema), LanceStreamWriter(options, schema)
    reported, lost = in_task.write(iter(rows(1))), in_task.write(iter(rows(2)))
    in_abort.abort([reported, None], 0)
    assert files(dataset_uri) == named(lost)


def test_abort_after_an_unknown_commit_outcome_deletes_nothing(dataset_uri: str) -> None:
    writer = LanceWriter(plan(dataset_uri))
    messages = [writer.write(iter(rows(1))), writer.write(iter(rows(2)))]
    writer.commit(messages)
    writer.abort(messages)  # as Spark does when the answer to the commit was lost
    assert written(dataset_uri) == [1, 2]


def test_a_task_that_fails_leaves_no_file(dataset_uri: str) -> None:
    plan(dataset_uri).commit(plan(dataset_uri).write(rows(0)))
    before = files(dataset_uri)
    wrong = pa.record_batch([pa.array(["text"])], names=["x"])
    with pytest.raises(SchemaMismatch, match="column 'x'"):
        plan(dataset_uri).write([*rows(1), wrong])
    assert files(dataset_uri) == before


def test_a_column_that_does_not_fit_is_refused_before_any_task(dataset_uri: str) -> None:
    plan(dataset_uri).commit(plan(dataset_uri).write(rows(0)))
    with pytest.raises(SchemaMismatch, match="column 'x'"):
        plan(dataset_uri, schema=pa.schema([("x", pa.string())]))


def test_names_are_matched_without_case_unless_the_session_says_otherwise(dataset_uri: str) -> None:
    write_dataset(pa.table({"Key": [1], "s": [{"a": 1, "b": 2}]}), dataset_uri)
    schema = pa.schema([("KEY", pa.int64()), ("S", pa.struct([("A", pa.int64()), ("B", pa.int64())]))])
    batch = pa.record_batch([pa.array([3]), pa.array([{"A": 4, "B": 5}])], schema=schema)
    modes: tuple[WriteMode, ...] = ("append", "overwrite")
    for mode in modes:
        new = plan(dataset_uri, mode, schema=schema)
        new.commit(new.write([batch]))
        table = dataset(dataset_uri).to_table()
        assert table.column_names == ["Key", "s"]
        assert table.to_pylist()[-1] == {"Key": 3, "s": {"a": 4, "b": 5}}
    assert table.num_rows == 1
    with pytest.raises(SchemaMismatch, match="'KEY' is not in the table"):
        plan_write(SourceOptions.parse({"path": dataset_uri, "case_sensitive": "true"}), schema)
    with pytest.raises(SchemaMismatch, match="'KEY' is there twice: the table calls both 'Key'"):
        plan(dataset_uri, schema=pa.schema([("Key", pa.int64()), ("KEY", pa.int64())]))


def test_a_batch_committed_concurrently_turns_this_write_into_a_replay(dataset_uri: str) -> None:
    plan(dataset_uri).commit(plan(dataset_uri).write(rows(0)))
    ours, theirs = plan(dataset_uri, batch="day"), plan(dataset_uri, batch="day")
    fragments = ours.write(rows(1))
    assert theirs.commit(theirs.write(rows(1))) == 2
    assert ours.commit(fragments) is None
    assert written(dataset_uri) == [0, 1]


def test_a_batch_with_new_columns_that_was_committed_concurrently_turns_this_write_into_a_replay(
    dataset_uri: str,
) -> None:
    write_dataset(pa.table({"x": [0]}), dataset_uri)
    options = SourceOptions.parse({"path": dataset_uri, "batch": "day", "schema_mode": "add"})
    table = pa.table({"x": [1], "y": [2]})
    ours, theirs = plan_write(options, table.schema), plan_write(options, table.schema)
    fragments = ours.write(table.to_batches())
    assert theirs.commit(theirs.write(table.to_batches())) == 3
    assert ours.commit(fragments) is None
    assert written(dataset_uri) == [0, 1]
    assert {file.path for fragment in fragments for file in fragment.files}.isdisjoint(files(dataset_uri))


def test_a_replay_writes_and_commits_nothing(dataset_uri: str) -> None:
    first = plan(dataset_uri, batch="day")
    first.commit(first.write(rows(1)))
    modes: tuple[WriteMode, ...] = ("append", "overwrite", "create")
    for mode in modes:
        again = plan(dataset_uri, mode, batch="day")
        assert again.write(rows(1)) == []
        assert again.commit([]) is None
    assert written(dataset_uri) == [1]


def test_a_replay_does_nothing_to_a_table_whose_columns_have_changed(dataset_uri: str) -> None:
    first = plan(dataset_uri, batch="day")
    first.commit(first.write(rows(1)))
    dataset(dataset_uri).alter_columns({"path": "x", "name": "y"})
    assert plan(dataset_uri, batch="day").done


def test_of_two_that_create_a_table_with_one_batch_the_later_is_the_replay(dataset_uri: str) -> None:
    ours, theirs = plan(dataset_uri, "create", batch="day"), plan(dataset_uri, "create", batch="day")
    fragments = ours.write(rows(1))
    assert theirs.commit(theirs.write(rows(1))) == 1
    assert ours.commit(fragments) is None
    other = plan(dataset_uri + "2", "create", batch="other")
    fragments = other.write(rows(2))
    write_dataset(pa.table({"x": [1]}), dataset_uri + "2")
    with pytest.raises(DatasetAlreadyExists):
        other.commit(fragments)
    for uri in (dataset_uri, dataset_uri + "2"):
        assert (written(uri), len(files(uri))) == ([1], 1)


def test_a_relative_path_is_one_of_the_process_that_plans(
    dataset_uri: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(Path(dataset_uri).parent)
    ours = plan(Path(dataset_uri).name)
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    monkeypatch.chdir(elsewhere)  # as in a worker
    assert ours.commit(ours.write(rows(1))) == 1
    assert written(dataset_uri) == [1]
    assert not list(elsewhere.iterdir())


def test_a_stream_is_named_by_query_and_a_frame_by_batch(dataset_uri: str) -> None:
    schema = StructType().add("x", LongType())
    with pytest.raises(InvalidInput, match="'query' is for a stream"):
        LanceWriter.planned(SourceOptions.parse({"path": dataset_uri, "query": "q"}), schema, overwrite=False)
    with pytest.raises(InvalidInput, match="'batch' is for the write of a DataFrame"):
        LanceStreamWriter(SourceOptions.parse({"path": dataset_uri, "batch": "day"}), schema)
    writer = LanceStreamWriter(SourceOptions.parse({"path": dataset_uri, "query": "q"}), schema)
    messages = [writer.write(iter(rows(1)))]
    for _ in range(2):  # Spark repeats a micro-batch after a restart
        writer.commit(messages, 0)
    assert (written(dataset_uri), dataset(dataset_uri).version) == ([1], 1)


def test_a_batch_name_that_raw_files_had_is_refused(dataset_uri: str) -> None:
    write_dataset(pa.table({"x": [1]}), dataset_uri, transaction_properties={"lance_ops.batch.day": "hash of files"})
    with pytest.raises(InvalidInput, match="batch 'day' was ingested from raw files in version 1"):
        plan(dataset_uri, batch="day")


def test_two_first_appends_at_once_both_land(dataset_uri: str) -> None:
    ours, theirs = plan(dataset_uri), plan(dataset_uri)
    fragments = ours.write(rows(1))
    assert theirs.commit(theirs.write(rows(0))) == 1
    assert ours.commit(fragments) == 2
    assert written(dataset_uri) == [0, 1]


def test_of_two_first_overwrites_at_once_the_later_one_stands(dataset_uri: str) -> None:
    ours, theirs = plan(dataset_uri, "overwrite"), plan(dataset_uri, "overwrite")
    fragments = ours.write(rows(1))
    theirs.commit(theirs.write(rows(0)))
    assert ours.commit(fragments) == 2
    assert written(dataset_uri) == [1]


def test_a_first_append_to_a_table_of_other_columns_leaves_no_file(dataset_uri: str) -> None:
    ours = plan(dataset_uri)
    fragments = ours.write(rows(1))
    made = write_dataset(pa.table({"x": ["text"]}), dataset_uri)
    with pytest.raises(SchemaMismatch, match="another writer created the table meanwhile"):
        ours.commit(fragments)
    assert files(dataset_uri) == {file.path for fragment in made.snapshot.fragments for file in fragment.files}


def test_of_two_first_writes_of_one_batch_one_lands(dataset_uri: str) -> None:
    ours, theirs = plan(dataset_uri, batch="day"), plan(dataset_uri, batch="day")
    fragments = ours.write(rows(1))
    theirs.commit(theirs.write(rows(1)))
    assert ours.commit(fragments) is None
    assert written(dataset_uri) == [1]
    assert len(files(dataset_uri)) == 1


# -- replacing the rows that match a condition ------------------------------------------------------------------------


def replacement(uri: str, condition: str) -> WritePlan:
    return plan_write(SourceOptions.parse({"path": uri, "replaceWhere": condition}), SCHEMA, "overwrite")


def test_only_rows_that_match_are_replaced_in_one_version(dataset_uri: str) -> None:
    write_dataset(pa.table({"x": range(10)}), dataset_uri, max_rows_per_file=4)
    new = replacement(dataset_uri, "X >= 5")
    assert new.commit(new.write(rows(7, 70))) == 2
    assert written(dataset_uri) == [0, 1, 2, 3, 4, 7, 70]
    assert dataset(dataset_uri).schema == dataset(dataset_uri, 1).schema
    none = replacement(dataset_uri, "x > 6")
    assert none.commit(none.write([])) == 3
    assert written(dataset_uri) == [0, 1, 2, 3, 4]
    assert replacement(dataset_uri, "x > 6").commit([]) == 3  # nothing to delete and nothing to add


def test_a_replacement_finds_its_rows_in_the_newest_version(dataset_uri: str) -> None:
    write_dataset(pa.table({"x": range(4)}), dataset_uri)
    new = replacement(dataset_uri, "x >= 2")
    fragments = new.write(rows(9))
    dataset(dataset_uri).delete("x = 3")
    assert new.commit(fragments) == 3
    assert written(dataset_uri) == [0, 1, 9]


def test_of_two_replacements_of_one_condition_the_later_one_stands(dataset_uri: str) -> None:
    write_dataset(pa.table({"x": [1]}), dataset_uri)
    ours, theirs = replacement(dataset_uri, "x >= 2"), replacement(dataset_uri, "x >= 2")
    fragments = ours.write(rows(3))
    theirs.commit(theirs.write(rows(2)))
    assert ours.commit(fragments) == 3
    assert written(dataset_uri) == [1, 3]


def test_a_replacement_in_no_table_creates_it(dataset_uri: str) -> None:
    ours, theirs = replacement(dataset_uri, "x > 0"), replacement(dataset_uri, "x > 0")
    fragments = ours.write(rows(1))
    theirs.commit(theirs.write(rows(2)))
    ours.commit(fragments)
    assert written(dataset_uri) == [1]


def test_a_row_that_the_condition_does_not_name_is_refused(dataset_uri: str) -> None:
    write_dataset(pa.table({"x": [1, 2]}), dataset_uri)
    before = files(dataset_uri)
    with pytest.raises(InvalidInput, match=r"'replaceWhere': 1 rows to write do not match 'x > 1': \{'x': 1\}"):
        replacement(dataset_uri, "x > 1").write(rows(2, 1))
    assert files(dataset_uri) == before
    with pytest.raises(InvalidFilter):
        replacement(dataset_uri, "nope = 1")


def test_a_schema_that_changes_during_a_replacement_ends_it_without_a_file(dataset_uri: str) -> None:
    write_dataset(pa.table({"x": [1, 2]}), dataset_uri)
    new = replacement(dataset_uri, "x = 1")
    fragments = new.write(rows(1))
    before = files(dataset_uri) - {file.path for fragment in fragments for file in fragment.files}
    dataset(dataset_uri).add_columns({"y": "x + 1"})
    with pytest.raises(RetryableConflict, match="schema changed after the rows were written: write them again"):
        new.commit(fragments)
    assert {file.path for fragment in fragments for file in fragment.files}.isdisjoint(files(dataset_uri))
    assert before <= files(dataset_uri)


def test_a_replacement_is_an_overwrite_and_needs_no_batch(dataset_uri: str) -> None:
    with pytest.raises(InvalidInput, match="give it with mode 'overwrite'"):
        plan_write(SourceOptions.parse({"path": dataset_uri, "replace_where": "x = 1"}), SCHEMA)
    with pytest.raises(InvalidInput, match="'batch' and 'replaceWhere' contradict each other"):
        SourceOptions.parse({"path": dataset_uri, "replaceWhere": "x = 1", "batch": "day"})


def test_an_append_to_a_version_that_was_cleaned_up_leaves_no_file(dataset_uri: str) -> None:
    plan(dataset_uri).commit(plan(dataset_uri).write(rows(0)))
    ours = plan(dataset_uri)
    fragments = ours.write(rows(1))
    newest = write_dataset(pa.table({"x": [2]}), dataset_uri, mode="overwrite")
    newest.cleanup_old_versions(timedelta(0))
    with pytest.raises(VersionNotFound):
        ours.commit(fragments)
    assert files(dataset_uri) == {file.path for fragment in newest.snapshot.fragments for file in fragment.files}


def test_an_append_commits_after_concurrent_transactions(dataset_uri: str) -> None:
    plan(dataset_uri).commit(plan(dataset_uri).write(rows(0)))
    ours = plan(dataset_uri)
    fragments = ours.write(rows(1))
    dataset(dataset_uri).delete("x = 0")
    ours.commit(fragments)
    assert written(dataset_uri) == [1]


@given(st.lists(st.integers(1, 1000), min_size=1, max_size=40), st.integers(1, 12))
def test_fragments_are_grouped_in_order_without_loss(counts: list[int], num_groups: int) -> None:
    sizes = dict(enumerate(counts))
    groups = group_evenly(sizes, num_groups)
    assert [fragment for group in groups for fragment in group] == list(sizes)
    assert len(groups) <= num_groups and all(groups)
    fair = sum(counts) / num_groups
    assert max(sum(sizes[fragment] for fragment in group) for group in groups) <= fair + max(counts)


def test_no_fragments_make_no_groups() -> None:
    assert group_evenly({}, 4) == []


def test_an_overwrite_of_a_legacy_table_merges_the_dictionaries_of_its_tasks(
    dataset_uri: str,
) -> None:
    column = pa.array(["a", "b"]).dictionary_encode()
    write_dataset(pa.table({"c": column}), dataset_uri, data_storage_version="0.1")
    schema = pa.schema([("c", pa.string())])
    new = plan(dataset_uri, "overwrite", schema=schema)
    tasks = [new.write([pa.record_batch([pa.array(words)], schema=schema)]) for words in (["z", "a"], ["a", "q"])]
    new.commit([fragment for task in tasks for fragment in task])
    found = dataset(dataset_uri).to_table().column("c")
    assert found.type == column.type
    assert found.to_pylist() == ["z", "a", "a", "q"]
    assert files(dataset_uri) >= {
        file.path for part in dataset(dataset_uri).get_fragments() for file in part.data_files()
    }
    assert len(files(dataset_uri)) == 3
