"""The reference reads rows that a compaction sorted, and its own stale writers do no harm to them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import lance_ops

lance = pytest.importorskip("lance", reason="pylance, the reference implementation, is not installed")
pytestmark = pytest.mark.interop

NUM_ROWS = 200


def table(first: int = 0) -> pa.Table:
    ids = range(first, first + NUM_ROWS)
    return pa.table(
        {"id": pa.array(ids, pa.int64()), "x": [n * 7919 % 200 for n in ids], "t": [f"t{n % 9}" for n in ids]}
    )


@pytest.mark.parametrize("order", ["linear", "z_order"])
@pytest.mark.parametrize("stable", [False, True], ids=["addresses", "stable"])
def test_the_reference_reads_and_maintains_sorted_rows(tmp_path: Path, stable: bool, order: Any) -> None:
    uri = str(tmp_path / "table")
    lance.write_dataset(table(), uri, max_rows_per_file=40, enable_stable_row_ids=stable)
    theirs = lance.dataset(uri)
    theirs.create_scalar_index("id", "BTREE")
    theirs.delete("id % 10 = 4")
    stale = lance.dataset(uri)
    ours = lance_ops.dataset(uri)
    row_ids = ours.to_table(columns=["id"], with_row_id=True).sort_by("id") if stable else None
    ours.optimize.compact_files(target_rows_per_fragment=50, cluster_by=["x", "t"], cluster_order=order)
    kept = [n for n in range(NUM_ROWS) if n % 10 != 4]
    newest = lance.dataset(uri)
    newest.validate()
    assert newest.to_table() == ours.to_table()
    assert sorted(newest.to_table()["id"].to_pylist()) == kept
    if order == "linear":
        assert newest.to_table()["x"].to_pylist() == sorted(newest.to_table()["x"].to_pylist())
    if stable:
        assert newest.to_table(columns=["id"], with_row_id=True).sort_by("id") == row_ids
    for wanted in (1, 4, 77, 199):
        assert newest.to_table(filter=f"id = {wanted}")["id"].to_pylist() == ([wanted] if wanted in kept else [])
    assert "ScalarIndexQuery" in newest.scanner(filter="id = 77").explain_plan()
    stale.insert(table(1000))  # planned before the rows moved
    late = lance.dataset(uri, version=3)
    late.delete("id = 77")  # a conflict that it plans again
    left = lance.dataset(uri)
    left.optimize.compact_files()
    left.optimize.optimize_indices()
    expected = sorted([n for n in kept if n != 77] + list(range(1000, 1000 + NUM_ROWS)))
    for library in (lance, lance_ops):
        assert sorted(library.dataset(uri).to_table()["id"].to_pylist()) == expected
        assert library.dataset(uri).count_rows("id = 77 or id = 78") == 1
