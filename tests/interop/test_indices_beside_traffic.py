"""New indices beside concurrent commits that move or change their rows: both commit, and no index is built twice."""

from __future__ import annotations

import uuid
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyroaring import FrozenBitMap

import lance_ops
from lance_ops.indices import INDEX_ROW, INDEX_VALUE
from lance_ops.indices.btree import BTree
from lance_ops.maintenance.compaction.compaction_plan import CompactionOptions, plan_compaction
from lance_ops.maintenance.compaction.rewriting import commit_rewrites, execute_rewrite
from lance_ops.maintenance.indexing import reindex
from lance_ops.maintenance.indexing.segment_builder import SegmentBuilder
from lance_ops.maintenance.indexing.segment_commit import commit_segment
from lance_ops.table import IndexMetadata
from lance_ops.transactions import CreateIndex
from lance_ops.writing.commit import commit_operation

lance = pytest.importorskip("lance", reason="pylance, the reference implementation, is not installed")
pytestmark = pytest.mark.interop

Act = Callable[[str], object]


def rows(start: int, stop: int) -> pa.Table:
    return pa.table({"id": pa.array(range(start, stop), pa.int64()), "key": [i * 7 % 101 for i in range(start, stop)]})


@pytest.fixture(params=[False, True], ids=["addresses", "stable row ids"])
def uri(dataset_uri: str, request: pytest.FixtureRequest) -> str:
    """Five fragments of twenty rows, some of which are deleted."""
    lance.write_dataset(rows(0, 100), dataset_uri, max_rows_per_file=20, enable_stable_row_ids=request.param)
    lance.dataset(dataset_uri).delete("id in (3, 42)")
    return dataset_uri


def our_compaction(uri: str) -> None:
    lance_ops.dataset(uri).optimize.compact_files(materialize_deletions_threshold=0.0)


def their_compaction(uri: str) -> None:
    lance.dataset(uri).optimize.compact_files(materialize_deletions_threshold=0.0)


def their_deferred_compaction(uri: str) -> None:
    dataset = lance.dataset(uri)
    dataset.optimize.compact_files(
        materialize_deletions_threshold=0.0, defer_index_remap=not dataset.has_stable_row_ids
    )


def their_traffic(uri: str) -> None:
    """Two compactions, with rows deleted, updated and added before, between and after."""
    lance.dataset(uri).delete("id = 5")
    their_compaction(uri)
    lance.dataset(uri).delete("id in (50, 61)")
    lance.dataset(uri).optimize.compact_files(target_rows_per_fragment=30, materialize_deletions_threshold=0.0)
    lance.dataset(uri).update({"key": "1000"}, where="id = 20")
    lance.dataset(uri).insert(rows(100, 110))


class Trained:
    """Counts index trainings; runs `meanwhile` after the first training, before its commit."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, meanwhile: Callable[[], object]) -> None:
        self.times = 0
        train = SegmentBuilder.train

        def and_meanwhile(builder: SegmentBuilder, *arguments: Any) -> IndexMetadata:
            segment = train(builder, *arguments)
            self.times += 1
            if self.times == 1:
                meanwhile()
            return segment

        monkeypatch.setattr(SegmentBuilder, "train", and_meanwhile)


def coverage(uri: str, name: str = "key_idx") -> list[list[int]]:
    indices = lance_ops.dataset(uri).snapshot.manifest.indices
    return [list(index.fragment_bitmap or ()) for index in indices if index.name == name]


def check(uri: str, column: str = "key") -> None:
    """Check that both libraries find all rows through the index, and that no file of another index is left."""
    ours, theirs = lance_ops.dataset(uri), lance.dataset(uri)
    ours.validate()
    theirs.validate()
    everything = theirs.to_table().to_pylist()
    assert ours.to_table().to_pylist() == everything
    for number in (0, 3, 20, 41, 42, 66, 100, 1000):
        predicate = f"{column} = {number}"
        expected = sorted(row["id"] for row in everything if row[column] == number)
        for dataset in (ours, theirs):
            assert "ScalarIndexQuery" in dataset.scanner(filter=predicate).explain_plan()
            assert sorted(dataset.to_table(filter=predicate).column("id").to_pylist()) == expected, (dataset, predicate)
    named = {
        str(index.uuid)
        for version in ours.versions()
        for index in lance_ops.dataset(uri, version["version"]).snapshot.manifest.indices
    }
    assert {path.name for path in Path(uri, "_indices").iterdir() if any(path.iterdir())} <= named


@pytest.mark.parametrize(
    "compact",
    [our_compaction, their_compaction, their_deferred_compaction, their_traffic],
    ids=lambda act: act.__name__,
)
@pytest.mark.parametrize("before", ["none", "replaced"])
def test_a_new_index_is_remapped_after_concurrent_compactions(
    uri: str, compact: Act, before: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    dataset = lance_ops.dataset(uri)
    if before == "replaced":
        dataset.create_scalar_index("key", "BTREE")
    trained = Trained(monkeypatch, lambda: compact(uri))

    dataset.create_scalar_index("key", "BTREE")

    assert trained.times == 1
    fragments = [fragment.fragment_id for fragment in lance.dataset(uri).get_fragments()]
    [covered] = coverage(uri)
    not_seen = 2 if compact is their_traffic else 0  # fragments of rows that were updated, and added
    assert len([key for key in fragments if key not in covered]) == not_seen
    check(uri)
    lance_ops.dataset(uri).optimize.optimize_indices()
    lance_ops.dataset(uri).optimize.compact_files()
    assert coverage(uri) == [[fragment.fragment_id for fragment in lance.dataset(uri).get_fragments()]]
    check(uri)


@pytest.mark.parametrize("compact", [our_compaction, their_compaction], ids=lambda act: act.__name__)
def test_an_extended_index_is_remapped_after_concurrent_compactions(
    uri: str, compact: Act, monkeypatch: pytest.MonkeyPatch
) -> None:
    dataset = lance_ops.dataset(uri)
    dataset.create_scalar_index("key", "BTREE")
    dataset.insert(rows(100, 120))
    times = 0

    def compact_first(*arguments: Any) -> Any:
        nonlocal times
        times += 1
        compact(uri)
        return commit_segment(*arguments)

    monkeypatch.setattr(reindex, "commit_segment", compact_first)
    dataset.optimize.optimize_indices()

    assert times == 1
    assert len(coverage(uri)) == 1
    check(uri)


def test_a_new_index_does_not_cover_rows_compacted_together_with_newer_rows(
    uri: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    dataset = lance_ops.dataset(uri)

    def meanwhile() -> None:
        lance.dataset(uri).insert(rows(100, 110))
        lance.dataset(uri).optimize.compact_files(target_rows_per_fragment=45)

    trained = Trained(monkeypatch, meanwhile)
    dataset.create_scalar_index("key", "BTREE")

    assert trained.times == 1
    [covered] = coverage(uri)
    fragments = [fragment.fragment_id for fragment in lance.dataset(uri).get_fragments()]
    assert 0 < len([key for key in fragments if key in covered]) < len(fragments)
    check(uri)


def test_a_new_index_left_without_coverage_is_built_again(uri: str, monkeypatch: pytest.MonkeyPatch) -> None:
    dataset = lance_ops.dataset(uri)

    def meanwhile() -> None:
        lance.dataset(uri).insert(rows(100, 110))
        lance.dataset(uri).optimize.compact_files()

    trained = Trained(monkeypatch, meanwhile)
    dataset.create_scalar_index("key", "BTREE")

    assert trained.times == 2
    assert coverage(uri) == [[fragment.fragment_id for fragment in lance.dataset(uri).get_fragments()]]
    check(uri)


def test_a_new_index_does_not_cover_fragments_with_new_values(uri: str, monkeypatch: pytest.MonkeyPatch) -> None:
    trained = Trained(monkeypatch, lambda: their_new_values(uri))

    lance_ops.dataset(uri).create_scalar_index("key", "BTREE")

    assert trained.times == 1
    assert coverage(uri) == [[0, 2, 3, 4]]
    check(uri)
    their_compaction(uri)
    check(uri)


def test_a_new_index_does_not_cover_compacted_fragments_with_new_values(
    uri: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def meanwhile() -> None:
        their_new_values(uri)
        lance_ops.dataset(uri).optimize.compact_files(target_rows_per_fragment=40)

    trained = Trained(monkeypatch, meanwhile)
    lance_ops.dataset(uri).create_scalar_index("key", "BTREE")

    assert trained.times == 1
    [covered], fragments = coverage(uri), lance.dataset(uri).get_fragments()
    assert [fragment.fragment_id in covered for fragment in fragments] == [False, False, True]
    check(uri)


def their_new_values(uri: str) -> None:
    """Write one row's new value in place, as the reference's manual does: only the fragment's field ids show the
    change.
    """
    theirs = lance.dataset(uri)
    new = pa.table({"id": pa.array([25], pa.int64()), "key": pa.array([1000], pa.int64())})
    updated, fields = theirs.get_fragments()[1].update_columns(new, left_on="id", right_on="id")
    operation = lance.LanceOperation.Update(updated_fragments=[updated], fields_modified=fields)
    lance.LanceDataset.commit(uri, operation, theirs.version)


@pytest.mark.parametrize("by", ["ours", "pylance"])
def test_a_new_index_of_row_ids_commits_after_a_concurrent_compaction(dataset_uri: str, by: str) -> None:
    lance.write_dataset(rows(0, 100), dataset_uri, max_rows_per_file=20, enable_stable_row_ids=True)
    snapshot = lance_ops.dataset(dataset_uri).snapshot
    metadata = IndexMetadata(uuid.uuid4(), "key_idx", (1,), 1, FrozenBitMap(range(5)), BTree().details, index_version=0)
    table = lance.dataset(dataset_uri).to_table(["key"], with_row_id=True).combine_chunks()
    entries = pa.record_batch([column.chunk(0) for column in table.columns], names=[INDEX_VALUE, INDEX_ROW])
    BTree().train([entries], snapshot.schema.field("key"), snapshot.store.child(metadata.directory))
    for compact, target in (
        ((our_compaction, None), (their_compaction, None)) if by == "ours" else ((their_compaction, 1),)
    ):
        lance.dataset(dataset_uri).delete("id = 7" if target is None else "id = 8")
        compact(dataset_uri)

    commit_operation(snapshot, CreateIndex((metadata,)))

    [covered] = coverage(dataset_uri)
    assert {fragment.fragment_id for fragment in lance.dataset(dataset_uri).get_fragments()} <= set(covered)
    check(dataset_uri)


def test_our_compaction_commits_after_their_new_index_of_row_ids(dataset_uri: str) -> None:
    lance.write_dataset(rows(0, 100), dataset_uri, max_rows_per_file=20, enable_stable_row_ids=True)
    snapshot = lance_ops.dataset(dataset_uri).snapshot
    rewrites = [execute_rewrite(task) for task in plan_compaction(snapshot, CompactionOptions()).tasks]
    lance.dataset(dataset_uri).create_scalar_index("key", "BITMAP")

    committed, _ = commit_rewrites(snapshot, rewrites)

    [fragment] = committed.fragments
    assert coverage(dataset_uri) == [[fragment.id]]
    theirs = lance.dataset(dataset_uri)
    theirs.validate()
    assert "ScalarIndexQuery" in theirs.scanner(filter="key = 42").explain_plan()
    assert theirs.to_table(filter="key = 42") == theirs.to_table(filter="key = 42", use_scalar_index=False)


@pytest.mark.parametrize("version", ["2.0", "2.1", "2.2"])
def test_a_label_list_index_of_the_reference_finds_lists_that_ours_wrote_in_place(
    dataset_uri: str, version: str
) -> None:
    lists = pa.table({"id": range(10), "labels": [["old"]] * 10, "x": range(10)})
    lance.write_dataset(lists, dataset_uri, max_rows_per_file=5, data_storage_version=version)
    lance.dataset(dataset_uri).create_scalar_index("labels", "LABEL_LIST")

    builder = lance_ops.dataset(dataset_uri).merge_insert("id").when_matched_update_all().write_mode("rewrite_columns")
    builder.execute(pa.table({"id": [3], "labels": [["new"]]}))

    theirs = lance.dataset(dataset_uri)
    assert coverage(dataset_uri, "labels_idx") == [[1]]
    for label, expected in (("new", [3]), ("old", [0, 1, 2, *range(4, 10)])):
        query = theirs.scanner(filter=f"array_has_any(labels, ['{label}'])")
        assert "ScalarIndexQuery" in query.explain_plan()
        assert sorted(query.to_table()["id"].to_pylist()) == expected
