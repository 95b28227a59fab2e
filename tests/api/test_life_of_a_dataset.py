from datetime import UTC, datetime, timedelta
from pathlib import Path

import pyarrow as pa
import pytest

import lance_ops
from lance_ops.errors import (
    DatasetAlreadyExists,
    DatasetNotFound,
    InvalidFilter,
    InvalidInput,
    ReferenceNotFound,
    SchemaMismatch,
    UnsupportedFeature,
    VersionNotFound,
)


def rows(start: int, stop: int) -> pa.Table:
    ids = list(range(start, stop))
    return pa.table({"id": ids, "name": pa.array([f"n{i}" if i % 3 else None for i in ids], pa.string())})


@pytest.fixture
def dataset(dataset_uri: str) -> lance_ops.LanceDataset:
    return lance_ops.write_dataset(rows(0, 100), dataset_uri, max_rows_per_file=30)


def test_rows_come_back_in_order_as_they_were_written(dataset: lance_ops.LanceDataset) -> None:
    assert dataset.to_table() == rows(0, 100)
    assert [fragment.count_rows() for fragment in dataset.get_fragments()] == [30, 30, 30, 10]
    assert len(dataset) == 100
    assert dataset.schema == rows(0, 1).schema


def test_creating_where_a_dataset_is_changes_nothing(dataset: lance_ops.LanceDataset) -> None:
    with pytest.raises(DatasetAlreadyExists, match="mode="):
        lance_ops.write_dataset(rows(0, 1), dataset.uri)
    assert lance_ops.dataset(dataset.uri).version == 1


def test_append_adds_rows_and_overwrite_replaces_rows_and_schema(dataset: lance_ops.LanceDataset) -> None:
    appended = lance_ops.write_dataset(rows(100, 110), dataset, mode="append")
    assert (appended.version, appended.count_rows()) == (2, 110)
    other = pa.table({"x": [1.5]})
    overwritten = lance_ops.write_dataset(other, dataset.uri, mode="overwrite")
    assert overwritten.to_table() == other
    assert overwritten.get_fragments()[0].fragment_id == 5
    assert lance_ops.dataset(dataset.uri, version=2).count_rows() == 110


def test_append_creates_a_missing_dataset(dataset_uri: str) -> None:
    assert lance_ops.write_dataset(rows(0, 5), dataset_uri, mode="append").version == 1


def test_an_append_that_does_not_fit_leaves_no_version_and_no_file(dataset: lance_ops.LanceDataset) -> None:
    before = sorted(Path(dataset.uri).rglob("*"))
    with pytest.raises(SchemaMismatch, match="column 'id'"):
        lance_ops.write_dataset(pa.table({"id": ["x"], "name": ["y"]}), dataset.uri, mode="append")
    batches = iter([rows(0, 40).to_batches()[0], pa.record_batch({"id": ["late"]})])
    reader = pa.RecordBatchReader.from_batches(rows(0, 0).schema, batches)
    with pytest.raises(SchemaMismatch, match="column"):
        lance_ops.write_dataset(reader, dataset.uri, mode="append", max_rows_per_file=20)
    assert sorted(Path(dataset.uri).rglob("*")) == before


def test_delete_removes_only_the_matching_rows(dataset: lance_ops.LanceDataset) -> None:
    assert dataset.delete("id >= 25 AND id < 65 OR name IS NULL AND id < 10") == {"num_deleted_rows": 44}
    kept = [i for i in range(100) if not (25 <= i < 65 or (i % 3 == 0 and i < 10))]
    assert dataset.to_table().column("id").to_pylist() == kept
    assert dataset.count_rows() == len(kept)
    assert [fragment.fragment_id for fragment in dataset.get_fragments()] == [0, 2, 3]
    assert dataset.version == 2
    assert lance_ops.dataset(dataset.uri, version=1).count_rows() == 100


def test_delete_of_nothing_makes_no_version(dataset: lance_ops.LanceDataset) -> None:
    assert dataset.delete("id = 12345") == {"num_deleted_rows": 0}
    assert dataset.version == 1


def test_a_row_is_deleted_once(dataset: lance_ops.LanceDataset) -> None:
    dataset.delete("id < 10")
    assert dataset.delete("id < 12") == {"num_deleted_rows": 2}
    assert dataset.count_rows() == 88


def test_take_counts_positions_among_the_live_rows(dataset: lance_ops.LanceDataset) -> None:
    dataset.delete("id % 2 = 0")
    taken = dataset.take([49, 0, 0, 17], columns=["id"])
    assert taken.column("id").to_pylist() == [99, 1, 1, 35]
    with pytest.raises(InvalidInput, match="50 rows"):
        dataset.take([50])
    assert dataset.take([]).num_rows == 0


def test_row_ids_find_their_rows(dataset: lance_ops.LanceDataset) -> None:
    dataset.delete("id < 95")
    table = dataset.to_table(columns=["id"], with_row_id=True, with_row_address=True)
    assert table.column("_rowid").to_pylist() == [(3 << 32) | offset for offset in range(5, 10)]
    again = dataset._take_rows(table.column("_rowid").combine_chunks(), columns=["id"])
    assert again.column("id") == table.column("id")
    gone, unknown = (3 << 32) | 1, 99 << 32
    assert dataset._take_rows([gone, (3 << 32) | 7, unknown], columns=["id"]).column("id").to_pylist() == [97]
    with pytest.raises(InvalidInput, match="fragment 3"):
        dataset._take_rows([(3 << 32) | 10])


def test_deleted_rows_are_seen_only_when_asked_for_with_a_null_row_id(dataset: lance_ops.LanceDataset) -> None:
    dataset.delete("id = 31")
    table = dataset.to_table(columns=["id"], with_row_id=True, include_deleted_rows=True)
    gone = [row["id"] for row in table.to_pylist() if row["_rowid"] is None]
    assert gone == [31]
    with pytest.raises(InvalidInput, match="with_row_id"):
        dataset.to_table(include_deleted_rows=True)


@pytest.mark.parametrize(
    ("limit", "offset", "expected"), [(5, 28, range(28, 33)), (None, 97, range(97, 100)), (0, 0, [])]
)
def test_limit_and_offset_count_rows_of_the_answer(
    dataset: lance_ops.LanceDataset, limit: int | None, offset: int, expected: range
) -> None:
    assert dataset.to_table(limit=limit, offset=offset).column("id").to_pylist() == list(expected)
    filtered = dataset.to_table(filter="id >= 0", limit=limit, offset=offset)
    assert filtered.column("id").to_pylist() == list(expected)
    assert dataset.scanner(limit=limit, offset=offset).count_rows() == len(expected)


def test_a_filter_may_name_columns_that_are_not_returned(dataset: lance_ops.LanceDataset) -> None:
    assert dataset.to_table(columns=["name"], filter="id = 4").to_pylist() == [{"name": "n4"}]
    assert dataset.count_rows("name IS NULL") == 34
    with pytest.raises(InvalidFilter, match="nmae"):
        dataset.to_table(filter="nmae = 'x'")
    with pytest.raises(InvalidInput, match="nope"):
        dataset.to_table(columns=["nope"])


def test_batches_are_no_larger_than_asked_for(dataset: lance_ops.LanceDataset) -> None:
    sizes = [batch.num_rows for batch in dataset.to_batches(batch_size=16)]
    assert max(sizes) <= 16 and sum(sizes) == 100


def test_time_travel_by_version_tag_and_moment(dataset: lance_ops.LanceDataset) -> None:
    dataset.tags.create("first")
    dataset.delete("id < 50")
    assert lance_ops.dataset(dataset.uri, version="first").count_rows() == 100
    assert dataset.checkout_version("first").version == 1
    assert dataset.checkout_version(2).count_rows() == 50
    assert lance_ops.dataset(dataset.uri, asof=datetime.now(UTC)).version == 2
    with pytest.raises(VersionNotFound, match="no retained version"):
        lance_ops.dataset(dataset.uri, asof=datetime.now(UTC) - timedelta(days=1))
    with pytest.raises(InvalidInput, match="asof 'yesterday' is no moment: write it as"):
        lance_ops.dataset(dataset.uri, asof="yesterday")
    with pytest.raises(VersionNotFound, match="no version 9"):
        lance_ops.dataset(dataset.uri, version=9)
    with pytest.raises(ReferenceNotFound, match="'second'"):
        lance_ops.dataset(dataset.uri, version="second")


def test_restore_brings_an_old_version_back_as_a_new_one(dataset: lance_ops.LanceDataset) -> None:
    dataset.delete("true")
    assert dataset.count_rows() == 0
    old = dataset.checkout_version(1)
    old.restore()
    assert (old.version, old.to_table()) == (3, rows(0, 100))
    transaction = old.read_transaction(3)
    assert transaction is not None and transaction.operation.name == "Restore"


def test_versions_list_what_the_reference_lists(dataset: lance_ops.LanceDataset) -> None:
    dataset.delete("id = 1")
    first, second = dataset.versions()
    assert (first["version"], second["version"]) == (1, 2)
    assert second["metadata"]["total_deletion_file_rows"] == "1"
    assert second["metadata"]["total_rows"] == "99"
    assert second["timestamp"] is not None and first["timestamp"] is not None
    assert second["timestamp"] >= first["timestamp"]


def test_a_handle_is_pickled_by_name_and_version(dataset: lance_ops.LanceDataset) -> None:
    import pickle

    again = pickle.loads(pickle.dumps(dataset))
    assert again == dataset and again.to_table() == dataset.to_table()


def test_missing_datasets_versions_and_columns_are_named(tmp_path: Path) -> None:
    with pytest.raises(DatasetNotFound, match="nothing.lance"):
        lance_ops.dataset(tmp_path / "nothing.lance")


def test_options_of_the_reference_that_are_not_built_are_refused(dataset: lance_ops.LanceDataset) -> None:
    with pytest.raises(UnsupportedFeature, match="nearest"):
        dataset.to_table(nearest={"column": "v", "q": [1.0]})


@pytest.mark.parametrize("mode", ["append", "overwrite"])
def test_stable_row_ids_cannot_be_added_later(dataset: lance_ops.LanceDataset, mode: str) -> None:
    with pytest.raises(InvalidInput, match="created without stable row ids"):
        lance_ops.write_dataset(rows(0, 1), dataset.uri, mode=mode, enable_stable_row_ids=True)
    assert dataset.latest_version == dataset.version


def test_a_dictionary_of_a_legacy_table_takes_no_other_value(dataset_uri: str) -> None:
    table = pa.table({"carrier": pa.array(["UA", "AA"]).dictionary_encode()})
    lance_ops.write_dataset(table, dataset_uri, data_storage_version="legacy")
    dataset = lance_ops.write_dataset(table.take([1, 0]), dataset_uri, mode="append")
    assert dataset.to_table().column("carrier").to_pylist() == ["UA", "AA", "AA", "UA"]
    files = list(Path(dataset_uri, "data").iterdir())
    with pytest.raises(SchemaMismatch, match="column 'carrier' has the value 'DL'"):
        lance_ops.write_dataset(pa.table({"carrier": ["UA", "DL"]}), dataset_uri, mode="append")
    assert dataset.latest_version == 2
    assert list(Path(dataset_uri, "data").iterdir()) == files


def test_other_libraries_read_a_dataset_as_an_arrow_stream(dataset: lance_ops.LanceDataset) -> None:
    assert pa.table(dataset).num_rows == 100


def test_a_missing_data_file_is_found_by_validate(dataset: lance_ops.LanceDataset) -> None:
    dataset.validate()
    victim = next((Path(dataset.uri) / "data").iterdir())
    victim.rename(victim.with_suffix(".gone"))
    with pytest.raises(lance_ops.errors.CorruptFile, match=victim.name):
        lance_ops.dataset(dataset.uri).validate()


def test_columns_are_returned_as_requested(dataset: lance_ops.LanceDataset) -> None:
    assert dataset.to_table(columns=["name", "_rowid", "id"], limit=1).schema.names == ["name", "_rowid", "id"]
    asked = dataset.to_table(columns=["_rowaddr", "id"], with_row_id=True, limit=1)
    assert asked.schema.names == ["_rowaddr", "id", "_rowid"]
    taken = dataset.take([31, 0], columns=["_rowid", "id"])
    assert taken.to_pydict() == {"_rowid": [(1 << 32) + 1, 0], "id": [31, 0]}
    with pytest.raises(InvalidInput, match="'id' is asked for twice"):
        dataset.to_table(columns=["id", "id"])


def test_rows_of_no_columns_are_rows_still(dataset: lance_ops.LanceDataset) -> None:
    for chosen, count in ((None, 100), ("id < 40", 40), ("true", 100)):
        assert dataset.to_table(columns=[], filter=chosen).shape == (count, 0)
        batches = dataset.to_batches(columns=[], filter=chosen, batch_size=7)
        assert sum(batch.num_rows for batch in batches) == count
    assert dataset.take([1, 2], columns=[]).shape == (2, 0)


def test_a_dotted_path_is_a_column_of_that_name_and_in_a_take_the_struct(dataset_uri: str) -> None:
    inner = pa.StructArray.from_arrays([pa.array([1, 2, 3]), pa.array(["a", None, "c"])], ["x", "y"])
    s = pa.StructArray.from_arrays(
        [inner, pa.array([True, False, True])], ["inner", "flag"], mask=pa.array([False, False, True])
    )
    dataset = lance_ops.write_dataset(pa.table({"s": s, "i": [7, 8, 9]}), dataset_uri)
    table = dataset.to_table(columns=["s.inner.y", "i", "s.inner.x"])
    assert table.to_pydict() == {"s.inner.y": ["a", None, None], "i": [7, 8, 9], "s.inner.x": [1, 2, None]}
    assert dataset.take([1], columns=["s.inner.x"]).to_pylist() == [{"s": {"inner": {"x": 2}}}]


def test_a_take_restores_extension_types_as_a_scan_does(dataset_uri: str) -> None:
    keys = pa.ExtensionArray.from_storage(pa.uuid(), pa.array([bytes([n]) * 16 for n in range(6)], pa.binary(16)))
    table = pa.table({"key": keys, "id": range(6)})
    dataset = lance_ops.write_dataset(table, dataset_uri, max_rows_per_file=2)
    assert dataset.to_table() == table
    assert dataset.take([4, 1]) == table.take([4, 1])
    assert dataset.take([]) == table.slice(0, 0)
    assert dataset.get_fragments()[1].take([1]) == table.slice(3, 1)


def test_an_interrupted_optimizer_continues_where_it_stopped(dataset: lance_ops.LanceDataset) -> None:
    dataset.create_scalar_index("id", "BTREE")
    optimizer = dataset.optimize
    optimizer.compact_files()
    version = dataset.version
    optimizer.optimize_indices()
    optimizer.compact_files()
    assert dataset.version == version
