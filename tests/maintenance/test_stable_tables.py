"""Maintenance of tables with stable row ids: rows keep their ids and versions, and indices stay right."""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from datetime import timedelta

import numpy as np
import pyarrow as pa
import pytest
from pyroaring import FrozenBitMap

import lance_ops
from lance_ops.changing.row_updates import bind_updates, commit_update, plan_update, rewrite_rows
from lance_ops.indices import INDEX_ROW, INDEX_VALUE
from lance_ops.indices.btree import BTree
from lance_ops.maintenance.compaction.compaction_plan import CompactionOptions, plan_compaction
from lance_ops.maintenance.compaction.rewriting import commit_rewrites, execute_rewrite
from lance_ops.maintenance.health.health_report import health
from lance_ops.reading.filters import bind_filter
from lance_ops.table import IndexMetadata
from lance_ops.transactions import CreateIndex
from lance_ops.writing.commit import commit_operation
from tests.maintenance.conftest import rows

LINEAGE = ["id", "_rowid", "_row_created_at_version", "_row_last_updated_at_version"]


@pytest.fixture
def dataset(dataset_uri: str) -> lance_ops.LanceDataset:
    """Five fragments of twenty rows, a version each."""
    for at in range(0, 100, 20):
        made = lance_ops.write_dataset(rows(at, at + 20), dataset_uri, mode="append", enable_stable_row_ids=True)
    return made


def segments(dataset: lance_ops.LanceDataset) -> list[IndexMetadata]:
    return list(lance_ops.dataset(dataset.uri).snapshot.manifest.indices)


def index_by_id(dataset: lance_ops.LanceDataset) -> None:
    """Commit an index of row ids on `key`, as releases wrote them before B-trees held addresses (version 0)."""
    snapshot = dataset.snapshot
    metadata = IndexMetadata(
        uuid.uuid4(),
        "key_idx",
        (snapshot.schema.field("key").id,),
        snapshot.version,
        FrozenBitMap(snapshot.fragments_by_id),
        BTree().details,
        index_version=0,
    )

    def entries() -> Iterator[pa.RecordBatch]:
        table = dataset.to_table(["key"], with_row_id=True).combine_chunks()
        yield pa.record_batch([table.column(0).chunk(0), table.column(1).chunk(0)], names=[INDEX_VALUE, INDEX_ROW])

    BTree().train(entries(), snapshot.schema.field("key"), snapshot.store.child(metadata.directory))
    commit_operation(snapshot, CreateIndex((metadata,), ()))
    dataset.checkout_latest()


def assert_index_answers(dataset: lance_ops.LanceDataset) -> None:
    for predicate in ("key < 300", "key = 919", "key IS NULL", "key = 5000"):
        assert "ScalarIndexQuery" in dataset.scanner(filter=predicate).explain_plan()
        expected = dataset.to_table(filter=predicate, use_scalar_index=False)
        assert dataset.to_table(filter=predicate) == expected, predicate


def test_compaction_keeps_row_ids_and_versions_and_merges_their_runs(dataset: lance_ops.LanceDataset) -> None:
    before = dataset.to_table(LINEAGE)
    dataset.optimize.compact_files()
    assert dataset.to_table(LINEAGE) == before
    [fragment] = dataset.snapshot.fragments
    ids = dataset.snapshot.lineage(fragment).row_ids
    assert ids.starts.tolist() == [0]
    assert dataset._take_rows([77, 3]).column("id").to_pylist() == [77, 3]
    dataset.validate()


def test_compaction_into_several_fragments_splits_row_sequences_with_the_rows(
    dataset: lance_ops.LanceDataset,
) -> None:
    dataset.update({"text": "'new'"}, where="id % 6 = 1")
    dataset.delete("id % 5 = 2")
    before = dataset.to_table(LINEAGE)
    dataset.optimize.compact_files(target_rows_per_fragment=33)
    assert [fragment.physical_rows for fragment in dataset.snapshot.fragments] != [before.num_rows]
    assert dataset.to_table(LINEAGE) == before
    dataset.validate()


def test_rows_deleted_or_updated_between_plan_and_commit_stay_so(dataset: lance_ops.LanceDataset) -> None:
    snapshot = dataset.snapshot
    rewrites = [execute_rewrite(task) for task in plan_compaction(snapshot, CompactionOptions()).tasks]
    dataset.delete("id in (42, 77)")
    dataset.update({"text": "'new'"}, where="id = 50")
    before = dataset.to_table(LINEAGE).sort_by("id")
    commit_rewrites(snapshot, rewrites)
    again = lance_ops.dataset(dataset.uri)
    assert len(again.snapshot.fragments) == 2
    assert again.to_table(LINEAGE).sort_by("id") == before
    assert again._take_rows([42, 50, 51, 77]).column("text").to_pylist() == ["new", "t51"]
    again.validate()


def test_an_update_committed_after_a_compaction_keeps_row_ids_and_creation_versions(
    dataset: lance_ops.LanceDataset,
) -> None:
    snapshot = dataset.snapshot
    plan = plan_update(snapshot, bind_updates(snapshot, {"text": "'new'"}), bind_filter(snapshot, "id % 25 = 7"))
    outcomes = [rewrite_rows(task) for task in plan.tasks]
    dataset.optimize.compact_files()
    made, num_updated = commit_update(plan, outcomes)
    assert num_updated == 4
    updated = lance_ops.dataset(dataset.uri).to_table([*LINEAGE, "text"], "text = 'new'").to_pylist()
    assert updated == [
        dict(zip([*LINEAGE, "text"], (number, number, 1 + number // 20, made.version, "new"), strict=True))
        for number in (7, 32, 57, 82)
    ]
    lance_ops.dataset(dataset.uri).validate()


def test_a_btree_holds_addresses_and_is_remapped(dataset: lance_ops.LanceDataset) -> None:
    dataset.create_scalar_index("key", "BTREE")
    [before] = segments(dataset)
    assert before.index_version == 1
    dataset.delete("id % 3 = 0")
    dataset.update({"key": "5000"}, where="id = 50")
    dataset.optimize.compact_files()
    [after] = segments(dataset)
    assert after.uuid != before.uuid
    assert_index_answers(dataset)
    dataset.optimize.optimize_indices()
    assert dataset.index_statistics("key_idx")["num_unindexed_rows"] == 0
    assert_index_answers(dataset)


def test_an_index_by_row_id_is_used_and_never_remapped(dataset: lance_ops.LanceDataset) -> None:
    index_by_id(dataset)
    [before] = segments(dataset)
    dataset.delete("id % 3 = 0")
    assert_index_answers(dataset)
    dataset.update({"key": "5000"}, where="id in (20, 50)")
    assert dataset.to_table(["id"], "key = 5000").column("id").to_pylist() == [20, 50]
    assert_index_answers(dataset)
    dataset.optimize.compact_files()
    [after] = segments(dataset)
    assert (after.uuid, after.index_version) == (before.uuid, 0)


def test_an_index_by_row_id_is_rebuilt_and_not_merged(dataset: lance_ops.LanceDataset) -> None:
    index_by_id(dataset)
    dataset.delete("id < 30")
    lance_ops.write_dataset(rows(100, 120), dataset.uri, mode="append")
    dataset.checkout_latest()
    dataset.optimize.optimize_indices()
    [after] = segments(dataset)
    assert after.index_version == 1
    assert dataset.index_statistics("key_idx")["num_unindexed_rows"] == 0
    assert_index_answers(dataset)


def test_an_index_that_cannot_be_remapped_does_not_stop_compaction(dataset: lance_ops.LanceDataset) -> None:
    dataset.create_scalar_index("key", "BTREE")
    [known] = segments(dataset)
    newer = IndexMetadata(
        uuid.uuid4(), "newer", known.fields, known.dataset_version, known.fragment_bitmap, known.details, 99
    )
    commit_operation(dataset.snapshot, CreateIndex((newer,), ()))
    dataset.checkout_latest()
    dataset.optimize.compact_files()
    covered = {index.name: list(index.fragment_bitmap or ()) for index in segments(dataset)}
    assert covered == {"key_idx": list(dataset.snapshot.fragments_by_id), "newer": []}
    assert_index_answers(dataset)


def test_clean_up_and_health_work_with_stable_row_ids(dataset: lance_ops.LanceDataset) -> None:
    dataset.delete("id < 10")
    dataset.optimize.compact_files()
    before = dataset.to_table(LINEAGE)
    assert dataset.cleanup_old_versions(timedelta(0)).old_versions
    again = lance_ops.dataset(dataset.uri)
    assert again.to_table(LINEAGE) == before
    assert again._take_rows(np.arange(0, 100, 7)).column("id").to_pylist() == [
        14,
        21,
        28,
        35,
        42,
        49,
        56,
        63,
        70,
        77,
        84,
        91,
        98,
    ]
    assert health(again.snapshot).num_rows == 90
