"""Sixty days of a team, unattended: bad files, killed runs and another writer, on PostgreSQL and an S3 server.

The daemon runs on the shipped `team.yaml`. Days land in waves. Each wave brings junk, drift, an empty and a late file,
changes files of earlier waves, and kills a run: at a request to the store that was drawn, or when it has committed and
has not recorded its version. At the end every good row is in the table once, every bad file is named, every version is
recorded once, and every alert was sent once.
"""

from __future__ import annotations

import io
import random
from collections import Counter
from dataclasses import dataclass, field
from functools import partial
from itertools import chain
from pathlib import Path
from typing import Any

import boto3
import dagster as dg
import lance
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from lance_ops.api import LanceDataset, dataset
from lance_ops.dagster import batch_states
from lance_ops.dagster.declaration import DatasetConfig, DatasetNames
from lance_ops.dagster.head.recorded_versions import DATA_VERSION_TAG
from tests.dagster.alert_receiver import receiving
from tests.dagster.running_daemon import running_daemon, sensors_with_a_cursor, team_instance, wait_for
from tests.s3_server import ACCESS_KEY, SECRET_KEY, S3Server

pytestmark = [pytest.mark.dagster, pytest.mark.server, pytest.mark.interop, pytest.mark.timeout(1800)]

SEED = 20240605
NUM_DAYS = 60
SECONDS = 900
"""A generous bound: the test waits for events, and a loaded machine takes long to start a process for each run."""

AFTER_COMMIT = "after commit"
MOST_REQUESTS = 12
"""A run that ingests has more requests to the store than that, so it comes to the one that was drawn."""

# The sensors tick often, and the watcher leaves a version to its run for five seconds only. A run that finds the file
# `doom` kills its process as the file says, and renames the file, so that one run dies for it.
DEFINITIONS = """
import itertools
import os
import signal
from datetime import timedelta
from pathlib import Path

import dagster as dg
from lance_ops.dagster.alerts import build_alert_sensors
from lance_ops.dagster.declaration import DatasetConfig
from lance_ops.dagster.definitions import build_asset_definitions
from lance_ops.dagster.head import build_version_sensor
from lance_ops.dagster.jobs import build_jobs
from lance_ops.dagster.landing import batches, build_raw_sensor
from lance_ops.dagster.runners.runner import RUNNER_KEY, ThreadRunner
from lance_ops.store.remote import FsspecStore

config = DatasetConfig.model_validate_json({declared!r})
doom = Path({doom!r})
doomed = []
requests = itertools.count(1)


def die_if(moment):
    if [str(moment)] == doomed:
        doom.rename(doom.with_name("died"))
        os.kill(os.getpid(), signal.SIGKILL)


class Mortal(ThreadRunner):
    def runner(self, on_progress=None):
        if doom.exists():
            doomed.append(doom.read_text())
        return super().runner(on_progress)


client_of = FsspecStore._connected


def mortal_client(store):
    if doomed:
        die_if(next(requests))
    return client_of(store)


report_versions = batches.report_versions


def mortal_report(context, config, newest, before, started):
    if newest.version > before:
        die_if({after_commit!r})
    return report_versions(context, config, newest, before, started)


FsspecStore._connected = mortal_client
batches.report_versions = mortal_report
jobs = build_jobs(config)
sensors = [
    build_raw_sensor(config, interval_seconds=2),
    build_version_sensor(config, interval_seconds=2, grace=timedelta(seconds=5)),
    *build_alert_sensors(config, [job.name for job in jobs], ["batches_settled"], interval_seconds=2),
]
defs = dg.Definitions.merge(
    build_asset_definitions(config),
    dg.Definitions(jobs=jobs, sensors=sensors, resources={{RUNNER_KEY: Mortal()}}, executor=dg.in_process_executor),
)
"""


@dataclass
class Lake:
    """A landing folder and a table in one bucket, and what should become of each landed day."""

    server: S3Server
    bucket: str
    draw: random.Random
    waves: dict[str, int] = field(default_factory=dict)
    expected: dict[str, str] = field(default_factory=dict)
    ids: dict[str, list[int]] = field(default_factory=dict)
    """The ids of the rows that must be in the table, by the day or the writer that brought them."""
    late: set[str] = field(default_factory=set)
    told: Counter[str] = field(default_factory=Counter)
    """How often alerts must name each day."""

    def __post_init__(self) -> None:
        self.client = boto3.client(
            "s3",
            endpoint_url=self.server.endpoint,
            region_name="us-east-1",
            aws_access_key_id=ACCESS_KEY,
            aws_secret_access_key=SECRET_KEY,
        )

    def put(self, key: str, data: bytes) -> None:
        self.client.put_object(Bucket=self.bucket, Key=f"landing/w{self.waves[key]}/{key}.parquet", Body=data)

    def land_good(self, key: str) -> None:
        day = int(key[1:])
        self.ids[key] = list(range(10 * day, 10 * day + 10))
        self.expected[key] = "ingested"
        self.put(key, parquet({"id": self.ids[key], "city": ["Bern"] * 10}))

    def land_bad(self, key: str, data: bytes) -> None:
        self.expected[key] = "quarantined"
        self.told[key] += 1
        self.put(key, data)

    def land_wave(self, number: int, days: list[str], late: str | None) -> str:
        """Land the days of a wave, change earlier ones, and complete it with a marker; return the day left out."""
        in_table = sorted(key for key, state in self.expected.items() if state == "ingested")
        mended = sorted(key for key, state in self.expected.items() if state == "quarantined")[:1]
        self.waves |= dict.fromkeys([*days, *([late] if late else [])], number)
        junk, drift, empty, left_out = self.draw.sample(days[1:-1], 4)
        for key in days:
            if key not in (junk, drift, empty, left_out):
                self.land_good(key)
        self.land_bad(junk, b"this is no Parquet")
        self.land_bad(empty, b"")
        self.land_bad(drift, parquet({"id": [1], "fare": [2.5]}))
        if late is not None:
            self.land_good(late)
            rewritten, vanished = self.draw.sample(in_table, 2)
            self.put(rewritten, parquet({"id": [-1], "city": ["Uri"]}))
            self.expected[rewritten] = "changed"
            self.told[rewritten] += 1
            self.client.delete_object(Bucket=self.bucket, Key=f"landing/w{self.waves[vanished]}/{vanished}.parquet")
            self.expected[vanished] = "vanished"
            for key in mended:
                self.land_good(key)
            self.late |= {late, *mended}
        self.client.put_object(Bucket=self.bucket, Key=f"landing/w{number}/_SUCCESS", Body=b"")
        return left_out

    def append_by_reference(self, uri: str, number: int) -> None:
        """Commit a version by another writer."""
        ids = [100_000 + number]
        rows = pa.table({"id": ids, "city": ["Genf"]})
        lance.write_dataset(rows, uri, mode="append", storage_options=self.server.storage_options)
        self.ids[f"external {number}"] = ids


def parquet(columns: dict[str, list[Any]]) -> bytes:
    sink = io.BytesIO()
    pq.write_table(pa.table(columns), sink)
    return sink.getvalue()


@pytest.mark.parametrize("num_waves", [pytest.param(2), pytest.param(6, marks=pytest.mark.soak)])
def test_sixty_days_end_with_every_good_row_once_and_every_bad_file_named(
    num_waves: int,
    s3_server: S3Server,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    pytest.importorskip("dagster_postgres")
    draw = random.Random(SEED)
    kills = [AFTER_COMMIT if wave % 2 else draw.randint(1, MOST_REQUESTS) for wave in range(num_waves)]
    lake = Lake(s3_server, s3_server.new_bucket(), draw)
    config = declared(lake)
    names = DatasetNames(config.name)
    days = [f"d{day:02}" for day in range(NUM_DAYS)]
    size = NUM_DAYS // num_waves
    doom, died = tmp_path / "doom", tmp_path / "died"
    location = tmp_path / "location.py"
    declared_json = config.model_dump_json()
    location.write_text(DEFINITIONS.format(declared=declared_json, doom=str(doom), after_commit=AFTER_COMMIT))
    with receiving() as receiver, team_instance(tmp_path) as environment:
        environment["ALERT_URL"] = receiver.url
        with running_daemon(location, environment, monkeypatch) as instance:
            assert type(instance.run_storage).__name__ == "PostgresRunStorage"
            wait_for(lambda: "trips_alerts_webhook" in sensors_with_a_cursor(instance), SECONDS)
            left_out: str | None = None
            for number, kill in enumerate(kills):
                if number:
                    lake.append_by_reference(config.uri, number)
                doom.write_text(str(kill))
                left_out = lake.land_wave(number, days[number * size : (number + 1) * size], left_out)
                wait_for(
                    lambda: states(config, instance) == lake.expected, SECONDS, f"wave {number} is not settled", every=2
                )
                wait_for(
                    died.exists, what=f"no run had {kill} requests to the store"
                )  # a commit shows before the death
                died.unlink()
                wait_for(partial(are_retried, instance, number + 1), SECONDS, "a killed run is not retried")
                ingested = lake.ids.keys() & lake.expected.keys()
                # Before the next wave changes files: a batch that changed first is refused, and has no record.
                wait_for(lambda: recorded(instance, names) >= ingested, SECONDS, "a retry records no batches")  # noqa: B023 # it is called at once
                assert rows(config) == sorted(chain.from_iterable(lake.ids.values()))
            report = batch_states(config, instance)
            assert {batch.key for batch in report.batches if batch.is_late} == lake.late
            reasons = {batch.key: batch.reason for batch in report.unsettled}
            assert reasons.keys() == {
                key for key, state in lake.expected.items() if state in ("quarantined", "changed")
            }
            assert all(f"{key}.parquet" in reason for key, reason in reasons.items() if lake.expected[key] != "changed")

            newest = newest_version(config)
            wait_for(lambda: head_versions(instance, names) >= list(range(1, newest + 1)), SECONDS)
            assert head_versions(instance, names) == list(range(1, newest + 1))
            assert recorded(instance, names) == ingested
            wait_for(lambda: not instance.event_log_storage.get_concurrency_info(names.pool).claimed_slots, SECONDS)
            wait_for(lambda: told(receiver.bodies) == lake.told, SECONDS)
            assert [alert for alert in receiver.bodies if alert["event"] != "quarantine"] == []


def declared(lake: Lake) -> DatasetConfig:
    of_fsspec = {"key": ACCESS_KEY, "secret": SECRET_KEY, "endpoint_url": lake.server.endpoint}
    return DatasetConfig.model_validate(
        {
            "name": "trips",
            "uri": f"s3://{lake.bucket}/lake/trips.lance",
            "storage_options": lake.server.storage_options,
            "raw": {
                "uri": f"s3://{lake.bucket}/landing",
                "storage_options": of_fsspec,
                "glob": "**/*.parquet",
                "key": r"(?P<key>d\d+)\.parquet$",
                "marker": "_SUCCESS",
            },
            "alerts": [{"webhook": {"url": "${ALERT_URL}"}}],
        }
    )


def recorded(instance: dg.DagsterInstance, names: DatasetNames) -> set[str]:
    """Return the batches that Dagster's log says were ingested."""
    return instance.get_materialized_partitions(names.batches)


def are_retried(instance: dg.DagsterInstance, num_killed: int) -> bool:
    """Return whether Dagster has found the processes of `num_killed` runs dead, and has started these runs again."""
    return sum(run.parent_run_id is not None for run in instance.get_runs()) >= num_killed


def states(config: DatasetConfig, instance: dg.DagsterInstance) -> dict[str, str]:
    return {batch.key: batch.state.value for batch in batch_states(config, instance).batches}


def opened(config: DatasetConfig) -> LanceDataset:
    return dataset(config.uri, storage_options=config.storage_options)


def newest_version(config: DatasetConfig) -> int:
    try:
        return opened(config).version
    except FileNotFoundError:
        return 0


def rows(config: DatasetConfig) -> list[int]:
    return sorted(opened(config).to_table(columns=["id"])["id"].to_pylist())


def head_versions(instance: dg.DagsterInstance, names: DatasetNames) -> list[int]:
    records = instance.fetch_materializations(dg.AssetRecordsFilter(names.head), limit=1000).records
    events = [record.asset_materialization for record in records]
    return sorted(int((event.tags or {})[DATA_VERSION_TAG]) for event in events if event)


def told(alerts: list[dict[str, Any]]) -> Counter[str]:
    return Counter(key for alert in alerts for key in alert["batches"])
