from __future__ import annotations

import sqlite3
from collections.abc import Callable
from contextlib import closing, nullcontext
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest

import lance_ops
from lance_ops import LanceOperation
from lance_ops.errors import (
    CorruptFile,
    IncompatibleTransaction,
    InvalidFilter,
    InvalidInput,
    RetryableConflict,
    SchemaMismatch,
    StoreError,
    UnsupportedFeature,
)
from lance_ops.transactions import TOKEN
from tests.pickling_runner import PicklingRunner

Dataset = lance_ops.LanceDataset
KEPT = [0, 1, 3, 4, 5, 7, 8]


def rows(start: int, stop: int) -> pa.Table:
    keys = range(start, stop)
    return pa.table(
        {
            "id": pa.array(keys, pa.int32()),
            "v": pa.array([i / 2 for i in keys]),
            "p": pa.array([{"x": i, "y": f"y{i}"} if i % 4 else None for i in keys]),
        }
    )


@pytest.fixture
def dataset(dataset_uri: str) -> Dataset:
    """Three fragments of three rows. The first lacks its last row, the third its first row."""
    made = lance_ops.write_dataset(rows(0, 9), dataset_uri, max_rows_per_file=3)
    made.delete("id IN (2, 6)")
    return made


def files(dataset: Dataset, folder: str = "data") -> set[Path]:
    return set(Path(dataset.uri, folder).rglob("*"))


def everything(dataset: Dataset) -> set[Path]:
    return {path for path in Path(dataset.uri).rglob("*") if path.is_file()}


# -- adding ---------------------------------------------------------------------------------------------------------


def test_computed_columns_get_a_file_of_their_own_a_fragment_and_nothing_else_is_written(dataset: Dataset) -> None:
    before = files(dataset)
    dataset.add_columns({"w": "v * 2 + id", "k": "id + 1", "t": "CASE WHEN p IS NULL THEN 'none' ELSE p.y END"})

    assert len(files(dataset) - before) == 3
    assert before <= files(dataset)
    table = dataset.to_table(columns=["w", "k", "t"])
    assert table["w"].to_pylist() == [2.0 * i for i in KEPT]
    assert table["k"].to_pylist() == [i + 1 for i in KEPT]
    assert table["t"].to_pylist() == [f"y{i}" if i % 4 else "none" for i in KEPT]
    assert table.schema.field("k").type == pa.int32()
    assert [len(fragment.data_files()) for fragment in dataset.get_fragments()] == [2, 2, 2]
    assert dataset.take([5])["k"].to_pylist() == [8]
    dataset.validate()


def test_a_backfilled_row_that_is_deleted_takes_its_place_and_holds_null(dataset: Dataset) -> None:
    dataset.add_columns({"w": "id"})
    table = dataset.to_table(columns=["id", "w"], with_row_id=True, include_deleted_rows=True)
    assert table["w"].to_pylist() == [0, 1, None, 3, 4, 5, None, 7, 8]
    assert table["id"].to_pylist() == list(range(9))


def test_a_function_makes_columns_of_the_batches_it_asks_for(dataset: Dataset) -> None:
    seen: list[tuple[int, list[str]]] = []

    @lance_ops.batch_udf(output_schema=pa.schema([pa.field("n", pa.int64(), nullable=False)]))
    def numbered(batch: pa.RecordBatch) -> pa.RecordBatch:
        seen.append((batch.num_rows, batch.schema.names))
        return pa.record_batch([pc.add(batch["_rowaddr"].cast(pa.int64()), 1)], names=["n"])

    dataset.add_columns(numbered, read_columns=["id", "_rowaddr"], batch_size=2)
    assert seen == [(2, ["id", "_rowaddr"]), (2, ["id", "_rowaddr"]), (1, ["id", "_rowaddr"]), (2, ["id", "_rowaddr"])]
    addresses = [0, 1, *((1 << 32) + i for i in range(3)), *((2 << 32) + i for i in (1, 2))]
    assert dataset.to_table(columns=["n"])["n"].to_pylist() == [address + 1 for address in addresses]
    assert not dataset.schema.field("n").nullable
    dataset.validate()


def test_a_plain_function_tells_its_schema_by_the_first_row(dataset: Dataset) -> None:
    dataset.add_columns(lambda batch: batch.to_pandas()[["v"]].rename(columns={"v": "copy"}), read_columns=["v"])
    assert dataset.to_table()["copy"].to_pylist() == [i / 2 for i in KEPT]


def test_a_function_that_fails_half_way_goes_on_from_its_checkpoint(dataset: Dataset, tmp_path: Path) -> None:
    checkpoint = tmp_path / "results"
    calls: list[int] = []
    before = everything(dataset)

    @lance_ops.batch_udf(pa.schema({"n": pa.int64()}), checkpoint_file=checkpoint)
    def slow(batch: pa.RecordBatch) -> pa.RecordBatch:
        calls.append(batch["id"][0].as_py())
        if len(calls) == 2:
            raise RuntimeError("the machine went away")
        return pa.record_batch([batch["id"].cast(pa.int64())], names=["n"])

    with pytest.raises(RuntimeError):
        dataset.add_columns(slow, read_columns=["id"])
    assert everything(dataset) == before
    assert checkpoint.exists()
    done = set(calls) - {calls[1]}
    dataset.add_columns(slow, read_columns=["id"])
    assert calls.count(next(iter(done))) == 1
    assert dataset.to_table()["n"].to_pylist() == KEPT
    assert not checkpoint.exists()


@pytest.mark.parametrize(
    ("damage", "error"),
    [("other bytes", CorruptFile), ("a damaged result", CorruptFile), ("a folder", StoreError)],
)
def test_a_checkpoint_that_cannot_be_used_is_an_error_that_names_it(
    dataset: Dataset, tmp_path: Path, damage: str, error: type[Exception]
) -> None:
    checkpoint = tmp_path / "results"
    calls: list[int] = []

    @lance_ops.batch_udf(pa.schema({"n": pa.int64()}), checkpoint_file=checkpoint)
    def numbers(batch: pa.RecordBatch) -> pa.RecordBatch:
        calls.append(batch.num_rows)
        if len(calls) == 2 and damage == "a damaged result":
            raise RuntimeError("the machine went away")
        return pa.record_batch([batch["id"].cast(pa.int64())], names=["n"])

    if damage == "a folder":
        checkpoint.mkdir()
    elif damage == "other bytes":
        checkpoint.write_bytes(b"other bytes" * 100)
    else:
        with pytest.raises(RuntimeError):
            dataset.add_columns(numbers, read_columns=["id"])
        with closing(sqlite3.connect(checkpoint)) as connection, connection:
            connection.execute("UPDATE batches SET result = x'0011'")
    before = everything(dataset)
    with pytest.raises(error, match=str(checkpoint)):
        dataset.add_columns(numbers, read_columns=["id"])
    assert everything(dataset) == before


def test_a_stream_has_a_row_for_each_live_row(dataset: Dataset) -> None:
    before = everything(dataset)
    for count, message in ((6, "ended 1 rows"), (8, "more rows")):
        with pytest.raises(InvalidInput, match=message):
            dataset.add_columns(pa.table({"r": range(count)}))
    assert everything(dataset) == before
    batches = pa.table({"r": range(7)}).to_batches(max_chunksize=2)
    dataset.add_columns(pa.RecordBatchReader.from_batches(batches[0].schema, batches))
    assert dataset.to_table()["r"].to_pylist() == list(range(7))
    dataset.validate()


def test_expressions_that_are_null_write_no_file(dataset: Dataset) -> None:
    before = [fragment.data_files() for fragment in dataset.get_fragments()]
    dataset.add_columns({"n": "CAST(NULL AS INT)", "t": "CAST(NULL AS STRING)"})
    assert [fragment.data_files() for fragment in dataset.get_fragments()] == before
    assert dataset.schema.field("n") == pa.field("n", pa.int32())
    assert dataset.schema.field("t") == pa.field("t", pa.string())
    assert dataset.to_table(columns=["n", "t"]).to_pylist() == [{"n": None, "t": None}] * len(KEPT)
    dataset.add_columns({"m": "CAST(NULL AS INT)", "w": "id + 1"})
    assert [len(fragment.data_files()) for fragment in dataset.get_fragments()] == [len(files) + 1 for files in before]
    assert dataset.to_table()["w"].to_pylist() == [key + 1 for key in KEPT]
    with pytest.raises(InvalidInput, match="batch_size must be positive"):
        dataset.add_columns({"k": "CAST(NULL AS INT)"}, batch_size=0)


def test_adding_fields_without_values_is_null_and_writes_no_file(dataset: Dataset) -> None:
    before = files(dataset)
    dataset.add_columns(pa.field("z", pa.int32()))
    dataset.add_columns([pa.field("a", pa.list_(pa.string())), pa.field("b", pa.date32())])
    dataset.add_columns(pa.schema([pa.field("p", pa.struct([pa.field("deep", pa.int8())]))]))
    assert files(dataset) == before
    assert dataset.to_table().to_pylist()[1] == {
        "id": 1,
        "v": 0.5,
        "z": None,
        "a": None,
        "b": None,
        "p": {"x": 1, "y": "y1", "deep": None},
    }
    assert dataset.to_table().to_pylist()[0]["p"] is None
    dataset.validate()


def test_merge_joins_columns_by_key(dataset: Dataset) -> None:
    dataset.merge(pa.table({"k": [8, 1, 99, 1], "m": ["eight", "old", "?", "one"]}), "id", "k")
    assert dataset.to_table(columns=["m"])["m"].to_pylist() == [None, "one", *[None] * 4, "eight"]


def test_a_field_id_that_some_file_uses_is_not_reused(dataset: Dataset) -> None:
    assert dataset.max_field_id == 4
    dataset.add_columns({"w": "id"})
    dataset.drop_columns(["w"])
    assert dataset.max_field_id == 4
    dataset.drop_columns(["p.y"])
    assert dataset.max_field_id == 4
    dataset.add_columns({"y": "'new'"})
    assert dataset.max_field_id == 5
    assert set(dataset.to_table()["y"].to_pylist()) == {"new"}
    dataset.validate()


@pytest.mark.parametrize(
    ("transforms", "error", "message"),
    [
        ({"v": "1"}, InvalidInput, "'v' exists already"),
        ({"a.b": "1"}, InvalidInput, "has a dot"),
        ({"w": "nope"}, InvalidFilter, "'nope'"),
        ({"w": "10 / (id - 3)"}, InvalidInput, "divide by zero"),
        (pa.field("z", pa.int32(), nullable=False), InvalidInput, "allows no nulls"),
        (lambda batch: pa.record_batch([[1]], names=["n"]), SchemaMismatch, "1 rows for a batch of 2"),
        (lambda batch: 7, SchemaMismatch, "returned a int"),
        (7, InvalidInput, "value of type int is no data"),
    ],
)
def test_columns_that_cannot_be_added_leave_nothing(
    dataset: Dataset, transforms: Any, error: type[Exception], message: str
) -> None:
    before = everything(dataset)
    with pytest.raises(error, match=message):
        dataset.add_columns(transforms)
    assert everything(dataset) == before


# -- altering -------------------------------------------------------------------------------------------------------


def test_drops_and_renames_write_no_data_and_keep_indices_of_what_stays(dataset: Dataset) -> None:
    dataset.create_scalar_index("id", "BTREE")
    dataset.create_scalar_index("v", "BTREE")
    before = files(dataset)
    dataset.alter_columns({"path": "id", "name": "key"}, {"path": "p.y", "name": "label"})
    dataset.drop_columns(["v", "p.x"])
    assert files(dataset) == before
    assert dataset.to_table().to_pylist()[1] == {"key": 1, "p": {"label": "y1"}}
    assert [index["name"] for index in dataset.list_indices()] == ["id_idx"]
    assert "ScalarIndexQuery" in dataset.scanner(filter="key = 5").explain_plan()
    assert dataset.to_table(filter="key = 5")["key"].to_pylist() == [5]
    transaction = dataset.read_transaction(dataset.version)
    assert transaction is not None
    assert transaction.operation == LanceOperation.Project(dataset.lance_schema, preserves_nullability=True)
    dataset.drop_columns(["p"])
    assert dataset.schema.names == ["key"]
    dataset.validate()


def test_a_cast_makes_a_new_field_in_new_files_and_drops_its_index(dataset: Dataset) -> None:
    dataset.create_scalar_index("id", "BTREE")
    old = files(dataset)
    dataset.alter_columns(
        {"path": "id", "data_type": pa.int64(), "name": "key"}, {"path": "p.x", "data_type": pa.int16()}
    )
    assert len(files(dataset) - old) == 3
    assert dataset.schema.field("key").type == pa.int64()
    assert dataset.schema.names == ["key", "v", "p"]
    assert dataset.to_table()["p"].to_pylist() == [{"x": i, "y": f"y{i}"} if i % 4 else None for i in KEPT]
    assert dataset.to_table(filter="key > 4 AND p.x < 8")["key"].to_pylist() == [5, 7]
    assert dataset.list_indices() == []
    (first, *_) = dataset.get_fragments()
    assert [file.fields for file in first.data_files()] == [(0, 1, 3, 4), (5, 6)]
    transaction = dataset.read_transaction(dataset.version)
    assert transaction is not None
    assert isinstance(transaction.operation, LanceOperation.Merge)
    dataset.validate()


def test_a_file_whose_every_column_was_cast_leaves_its_fragment(dataset_uri: str) -> None:
    dataset = lance_ops.write_dataset(pa.table({"a": [1, 2], "b": [1.5, None]}), dataset_uri)
    dataset.alter_columns({"path": "a", "data_type": pa.int8()}, {"path": "b", "data_type": pa.float32()})
    (fragment,) = dataset.get_fragments()
    assert [file.fields for file in fragment.data_files()] == [(2, 3)]
    assert dataset.to_table() == pa.table({"a": pa.array([1, 2], pa.int8()), "b": pa.array([1.5, None], pa.float32())})


def test_nulls_are_forbidden_only_where_no_live_row_has_one(dataset: Dataset) -> None:
    dataset.alter_columns({"path": "v", "nullable": False}, {"path": "p.x", "nullable": False})
    assert not dataset.schema.field("v").nullable
    with pytest.raises(InvalidInput, match="'p' holds nulls"):
        dataset.alter_columns({"path": "p", "nullable": False})
    dataset.alter_columns({"path": "v", "nullable": True})
    dataset.update({"v": "NULL"}, "id = 3")
    runner = PicklingRunner()
    with pytest.raises(InvalidInput, match="'v' holds nulls"):
        dataset.alter_columns({"path": "v", "nullable": False}, runner=runner)
    assert [verb for verb, _ in runner.jobs] == ["look for nulls in"]
    dataset.validate()


@pytest.mark.parametrize(
    ("alterations", "message"),
    [
        ([{"path": "v"}], "name, nullable or data_type"),
        ([{"path": "v", "kind": 1}], "kind"),
        ([{"path": "nope", "name": "x"}], "'nope'"),
        ([{"path": "v", "name": "id"}], "called 'id'"),
        ([{"path": "v", "name": "a.b"}], "choose another name"),
        ([{"path": "v", "data_type": pa.int64()}], "cannot be cast"),
        ([{"path": "p.y", "data_type": pa.int64()}], "cannot be cast"),
        ([{"path": "p.x", "data_type": pa.int32()}, {"path": "v", "nullable": False}], "cast first"),
    ],
)
def test_alterations_that_make_no_sense_are_refused(dataset: Dataset, alterations: list[Any], message: str) -> None:
    with pytest.raises(InvalidInput, match=message):
        dataset.alter_columns(*alterations)
    assert dataset.version == 2


def test_a_value_that_does_not_fit_stops_a_cast_and_leaves_nothing(dataset: Dataset) -> None:
    dataset.update({"id": "300"}, "id = 8")
    before = everything(dataset)
    with pytest.raises(InvalidInput, match="'id' does not fit int8"):
        dataset.alter_columns({"path": "id", "data_type": pa.int8()})
    assert everything(dataset) == before
    with pytest.raises(InvalidInput, match="at least one"):
        dataset.drop_columns(["id", "v", "p"])


@pytest.mark.parametrize("version", ["0.1", "2.0"])
def test_files_are_added_to_tables_of_old_versions_but_in_2_0_not_inside_of_structs(
    dataset_uri: str, version: str
) -> None:
    table = pa.table({"a": [1], "p": [{"x": 1, "y": 2}]})
    dataset = lance_ops.write_dataset(table, dataset_uri, data_storage_version=version)
    dataset.add_columns({"b": "a"})
    with pytest.raises(UnsupportedFeature, match="'p': .* file version 2.0") if version == "2.0" else nullcontext():
        dataset.alter_columns({"path": "p.x", "data_type": pa.int8()})
    dataset.add_columns(pa.field("z", pa.int8()))
    dataset.drop_columns(["a"])
    assert dataset.to_table().to_pylist() == [{"p": {"x": 1, "y": 2}, "b": 1, "z": None}]


# -- beside other writers -------------------------------------------------------------------------------------------


CHANGES: dict[str, Callable[[Dataset], object]] = {
    "add": lambda dataset: dataset.add_columns({"w": "id * 2"}),
    "cast": lambda dataset: dataset.alter_columns({"path": "v", "data_type": pa.float32()}),
    "merge": lambda dataset: dataset.merge(pa.table({"id": pa.array([1], pa.int32()), "w": [2]}), "id"),
}


@pytest.mark.parametrize("change", CHANGES)
def test_a_change_is_planned_again_for_rows_that_came_or_went_meanwhile(dataset: Dataset, change: str) -> None:
    late = lance_ops.dataset(dataset.uri)
    lance_ops.write_dataset(rows(20, 22), dataset, mode="append")
    lance_ops.dataset(dataset.uri).delete("id = 4")
    before = files(late)
    CHANGES[change](late)
    assert late.to_table()["id"].to_pylist() == [0, 1, 3, 5, 7, 8, 20, 21]
    assert len(files(late) - before) == 4  # one file for each fragment: the files of the losing attempt are removed
    late.validate()


def test_a_stream_is_read_once_so_a_conflict_is_an_error_that_leaves_nothing(dataset: Dataset) -> None:
    late = lance_ops.dataset(dataset.uri)
    lance_ops.write_dataset(rows(20, 22), dataset, mode="append")
    before = everything(dataset)
    with pytest.raises(RetryableConflict):
        late.add_columns(pa.table({"r": range(7)}))
    assert everything(dataset) == before


def test_a_replay_under_the_same_token_is_done_once(dataset: Dataset) -> None:
    again = lance_ops.dataset(dataset.uri)
    token = {TOKEN: "add w"}
    dataset.add_columns({"w": "id"}, transaction_properties=token)
    before = everything(dataset)
    again.add_columns({"w": "id"}, transaction_properties=token)
    assert (again.version, everything(dataset)) == (3, before)


# -- metadata -------------------------------------------------------------------------------------------------------


def test_config_and_metadata_are_set_removed_and_replaced(dataset: Dataset) -> None:
    assert dataset.update_config({"a": "1", "b": "2"}) == {"a": "1", "b": "2"}
    assert dataset.update_config({"a": None, "c": "3"}) == {"b": "2", "c": "3"}
    dataset.delete_config_keys(["c", "never there"])
    assert dataset.config() == {"b": "2"}
    assert dataset.update_metadata({"owner": "me"}) == {"owner": "me"} == dataset.metadata
    assert dataset.update_metadata({"team": "us"}, replace=True) == {"team": "us"}
    assert dataset.update_schema_metadata({"k": "v"}) == {"k": "v"} == dataset.schema_metadata
    assert dataset.schema.metadata == {b"k": b"v"}
    dataset.update_field_metadata({"v": {"unit": "m"}, "p.x": {"unit": "s"}})
    dataset.update_field_metadata({"v": {"unit": None, "note": "n"}})
    assert dataset.schema.field("v").metadata == {b"note": b"n"}
    assert dataset.schema.field("p").type.field("x").metadata == {b"unit": b"s"}
    with pytest.warns(DeprecationWarning, match="replace=True"):
        dataset.replace_schema_metadata({"only": "this"})
    with pytest.warns(DeprecationWarning, match="replace=True"):
        dataset.replace_field_metadata("v", {"a": "b"})
    assert dataset.schema_metadata == {"only": "this"}
    assert dataset.schema.field("v").metadata == {b"a": b"b"}
    dataset.validate()


def test_a_replayed_update_of_config_is_done_once(dataset: Dataset) -> None:
    again = lance_ops.dataset(dataset.uri)
    for handle in (dataset, again):
        handle.update_config({"a": "1"}, transaction_properties={TOKEN: "set a"})
    assert (again.version, again.config()) == (3, {"a": "1"})


def test_metadata_that_is_no_text_or_of_no_field_is_refused(dataset: Dataset) -> None:
    with pytest.raises(InvalidInput, match="values must be"):
        dataset.update_config({"a": 1})  # type: ignore[dict-item]  # what is tested
    with pytest.raises(InvalidInput, match="'nope'"):
        dataset.update_field_metadata({"nope": {"a": "b"}})
    assert dataset.version == 2


def test_two_writers_of_one_key_do_not_undo_each_other(dataset: Dataset) -> None:
    late = lance_ops.dataset(dataset.uri)
    dataset.update_config({"a": "1"})
    late.update_config({"b": "2"})
    assert late.config() == {"a": "1", "b": "2"}
    stale = lance_ops.dataset(dataset.uri, version=2)
    with pytest.raises(IncompatibleTransaction, match="'a'"):
        stale.update_config({"a": "3"})
