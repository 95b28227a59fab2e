"""What the steps of long verbs count, so that a log and a progress bar say how fast they are."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import timedelta
from pathlib import Path
from typing import TypeVar

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import lance_ops
from lance_ops.maintenance.cleanup import CleanupOptions, CleanupTasks, cleanup_old_versions
from lance_ops.maintenance.erasure import ErasureOptions, Subject, erase
from lance_ops.maintenance.ingest import IngestBatch, IngestMode, IngestOptions, RawFile, ingest
from lance_ops.runners import InThreads, Job

T = TypeVar("T")
R = TypeVar("R")


class Noting:
    """Runs tasks in threads, and keeps their jobs by verb."""

    def __init__(self) -> None:
        self.jobs: dict[str, Job] = {}

    def map(
        self,
        function: Callable[[T], R],
        tasks: Sequence[T],
        job: Job | None = None,
        discard: Callable[[R], None] | None = None,
    ) -> list[R]:
        assert job is not None
        assert not job.weights or len(job.weights) == len(tasks)
        self.jobs.setdefault(job.verb, job)
        return InThreads(1).map(function, tasks, job, discard)

    def units(self) -> dict[str, str | None]:
        """Return the unit of each verb's job; None if it counts tasks alone."""
        return {verb: job.unit if any(job.weights) else None for verb, job in self.jobs.items()}


def stored_bytes(data: lance_ops.LanceDataset) -> int:
    return sum(file.file_size_bytes for fragment in data.snapshot.fragments for file in fragment.files)


def test_an_erasure_counts_the_bytes_that_it_searches_rewrites_and_proves(
    make: Callable[..., lance_ops.LanceDataset],
) -> None:
    data, runner = make(3), Noting()
    searched = stored_bytes(data)
    report = erase(data.snapshot, Subject("text = 't7'"), ErasureOptions("request 12"), runner)
    assert report.is_proven
    assert runner.units() == {"search": "bytes", "erase from": "bytes", "prove the erasure in": "bytes"}
    assert sum(runner.jobs["search"].weights) == searched
    assert sum(runner.jobs["prove the erasure in"].weights) == sum(file.size_bytes for file in report.files)


def test_a_clean_up_counts_the_bytes_that_it_frees(make: Callable[..., lance_ops.LanceDataset]) -> None:
    data, runner = make(6), Noting()
    data.optimize.compact_files()
    options = CleanupOptions(timedelta(0), error_if_tagged_old_versions=False)
    stats = cleanup_old_versions(data.snapshot, options, CleanupTasks(runner, deletes_per_task=4))
    assert stats.data_files_removed == 6
    deleted = runner.jobs["delete files of"]
    assert deleted.unit == "bytes" and 0 < sum(deleted.weights) <= stats.bytes_removed


@pytest.mark.parametrize(
    ("mode", "step"),
    [(IngestMode.UPSERT, "keep the last row of each key for"), (IngestMode.HISTORY, "work changes into")],
)
def test_an_ingestion_by_key_counts_the_bytes_of_its_stage(
    mode: IngestMode, step: str, dataset_uri: str, tmp_path: Path
) -> None:
    runner, path = Noting(), tmp_path / "one.parquet"
    columns = {"id": list(range(40)), "valid_from": pa.array(range(40), pa.timestamp("us"))}
    pq.write_table(pa.table(columns), path)
    batch = IngestBatch("one", (RawFile(str(path), path.stat().st_size, "a"),))
    ingest(dataset_uri, [batch], options=IngestOptions(mode=mode, keys=("id",)), runner=runner)
    units = runner.units()
    assert units[step] == units["ingest into"] == "bytes"
    assert units["merge (keys) into"] == units["merge (rows) into"] == "rows"
