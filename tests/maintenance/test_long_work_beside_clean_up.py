"""Long work keeps the version that it was planned on, on a table whose writers clean up after each commit."""

from __future__ import annotations

import shutil
import uuid
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import lance_ops
from lance_ops.maintenance.ingest import IngestBatch, IngestMode, IngestOptions, RawFile, ingest
from lance_ops.refs.version_pins import PINS_DIR
from lance_ops.runners import InThreads
from tests.maintenance.conftest import rows

Make = Callable[..., lance_ops.LanceDataset]


class CountedJobs(InThreads):
    """Counts the jobs. Before each, other writers commit three times."""

    def __init__(self, commit: Callable[[], object] = lambda: None) -> None:
        super().__init__(1)
        self.commit = commit
        self.num_jobs = 0

    def map(self, *arguments: Any, **options: Any) -> Any:
        self.num_jobs += 1
        for _ in range(3):
            self.commit()
        return super().map(*arguments, **options)


def append(uri: str) -> None:
    lance_ops.write_dataset(rows(1000, 1001), uri, mode="append")


def set_config(uri: str) -> None:
    lance_ops.dataset(uri).update_config({"moment": uuid.uuid4().hex})


def raw_file(uri: str) -> RawFile:
    path = Path(uri).with_suffix(".parquet")
    pq.write_table(rows(10, 12), path)
    return RawFile(str(path), path.stat().st_size, "t")


def ingested(dataset: lance_ops.LanceDataset, runner: CountedJobs, mode: IngestMode) -> None:
    options = IngestOptions(mode=mode, keys=("id",) if mode is IngestMode.UPSERT else ())
    ingest(dataset.uri, [IngestBatch("a", (raw_file(dataset.uri),))], options=options, runner=runner)


def merged(dataset: lance_ops.LanceDataset, runner: CountedJobs) -> None:
    source = lance_ops.write_dataset(rows(10, 30), f"memory://{uuid.uuid4().hex}")
    merge = dataset.merge_insert("id").when_matched_update_all().when_not_matched_insert_all()
    merge.execute(source, runner=runner)


def values(dataset: lance_ops.LanceDataset) -> pa.Table:
    return dataset.to_table(columns=["text"], with_row_address=True, limit=3)


WORK: dict[str, Callable[[lance_ops.LanceDataset, CountedJobs], object]] = {
    "delete": lambda dataset, runner: dataset.delete("id = 3", runner=runner),
    "update": lambda dataset, runner: dataset.update({"text": "'x'"}, "id = 3", runner=runner),
    "delete by keys": lambda dataset, runner: dataset.delete_by_keys([3, 4], "id", runner=runner),
    "delete duplicates": lambda dataset, runner: dataset.delete_duplicates("text", runner=runner),
    "merge": merged,
    "add columns": lambda dataset, runner: dataset.add_columns({"twice": "id * 2"}, runner=runner),
    "a wider type": lambda dataset, runner: dataset.alter_columns(
        {"path": "key", "data_type": pa.int64()}, runner=runner
    ),
    "values by row": lambda dataset, runner: dataset.update_columns(values(dataset), runner=runner),
    "ingest": lambda dataset, runner: ingested(dataset, runner, IngestMode.APPEND),
    "ingest by key": lambda dataset, runner: ingested(dataset, runner, IngestMode.UPSERT),
}


def sorted_rows(uri: str) -> pa.Table:
    """Return the rows that the traffic did not append."""
    return lance_ops.dataset(uri).to_table(filter="id != 1000").sort_by([("id", "ascending"), ("text", "ascending")])


CONFLICT_WITH_APPENDS = {"add columns": set_config, "a wider type": set_config}


@pytest.mark.parametrize("work", WORK)
def test_long_work_needs_one_attempt_beside_writers_that_clean_up(make: Make, tmp_path: Path, work: str) -> None:
    dataset = make()
    dataset.insert(rows(0, 2))  # duplicates
    dataset.optimize.enable_auto_cleanup({"interval": 1, "older_than_seconds": 0})
    quiet = str(shutil.copytree(dataset.uri, tmp_path / "quiet.lance"))
    alone, beside = CountedJobs(), CountedJobs(partial(CONFLICT_WITH_APPENDS.get(work, append), dataset.uri))
    WORK[work](lance_ops.dataset(quiet), alone)
    WORK[work](lance_ops.dataset(dataset.uri), beside)
    assert beside.num_jobs == alone.num_jobs > 0
    assert sorted_rows(dataset.uri) == sorted_rows(quiet)
    assert list(dataset.snapshot.store.list(PINS_DIR)) == []
    lance_ops.dataset(dataset.uri).validate()


def test_no_pin_is_written_for_a_table_without_automatic_clean_up(make: Make) -> None:
    dataset = make()
    for work in WORK.values():
        work(lance_ops.dataset(dataset.uri), CountedJobs())
    assert not Path(dataset.uri, PINS_DIR).exists()
