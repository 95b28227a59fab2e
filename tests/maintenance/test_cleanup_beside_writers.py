"""Rewrites and new indices are committed, although writers clean up after each commit meanwhile."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest

import lance_ops
from lance_ops.core.versions import FileVersion
from lance_ops.maintenance.compaction import compact_files, migrate_files
from lance_ops.maintenance.compaction.compaction_plan import CompactionOptions
from lance_ops.maintenance.indexing import create_scalar_index
from lance_ops.maintenance.indexing.segment_builder import SegmentBuilder
from lance_ops.refs.version_pins import PINS_DIR
from lance_ops.runners import InThreads
from lance_ops.snapshot.snapshot import Snapshot
from tests.maintenance.conftest import rows

Make = Callable[..., lance_ops.LanceDataset]
NOW = timedelta(0)


def append(uri: str, times: int, **options: Any) -> None:
    for _ in range(times):
        lance_ops.write_dataset(rows(0, 1), uri, mode="append", **options)


class BesideTraffic(InThreads):
    """Runs tasks after others have done something; counts the jobs."""

    def __init__(self, traffic: Callable[[], object]) -> None:
        super().__init__(1)
        self.traffic = traffic
        self.num_jobs = 0

    def map(self, *arguments: Any, **options: Any) -> Any:
        self.num_jobs += 1
        self.traffic()
        return super().map(*arguments, **options)


REWRITES: dict[str, Callable[[Snapshot, BesideTraffic], object]] = {
    "compact": lambda snapshot, runner: compact_files(snapshot, CompactionOptions(), runner),
    "cluster": lambda snapshot, runner: compact_files(snapshot, CompactionOptions(cluster_by=("id",)), runner),
    "migrate": lambda snapshot, runner: migrate_files(snapshot, FileVersion.V2_1, runner),
}


@pytest.mark.parametrize("verb", REWRITES)
def test_a_rewrite_ends_beside_writers_that_clean_up_after_each_commit(make: Make, verb: str) -> None:
    dataset = make()
    dataset.optimize.enable_auto_cleanup({"interval": 1, "older_than_seconds": 0})
    runner = BesideTraffic(lambda: append(dataset.uri, 3))
    REWRITES[verb](lance_ops.dataset(dataset.uri).snapshot, runner)
    assert runner.num_jobs == (3 if verb == "cluster" else 1)
    assert list(dataset.snapshot.store.list(PINS_DIR)) == []
    again = lance_ops.dataset(dataset.uri)
    again.validate()
    assert again.count_rows() == 100 + 3 * runner.num_jobs
    append(dataset.uri, 1)
    assert len(again.versions()) == 2  # without the pin, clean-up removes the versions that it kept


def test_an_index_is_committed_beside_writers_that_clean_up_after_each_commit(
    make: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    dataset = make()
    dataset.optimize.enable_auto_cleanup({"interval": 1, "older_than_seconds": 0})
    train = SegmentBuilder.train

    def beside_traffic(*arguments: Any) -> Any:
        append(dataset.uri, 3)
        return train(*arguments)

    monkeypatch.setattr(SegmentBuilder, "train", beside_traffic)
    create_scalar_index(lance_ops.dataset(dataset.uri).snapshot, "id", "BTREE")
    again = lance_ops.dataset(dataset.uri)
    again.validate()
    assert again.count_rows() == 103
    assert again.stats.index_stats("id_idx")["num_indexed_rows"] == 100
    assert "ScalarIndexQuery" in again.scanner(filter="id = 3").explain_plan()
    assert again.to_table(["id"], filter="id = 3")["id"].to_pylist() == [3]


def test_an_attempt_after_a_lost_one_keeps_its_version(make: Make) -> None:
    dataset = make()

    def traffic() -> None:
        append(dataset.uri, 3)
        lance_ops.dataset(dataset.uri).cleanup_old_versions(NOW)

    runner = BesideTraffic(traffic)
    compact_files(dataset.snapshot, CompactionOptions(), runner)
    assert runner.num_jobs == 2
    again = lance_ops.dataset(dataset.uri)
    again.validate()
    assert again.count_rows() == 106
