"""The maintenance verbs with Spark as their runner: the plans' own tasks, executed by workers."""

from __future__ import annotations

import importlib
import os
from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from functools import partial
from pathlib import Path
from uuid import uuid4

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest

from lance_ops import changing
from lance_ops.api import batch_udf_factory, dataset, write_dataset
from lance_ops.changing.columns import column_pieces
from lance_ops.changing.merge_insert import by_tasks
from lance_ops.core.errors import RetryableConflict, SchemaMismatch
from lance_ops.indices import IndexConfig
from lance_ops.maintenance.cleanup import CleanupOptions, CleanupTasks, cleanup_old_versions
from lance_ops.maintenance.compaction.compaction_plan import CompactionOptions, plan_compaction
from lance_ops.maintenance.compaction.rewriting import commit_rewrites, execute_rewrite
from lance_ops.maintenance.indexing import TaskSizes, create_scalar_index
from lance_ops.maintenance.ingest import IngestBatch, IngestOptions, RawFile, ingest
from lance_ops.runners import JobProgress
from lance_ops.spark import OnSpark, sql
from lance_ops.writing import UpdatedRowWriter, deletion_files, task_shares
from tests.spark.recorded_jobs import RecordedJobs

pytestmark = pytest.mark.spark


@pytest.fixture
def numbers(dataset_uri: str) -> str:
    """A table of ten fragments; `x` is 0 to 39."""
    write_dataset(pa.table({"x": pa.array(range(40), pa.int64())}), dataset_uri, max_rows_per_file=4)
    return dataset_uri


def rows(uri: str) -> list[int]:
    return [int(x) for x in dataset(uri).to_table().column("x").to_pylist()]


def raw_batch(folder: Path, key: str, table: pa.Table) -> IngestBatch:
    path = folder / f"{key}.parquet"
    pq.write_table(table, path)
    return IngestBatch(key, (RawFile(str(path), path.stat().st_size, f"token of {key}"),))


def test_rows_are_deleted_by_tasks(tasks: OnSpark, numbers: str) -> None:
    assert dataset(numbers).delete("x % 3 = 0", runner=tasks)["num_deleted_rows"] == 14
    assert rows(numbers) == [x for x in range(40) if x % 3]


def test_tasks_write_deletion_files_and_the_driver_writes_none(
    tasks: OnSpark, numbers: str, jobs: RecordedJobs, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: object) -> None:
        raise AssertionError("the driver wrote a deletion file")

    monkeypatch.setattr(deletion_files, "_FEWEST_FOR_TASKS", 4)
    monkeypatch.setattr(deletion_files, "_FRAGMENTS_PER_TASK", 3)
    monkeypatch.setattr(deletion_files, "_write", refuse)
    table = dataset(numbers)
    jobs.take()
    assert table.delete("x % 4 = 1", runner=tasks)["num_deleted_rows"] == 10
    assert jobs.take()[-1] == "write deletion files of data v1, 4 tasks"
    assert table.update({"x": "-x"}, "x % 4 = 3", runner=tasks)["num_rows_updated"] == 10
    assert jobs.take()[-1] == "write deletion files of data v2, 4 tasks"
    sql(tasks.session, f"DELETE FROM lance.`{numbers}` WHERE abs(x) % 4 = 2")
    assert jobs.take()[-1] == "write deletion files of data v3, 4 tasks"
    assert sorted(rows(numbers)) == sorted(-x if x % 4 == 3 else x for x in range(40) if x % 4 in (0, 3))
    assert table.latest_version == 4
    assert dataset(numbers).verify().ok


def test_an_erasure_by_the_keys_of_a_frame_is_searched_and_proven_by_tasks(tasks: OnSpark, numbers: str) -> None:
    table = dataset(numbers)
    table.delete("x = 3")
    keys = tasks.session.range(0, 60_000, 3).withColumnRenamed("id", "x")
    report = table.erase(keys=keys, on="x", reason="request 12", runner=tasks)
    assert report.is_proven, report.unproven
    assert sorted(rows(numbers)) == [x for x in range(40) if x % 3]
    assert min(each["version"] for each in table.versions()) > 2
    assert not [*Path(numbers).glob("data/merge-*"), *Path(numbers).rglob("*.sealed")]


def test_one_large_fragment_is_updated_by_several_tasks(
    tasks: OnSpark, dataset_uri: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: object) -> None:
        raise AssertionError("the driver wrote rows")

    monkeypatch.setattr(task_shares, "_ROWS_PER_TASK", 10)
    monkeypatch.setattr(UpdatedRowWriter, "write_updated", refuse)
    table = write_dataset(pa.table({"x": range(1000)}), dataset_uri)
    seen: list[JobProgress] = []
    counts = table.update({"x": "-x"}, "x % 2 = 1", runner=replace(tasks, on_progress=seen.append))
    assert counts["num_rows_updated"] == 500
    assert seen[-1].num_tasks == seen[-1].num_done == 12
    assert len(table.get_fragments()) == 1 + 12
    assert sorted(rows(dataset_uri)) == sorted(-x if x % 2 else x for x in range(1000))
    assert table.verify().ok


def test_fragments_are_compacted_by_tasks(tasks: OnSpark, numbers: str) -> None:
    dataset(numbers).delete("x < 6")
    metrics = dataset(numbers).optimize.compact_files(target_rows_per_fragment=20, runner=tasks)
    assert metrics.fragments_added < metrics.fragments_removed
    assert rows(numbers) == list(range(6, 40))


def test_rows_deleted_during_a_compaction_do_not_come_back(tasks: OnSpark, numbers: str) -> None:
    snapshot = dataset(numbers).snapshot
    plan = plan_compaction(snapshot, CompactionOptions(target_rows_per_fragment=20))
    rewrites = tasks.map(execute_rewrite, plan.tasks)
    dataset(numbers).delete("x IN (0, 7, 39)")
    with suppress(RetryableConflict):  # compact_files would plan again
        commit_rewrites(snapshot, rewrites)
    assert rows(numbers) == [x for x in range(40) if x not in (0, 7, 39)]


def test_many_batches_of_raw_files_are_one_version_and_replay_as_nothing(
    tasks: OnSpark, dataset_uri: str, tmp_path: Path
) -> None:
    days = [raw_batch(tmp_path, f"day-{n}", pa.table({"x": [n, n + 100]})) for n in range(5)]
    options = IngestOptions(max_files_per_task=1)
    result = ingest(dataset_uri, days, options=options, runner=tasks)
    assert (result.version, result.num_rows, len(result.ingested)) == (1, 10, 5)
    assert rows(dataset_uri) == [x for n in range(5) for x in (n, n + 100)]
    again = ingest(dataset_uri, days, options=options, runner=tasks)
    assert (again.version, again.skipped) == (None, result.ingested)


def test_a_raw_file_that_does_not_fit_is_named_and_changes_nothing(
    tasks: OnSpark, numbers: str, tmp_path: Path
) -> None:
    before = {path.name for path in Path(numbers, "data").iterdir()}
    good, bad = raw_batch(tmp_path, "good", pa.table({"x": [1]})), raw_batch(tmp_path, "bad", pa.table({"y": [1]}))
    with pytest.raises(SchemaMismatch, match=r"bad\.parquet.*'y'"):
        ingest(numbers, [good, bad], options=IngestOptions(max_files_per_task=1), runner=tasks)
    assert dataset(numbers).version == 1
    assert {path.name for path in Path(numbers, "data").iterdir()} == before


def test_a_verification_by_tasks_reports_what_one_in_threads_does(tasks: OnSpark, numbers: str) -> None:
    opened = dataset(numbers)
    opened.create_scalar_index("x", "BTREE")
    opened.delete("x = 9")
    assert opened.verify(runner=tasks) == opened.verify()
    assert opened.verify().ok
    (Path(numbers) / "data" / opened.get_fragments()[3].metadata.files[0].path).unlink()
    (Path(numbers) / opened.snapshot.manifest.indices[0].directory / "page_lookup.lance").write_bytes(b"garbage")
    report = opened.verify(runner=tasks)
    assert report == opened.verify()
    assert (report.damaged_fragments, report.damaged_indices) == ((3,), ("x_idx",))


def test_a_clean_up_by_tasks_and_counts_of_rows(tasks: OnSpark, numbers: str) -> None:
    for number in range(6):
        dataset(numbers).delete(f"x = {number}")
    opened = dataset(numbers)
    assert opened.count_rows("x % 2 = 0", runner=tasks) == 17
    shares = CleanupTasks(tasks, versions_per_task=3, deletes_per_task=4, least_fragments=1)
    stats = cleanup_old_versions(opened.snapshot, CleanupOptions(retain_versions=1), shares)
    assert (stats.old_versions, stats.deletion_files_removed, stats.failed_deletes) == (6, 4, 0)
    assert rows(numbers) == list(range(6, 40)) and opened.verify().ok


def test_duplicates_are_found_and_deleted_by_tasks(tasks: OnSpark, numbers: str) -> None:
    opened = dataset(numbers)
    opened.update({"x": "x % 25"})
    sizes = by_tasks.TaskSizes(rows_per_bucket=10)
    found = changing.find_duplicates(opened.snapshot, ["x"], None, tasks, 1, sizes)
    assert (found.num_keys, found.num_rows, found.examples[0].num_rows) == (15, 30, 2)
    _, num_rows = changing.delete_duplicates(opened.snapshot, ["x"], changing.Keep.FIRST, tasks, sizes=sizes)
    assert num_rows == 15 and rows(numbers) == list(range(25))


def test_a_function_is_made_once_a_worker_and_goes_on_after_a_failure(
    tasks: OnSpark, numbers: str, tmp_path: Path
) -> None:
    made, called = tmp_path / "made", tmp_path / "called"
    made.mkdir()
    called.mkdir()

    def load(fails_at: int | None = None) -> Callable[[pa.RecordBatch], pa.RecordBatch]:
        Path(made, f"{os.getpid()}-{uuid4().hex}").touch()

        def half(batch: pa.RecordBatch) -> pa.RecordBatch:
            first = batch["x"][0].as_py()
            if first == fails_at:
                raise RuntimeError("the model went away")
            Path(called, f"{first}-{uuid4().hex}").touch()
            return pa.record_batch([pc.divide(batch["x"], 2)], names=["half"])

        return half

    schema = pa.schema({"half": pa.int64()})
    failing = batch_udf_factory(schema)(partial(load, 20))
    with pytest.raises(RuntimeError, match="went away"):
        dataset(numbers).add_columns(failing, ["x"], runner=tasks, checkpoint="half")
    finished = len(list(called.iterdir()))
    working = batch_udf_factory(schema)(load)
    dataset(numbers).add_columns(working, ["x"], runner=tasks, checkpoint="half")
    assert dataset(numbers).to_table()["half"].to_pylist() == [x // 2 for x in range(40)]
    assert 0 < finished < 10 == len(list(called.iterdir()))
    workers = Counter(file.name.partition("-")[0] for file in made.iterdir())
    assert max(workers.values()) <= 2  # once for each of the two functions


def test_the_rows_of_one_fragment_are_computed_by_several_tasks(
    tasks: OnSpark, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(column_pieces, "_ROWS_OF_PIECE", 10)
    monkeypatch.setattr(column_pieces, "_LEAST_PIECES", 2)
    opened = write_dataset(pa.table({"x": range(40)}), tmp_path / "one.lance")
    opened.delete("x % 7 = 3")
    steps: list[JobProgress] = []
    opened.add_columns({"half": "x / 2"}, runner=replace(tasks, on_progress=steps.append))
    found = {(step.job.verb, step.num_tasks) for step in steps if step.job is not None}
    assert found == {("add columns to", 4), ("join pieces to add columns to", 1)}
    table = dataset(opened.uri).to_table()
    assert table["half"].to_pylist() == [x // 2 for x in table["x"].to_pylist()]
    assert len(table) == 34 and not list((tmp_path / "one.lance" / "data").glob("backfill-*/*"))


def test_rows_are_sorted_by_tasks(tasks: OnSpark, numbers: str) -> None:
    opened = dataset(numbers)
    opened.create_scalar_index("x", "BTREE")
    opened.update({"x": "1000 - x"}, where="x % 2 = 0")
    opened.optimize.optimize_indices()
    steps: list[JobProgress] = []
    runner = replace(tasks, on_progress=steps.append)
    opened.optimize.compact_files(target_rows_per_fragment=16, cluster_by=["x"], runner=runner)
    expected = sorted(1000 - x if x % 2 == 0 else x for x in range(40))
    assert rows(numbers) == expected
    assert len(dataset(numbers).get_fragments()) == 3
    assert dataset(numbers).count_rows("x = 998") == 1
    verbs = [step.job.verb for step in steps if step.job is not None]
    assert list(dict.fromkeys(verbs)) == ["cluster, sample", "cluster, sort", "cluster, merge"]


@pytest.mark.interop
def test_an_index_is_built_by_tasks_and_used_by_the_reference(tasks: OnSpark, dataset_uri: str) -> None:
    keys = np.random.default_rng(7).permutation(60_000) % 20_011
    table = pa.table({"key": pa.array(keys, mask=keys % 31 == 0), "id": np.arange(len(keys))})
    made = write_dataset(table, dataset_uri, max_rows_per_file=9000)
    made.delete("id % 17 = 0")
    jobs: list[str] = []
    runner = replace(tasks, on_progress=lambda progress: jobs.append(f"{progress.job}: {progress.num_tasks}"))
    create_scalar_index(made.snapshot, "key", "BTREE", runner=runner, sizes=TaskSizes(1, task_bytes=200_000))
    assert [text.partition(":")[0] for text in sorted(set(jobs))] == ["index data v2", "index, merge data v2"]
    assert all(int(text.rpartition(" ")[2]) > 2 for text in jobs)

    theirs = importlib.import_module("lance").dataset(dataset_uri)
    for predicate in ("key = 77", "key IS NULL", "key > 20000"):
        assert "ScalarIndexQuery" in theirs.scanner(filter=predicate).explain_plan()
        found = theirs.to_table(filter=predicate)["id"].to_pylist()
        expected = dataset(dataset_uri).to_table(filter=predicate, use_scalar_index=False)["id"].to_pylist()
        assert sorted(found) == expected != []
    assert sum(len(os.listdir(folder)) for folder in Path(dataset_uri, "_indices").iterdir()) == 2


@pytest.mark.interop
def test_a_zone_map_is_built_by_tasks_without_files_and_used_by_the_reference(tasks: OnSpark, dataset_uri: str) -> None:
    table = pa.table({"day": np.arange(60_000) // 100, "id": np.arange(60_000)})
    made = write_dataset(table, dataset_uri, max_rows_per_file=9000)
    made.delete("id % 17 = 0")
    jobs: list[str] = []
    runner = replace(tasks, on_progress=lambda progress: jobs.append(f"{progress.job}: {progress.num_tasks}"))
    config = IndexConfig("ZONEMAP", {"rows_per_zone": 1000})
    create_scalar_index(made.snapshot, "day", config, runner=runner, sizes=TaskSizes(1, task_bytes=200_000))
    assert {text.partition(":")[0] for text in jobs} == {"index data v2"}
    assert all(int(text.rpartition(" ")[2]) > 2 for text in jobs)

    theirs = importlib.import_module("lance").dataset(dataset_uri)
    for predicate in ("day = 77", "day >= 590"):
        assert "(ZoneMap)" in theirs.scanner(filter=predicate).explain_plan()
        expected = dataset(dataset_uri).to_table(filter=predicate, use_scalar_index=False)["id"].to_pylist()
        for library in (theirs, dataset(dataset_uri)):
            assert sorted(library.to_table(filter=predicate)["id"].to_pylist()) == expected != []
    assert [os.listdir(folder) for folder in Path(dataset_uri, "_indices").iterdir()] == [["zonemap.lance"]]
