"""Sixty days of a team, unattended: bad files, killed runs and another writer, on PostgreSQL and an S3 server.

The daemon runs on the shipped `team.yaml`. Days land in waves. Each wave brings junk, drift, an empty and a late file,
changes files of earlier waves, and may kill the run that ingests it. At the end every good row is in the table once,
every bad file is named, every version is recorded once, and every alert was sent once.
"""

from __future__ import annotations

import io
import random
from collections import Counter
from dataclasses import dataclass, field
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
from tests.dagster.running_daemon import kill_run, running_daemon, sensors_with_a_cursor, team_instance, wait_for
from tests.s3_server import ACCESS_KEY, SECRET_KEY, S3Server

pytestmark = [pytest.mark.dagster, pytest.mark.server, pytest.mark.interop, pytest.mark.timeout(1800)]

SEED = 20240601
NUM_DAYS = 60
SECONDS = 900
"""A generous bound: the test waits for events, and a loaded machine takes long to start a process for each run."""

BEFORE_TASKS, AFTER_COMMIT = "before_tasks", "after_commit"

# The sensors tick often, and the watcher leaves a version to its run for five seconds only. A run waits at a point
# while the file of that point exists, so that it can be killed there.
DEFINITIONS = """
import time
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

config = DatasetConfig.model_validate_json({declared!r})
points = Path({points!r})


def pass_through(point):
    while (points / point).exists():
        time.sleep(0.1)


class Held(ThreadRunner):
    def runner(self, on_progress=None):
        pass_through("before_tasks")
        return super().runner(on_progress)


report_versions = batches.report_versions


def held_report(*arguments):
    pass_through("after_commit")
    return report_versions(*arguments)


batches.report_versions = held_report
jobs = build_jobs(config)
sensors = [
    build_raw_sensor(config, interval_seconds=2),
    build_version_sensor(config, interval_seconds=2, grace=timedelta(seconds=5)),
    *build_alert_sensors(config, [job.name for job in jobs], ["batches_settled"], interval_seconds=2),
]
defs = dg.Definitions.merge(
    build_asset_definitions(config),
    dg.Definitions(jobs=jobs, sensors=sensors, resources={{RUNNER_KEY: Held()}}, executor=dg.in_process_executor),
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
            if key not in (junk, empty, left_out) and (key != drift or late is None):
                self.land_good(key)
        self.land_bad(junk, b"this is no Parquet")
        self.land_bad(empty, b"")
        if late is not None:  # not the first wave, whose files give the table its columns
            self.land_bad(drift, parquet({"id": [1], "fare": [2.5]}))
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


@pytest.mark.parametrize(
    ("num_waves", "kills"),
    [
        pytest.param(2, [AFTER_COMMIT, None], id="a kill between commit and event"),
        pytest.param(6, None, id="kills at random", marks=pytest.mark.soak),
    ],
)
def test_sixty_days_end_with_every_good_row_once_and_every_bad_file_named(
    num_waves: int,
    kills: list[str | None] | None,
    s3_server: S3Server,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    pytest.importorskip("dagster_postgres")
    draw = random.Random(SEED)
    kills = kills or [draw.choice([BEFORE_TASKS, AFTER_COMMIT, None]) for _ in range(num_waves)]
    lake = Lake(s3_server, s3_server.new_bucket(), draw)
    config = declared(lake)
    names = DatasetNames(config.name)
    days = [f"d{day:02}" for day in range(NUM_DAYS)]
    size = NUM_DAYS // num_waves
    points = tmp_path / "points"
    points.mkdir()
    location = tmp_path / "location.py"
    location.write_text(DEFINITIONS.format(declared=config.model_dump_json(), points=str(points)))
    with receiving() as receiver, team_instance(tmp_path) as environment:
        environment["ALERT_URL"] = receiver.url
        with running_daemon(location, environment, monkeypatch) as instance:
            assert type(instance.run_storage).__name__ == "PostgresRunStorage"
            wait_for(lambda: "trips_alerts_webhook" in sensors_with_a_cursor(instance), SECONDS)
            left_out: str | None = None
            for number, kill in enumerate(kills):
                if number:
                    lake.append_by_reference(config.uri, number)
                if kill is not None:
                    (points / kill).touch()
                before = newest_version(config)
                left_out = lake.land_wave(number, days[number * size : (number + 1) * size], left_out)
                if kill is not None:
                    killed = kill_at(instance, config, names, kill, before)
                    (points / kill).unlink()
                wait_for(
                    lambda: states(config, instance) == lake.expected, SECONDS, f"wave {number} is not settled", every=2
                )
                if kill is not None:
                    retried = [run.parent_run_id for run in instance.get_runs() if run.parent_run_id]
                    assert killed in retried
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
            ingested = {key for key in lake.ids if key in lake.expected}
            assert instance.get_materialized_partitions(names.batches) == ingested
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


def kill_at(instance: dg.DagsterInstance, config: DatasetConfig, names: DatasetNames, point: str, before: int) -> str:
    """Kill the run that waits at a point; return its id."""
    slots = instance.event_log_storage.get_concurrency_info
    wait_for(lambda: bool(slots(names.pool).claimed_slots), SECONDS, "no run takes the slot")
    if point == AFTER_COMMIT:
        wait_for(lambda: newest_version(config) > before, SECONDS, "no run commits")
    run_id = slots(names.pool).claimed_slots[0].run_id
    kill_run(instance, run_id)
    return run_id


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
