"""Sixty days of a team, unattended: bad files, killed runs and another writer, on PostgreSQL and an S3 server.

The daemon runs on the shipped `team.yaml`, and the code location has all sensors of a declared dataset. Days land in
waves. Each wave brings junk, drift, an empty and a late file, and changes files of earlier waves. It kills a run that
ingests, and one of upkeep or of an erasure: at a request to the store that was drawn, or when it has committed and has
not recorded its version. At the end every good row is in the table once, every bad file is named, every version is
recorded once, every alert was sent once, and every check of the dataset is green but the one that names the bad files.
"""

from __future__ import annotations

import io
import random
from collections import Counter
from collections.abc import Mapping
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
from lance_ops.dagster.definitions import build_asset_definitions
from lance_ops.dagster.event_log import newest_evaluation
from lance_ops.dagster.head.recorded_versions import DATA_VERSION_TAG
from lance_ops.dagster.landing import UNSETTLED_BATCHES
from lance_ops.refs import list_erasures
from tests.dagster.alert_receiver import receiving
from tests.dagster.mortal_location import AFTER_COMMIT, Orders, write_location
from tests.dagster.running_daemon import are_retried, running_daemon, sensors_with_a_cursor, team_instance, wait_for
from tests.groups import DAEMONS
from tests.s3_server import ACCESS_KEY, SECRET_KEY, S3Server

pytestmark = [pytest.mark.dagster, pytest.mark.server, pytest.mark.interop, pytest.mark.timeout(1800), DAEMONS]

SEED = 20240605
NUM_DAYS = 60
SECONDS = 900
"""A generous bound: the test waits for events, and a loaded machine takes long to start a process for each run."""

MOST_REQUESTS = 12
"""A run that ingests, erases or pays a debt has more requests to the store than that, so it comes to the one drawn."""


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

    def erase_a_row(self, reason: str) -> dict[str, Any]:
        """Choose a row of a day that is in the table; return the configuration of a run that erases it."""
        in_table = sorted(key for key, state in self.expected.items() if state == "ingested")
        gone = self.ids[self.draw.choice(in_table)].pop()
        return {"erase": {"config": {"predicate": f"id = {gone}", "reason": reason, "dry_run": False}}}

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
    lake = Lake(s3_server, s3_server.new_bucket(), draw)
    config = declared(lake)
    names = DatasetNames(config.name)
    days = [f"d{day:02}" for day in range(NUM_DAYS)]
    size = NUM_DAYS // num_waves
    orders = Orders(tmp_path / "orders")
    location = write_location(tmp_path / "location.py", orders, config, interval_seconds=4)
    with receiving() as receiver, team_instance(tmp_path) as environment:
        environment["ALERT_URL"] = receiver.url
        with running_daemon(location, environment, monkeypatch) as instance:
            assert type(instance.run_storage).__name__ == "PostgresRunStorage"
            wait_for(lambda: "trips_alerts_webhook" in sensors_with_a_cursor(instance), SECONDS)
            left_out: str | None = None
            for number in range(num_waves):
                late, doomed = number % 2 == 1, ["trips_ingest", "trips_erase" if number % 2 else "trips_upkeep"]
                if number:
                    lake.append_by_reference(config.uri, number)
                orders.doom("trips_ingest", AFTER_COMMIT if late else draw.randint(1, MOST_REQUESTS))
                orders.doom(doomed[1], draw.randint(1, MOST_REQUESTS))
                if late:
                    orders.launch(f"request {number}", "trips_erase", lake.erase_a_row(f"request {number}"))
                left_out = lake.land_wave(number, days[number * size : (number + 1) * size], left_out)
                wait_for(
                    lambda: states(config, instance) == lake.expected, SECONDS, f"wave {number} is not settled", every=2
                )
                for job in doomed:  # a commit shows before the death
                    wait_for(partial(orders.are_met, f"doom/{job}"), SECONDS, f"no run of {job} came to its death")
                    orders.forget(f"doom/{job}")
                wait_for(partial(are_retried, instance, 2 * number + 2), SECONDS, "a killed run is not retried")
                wait_for(partial(have_ended, instance, doomed[1]), SECONDS, f"a retry of {doomed[1]} does not end")
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

            wait_for(partial(have_ended, instance, "trips_upkeep"), SECONDS, "upkeep does not end")
            orders.launch("in the end", "trips_checks")
            wait_for(lambda: num_succeeded(instance, "trips_checks") > 0, SECONDS, "the checks do not run")
            assert red_checks(config, instance) == {"batches_settled": sorted(reasons)}
            unproven = {proof["reason"]: proof["unproven"] for proof in proofs(config)}
            assert unproven == {f"request {number}": [] for number in range(1, num_waves, 2)}
            # An erasure may remove a version of a killed run, or of the other writer, before anybody has recorded it.
            removed = {int(each.rpartition("/")[2]) for proof in proofs(config) for each in proof["removed_versions"]}
            versions = {*range(1, newest_version(config) + 1)}
            wait_for(lambda: {*head_versions(instance, names)} | removed >= versions, SECONDS)
            assert len(head_versions(instance, names)) == len({*head_versions(instance, names)} & versions)
            assert recorded(instance, names) == ingested
            wait_for(lambda: not instance.event_log_storage.get_concurrency_info(names.pool).claimed_slots, SECONDS)
            wait_for(lambda: told(receiver.bodies) == lake.told, SECONDS)
            sent = {headers["Idempotency-Key"] for headers in receiver.headers}
            assert len(sent) == len(receiver.bodies), "an alert was sent twice"
            # An index that does not cover a new wave is red until upkeep has paid, and a batch whose run was killed
            # until the run is repeated.
            firing = [alert for alert in receiver.bodies if alert["status"] == "firing"]
            others = [alert for alert in firing if alert["event"] != "quarantine"]
            titles = {each["title"] for each in others if "failed; the sensor asks for it again" not in each["reason"]}
            assert titles <= {"check unindexed_ratio is red"}


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
            "indices": [{"column": "id"}],
            "maintenance": {"upkeep": {}, "cron": None},
            "alerts": [{"webhook": {"url": "${ALERT_URL}"}}],
        }
    )


def recorded(instance: dg.DagsterInstance, names: DatasetNames) -> set[str]:
    """Return the batches that Dagster's log says were ingested."""
    return instance.get_materialized_partitions(names.batches)


def have_ended(instance: dg.DagsterInstance, job: str) -> bool:
    """Return whether every run of a job has ended, and those that were killed have succeeded when started again."""
    found = {run.run_id: run for run in instance.get_runs(dg.RunsFilter(job_name=job))}
    again = {run.parent_run_id for run in found.values() if run.is_success}
    return bool(found) and all(run.is_success or (run.is_failure and run.run_id in again) for run in found.values())


def num_succeeded(instance: dg.DagsterInstance, job: str) -> int:
    return instance.get_runs_count(dg.RunsFilter(job_name=job, statuses=[dg.DagsterRunStatus.SUCCESS]))


def red_checks(config: DatasetConfig, instance: dg.DagsterInstance) -> dict[str, list[str]]:
    """Return the checks of the dataset whose newest result is bad, each with the batches that it names."""
    red = {}
    checks = build_asset_definitions(config).asset_checks or ()
    for key in chain.from_iterable(each.check_keys for each in checks if isinstance(each, dg.AssetChecksDefinition)):
        newest = newest_evaluation(instance, key)
        assert newest is not None, f"{key.name} was never evaluated"
        if not newest.evaluation.passed:
            named = newest.evaluation.metadata.get(UNSETTLED_BATCHES)
            batches = named.data if isinstance(named, dg.JsonMetadataValue) and isinstance(named.data, dict) else {}
            red[key.name] = sorted(batches)
    return red


def proofs(config: DatasetConfig) -> list[Mapping[str, Any]]:
    """Return the reports of erasures, the newest last. One that waits for writers is tried again."""
    return sorted(list_erasures(opened(config).snapshot.store), key=lambda record: str(record.get("finished_at")))


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
