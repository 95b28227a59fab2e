"""Compactions that sort rows by columns or along a Z curve."""

from __future__ import annotations

import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import lance_ops
from lance_ops.errors import InvalidInput, RetryableConflict, UnsupportedFeature
from lance_ops.maintenance.compaction import CompactionOptions, plan_clustering
from lance_ops.maintenance.compaction.clustering import cluster_files, cluster_plan, clustering
from lance_ops.optimize import Compaction
from lance_ops.runners import InThreads
from tests.pickling_runner import PicklingRunner

Make = Callable[..., lance_ops.LanceDataset]

NUM_ROWS = 240


def table(seed: int = 7) -> pa.Table:
    """Return rows in no order, with nulls, NaN, equal values and nested columns."""
    chance = random.Random(seed)
    numbers = [None if chance.random() < 0.1 else chance.randrange(40) for _ in range(NUM_ROWS)]
    floats = [chance.choice([None, float("nan"), -0.0, 0.0, chance.uniform(-9, 9)]) for _ in range(NUM_ROWS)]
    return pa.table(
        {
            "id": pa.array(range(NUM_ROWS), pa.int64()),
            "number": pa.array(numbers, pa.int32()),
            "real": pa.array(floats, pa.float64()),
            "text": [None if n is None else f"t{n % 7}" for n in numbers],
            "s": [{"a": chance.randrange(10), "l": [n, 1]} for n in range(NUM_ROWS)],
            "colour": pa.array([f"c{chance.randrange(3)}" for _ in range(NUM_ROWS)]).dictionary_encode(),
        }
    )


def written(uri: str, **options: Any) -> lance_ops.LanceDataset:
    return lance_ops.write_dataset(table(), uri, max_rows_per_file=30, **options)


def files(dataset: lance_ops.LanceDataset) -> set[str]:
    return {path.name for path in Path(dataset.uri, "data").rglob("*") if path.is_file()}


def named(dataset: lance_ops.LanceDataset) -> set[str]:
    versions = (dataset.checkout_version(version["version"]) for version in dataset.versions())
    return {file.path for each in versions for part in each.get_fragments() for file in part.data_files()}


def by_id(found: pa.Table) -> str:
    """Return rows in a form that compares NaN and dictionaries as equal."""
    return str(found.sort_by("id").to_pylist())


@pytest.mark.parametrize("stable", [False, True], ids=["addresses", "stable row ids"])
@pytest.mark.parametrize("version", ["2.0", "2.1", "2.2"])
def test_rows_are_in_order_over_all_fragments(dataset_uri: str, version: str, stable: bool) -> None:
    dataset = written(dataset_uri, data_storage_version=version, enable_stable_row_ids=stable)
    dataset.delete("id % 10 = 3")
    before = dataset.to_table()
    runner = PicklingRunner()
    options: dict[str, Any] = {"target_rows_per_fragment": 50, "cluster_by": ["number", "text"], "runner": runner}
    metrics = dataset.optimize.compact_files(**options)
    assert (metrics.fragments_removed, metrics.fragments_added) == (8, 5)
    after = dataset.to_table()
    assert by_id(after) == by_id(before)
    wanted = sorted(before.to_pylist(), key=lambda row: (row["number"] is not None, row["number"] or 0, row["id"]))
    assert [row["number"] for row in after.to_pylist()] == [row["number"] for row in wanted]
    assert {fragment.num_deletions for fragment in dataset.get_fragments()} == {0}
    assert [fragment.count_rows() for fragment in dataset.get_fragments()] == [43, 43, 43, 43, 44]
    assert files(dataset) == named(dataset)  # the runs are gone
    assert [verb for verb, _ in runner.jobs] == ["cluster, sample", "cluster, sort", "cluster, merge"]


def test_the_driver_gets_only_samples_and_small_messages(dataset_uri: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(clustering, "_MIN_SAMPLES", 100)
    monkeypatch.setattr(clustering, "_SAMPLES_PER_RANGE", 10)
    monkeypatch.setattr(cluster_plan, "PIECE_BYTES", 1 << 20)
    wide = pa.FixedSizeListArray.from_arrays(np.random.default_rng(3).random(64 * 20_000), 64)
    rows = pa.table({"id": pa.array(range(20_000), pa.int64()), "x": np.arange(20_000) * 7919 % 20_000, "wide": wide})
    dataset = lance_ops.write_dataset(rows, dataset_uri, max_rows_per_file=5_000)
    runner = PicklingRunner()
    dataset.optimize.compact_files(cluster_by=["x"], runner=runner)
    assert dataset.to_table(columns=["x"])["x"].to_pylist() == list(range(20_000))
    assert {verb: count > 3 for verb, count in runner.jobs} == dict.fromkeys(
        ["cluster, sample", "cluster, sort", "cluster, merge"], True
    )
    assert sum(runner.outcome_bytes) < 100_000 < rows.nbytes // 100
    assert max(runner.task_bytes) < 20_000


@pytest.mark.parametrize("stable", [False, True], ids=["addresses", "stable row ids"])
def test_an_index_finds_rows_where_they_are(dataset_uri: str, stable: bool) -> None:
    dataset = written(dataset_uri, enable_stable_row_ids=stable)
    dataset.create_scalar_index("id", "BTREE")
    dataset.delete("id % 9 = 0")
    before = dataset.to_table(with_row_id=stable)
    dataset.optimize.compact_files(target_rows_per_fragment=60, cluster_by=["text", "real"])
    (covered,) = dataset.describe_indices()
    assert covered.num_rows_indexed == len(before)
    for wanted in (1, 100, 239, 9):
        expected = [row for row in before.to_pylist() if row["id"] == wanted]
        assert str(dataset.to_table(filter=f"id = {wanted}", with_row_id=stable).to_pylist()) == str(expected)
        assert "ScalarIndexQuery" in dataset.scanner(filter=f"id = {wanted}").explain_plan()
    assert dataset.verify().ok


def test_row_ids_and_versions_travel_with_their_rows(dataset_uri: str) -> None:
    dataset = written(dataset_uri, enable_stable_row_ids=True)
    dataset.update({"text": "'changed'"}, where="id % 50 = 7")
    columns = ["id", "_rowid", "_row_created_at_version", "_row_last_updated_at_version"]
    before = dataset.to_table(columns=columns).sort_by("id")
    dataset.optimize.compact_files(target_rows_per_fragment=70, cluster_by=["real"])
    assert dataset.to_table(columns=columns).sort_by("id") == before


def test_rows_near_in_both_columns_are_near_on_a_z_curve(dataset_uri: str) -> None:
    side = 64
    cells = [(x, y) for x in range(side) for y in range(side)]
    random.Random(5).shuffle(cells)
    rows = pa.table({"id": range(len(cells)), "x": [x for x, _ in cells], "y": [float(y) ** 3 for _, y in cells]})
    dataset = lance_ops.write_dataset(rows, dataset_uri, max_rows_per_file=1000)

    def num_fragments_with(condition: str) -> int:
        return sum(fragment.count_rows(condition) > 0 for fragment in dataset.get_fragments())

    def spread() -> tuple[int, int]:
        return num_fragments_with("x = 17"), num_fragments_with(f"y = {17.0**3}")

    dataset.optimize.compact_files(target_rows_per_fragment=256, cluster_by=["x", "y"])
    assert spread() == (1, 16)
    dataset.optimize.compact_files(target_rows_per_fragment=256, cluster_by=["x", "y"], cluster_order="z_order")
    assert spread() == (4, 4)
    assert by_id(dataset.to_table()) == by_id(rows)


def test_fragments_under_different_indices_are_not_mixed(dataset_uri: str) -> None:
    dataset = written(dataset_uri)
    dataset.create_scalar_index("number", "BTREE")
    dataset = lance_ops.write_dataset(table(8), dataset_uri, mode="append", max_rows_per_file=60)
    dataset.optimize.compact_files(target_rows_per_fragment=100, cluster_by=["real"])
    (covered,) = dataset.describe_indices()
    assert covered.num_rows_indexed == NUM_ROWS
    expected = sum(n == 5 for seed in (7, 8) for n in table(seed)["number"].to_pylist())
    assert dataset.count_rows("number = 5") == expected


def test_rows_of_one_value_are_cut_into_fragments_of_the_target_size(dataset_uri: str) -> None:
    rows = pa.table({"id": range(1000), "same": [1] * 1000})
    dataset = lance_ops.write_dataset(rows, dataset_uri, max_rows_per_file=90)
    dataset.optimize.compact_files(target_rows_per_fragment=250, cluster_by=["same"])
    assert [fragment.count_rows() for fragment in dataset.get_fragments()] == [250] * 4
    assert dataset.to_table() == rows


def test_limits_bound_what_is_sorted(dataset_uri: str) -> None:
    dataset = written(dataset_uri)
    metrics = dataset.optimize.compact_files(cluster_by=["number"], max_source_fragments=3, excluded_fragment_ids=[1])
    assert (metrics.fragments_removed, metrics.fragments_added) == (3, 1)
    assert {1, 4, 5, 6, 7} < {fragment.fragment_id for fragment in dataset.get_fragments()}
    assert dataset.count_rows() == NUM_ROWS


def test_no_fragment_that_exceeds_the_limits_is_sorted(dataset_uri: str) -> None:
    lance_ops.write_dataset(table(), dataset_uri)
    dataset = written(dataset_uri, mode="append")  # fragments of 30 rows after one of 240
    plan = plan_clustering(dataset.snapshot, CompactionOptions(cluster_by=("number",), max_source_rows=80))
    assert [[fragment.id for fragment in group.fragments] for group in plan.groups] == [[1, 2]]
    assert dataset.optimize.compact_files(cluster_by=["number"], max_source_rows=1).fragments_removed == 0


def test_empty_tables_and_fragments_have_nothing_to_sort(dataset_uri: str) -> None:
    dataset = lance_ops.write_dataset(table().slice(0, 0), dataset_uri)
    assert dataset.optimize.compact_files(cluster_by=["id"]).fragments_removed == 0
    dataset = written(dataset_uri, mode="overwrite")
    dataset.delete("id < 60 or id > 200")
    dataset.optimize.compact_files(cluster_by=["id"])
    assert dataset.to_table(columns=["id"])["id"].to_pylist() == list(range(60, 201))


def during(monkeypatch: pytest.MonkeyPatch, act: Callable[[], object]) -> list[int]:
    """Let somebody act once, after the rows were read and before they are committed; return a list of the attempts."""
    attempts: list[int] = []
    commit = clustering._commit

    def beside(*args: Any) -> Any:
        attempts.append(1)
        if len(attempts) == 1:
            act()
        return commit(*args)

    monkeypatch.setattr(clustering, "_commit", beside)
    return attempts


@pytest.mark.parametrize("stable", [False, True], ids=["addresses", "stable row ids"])
@pytest.mark.parametrize(
    ("act", "attempts", "left"),
    [
        (lambda other: other.delete("id < 5"), 2, NUM_ROWS - 5),
        (lambda other: other.update({"number": "0"}, where="id = 3"), 2, NUM_ROWS),
        (lambda other: other.insert(table(9)), 1, 2 * NUM_ROWS),
        (lambda other: other.create_scalar_index("text", "BTREE"), 2, NUM_ROWS),
        (lambda other: other.optimize.compact_files(), 2, NUM_ROWS),
    ],
    ids=["delete", "update", "append", "index", "compaction"],
)
def test_a_conflict_is_planned_again_and_loses_no_change(
    dataset_uri: str,
    monkeypatch: pytest.MonkeyPatch,
    act: Callable[[lance_ops.LanceDataset], object],
    attempts: int,
    left: int,
    stable: bool,
) -> None:
    dataset = written(dataset_uri, enable_stable_row_ids=stable)
    seen = during(monkeypatch, lambda: act(lance_ops.dataset(dataset_uri)))
    dataset.optimize.compact_files(cluster_by=["number"])
    assert len(seen) == attempts
    newest = lance_ops.dataset(dataset_uri)
    assert newest.count_rows() == left
    assert newest.verify().ok
    assert files(newest) == named(newest)


def test_a_delete_planned_before_a_clustering_is_planned_again(dataset_uri: str) -> None:
    dataset = written(dataset_uri)
    stale = lance_ops.dataset(dataset_uri)
    dataset.optimize.compact_files(cluster_by=["real"])
    stale.delete("id IN (3, 77)")
    left = [row for row in range(NUM_ROWS) if row not in (3, 77)]
    assert sorted(stale.to_table(columns=["id"])["id"].to_pylist()) == left


def test_an_index_planned_before_a_clustering_finds_only_right_rows(dataset_uri: str) -> None:
    dataset = written(dataset_uri)
    stale = lance_ops.dataset(dataset_uri)
    dataset.optimize.compact_files(cluster_by=["real"])
    stale.create_scalar_index("id", "BTREE")
    for wanted in (0, 50, 239):
        assert stale.to_table(filter=f"id = {wanted}")["id"].to_pylist() == [wanted]


@pytest.mark.parametrize("stage", ["Sample", "Partition", "Merge"])
def test_a_failing_task_leaves_the_dataset_as_before(
    dataset_uri: str, monkeypatch: pytest.MonkeyPatch, stage: str
) -> None:
    dataset = written(dataset_uri)
    monkeypatch.setattr(cluster_plan, "PIECE_BYTES", 4000)
    kind = getattr(clustering, stage)
    call, calls = kind.__call__, []

    def failing(self: Any, task: Any) -> Any:
        calls.append(task)
        if len(calls) == 3:
            raise OSError("disk on fire")
        return call(self, task)

    monkeypatch.setattr(kind, "__call__", failing)
    before = files(dataset)
    with pytest.raises(OSError, match="disk on fire"):
        dataset.optimize.compact_files(cluster_by=["id"], runner=InThreads(1))
    assert (files(dataset), lance_ops.dataset(dataset_uri).version) == (before, dataset.version)


def test_a_task_that_runs_twice_leaves_a_file_that_clean_up_finds(dataset_uri: str) -> None:
    dataset = written(dataset_uri)

    class Twice(PicklingRunner):
        def map(self, function: Any, tasks: Any, job: Any = None, discard: Any = None) -> Any:
            super().map(function, tasks, job, discard)
            return super().map(function, tasks, job, discard)

    dataset.optimize.compact_files(target_rows_per_fragment=100, cluster_by=["id"], runner=Twice())
    assert dataset.to_table(columns=["id"])["id"].to_pylist() == list(range(NUM_ROWS))
    lost = files(dataset) - named(dataset)
    assert len(lost) == 1 + 3  # a run and a range's fragments
    dataset.cleanup_old_versions(retain_versions=100, delete_unverified=True)
    assert files(dataset) == named(dataset)


@pytest.mark.parametrize(
    ("options", "error", "match"),
    [
        ({"cluster_by": ["nothing"]}, InvalidInput, "nothing"),
        ({"cluster_by": ["s.l.item"]}, InvalidInput, "'l' has several values"),
        ({"cluster_by": ["s"]}, UnsupportedFeature, "struct"),
        ({"cluster_by": ["id", "id"]}, InvalidInput, "twice"),
        ({"cluster_by": ["id"], "cluster_order": "hilbert"}, InvalidInput, "cluster_order"),
        ({"cluster_by": ["id"], "max_commits": 2}, InvalidInput, "max_commits"),
        ({"cluster_by": ["id"], "max_seconds": 2.0}, InvalidInput, "max_seconds"),
        ({"cluster_by": ["id"], "data_storage_version": "0.1"}, UnsupportedFeature, "0.1"),
    ],
    ids=str,
)
def test_what_cannot_be_sorted_is_refused(
    dataset_uri: str, options: dict[str, Any], error: type[Exception], match: str
) -> None:
    dataset = written(dataset_uri)
    with pytest.raises(error, match=match):
        dataset.optimize.compact_files(**options)


def test_a_plan_in_steps_refuses_to_sort(dataset_uri: str) -> None:
    with pytest.raises(InvalidInput, match="several stages"):
        Compaction.plan(written(dataset_uri), {"cluster_by": ["id"]})


def test_without_retries_a_conflict_is_told_to_the_caller(dataset_uri: str, monkeypatch: pytest.MonkeyPatch) -> None:
    dataset = written(dataset_uri)
    during(monkeypatch, lambda: lance_ops.dataset(dataset_uri).delete("id = 9"))
    with pytest.raises(RetryableConflict):
        cluster_files(dataset.snapshot, CompactionOptions(cluster_by=("id",)), InThreads())
