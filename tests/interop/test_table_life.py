"""Both libraries write one table in turns, and read the same rows after each turn."""

from datetime import timedelta

import pyarrow as pa
import pytest

import lance_ops

lance = pytest.importorskip("lance", reason="pylance, the reference implementation, is not installed")
pytestmark = pytest.mark.interop


def rows(start: int, stop: int) -> pa.Table:
    ids = list(range(start, stop))
    return pa.table(
        {
            "id": ids,
            "key": pa.array([None if i % 7 == 0 else i % 50 for i in ids], pa.int32()),
            "text": [None if i % 5 == 0 else f"some text of row {i}" for i in ids],
            "flag": [i % 2 == 0 for i in ids],
            "when": pa.array([i * 1_000_000 for i in ids], pa.timestamp("us", "UTC")),
            "vector": pa.array([[float(i), 0.5, -1.0, 2.0] for i in ids], pa.list_(pa.float32(), 4)),
        }
    )


def assert_same(uri: str) -> None:
    ours, theirs = lance_ops.dataset(uri), lance.dataset(uri)
    assert ours.version == theirs.version
    assert ours.schema == theirs.schema
    assert ours.count_rows() == theirs.count_rows()
    mine, other = ours.to_table(with_row_id=True), theirs.to_table(with_row_id=True)
    assert mine.equals(other)
    for predicate in ("key = 3", "key IS NULL", "key > 40 AND flag", "text LIKE '%7'", "id IN (1, 5, 100000)"):
        assert ours.to_table(filter=predicate).equals(theirs.to_table(filter=predicate)), predicate
        assert ours.count_rows(predicate) == theirs.count_rows(predicate)
    ours.validate()
    theirs.validate()


@pytest.mark.parametrize("version", ["2.1", "2.2"])
def test_both_libraries_write_in_turns_and_read_the_same_rows(dataset_uri: str, version: str) -> None:
    lance_ops.write_dataset(rows(0, 1000), dataset_uri, max_rows_per_file=300, data_storage_version=version)
    assert_same(dataset_uri)
    lance.write_dataset(rows(1000, 3000), dataset_uri, mode="append", max_rows_per_file=500)
    assert_same(dataset_uri)
    lance.dataset(dataset_uri).delete("id % 10 = 3")
    assert_same(dataset_uri)
    lance_ops.dataset(dataset_uri).delete("id % 10 = 4")
    assert_same(dataset_uri)
    lance_ops.dataset(dataset_uri).create_scalar_index("key", "BTREE")
    assert "ScalarIndexQuery" in lance.dataset(dataset_uri).scanner(filter="key = 3").explain_plan()
    assert_same(dataset_uri)
    lance_ops.write_dataset(rows(3000, 3500), dataset_uri, mode="append")
    lance.dataset(dataset_uri).optimize.optimize_indices()
    assert_same(dataset_uri)
    lance_ops.dataset(dataset_uri).optimize.compact_files()
    assert "ScalarIndexQuery" in lance.dataset(dataset_uri).scanner(filter="key = 3").explain_plan()
    assert_same(dataset_uri)
    lance.write_dataset(rows(3500, 3600), dataset_uri, mode="append")
    lance_ops.dataset(dataset_uri).optimize.optimize_indices()
    assert lance.dataset(dataset_uri).stats.index_stats("key_idx")["num_unindexed_rows"] == 0
    lance.dataset(dataset_uri).optimize.compact_files()
    assert "ScalarIndexQuery" in lance_ops.dataset(dataset_uri).scanner(filter="key = 3").explain_plan()
    assert_same(dataset_uri)
    lance_ops.dataset(dataset_uri).tags.create("ours")
    lance.dataset(dataset_uri).tags.create("theirs", 2)
    assert lance.dataset(dataset_uri).tags.list().keys() == lance_ops.dataset(dataset_uri).tags.list().keys()
    assert (
        lance_ops.dataset(dataset_uri, version="theirs")
        .to_table()
        .equals(lance.dataset(dataset_uri, version=2).to_table())
    )
    lance_ops.dataset(dataset_uri).cleanup_old_versions(timedelta(0), error_if_tagged_old_versions=False)
    assert lance.dataset(dataset_uri, version="theirs").count_rows() == 3000
    assert_same(dataset_uri)
    lance_ops.dataset(dataset_uri, version="theirs").restore()
    assert_same(dataset_uri)


def test_each_library_reads_the_others_transactions(dataset_uri: str) -> None:
    lance_ops.write_dataset(rows(0, 100), dataset_uri, transaction_properties={"job": "one"}, commit_message="hello")
    lance.write_dataset(rows(100, 200), dataset_uri, mode="append", transaction_properties={"job": "two"})
    theirs = lance.dataset(dataset_uri).read_transaction(1)
    assert theirs.transaction_properties == {"job": "one", "__lance_commit_message": "hello"}
    ours = lance_ops.dataset(dataset_uri).read_transaction(2)
    assert ours is not None and ours.operation.name == "Append"
    assert dict(ours.transaction_properties) == {"job": "two"}


def test_our_append_after_a_concurrent_reference_append_keeps_both(dataset_uri: str) -> None:
    lance_ops.write_dataset(rows(0, 10), dataset_uri)
    stale = lance_ops.dataset(dataset_uri)
    lance.write_dataset(rows(10, 20), dataset_uri, mode="append")
    lance.dataset(dataset_uri).delete("id = 5")
    assert stale.delete("id = 6") == {"num_deleted_rows": 1}
    assert_same(dataset_uri)
    assert lance_ops.dataset(dataset_uri).count_rows() == 18
