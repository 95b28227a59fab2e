from __future__ import annotations

import pickle
from collections.abc import Callable
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest
from pyroaring import BitMap

import lance_ops
from lance_ops import LanceDataset, LanceFragment, LanceOperation, Transaction
from lance_ops.changing.columns.backfill import plan_backfill, write_columns
from lance_ops.changing.columns.column_sources import CastColumns
from lance_ops.changing.merge_insert import MergeRequest, WhenMatched, plan_merge
from lance_ops.changing.merge_insert.matching import find_matches
from lance_ops.changing.row_updates import bind_updates, plan_update, rewrite_rows
from lance_ops.committers.versions_directory import list_versions
from lance_ops.core.file_names import ManifestNaming, manifest_name
from lance_ops.errors import (
    CorruptFile,
    DatasetAlreadyExists,
    IncompatibleTransaction,
    InvalidInput,
    RetryableConflict,
    UnsupportedFeature,
)
from lance_ops.schema import LanceSchema
from lance_ops.table import Fragment
from lance_ops.transactions import COMMIT_MESSAGE


def rows(*keys: int) -> pa.Table:
    return pa.table({"id": pa.array(keys, pa.int64()), "v": pa.array([float(k) for k in keys], pa.float64())})


@pytest.fixture
def dataset(dataset_uri: str) -> LanceDataset:
    return lance_ops.write_dataset(rows(*range(10)), dataset_uri, max_rows_per_file=5)


def ids(dataset: LanceDataset) -> list[int]:
    found: list[int] = dataset.to_table()["id"].to_pylist()
    return found


# -- fragments written apart, committed together --------------------------------------------------------------------


def test_fragments_written_apart_create_a_dataset_and_are_appended_to_it(dataset_uri: str) -> None:
    parts = [LanceFragment.create(dataset_uri, rows(1, 2)), LanceFragment.create(dataset_uri, rows(3))]
    made = LanceDataset.commit(dataset_uri, LanceOperation.Overwrite(rows().schema, parts), commit_message="first")
    assert (made.version, ids(made)) == (1, [1, 2, 3])
    transaction = made.read_transaction(1)
    assert transaction is not None
    assert transaction.transaction_properties == {COMMIT_MESSAGE: "first"}
    append = LanceOperation.Append([LanceFragment.create(dataset_uri, rows(4))])
    with pytest.raises(InvalidInput, match="read_version"):
        LanceDataset.commit(made, append)
    again = LanceDataset.commit(made, append, read_version=1, commit_timeout=timedelta(minutes=1))
    assert ids(again) == [1, 2, 3, 4]
    assert [fragment.fragment_id for fragment in again.get_fragments()] == [0, 1, 2]
    restored = LanceDataset.commit(dataset_uri, LanceOperation.Restore(1))
    assert (restored.version, ids(restored)) == (3, [1, 2, 3])
    restored.validate()


def test_commit_batch_commits_appends_as_one(dataset: LanceDataset) -> None:
    made = [
        Transaction(dataset.version, LanceOperation.Append([LanceFragment.create(dataset.uri, rows(key))]))
        for key in (20, 21)
    ]
    result = LanceDataset.commit_batch(dataset, made)
    assert isinstance(result["dataset"], LanceDataset)
    assert (result["dataset"].version, ids(result["dataset"])) == (2, [*range(10), 20, 21])
    merged = result["merged"].operation
    assert isinstance(merged, LanceOperation.Append) and len(merged.fragments) == 2
    with pytest.raises(UnsupportedFeature, match="Restore"):
        LanceDataset.commit_batch(dataset, [Transaction(1, LanceOperation.Restore(1))])
    with pytest.raises(InvalidInput, match="needs a transaction"):
        LanceDataset.commit_batch(dataset, [])


def test_a_merge_prepared_here_is_committed_elsewhere(dataset: LanceDataset) -> None:
    builder = dataset.merge_insert("id").when_matched_update_all().when_not_matched_insert_all()
    transaction, result = builder.execute_uncommitted(rows(3, 30).set_column(1, "v", pa.array([0.5, 0.5])))
    assert result == {"num_inserted_rows": 1, "num_updated_rows": 1, "num_deleted_rows": 0}
    assert dataset.latest_version == 1
    made = LanceDataset.commit(dataset.uri, pickle.loads(pickle.dumps(transaction)))
    assert made.to_table(filter="v = 0.5")["id"].to_pylist() == [3, 30]
    with pytest.raises(InvalidInput, match="properties"):
        LanceDataset.commit(dataset.uri, transaction, commit_message="late")
    stale = builder.execute_uncommitted(rows(3))[0]
    LanceDataset.commit(dataset.uri, LanceOperation.Restore(1))
    with pytest.raises(IncompatibleTransaction, match="replaced"):
        LanceDataset.commit(dataset.uri, stale)


# -- one fragment, changed ------------------------------------------------------------------------------------------


def test_deletions_of_fragments_are_committed_by_hand(dataset: LanceDataset) -> None:
    updated, removed = [], []
    for fragment in dataset.get_fragments():
        left = fragment.delete("id >= 3")
        if left is None:
            removed.append(fragment.fragment_id)
        else:
            updated.append(left)
    operation = LanceOperation.Delete(updated, removed, "id >= 3")
    made = LanceDataset.commit(dataset, operation, read_version=dataset.version)
    assert ids(made) == [0, 1, 2]
    (fragment,) = made.get_fragments()
    assert fragment.delete("false") == fragment.metadata
    with pytest.raises(InvalidInput, match="no row 9"):
        fragment.delete_rows([9])
    assert fragment.delete_rows([0, 1, 2]) is None


def test_columns_of_fragments_are_committed_by_hand(dataset: LanceDataset) -> None:
    def doubled(batch: pa.RecordBatch) -> pa.RecordBatch:
        return pa.record_batch([pc.multiply(batch["id"], 2)], ["w"])

    ways: tuple[Callable[[LanceFragment], tuple[Fragment, LanceSchema]], ...] = (
        lambda fragment: fragment.merge_columns({"w": "id * 2"}),
        lambda fragment: fragment.merge_columns(doubled, columns=["id"], batch_size=2),
        lambda fragment: fragment.merge_columns(pa.table({"w": pc.multiply(fragment.to_table()["id"], 2)})),
        lambda fragment: fragment.merge(pa.table({"k": range(10), "w": range(0, 20, 2)}), "id", "k"),
    )
    for make in ways:
        parts = [make(fragment) for fragment in dataset.get_fragments()]
        operation = LanceOperation.Merge([fragment for fragment, _ in parts], parts[0][1], True)
        made = LanceDataset.commit(dataset, operation, read_version=dataset.version)
        assert made.to_table(columns=["w"])["w"].to_pylist() == list(range(0, 20, 2))
        made.validate()
        made.drop_columns(["w"])
        dataset = made


def test_a_function_for_one_fragment_reads_row_columns(dataset: LanceDataset) -> None:
    def last(batch: pa.RecordBatch) -> pa.RecordBatch:
        return pa.record_batch([batch.column(batch.num_columns - 1)], ["w"])

    dataset.delete("id = 6")
    before = dataset.to_table(with_row_id=True)
    for columns in (["_rowid"], ["_rowaddr"], ["id", "_rowid"], ["id", "_rowaddr"]):
        parts = [fragment.merge_columns(last, columns=columns) for fragment in dataset.get_fragments()]
        operation = LanceOperation.Merge([fragment for fragment, _ in parts], parts[0][1], True)
        made = LanceDataset.commit(dataset, operation, read_version=dataset.version)
        assert made.to_table()["w"] == before["_rowid"]  # without stable row ids an id is the address
        made.drop_columns(["w"])
        dataset = made


def test_columns_are_updated_in_place_by_key_or_row_id(dataset: LanceDataset) -> None:
    dataset.delete("id = 1")
    before = dataset.to_table(with_row_id=True)
    fragment = dataset.get_fragments()[0]
    new, fields, offsets = fragment.update_columns(
        pa.table({"id": [0, 3, 77], "v": [-1.0, -4.0, -9.0]}), "id", with_offsets=True
    )
    assert fields == [1]
    assert list(BitMap.deserialize(offsets)) == [0, 3]
    assert [file.fields for file in new.files] == [(0, -2), (1,)]
    operation = LanceOperation.Update(updated_fragments=[new], fields_modified=fields)
    made = LanceDataset.commit(dataset, operation, read_version=dataset.version)
    assert made.to_table(with_row_id=True)["_rowid"] == before["_rowid"]
    assert made.to_table()["v"].to_pylist() == [-1.0, 2.0, -4.0, 4.0, 5.0, 6.0, 7.0, 8.0, 9.0]
    (_, last) = made.get_fragments()
    row_ids = last.to_table(with_row_id=True)["_rowid"]
    new, fields = last.update_columns(pa.table({"_rowid": row_ids, "v": [0.0] * 5}))
    operation = LanceOperation.Update(updated_fragments=[new], fields_modified=fields, update_mode="rewrite_columns")
    made = LanceDataset.commit(made, operation, read_version=made.version)
    assert made.to_table()["v"].to_pylist() == [-1.0, 2.0, -4.0, 4.0, *[0.0] * 5]
    made.validate()
    with pytest.raises(InvalidInput, match="beside"):
        last.update_columns(pa.table({"id": [1]}), "id")
    with pytest.raises(InvalidInput, match="no column"):
        last.update_columns(pa.table({"v": [1.0]}))
    with pytest.raises(InvalidInput, match="sideways"):
        LanceOperation.Update(update_mode="sideways")


def test_a_file_of_a_fragment_is_replaced(dataset: LanceDataset) -> None:
    dataset.add_columns({"w": "id"})
    replaced = []
    for fragment in dataset.get_fragments():
        (column,) = [file for file in fragment.data_files() if 2 in file.fields]
        new, _ = fragment.update_columns(
            pa.table({"id": fragment.to_table()["id"], "w": pc.add(fragment.to_table()["id"], 100)}), "id"
        )
        assert column.path not in [file.path for file in new.files]
        replaced.append(LanceOperation.DataReplacementGroup(new.id, new.files[-1]))
    made = LanceDataset.commit(dataset, LanceOperation.DataReplacement(replaced), read_version=dataset.version)
    assert made.to_table(columns=["w"])["w"].to_pylist() == list(range(100, 110))
    made.validate()


# -- a merge in place -----------------------------------------------------------------------------------------------


def test_a_merge_can_rewrite_columns_where_the_rows_are(dataset: LanceDataset) -> None:
    dataset.create_scalar_index("id", "BTREE")
    dataset.create_scalar_index("v", "BTREE")
    dataset.delete("id = 2")
    dataset.add_columns({"s": "concat('s', id)"})
    before = dataset.to_table(columns=["id", "s"], with_row_id=True)
    builder = dataset.merge_insert("id").when_matched_update_all("target.v < 8").write_mode("rewrite_columns")
    result = builder.execute(rows(1, 3, 9, 50).set_column(1, "v", pa.array([100.0] * 4)))
    assert result == {"num_inserted_rows": 0, "num_updated_rows": 2, "num_deleted_rows": 0}
    assert dataset.to_table(columns=["id", "s"], with_row_id=True) == before
    assert dataset.to_table(filter="v = 100")["id"].to_pylist() == [1, 3]
    assert dataset.to_table(filter="id = 3")["v"].to_pylist() == [100.0]
    covered = {index["name"]: set(index["fragment_ids"]) for index in dataset.list_indices()}
    assert covered == {"id_idx": {0, 1}, "v_idx": {1}}
    dataset.validate()


def test_a_merge_that_does_more_than_update_some_columns_does_not_go_in_place(dataset: LanceDataset) -> None:
    dataset.add_columns(pa.field("z", pa.int8()))
    for builder, source in (
        (dataset.merge_insert("id").when_matched_delete(), rows(1)),
        (dataset.merge_insert("id").when_matched_update_all().when_not_matched_insert_all(), rows(1)),
        (dataset.merge_insert("id").when_matched_update_all().when_not_matched_by_source_delete(), rows(1)),
        (dataset.merge_insert("id").when_matched_update_all(), rows(1).select(["id"])),
        (dataset.merge_insert("id").when_matched_update_all(), dataset.to_table()),
    ):
        with pytest.raises(InvalidInput, match="in place"):
            builder.write_mode("rewrite_columns").execute(source)


# -- whole tables ---------------------------------------------------------------------------------------------------


def test_a_table_is_emptied_and_filled_again(dataset: LanceDataset) -> None:
    dataset.truncate_table()
    assert (dataset.version, ids(dataset), dataset.schema) == (2, [], rows().schema)
    dataset.truncate_table()
    assert dataset.version == 2
    dataset.insert(rows(7))
    dataset.insert([rows(8).to_batches()[0]], schema=rows().schema, commit_message="one more")
    assert ids(dataset) == [7, 8]
    dataset.insert(pa.table({"x": [1]}), mode="overwrite")
    assert dataset.schema.names == ["x"]
    with pytest.raises(DatasetAlreadyExists):
        dataset.insert(rows(1), mode="create")
    with pytest.raises(InvalidInput, match="'upsert'"):
        dataset.insert(rows(1), mode="upsert")


def test_manifests_of_old_names_get_new_ones(dataset: LanceDataset) -> None:
    dataset.delete("id = 1")
    versions = Path(dataset.uri, "_versions")
    for version in (1, 2):
        old = versions / manifest_name(version, ManifestNaming.V2)
        old.rename(versions / manifest_name(version, ManifestNaming.V1))
    opened = lance_ops.dataset(dataset.uri)
    assert list_versions(opened.snapshot.store).naming is ManifestNaming.V1
    kept = (versions / manifest_name(1, ManifestNaming.V1)).read_bytes()
    for _ in range(2):
        opened.migrate_manifest_paths_v2()
        assert list_versions(opened.snapshot.store).naming is ManifestNaming.V2
        assert [version["version"] for version in opened.versions()] == [1, 2]
    (versions / manifest_name(1, ManifestNaming.V1)).write_bytes(kept)  # as if it had been interrupted
    with pytest.raises(CorruptFile, match="both naming schemes"):
        lance_ops.dataset(dataset.uri)
    opened.migrate_manifest_paths_v2()
    assert ids(lance_ops.dataset(dataset.uri)) == [0, *range(2, 10)]


# -- plans ----------------------------------------------------------------------------------------------------------


def elsewhere(task: Any) -> Any:
    return pickle.loads(pickle.dumps(task))


def test_tasks_and_their_outcomes_pickle(dataset: LanceDataset) -> None:
    snapshot = dataset.snapshot
    update = plan_update(snapshot, bind_updates(snapshot, {"v": "v + 1"}), None)
    rewritten = elsewhere(rewrite_rows(elsewhere(update.tasks[0])))
    assert sum(fragment.physical_rows for fragment in rewritten.fragments) == 10
    request = MergeRequest(("id",), WhenMatched.UPDATE, update_condition="source.v < target.v + 9")
    merge = plan_merge(snapshot, request, rows(1, 2, 50))
    assert elsewhere(find_matches(elsewhere(merge.tasks[0]))).source_rows.tolist() == [0, 1]
    column = replace(snapshot.schema.fields[0], id=9, logical_type="int32")
    backfill = plan_backfill(snapshot, replace(snapshot.schema, fields=(column,)), CastColumns(("id",)))
    assert [file.fragment_id for file in elsewhere(write_columns(elsewhere(backfill[1])))] == [1]


def test_a_handmade_operation_is_checked_for_conflicts(dataset: LanceDataset) -> None:
    fragment = dataset.get_fragments()[0]
    new, fields = fragment.update_columns(pa.table({"id": [1], "v": [5.0]}), "id")
    dataset.update({"v": "0"}, "id = 1")
    operation = LanceOperation.Update(updated_fragments=[new], fields_modified=fields)
    with pytest.raises(RetryableConflict):
        LanceDataset.commit(dataset, operation, read_version=1)
