"""A small deployment on a temporary folder: a landing folder, a dataset, an instance, tasks in threads."""

from __future__ import annotations

import math
import os
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, Protocol

import dagster as dg
import pyarrow as pa
import pyarrow.parquet
import pytest

from lance_ops.api import LanceDataset, dataset
from lance_ops.dagster.declaration import DatasetConfig
from lance_ops.dagster.declaration.names import DatasetNames
from lance_ops.dagster.head.recorded_versions import DATA_VERSION_TAG
from lance_ops.dagster.in_process import CodeLocation, Ticked
from lance_ops.dagster.landing.landing import list_landing
from lance_ops.maintenance.ingest import ingest

LANDED = datetime(2024, 1, 1, tzinfo=UTC).timestamp()


@dataclass
class Deployment:
    """One declared dataset, `trips`, with methods that land, ingest and check."""

    config: DatasetConfig
    location: CodeLocation
    landing: Path
    minute: int = 0

    @property
    def names(self) -> DatasetNames:
        return DatasetNames(self.config.name)

    @property
    def instance(self) -> dg.DagsterInstance:
        return self.location.instance

    @property
    def data(self) -> LanceDataset:
        return dataset(self.config.uri)

    def land(self, key: str, ids: range, city: str = "Bern") -> Path:
        """Land a raw file. Each file is a minute newer than the previous one and old enough to count as settled."""
        self.minute += 1
        self.wait_past_second_of_failure()
        path = self.landing / f"{key}.parquet"
        pyarrow.parquet.write_table(pa.table({"id": list(ids), "city": [city] * len(ids)}), path)
        os.utime(path, (LANDED + 60 * self.minute,) * 2)
        return path

    def wait_past_second_of_failure(self) -> None:
        """Wait until the second of the newest failed run's end is over: the run may have read files of this second."""
        failed = self.instance.get_run_records(dg.RunsFilter(statuses=[dg.DagsterRunStatus.FAILURE]), limit=1)
        for record in failed:
            next_second = math.floor(record.update_timestamp.timestamp()) + 1
            time.sleep(max(0, next_second - time.time()))

    def fill(self, num_batches: int, rows_each: int = 10) -> None:
        """Ingest batches d0, d1, … with the library, one version each. Dagster does not see these versions."""
        for number in range(num_batches):
            self.land(f"d{number}", range(number * rows_each, (number + 1) * rows_each))
            self.ingest_directly(f"d{number}")

    def ingest_directly(self, key: str) -> None:
        """Ingest a batch with the library, and have Dagster know nothing of it."""
        found, _ = list_landing(self.config.landing(), datetime.now(UTC)).find([key])
        ingest(self.config.uri, [found[key].to_ingest()], options=self.config.ingest_options())

    def know(self, *keys: str) -> None:
        """Add partitions of batches."""
        self.instance.add_dynamic_partitions(self.names.of("batches"), list(keys))

    def tick(self, sensor: str = "raw_files", *, raise_on_error: bool = True) -> Ticked:
        return self.location.tick(self.names.of(sensor), raise_on_error=raise_on_error)

    def run(self, verb: str, config: dg.Config | None = None, **tags: str) -> dg.ExecuteInProcessResult:
        return self.location.run(self.names.of(verb), {verb: config} if config else None, tags=tags)

    def ingest(self, *keys: str) -> dg.ExecuteInProcessResult:
        """Materialize adjacent partitions as one range, as the UI does."""
        tags = (
            {"dagster/partition": keys[0]}
            if len(keys) == 1
            else {"dagster/asset_partition_range_start": keys[0], "dagster/asset_partition_range_end": keys[-1]}
        )
        return self.location.run(self.names.of("ingest"), tags=tags)

    def add_run(self, key: str, status: dg.DagsterRunStatus, **tags: str) -> dg.DagsterRun:
        """Add a run that was asked to ingest a batch; `tags` are Dagster's own, without their prefix.

        Dagster ends the run by an event, as it ends a real run. Dagster's database would cut the time of a run that is
        added with the status of its end to the second.
        """
        of_run = {"dagster/partition": key} | {f"dagster/{name}": value for name, value in tags.items()}
        return self._add(dg.DagsterRun(job_name=self.names.of("ingest"), tags=of_run), status)

    def add_run_of_ui(self, key: str, status: dg.DagsterRunStatus, asset: dg.AssetKey) -> dg.DagsterRun:
        """Add a run of a backfill from the UI: it selects an asset in Dagster's own job of all assets."""
        run = dg.DagsterRun("__ASSET_JOB", tags={"dagster/partition": key}, asset_selection=frozenset({asset}))
        return self._add(run, status)

    def _add(self, run: dg.DagsterRun, status: dg.DagsterRunStatus) -> dg.DagsterRun:
        ends = {
            dg.DagsterRunStatus.FAILURE: self.instance.report_run_failed,
            dg.DagsterRunStatus.CANCELED: self.instance.report_run_canceled,
        }
        run = run.with_status(dg.DagsterRunStatus.STARTED if status in ends else status)
        self.instance.add_run(run)
        if status in ends:
            ends[status](run)
        return run

    def forget(self) -> None:
        """Have Dagster know no more of runs, partitions and cursors than after its storage was lost."""
        self.location.cursors.clear()
        for run in self.instance.get_runs():
            self.instance.delete_run(run.run_id)
        self.instance.wipe_assets([self.names.batches, self.names.head])
        for key in self.instance.get_dynamic_partitions(self.names.of("batches")):
            self.instance.delete_dynamic_partition(self.names.of("batches"), key)

    def head_versions(self) -> list[int]:
        """Return the versions recorded on the head asset, oldest first."""
        records = self.instance.fetch_materializations(dg.AssetRecordsFilter(self.names.head), limit=1000).records
        events = [record.asset_materialization for record in reversed(records)]
        return [int((event.tags or {})[DATA_VERSION_TAG]) for event in events if event]

    def check(self) -> dict[str, dg.AssetCheckEvaluation]:
        """Run the checks of the head asset. A failed blocking check fails the run."""
        return check_results(self.location.run(self.names.of("checks"), raise_on_error=False))


class Deploy(Protocol):
    """Makes a deployment; `raw` and `declared` are keys of the declaration."""

    def __call__(self, raw: dict[str, Any] | None = None, **declared: Any) -> Deployment: ...


@contextmanager
def writers_clock_ahead(by: timedelta) -> Iterator[None]:
    """Have the versions that are committed in the block bear a later time."""
    now_ns, ahead_ns = time.time_ns, by // timedelta(microseconds=1) * 1000
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(time, "time_ns", lambda: now_ns() + ahead_ns)
        yield


def write_damaged_tag(deployment: Deployment) -> None:
    """Give the dataset a tag, `kept`, whose file is garbage."""
    tag = Path(deployment.config.uri, "_refs", "tags", "kept.json")
    tag.parent.mkdir(parents=True)
    tag.write_bytes(b"garbage")


def values(metadata: Mapping[str, dg.MetadataValue[Any]]) -> dict[str, Any]:
    """Return metadata as plain values."""
    return {name: value.value for name, value in metadata.items()}


def check_results(result: dg.ExecuteInProcessResult) -> dict[str, dg.AssetCheckEvaluation]:
    """Return a run's check evaluations by check name."""
    return {evaluation.check_name: evaluation for evaluation in result.get_asset_check_evaluations()}


def output_metadata(result: dg.ExecuteInProcessResult) -> dict[str, Any]:
    """Return the output metadata of a run's last op."""
    outputs = [event.step_output_data for event in result.all_events if event.is_successful_output]
    return values(outputs[-1].metadata)
