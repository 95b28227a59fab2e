"""The reference reads what a merge by tasks wrote, and its own merge of the same source gives the same rows."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import lance
import pyarrow as pa
import pytest

import lance_ops
from lance_ops.changing.merge_insert import MergeRequest, WhenMatched
from lance_ops.changing.merge_insert.by_tasks import SourceRows, TaskSizes, distributed_merge
from tests.pickling_runner import PicklingRunner

pytestmark = pytest.mark.interop

SIZES = TaskSizes(rows_per_bucket=20, rows_per_part=30)


def rows(start: int, stop: int, value: int) -> pa.Table:
    return pa.table(
        {
            "id": pa.array([None if key % 17 == 0 else key for key in range(start, stop)], pa.int64()),
            "name": [f"{value}-{key}" for key in range(start, stop)],
            "vector": pa.FixedSizeListArray.from_arrays(pa.array(range(start * 2, stop * 2), pa.float32()), 2),
        }
    )


@pytest.mark.parametrize("columns", [["id", "name", "vector"], ["id", "name"]], ids=["whole rows", "some columns"])
@pytest.mark.parametrize("stable", [False, True], ids=["addresses", "stable ids"])
def test_both_merge_alike(tmp_path: Path, stable: bool, columns: list[str]) -> None:
    ours, theirs = str(tmp_path / "ours"), str(tmp_path / "theirs")
    for uri in (ours, theirs):
        lance.write_dataset(rows(0, 100, 0), uri, max_rows_per_file=25, enable_stable_row_ids=stable)
    given = rows(60, 140, 1).select(columns)
    source = lance.write_dataset(given, str(tmp_path / "source"), max_rows_per_file=25)
    builder: Any = lance.dataset(theirs).merge_insert("id")
    counts = builder.when_matched_update_all().when_not_matched_insert_all().execute(given)
    request = MergeRequest(("id",), WhenMatched.UPDATE, inserts=True)
    runner, staged = PicklingRunner(), SourceRows.of(lance_ops.dataset(source.uri).snapshot)
    _, found = distributed_merge(lance_ops.dataset(ours).snapshot, request, staged, runner, sizes=SIZES)
    assert dict(runner.jobs)["merge (join) into"] == 4
    assert (found.inserted, found.updated) == (counts["num_inserted_rows"], counts["num_updated_rows"])
    tables = [lance.dataset(uri).to_table().to_pylist() for uri in (ours, theirs)]
    assert sorted(map(repr, tables[0])) == sorted(map(repr, tables[1]))
    lance_ops.dataset(ours).validate()
    if stable:
        keys = [lance.dataset(uri).to_table(["id"], filter="id < 100", with_row_id=True) for uri in (ours, theirs)]
        pairs = [dict(zip(t["id"].to_pylist(), t["_rowid"].to_pylist(), strict=True)) for t in keys]
        assert pairs[0] == pairs[1]


def test_the_reference_reads_a_deletion_by_keys_and_its_transaction(tmp_path: Path) -> None:
    uri = str(tmp_path / "t")
    lance.write_dataset(rows(0, 100, 0), uri, max_rows_per_file=25)
    keys = lance_ops.write_dataset(pa.table({"id": range(50, 200)}), tmp_path / "k", max_rows_per_file=40)
    assert lance_ops.dataset(uri).delete_by_keys(keys, "id", runner=PicklingRunner())["num_deleted_rows"] == 47
    opened = lance.dataset(uri)
    assert [key for key in opened.to_table()["id"].to_pylist() if key] == [key for key in range(50) if key % 17]
    transaction = opened.read_transaction(2)
    assert transaction is not None
    assert isinstance(transaction.operation, lance.LanceOperation.Delete)
