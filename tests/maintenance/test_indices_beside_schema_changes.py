"""An index built, extended or moved while its column is dropped: it answers for no column that takes the field id."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pyarrow as pa
import pytest

import lance_ops
from lance_ops.errors import InvalidInput
from lance_ops.maintenance.compaction import rewriting
from lance_ops.maintenance.indexing import reindex
from lance_ops.maintenance.indexing.segment_commit import commit_segment
from lance_ops.transactions import Rewrite
from lance_ops.writing import commit_operation


@pytest.fixture(params=[False, True], ids=["addresses", "stable row ids"])
def uri(dataset_uri: str, request: pytest.FixtureRequest) -> str:
    """A table whose column `x`, in files of its own, has the highest field id."""
    rows = pa.table({"id": range(8)})
    dataset = lance_ops.write_dataset(rows, dataset_uri, max_rows_per_file=4, enable_stable_row_ids=request.param)
    dataset.add_columns({"x": "id * 10"})
    return dataset_uri


def dropped(uri: str) -> None:
    lance_ops.dataset(uri).drop_columns(["x"])


def dropped_and_id_reused(uri: str) -> None:
    before = lance_ops.dataset(uri).snapshot.schema.field("x").id
    dropped(uri)
    lance_ops.dataset(uri).add_columns(pa.field("y", pa.int64()))
    assert lance_ops.dataset(uri).snapshot.schema.field("y").id == before


@pytest.mark.parametrize("kind", ["BTREE", "ZONEMAP"])
@pytest.mark.parametrize("meanwhile", [dropped, dropped_and_id_reused])
@pytest.mark.parametrize("extends", [False, True], ids=["new", "extended"])
def test_no_index_of_a_dropped_column_is_committed(
    uri: str, monkeypatch: pytest.MonkeyPatch, meanwhile: Callable[[str], None], kind: str, extends: bool
) -> None:
    dataset = lance_ops.dataset(uri)
    if extends:
        dataset.create_scalar_index("x", kind)
        dataset.update_columns(pa.table({"_rowaddr": pa.array([0], pa.uint64()), "x": [70]}))
    num_built = 0

    def meanwhile_first(*arguments: Any) -> Any:
        nonlocal num_built
        num_built += 1
        meanwhile(uri)
        return commit_segment(*arguments)

    monkeypatch.setattr(reindex, "commit_segment", meanwhile_first)
    if extends:
        dataset.optimize.optimize_indices()
    else:
        with pytest.raises(InvalidInput, match="no column 'x'"):
            dataset.create_scalar_index("x", kind)

    newest = lance_ops.dataset(uri)
    assert num_built == 1 and newest.snapshot.manifest.indices == ()
    newest.validate()
    if "y" in newest.schema.names:
        assert newest.count_rows("y = 30") == 0 and newest.count_rows("y is null") == newest.count_rows()


@pytest.mark.parametrize("is_new", [False, True], ids=["remapped", "new"])
def test_a_compaction_beside_a_drop_of_an_indexed_column_keeps_its_rows(
    uri: str, monkeypatch: pytest.MonkeyPatch, is_new: bool
) -> None:
    dataset = lance_ops.dataset(uri)
    dataset.create_scalar_index("id", "BTREE")
    if not is_new:
        dataset.create_scalar_index("x", "BTREE")
    num_commits = 0

    def meanwhile_first(snapshot: Any, operation: Any, **options: Any) -> Any:
        nonlocal num_commits
        num_commits += isinstance(operation, Rewrite)
        if isinstance(operation, Rewrite) and num_commits == 1:
            if is_new:
                lance_ops.dataset(uri).create_scalar_index("x", "BTREE")
            dropped(uri)
        return commit_operation(snapshot, operation, **options)

    monkeypatch.setattr(rewriting, "commit_operation", meanwhile_first)
    metrics = dataset.optimize.compact_files()

    newest = lance_ops.dataset(uri)
    assert num_commits == 1 and metrics.fragments_removed == 2 and len(newest.snapshot.fragments) == 1
    assert newest.count_rows("id = 3") == 1 and newest.count_rows() == 8
    assert [index.name for index in newest.snapshot.manifest.indices] == ["id_idx"]
    newest.validate()
