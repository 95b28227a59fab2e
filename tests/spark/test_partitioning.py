"""How many tasks share a read: as many as the cluster has cores for, if each of them has enough to read."""

from __future__ import annotations

import os
from collections.abc import Sequence

import pyarrow as pa
import pytest

import lance_ops
from lance_ops.core.schema import Schema
from lance_ops.reading import ScanRequest, plan_scan
from lance_ops.snapshot import Snapshot
from lance_ops.spark.partitioning import share_blocks
from lance_ops.table import Fragment

_FRAGMENTS = 20


@pytest.mark.parametrize(
    ("fragment_bytes", "num_slots", "num_groups"),
    [
        (1 << 30, None, 160),
        (1 << 30, 2, 160),
        (1 << 30, 100, 300),
        (1 << 30, 4000, 1280),
        (1 << 20, 4000, 6),
        (1 << 20, None, 6),
    ],
)
def test_a_large_read_has_three_tasks_for_each_core_of_the_cluster_and_a_small_one_few(
    dataset_uri: str, monkeypatch: pytest.MonkeyPatch, fragment_bytes: int, num_slots: int | None, num_groups: int
) -> None:
    rows = pa.table({"id": range(_FRAGMENTS * 200)})
    snapshot = lance_ops.write_dataset(rows, dataset_uri, max_rows_per_file=200).snapshot
    blocks = [block for block, _ in plan_scan(snapshot, ScanRequest(snapshot.schema)).blocks.parts]

    def sizes(snapshot: Snapshot, fragments: Sequence[Fragment], schema: Schema) -> dict[int, int]:
        return {fragment.id: fragment_bytes for fragment in fragments}

    monkeypatch.setattr("lance_ops.spark.partitioning.projected_sizes", sizes)
    monkeypatch.setattr(os, "cpu_count", lambda: 2)
    groups, total = share_blocks(snapshot, blocks, snapshot.schema, None, num_slots)
    assert total == _FRAGMENTS * fragment_bytes
    assert len(groups) == pytest.approx(num_groups, rel=0.25)
    assert sum(stop - start for group in groups for _, start, stop in group.row_ranges) == _FRAGMENTS * 200
