"""What `merge_insert` and `delete_by_keys` take as their source beside rows in memory."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.csv as pacsv
import pyarrow.parquet as pq
import pytest

import lance_ops
from lance_ops.api import merge_source as sources
from lance_ops.changing.merge_insert import by_tasks
from lance_ops.errors import DatasetNotFound, InvalidInput, RawFileRefused, SchemaMismatch, StoreError
from lance_ops.runners import InThreads
from lance_ops.store import Store
from tests.pickling_runner import PicklingRunner

STEPS = {f"merge ({step}) into" for step in ("keys", "join", "rows")}


def rows(*keys: int, value: int = 0) -> pa.Table:
    return pa.table({"id": keys, "v": [value + key for key in keys], "s": [f"{value}-{key}" for key in keys]})


@pytest.fixture
def dataset(dataset_uri: str) -> lance_ops.LanceDataset:
    return lance_ops.write_dataset(rows(*range(10)), dataset_uri, max_rows_per_file=4)


def values(dataset: lance_ops.LanceDataset) -> dict[int, tuple[int, str | None]]:
    return {row["id"]: (row["v"], row["s"]) for row in dataset.to_table().to_pylist()}


def upsert(dataset: lance_ops.LanceDataset) -> lance_ops.MergeInsertBuilder:
    return dataset.merge_insert("id").when_matched_update_all().when_not_matched_insert_all()


def folders(dataset: lance_ops.LanceDataset) -> list[str]:
    return [path.name for path in Path(dataset.uri, "data").iterdir() if path.is_dir()]


def test_raw_files_are_merged_by_path(dataset: lance_ops.LanceDataset, tmp_path: Path) -> None:
    pq.write_table(rows(2, 20, value=100), tmp_path / "a.parquet")
    pacsv.write_csv(rows(3, 30, value=100).select(["v", "id"]), tmp_path / "b.csv")
    runner = PicklingRunner()
    assert upsert(dataset).execute(tmp_path / "a.parquet")["num_updated_rows"] == 1
    result = upsert(dataset).execute([str(tmp_path / "b.csv")], runner=runner)
    assert result == {"num_inserted_rows": 1, "num_updated_rows": 1, "num_deleted_rows": 0}
    found = values(dataset)
    assert (found[2], found[20]) == ((102, "100-2"), (120, "100-20"))
    assert (found[3], found[30]) == ((103, "0-3"), (130, None))
    assert dict(runner.jobs).keys() == {"read the columns of", "ingest into", *STEPS}
    assert not folders(dataset)


@pytest.mark.parametrize(
    "keys",
    [
        *([2, 3, 70], (2, None, 3), {2, 3}, range(2, 4), [np.int64(2), 3]),
        *(np.array([2, 3]), pa.array([2, 3, 3]), pa.chunked_array([[2], [3]]), pd.Series([2, 3]), pl.Series([2, 3])),
    ],
    ids=lambda keys: type(keys).__name__,
)
def test_values_of_one_column_are_keys(dataset: lance_ops.LanceDataset, keys: Any) -> None:
    assert dataset.delete_by_keys(keys, "id") == {"num_deleted_rows": 2}
    assert not {2, 3} & values(dataset).keys()
    assert dataset.delete_by_keys([], "id") == {"num_deleted_rows": 0}


def test_texts_are_keys_in_an_array_and_structs_are_rows(dataset: lance_ops.LanceDataset) -> None:
    assert dataset.delete_by_keys(pa.array(["0-1", "0-2"]), "s") == {"num_deleted_rows": 2}
    assert dataset.delete_by_keys(pa.array([{"s": "0-3"}]), "s") == {"num_deleted_rows": 1}
    with pytest.raises(RawFileRefused, match="0-4"):
        dataset.delete_by_keys(["0-4"], "s")


@pytest.mark.parametrize(
    ("keys", "on", "message"),
    [
        ([(1, 2)], ["id", "v"], "no names, in a list: pass a table, or a list of dictionaries, with the columns id, v"),
        ([1, 2], ["id", "v"], "for keys of several: pass a table, .* with the columns id, v"),
        (iter([1]), "id", "no names, in a list_iterator: pass a table"),
        ([1, "a"], "id", "the list does not become Arrow data"),
    ],
)
def test_keys_without_names_say_what_to_pass(dataset: lance_ops.LanceDataset, keys: Any, on: Any, message: str) -> None:
    with pytest.raises((InvalidInput, SchemaMismatch), match=message):
        dataset.delete_by_keys(keys, on)
    assert dataset.version == 1


def test_a_relative_path_begins_in_the_caller_s_folder(
    dataset: lance_ops.LanceDataset, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    pq.write_table(rows(2, value=100), tmp_path / "a.parquet")
    monkeypatch.chdir(tmp_path)
    upsert(dataset).execute("a.parquet", runner=PicklingRunner(folder=elsewhere))
    assert values(dataset)[2] == (102, "100-2")


def test_struct_fields_that_a_file_lacks_keep_their_values(dataset_uri: str, tmp_path: Path) -> None:
    dataset = lance_ops.write_dataset(pa.table({"id": [1], "p": [{"x": 1, "y": 2}]}), dataset_uri)
    pq.write_table(pa.table({"id": [1], "p": [{"x": 10}]}), tmp_path / "a.parquet")
    dataset.merge_insert("id").when_matched_update_all().execute(str(tmp_path / "a.parquet"))
    assert dataset.to_table().to_pylist() == [{"id": 1, "p": {"x": 10, "y": 2}}]


def test_names_of_a_file_match_without_case_as_an_ingestion_matches_them(dataset_uri: str, tmp_path: Path) -> None:
    dataset = lance_ops.write_dataset(pa.table({"id": [1], "p": [{"x": 1, "y": 2}]}), dataset_uri)
    pq.write_table(pa.table({"ID": [1, 2], "P": [{"X": 10}] * 2}), tmp_path / "a.parquet")
    upsert(dataset).execute(str(tmp_path / "a.parquet"))
    assert dataset.to_table().to_pylist() == [{"id": 1, "p": {"x": 10, "y": 2}}, {"id": 2, "p": {"x": 10, "y": None}}]
    pq.write_table(pa.table({"ID": [1], "Id": [2]}), tmp_path / "twice.parquet")
    with pytest.raises(SchemaMismatch, match="column 'Id' is there twice: the table calls both 'id'"):
        upsert(dataset).execute(str(tmp_path / "twice.parquet"))


def test_a_list_whose_structs_lack_a_field_is_refused_where_it_would_replace_one(
    dataset_uri: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    dataset = lance_ops.write_dataset(pa.table({"id": [1], "l": [[{"x": 1, "y": 2}]]}), dataset_uri)
    part = pa.table({"id": [1, 2], "l": [[{"x": 10}]] * 2})
    pq.write_table(part, tmp_path / "a.parquet")
    stored = lance_ops.write_dataset(part, tmp_path / "s.lance")
    monkeypatch.setattr(sources, "_MANY_ROWS", 1)
    for source in (part, stored, stored.uri, str(tmp_path / "a.parquet")):
        for runner in (None, PicklingRunner()):
            with pytest.raises(SchemaMismatch, match="no field 'l.y', and nulls would replace its values"):
                upsert(dataset).execute(source, runner=runner)
    assert (dataset.latest_version, folders(dataset)) == (1, [])
    dataset.merge_insert("id").when_not_matched_insert_all().execute(part)
    assert dataset.to_table()["l"].to_pylist() == [[{"x": 1, "y": 2}], [{"x": 10, "y": None}]]


def test_a_dataset_by_path_is_merged_without_a_runner(dataset: lance_ops.LanceDataset, tmp_path: Path) -> None:
    lance_ops.write_dataset(rows(4, 40, value=100), tmp_path / "s.lance")
    assert upsert(dataset).execute(tmp_path / "s.lance")["num_inserted_rows"] == 1
    assert dataset.delete_by_keys(tmp_path / "s.lance", "id") == {"num_deleted_rows": 2}


def test_a_dataset_and_a_scanner_are_read_by_tasks_where_there_is_a_runner(
    dataset: lance_ops.LanceDataset, tmp_path: Path
) -> None:
    source = lance_ops.write_dataset(rows(4, 40, 41, value=100), tmp_path / "s.lance", max_rows_per_file=2)
    runner = PicklingRunner()
    assert upsert(dataset).execute(source, runner=runner)["num_inserted_rows"] == 2
    assert upsert(dataset).execute(source.scanner(["id", "v"], "id < 41"), runner=runner)["num_updated_rows"] == 2
    assert [verb for verb, _ in runner.jobs if verb in STEPS] == [
        f"merge ({s}) into" for s in ("keys", "join", "rows")
    ] * 2
    assert upsert(dataset).execute(str(tmp_path / "s.lance"), runner=InThreads())["num_updated_rows"] == 3
    assert values(dataset)[41] == (141, "100-41")
    with pytest.raises(DatasetNotFound):
        upsert(dataset).execute(str(tmp_path / "none.lance"))


@pytest.mark.parametrize(
    "options",
    [{"limit": 1}, {"columns": {"id": "id", "v": "v * 2"}}, {"order_by": ["v"]}],
    ids=["limited", "computed", "sorted"],
)
def test_a_scanner_of_other_than_stored_rows_is_read_in_memory(
    dataset: lance_ops.LanceDataset, tmp_path: Path, options: dict[str, Any]
) -> None:
    source = lance_ops.write_dataset(rows(4, 40, value=100), tmp_path / "s")
    runner = PicklingRunner()
    upsert(dataset).execute(source.scanner(**options), runner=runner)
    assert STEPS.isdisjoint(dict(runner.jobs))
    assert values(dataset)[4][0] == (208 if "columns" in options else 104)


def test_many_rows_in_memory_are_staged_for_a_cluster(
    dataset: lance_ops.LanceDataset, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sources, "_MANY_ROWS", 2)
    few, many, threads = PicklingRunner(), PicklingRunner(), InThreads()
    upsert(dataset).execute(rows(1, 50, value=100), runner=few)
    upsert(dataset).execute(rows(2, 51, 52, value=100), runner=many)
    upsert(dataset).execute(rows(3, 53, 54, value=100), runner=threads)
    assert STEPS.isdisjoint(dict(few.jobs))
    assert dict(many.jobs).keys() == STEPS
    assert {key for key, (value, _) in values(dataset).items() if value >= 100} == {1, 2, 3, *range(50, 55)}
    assert not folders(dataset)


def test_what_does_not_fit_is_named_and_leaves_no_file(dataset: lance_ops.LanceDataset, tmp_path: Path) -> None:
    pq.write_table(rows(1).append_column("z", pa.array([1])), tmp_path / "z.parquet")
    (tmp_path / "a.txt").write_text("1")
    before = sorted(Path(dataset.uri).rglob("*"))
    with pytest.raises(SchemaMismatch, match="z is not in the table"):
        upsert(dataset).execute(str(tmp_path / "z.parquet"))
    with pytest.raises(RawFileRefused, match="ending"):
        upsert(dataset).execute(str(tmp_path / "a.txt"))
    with pytest.raises(InvalidInput, match="schema"):
        upsert(dataset).execute(str(tmp_path / "z.parquet"), schema=pa.schema([("id", pa.int64())]))
    with pytest.raises(InvalidInput, match="match on"):
        dataset.delete_by_keys({"id": [1]}, [])
    with pytest.raises(InvalidInput, match="no column 'id'"):
        dataset.delete_by_keys({"key": [1]}, "id")
    assert sorted(Path(dataset.uri).rglob("*")) == before


def test_an_unknown_key_is_refused_before_a_task_reads_a_row_of_the_source(
    dataset: lance_ops.LanceDataset, tmp_path: Path
) -> None:
    pq.write_table(rows(1), tmp_path / "a.parquet")
    runner, before = PicklingRunner(), sorted(Path(dataset.uri).rglob("*"))
    merge = dataset.merge_insert("nope").when_not_matched_insert_all()
    for act in (
        merge.execute,
        merge.execute_uncommitted,
        lambda keys, runner: dataset.delete_by_keys(keys, "nope", runner=runner),
    ):
        with pytest.raises(InvalidInput, match="no column 'nope'.* id, v, s"):
            act(str(tmp_path / "a.parquet"), runner=runner)
    pq.write_table(rows(1).drop_columns("id"), tmp_path / "b.parquet")
    with pytest.raises(InvalidInput, match="the source has no column 'id', .* it has v, s"):
        upsert(dataset).execute([str(tmp_path / "b.parquet")], runner=runner)
    with pytest.raises(InvalidInput, match="changes nothing"):
        dataset.merge_insert("id").execute(str(tmp_path / "a.parquet"), runner=runner)
    assert {verb for verb, _ in runner.jobs} == {"read the columns of"}
    assert sorted(Path(dataset.uri).rglob("*")) == before


def test_rows_are_deleted_by_the_keys_of_any_source(dataset: lance_ops.LanceDataset, tmp_path: Path) -> None:
    keys = rows(2, 2, 77).append_column("other", pa.array([1, 2, 3]))
    pq.write_table(keys, tmp_path / "k.parquet")
    stored = lance_ops.write_dataset(pa.table({"id": [3, 4], "x": [1, 2]}), tmp_path / "k")
    assert dataset.delete_by_keys(str(tmp_path / "k.parquet"), "id") == {"num_deleted_rows": 1}
    assert dataset.delete_by_keys(stored, ["id"], runner=PicklingRunner()) == {"num_deleted_rows": 2}
    assert dataset.delete_by_keys(pa.table({"s": ["0-5", None], "id": [5, 6]}), ["id", "s"])["num_deleted_rows"] == 1
    assert dataset.delete_by_keys({"id": [99]}, "id") == {"num_deleted_rows": 0}
    assert (sorted(values(dataset)), dataset.version) == ([0, 1, 6, 7, 8, 9], 4)


def test_an_uncommitted_merge_of_a_dataset_is_committed_later(dataset: lance_ops.LanceDataset, tmp_path: Path) -> None:
    source = lance_ops.write_dataset(rows(4, 40, value=100), tmp_path / "s")
    transaction, result = upsert(dataset).execute_uncommitted(source, runner=PicklingRunner())
    assert (result["num_updated_rows"], dataset.latest_version) == (1, 1)
    made = lance_ops.LanceDataset.commit(dataset, transaction.operation, read_version=1)
    assert values(made)[40] == (140, "100-40")


def test_clean_up_finds_what_a_killed_merge_left(
    dataset: lance_ops.LanceDataset, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pq.write_table(rows(2, 20, value=100), tmp_path / "a.parquet")
    files = sum(path.is_file() for path in Path(dataset.uri, "data").rglob("*"))
    with monkeypatch.context() as killed:
        killed.setattr(Store, "clear", lambda store: None)
        killed.setattr(type(dataset.snapshot.store), "clear", lambda store: None)
        upsert(dataset).execute(str(tmp_path / "a.parquet"))
    left = [
        path for folder in folders(dataset) for path in Path(dataset.uri, "data", folder).rglob("*") if path.is_file()
    ]
    assert len(left) >= 4  # a staged manifest and data file, and files of two steps
    stats = dataset.cleanup_old_versions(timedelta(days=1), delete_unverified=True)
    assert stats.data_files_removed == len(left)
    assert not any(
        path.is_file() for folder in folders(dataset) for path in Path(dataset.uri, "data", folder).rglob("*")
    )
    assert sum(path.is_file() for path in Path(dataset.uri, "data").rglob("*")) == files + 1
    dataset.validate()


def test_a_merge_has_its_outcome_even_if_the_store_keeps_what_was_staged(
    dataset: lance_ops.LanceDataset, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def refuse(store: Store) -> None:
        raise StoreError(f"cannot list {store.uri}")

    monkeypatch.setattr(type(dataset.snapshot.store), "clear", refuse)
    pq.write_table(rows(2, 20, value=100), tmp_path / "a.parquet")
    result = upsert(dataset).execute(tmp_path / "a.parquet")
    assert (result["num_updated_rows"], values(dataset)[20]) == (1, (120, "100-20"))
    assert dataset.delete_by_keys([3], on="id", runner=PicklingRunner())["num_deleted_rows"] == 1
    left = folders(dataset)
    assert left and all(any(folder in record.getMessage() for record in caplog.records) for folder in left)
    assert {record.levelname for record in caplog.records} == {"WARNING"}

    def fail(*_: Any) -> None:
        raise ValueError("a task failed")

    monkeypatch.setattr("lance_ops.changing.merge_insert.by_tasks.merging.MergeWork.replace_rows", fail)
    with pytest.raises(ValueError, match="a task failed"):
        upsert(dataset).execute(tmp_path / "a.parquet")


def test_a_source_stays_staged_while_a_conflict_is_retried(
    dataset: lance_ops.LanceDataset, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pq.write_table(rows(2, 20, value=100), tmp_path / "a.parquet")
    staged: list[int] = []
    prepare = by_tasks.prepare_distributed_merge

    def racing(plan: Any, runner: Any) -> Any:
        if not staged:
            lance_ops.dataset(dataset.uri).delete("id = 2")
        staged.append(plan.snapshot.version)
        return prepare(plan, runner)

    monkeypatch.setattr("lance_ops.changing.merge_insert.by_tasks.merging.prepare_distributed_merge", racing)
    result = upsert(dataset).execute(str(tmp_path / "a.parquet"))
    assert staged == [1, 2]
    assert result == {"num_inserted_rows": 2, "num_updated_rows": 0, "num_deleted_rows": 0}
    assert values(dataset)[2] == (102, "100-2")


@pytest.mark.parametrize("runner", [None, PicklingRunner()], ids=["threads", "tasks"])
def test_rows_that_are_only_inserted_may_lack_a_field_of_a_struct_in_a_list(
    dataset_uri: str, tmp_path: Path, runner: PicklingRunner | None
) -> None:
    data = lance_ops.write_dataset(pa.table({"id": [1], "l": [[{"a": 1, "b": 2}]]}), dataset_uri)
    path = tmp_path / "new.parquet"
    pq.write_table(pa.table({"id": [1, 2], "l": [[{"a": 7}], [{"a": 8}]]}), path)
    with pytest.raises(SchemaMismatch, match="no field 'l.b'"):
        data.merge_insert("id").when_matched_update_all().execute(path, runner=runner)
    done = data.merge_insert("id").when_not_matched_insert_all().execute(path, runner=runner)
    assert done["num_inserted_rows"] == 1
    held = lance_ops.dataset(dataset_uri).to_table().sort_by("id")
    assert held["l"].to_pylist() == [[{"a": 1, "b": 2}], [{"a": 8, "b": None}]]
