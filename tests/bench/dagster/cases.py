"""What Dagster costs beyond the work: a backfill of many partitions, and ticks of the raw-file sensor.

Each case runs in a process of its own and prints its result as JSON: `python -m tests.bench.dagster.cases CASE SIZE`.
"""

from __future__ import annotations

import json
import os
import resource
import sys
import tempfile
import time
import warnings
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from itertools import islice
from pathlib import Path
from typing import Any

import boto3
import dagster as dg
import pyarrow as pa
import pytest

from lance_ops.api import write_dataset
from lance_ops.dagster.declaration import DatasetConfig
from lance_ops.dagster.definitions import build_definitions
from lance_ops.dagster.in_process import CodeLocation
from lance_ops.dagster.instances import instance_file
from lance_ops.dagster.landing.landing import list_landing
from lance_ops.dagster.runners import RUNNER_KEY, ThreadRunner
from lance_ops.maintenance import batch_properties
from lance_ops.maintenance.ingest import ingest
from tests.dagster.deployment import LANDED, Deployment
from tests.dagster.running_daemon import (
    home_with,
    launch_backfill,
    running_daemon,
    sensors_with_a_cursor,
    team_instance,
    wait_for,
)
from tests.s3_server import ACCESS_KEY, SECRET_KEY, moto_server
from tests.servers.listed_bucket import listed_bucket

__all__ = ["CASES", "Case", "Measured"]

_TOKEN_BYTES = b"x"
_LISTING_SECONDS = 0.1
_NEVER = 1e9
"""Seconds for which no file of a case is old enough for the sensor."""

_JOB_OF_A_BACKFILL = "__ASSET_JOB"
_LOCATION = """
import dagster as dg
from lance_ops.dagster.declaration import DatasetConfig
from lance_ops.dagster.definitions import build_definitions
from lance_ops.dagster.runners import RUNNER_KEY, ThreadRunner

config = DatasetConfig.model_validate_json({declared!r})
defs = dg.Definitions.merge(
    build_definitions(config),
    dg.Definitions(resources={{RUNNER_KEY: ThreadRunner()}}, executor=dg.in_process_executor),
)
"""
"""A code location of one dataset, with the executor that a backfill of many partitions needs."""

_ALL_HANDLED = '{"modified": "2100-01-01T00:00:00+00:00", "key": ""}'
"""A cursor above all files, with which a comparison is due."""


@dataclass(frozen=True)
class Measured:
    """One number of a case, with the bound that it must keep, if there is one."""

    what: str
    value: float
    unit: str
    bound: float | None = None


@dataclass(frozen=True)
class Case:
    """A case, how many partitions or files it has, and a function that measures it in an empty folder."""

    title: str
    size: int
    run: Callable[[Path, int], list[Measured]]


def backfill_on_sqlite(folder: Path, size: int) -> list[Measured]:
    """Ingest `size` partitions in one run, with Dagster's records in SQLite, and once more without Dagster."""
    home = home_with(folder, instance_file("laptop"))["DAGSTER_HOME"]
    with dg.DagsterInstance.from_config(home) as instance:
        return _backfill(folder, instance, size)


def backfill_on_postgres(folder: Path, size: int) -> list[Measured]:
    """Do the same with the records in PostgreSQL, under the settings of `team.yaml`."""
    with team_instance(folder) as environment:
        os.environ.update(environment)
        with dg.DagsterInstance.get() as instance:
            return _backfill(folder, instance, size)


def backfill_under_a_daemon_on_sqlite(folder: Path, size: int) -> list[Measured]:
    """Launch a backfill of `size` partitions as the UI does, with the records in SQLite."""
    return _backfill_under_a_daemon(folder, home_with(folder, instance_file("laptop")), size)


def backfill_under_a_daemon_on_postgres(folder: Path, size: int) -> list[Measured]:
    """Do the same with the records in PostgreSQL."""
    with team_instance(folder) as environment:
        return _backfill_under_a_daemon(folder, environment, size)


def tick_over_local_files(folder: Path, size: int) -> list[Measured]:
    """Tick over a local folder of `size` files, in folders of 1,000."""
    landing = folder / "landing"
    for start in range(0, size, 1000):
        day = landing / f"day{start // 1000:04}"
        day.mkdir(parents=True)
        for number in range(start, min(start + 1000, size)):
            path = day / f"f{number:07}.parquet"
            path.write_bytes(_TOKEN_BYTES)
            os.utime(path, (LANDED, LANDED))
    return _ticks(folder, {"uri": str(landing)}, size)


def tick_over_listed_bucket(folder: Path, size: int) -> list[Measured]:
    """Tick over `size` objects, in folders of 1,000, of a server that answers each listing in a tenth of a second."""
    with listed_bucket(size, _LISTING_SECONDS) as endpoint:
        options = {"key": ACCESS_KEY, "secret": SECRET_KEY, "endpoint_url": endpoint}
        return _ticks(folder, {"uri": "s3://bucket/landing", "storage_options": options, "settle_seconds": 0}, size)


def tick_over_s3(folder: Path, size: int) -> list[Measured]:
    """Tick over `size` objects of an S3 server."""
    with moto_server(page_names=1000) as server:
        bucket = server.new_bucket()
        client = boto3.client(
            "s3",
            endpoint_url=server.endpoint,
            region_name="us-east-1",
            aws_access_key_id=ACCESS_KEY,
            aws_secret_access_key=SECRET_KEY,
        )

        def put(number: int) -> None:
            client.put_object(Bucket=bucket, Key=f"landing/f{number:07}.parquet", Body=_TOKEN_BYTES)

        with ThreadPoolExecutor(4) as pool:
            list(pool.map(put, range(size)))
        options = {"key": ACCESS_KEY, "secret": SECRET_KEY, "endpoint_url": server.endpoint}
        raw = {"uri": f"s3://{bucket}/landing", "storage_options": options, "settle_seconds": 0}
        return _ticks(folder, raw, size)


def _backfill(folder: Path, instance: dg.DagsterInstance, size: int) -> list[Measured]:
    deployment = _landed(folder, instance, size, {"max_files_per_tick": size})
    alone = _without_dagster(deployment, folder)
    with _timed() as whole:
        ticked = deployment.tick()
    recorded = instance.get_materialized_partitions(deployment.names.batches)
    assert (len(ticked.runs), len(recorded), deployment.data.version) == (1, size, 1)
    return [
        Measured("the run, with sensor and checks", whole.seconds, "s"),
        Measured("the same ingestion without Dagster", alone.seconds, "s"),
        Measured("beyond the work", whole.seconds - alone.seconds, "s", 60),
        Measured("processor time beyond the work", whole.cpu_seconds - alone.cpu_seconds, "s"),
    ]


def _backfill_under_a_daemon(folder: Path, environment: dict[str, str], size: int) -> list[Measured]:
    """Launch a backfill under a daemon that runs the sensors too. They ask for nothing, since no file settles."""
    location = folder / "location.py"
    with dg.DagsterInstance.ephemeral() as unused:
        deployment = _landed(folder, unused, size, {"settle_seconds": _NEVER})
    alone = _without_dagster(deployment, folder)
    location.write_text(_LOCATION.format(declared=deployment.config.model_dump_json()))
    names, keys = deployment.names, [f"d{number:05}" for number in range(size)]
    with pytest.MonkeyPatch.context() as patch, running_daemon(location, environment, patch) as instance:
        wait_for(lambda: names.of("backfills") in sensors_with_a_cursor(instance))
        launched = time.time()
        launch_backfill(instance, deployment.location.definitions, names, keys)
        run = _wait_for_success(instance, _JOB_OF_A_BACKFILL)
        checks = _wait_for_success(instance, names.of("checks"))
        assert len(instance.get_materialized_partitions(names.batches)) == size
    assert (deployment.data.version, deployment.data.count_rows()) == (1, 10 * size)
    paused, ended = run.create_timestamp.timestamp() - launched, run.end_time or 0
    return [
        Measured("from the launch to the end of its run", ended - launched, "s"),
        Measured("until the daemon looks at it, which it does every 30 s", paused, "s"),
        Measured("the same ingestion without Dagster", alone.seconds, "s"),
        Measured("beyond that pause and the work", ended - launched - paused - alone.seconds, "s", 60),
        Measured(
            "from the end of its run to that of the checks that a sensor asks for", (checks.end_time or 0) - ended, "s"
        ),
    ]


def _wait_for_success(instance: dg.DagsterInstance, job_name: str) -> dg.RunRecord:
    """Return the record of the job's run once it has succeeded; one that fails ends the measurement."""

    def ended() -> bool:
        return any(record.dagster_run.is_finished for record in instance.get_run_records(of_job))

    of_job = dg.RunsFilter(job_name=job_name)
    wait_for(ended)
    (record,) = instance.get_run_records(of_job)
    assert record.dagster_run.is_success, job_name
    return record


def _landed(folder: Path, instance: dg.DagsterInstance, size: int, raw: dict[str, Any]) -> Deployment:
    """Return a deployment in whose landing folder `size` batches of ten rows have landed."""
    (folder / "landing").mkdir()
    deployment = _deployment(folder, instance, {"uri": str(folder / "landing"), **raw})
    for number in range(size):
        deployment.land(f"d{number:05}", range(number * 10, number * 10 + 10))
    return deployment


def _without_dagster(deployment: Deployment, folder: Path) -> _Timed:
    """Time the ingestion of all landed batches into another table, by the library alone."""
    landing = list_landing(deployment.config.landing(), datetime.now(UTC))
    batches = [batch.to_ingest() for batch in (*landing.ready, *landing.waiting)]
    options = deployment.config.ingest_options()
    ingest(str(folder / "warm.lance"), batches[:10], options=options)
    with _timed() as alone:
        ingest(str(folder / "alone.lance"), batches, options=options)
    return alone


def _ticks(folder: Path, raw: dict[str, Any], size: int) -> list[Measured]:
    """Tick when no file is known, when all are, and when the table has all, with a thousand batches a version."""
    with dg.DagsterInstance.from_config(home_with(folder, instance_file("laptop"))["DAGSTER_HOME"]) as instance:
        deployment = _deployment(folder, instance, raw)
        config, repository = deployment.config, deployment.location.definitions.get_repository_def()
        before = _peak_mb()

        def tick(cursor: str | None, of: str = "raw_files") -> tuple[Any, _Timed]:
            sensor = repository.get_sensor_def(f"{config.name}_{of}")
            with dg.build_sensor_context(instance, cursor=cursor) as context, _timed() as timed:
                return sensor.evaluate_tick(context), timed

        first, of_first = tick(None)
        tokens = {batch.key: batch.token for batch in list_landing(config.landing(), datetime.now(UTC)).ready}
        assert len(tokens) == size and len(first.dynamic_partitions_requests[0].partition_keys) == 1000
        instance.add_dynamic_partitions(f"{config.name}_batches", list(tokens))
        later, of_later = tick(_ALL_HANDLED)
        assert later.run_requests  # a known batch of which no run is found is asked for again
        _record_history(config.uri, tokens)
        del tokens
        compared, of_compared = tick(_ALL_HANDLED)
        assert not compared.run_requests and f"{size} batches" in compared.skip_message
        settled, of_settled = tick(None, "settled")
        of_batches = next(event for event in settled.asset_events if event.check_name == "batches_settled")
        assert of_batches.metadata["lance/batch_states"].value == {"ingested": size}
    on_disk = sum(path.stat().st_size for path in (folder / "home").rglob("*") if path.is_file())
    return [
        Measured("tick over new files, which asks for 1,000", of_first.seconds, "s", 10),
        Measured("tick when all files are known", of_later.seconds, "s", 10),
        Measured("processor time of this tick", of_later.cpu_seconds, "s"),
        Measured("tick that compares all files with the table", of_compared.seconds, "s", 10),
        Measured("processor time of this comparison", of_compared.cpu_seconds, "s"),
        Measured("tick of the sensor of `batches_settled`", of_settled.seconds, "s", 10),
        Measured("processor time of the check", of_settled.cpu_seconds, "s"),
        Measured("more memory at the peak", _peak_mb() - before, "MB", 500),
        Measured("Dagster's records on disk", on_disk / 1e6, "MB", 500),
    ]


def _record_history(uri: str, tokens: Mapping[str, str]) -> None:
    """Write a table of which each version records a thousand batches."""
    pairs = iter(tokens.items())
    while of_version := dict(islice(pairs, 1000)):
        write_dataset(pa.table({"id": [0]}), uri, mode="append", transaction_properties=batch_properties(of_version))


@dataclass
class _Timed:
    seconds: float = 0.0
    cpu_seconds: float = 0.0


@contextmanager
def _timed() -> Iterator[_Timed]:
    timed, wall, cpu = _Timed(), time.perf_counter(), time.process_time()
    try:
        yield timed
    finally:
        timed.seconds, timed.cpu_seconds = time.perf_counter() - wall, time.process_time() - cpu


def _peak_mb() -> float:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1000


def _deployment(folder: Path, instance: dg.DagsterInstance, raw: dict[str, Any]) -> Deployment:
    config = DatasetConfig.model_validate(
        {"name": "trips", "uri": str(folder / "trips.lance"), "raw": {"glob": "**/*.parquet", **raw}}
    )
    resources = dg.Definitions(resources={RUNNER_KEY: ThreadRunner()})
    definitions = dg.Definitions.merge(build_definitions(config), resources)
    return Deployment(config, CodeLocation(definitions, instance), folder / "landing")


CASES = {
    "sqlite": Case("A backfill, records in SQLite", 2000, backfill_on_sqlite),
    "postgres": Case("A backfill, records in PostgreSQL", 2000, backfill_on_postgres),
    "daemon-sqlite": Case("A backfill under a daemon, records in SQLite", 2000, backfill_under_a_daemon_on_sqlite),
    "daemon-postgres": Case(
        "A backfill under a daemon, records in PostgreSQL", 2000, backfill_under_a_daemon_on_postgres
    ),
    "local": Case("Sensor ticks over local files", 200_000, tick_over_local_files),
    "listed": Case("Sensor ticks over a bucket of S3, 0.1 s a page", 200_000, tick_over_listed_bucket),
    "s3": Case("Sensor ticks over objects of moto, in one folder", 20_000, tick_over_s3),
}


def main() -> None:
    """Measure one case and print its numbers as JSON."""
    warnings.simplefilter("ignore")
    name, size = sys.argv[1], int(sys.argv[2])
    with tempfile.TemporaryDirectory() as folder:
        measured = CASES[name].run(Path(folder), size)
    print(json.dumps([asdict(each) for each in measured]))


if __name__ == "__main__":
    main()
