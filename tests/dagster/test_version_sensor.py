from __future__ import annotations

import json
import shutil
from datetime import timedelta
from pathlib import Path
from typing import Any, NoReturn

import dagster as dg
import pyarrow as pa
import pytest

from lance_ops.api import write_dataset
from lance_ops.committers import Committer
from lance_ops.dagster.event_log import newest_evaluation
from lance_ops.dagster.head import recorded_versions, version_sensor
from lance_ops.dagster.head.report import unrecorded
from lance_ops.dagster.head.version_sensor import build_version_sensor
from lance_ops.transactions.committed import committed_versions
from tests.dagster.deployment import Deployment, writers_clock_ahead

pytestmark = pytest.mark.dagster


def watch(
    deployment: Deployment, cursor: str | None = None, *, grace: timedelta = timedelta(0), **options: int
) -> tuple[list[int], str | None]:
    """Evaluate the watcher, by default without its grace period; return the versions it reports and its cursor."""
    sensor = build_version_sensor(deployment.config, grace=grace, **options)
    with dg.build_sensor_context(instance=deployment.instance, cursor=cursor) as context:
        data = sensor.evaluate_tick(context)
    for event in data.asset_events:
        deployment.instance.report_runless_asset_event(event)
    heads = [event for event in data.asset_events if event.asset_key == deployment.names.head]
    events = [event for event in heads if isinstance(event, dg.AssetMaterialization)]
    return [int((event.tags or {})["dagster/data_version"]) for event in events], data.cursor


def handled(cursor: str | None) -> int:
    """Return the version that a cursor names."""
    version: int = json.loads(cursor or "")[0]
    return version


def record(deployment: Deployment, *versions: int) -> None:
    """Record versions, as the runs that committed them do."""
    for event in unrecorded(deployment.instance, deployment.config, deployment.data.snapshot, versions).events:
        deployment.instance.report_runless_asset_event(event)


def rows(*ids: int) -> pa.Table:
    return pa.table({"id": list(ids)})


def test_there_is_nothing_to_watch_before_the_first_version(deployment: Deployment) -> None:
    assert watch(deployment) == ([], None)


def test_an_external_writers_versions_are_recorded_once(deployment: Deployment) -> None:
    write_dataset(rows(1), deployment.config.uri)
    write_dataset(rows(2), deployment.config.uri, mode="append")
    found, cursor = watch(deployment)
    assert found == [1, 2]
    assert watch(deployment, cursor) == ([], cursor)
    assert deployment.head_versions() == [1, 2]


def test_versions_that_a_run_recorded_are_not_recorded_again(deployment: Deployment) -> None:
    deployment.land("a", range(3))
    deployment.tick()
    deployment.data.delete("id = 1")
    found, cursor = watch(deployment)
    assert found == [2]
    assert handled(cursor) == 2


def test_a_lost_cursor_records_nothing_twice(deployment: Deployment) -> None:
    write_dataset(rows(1), deployment.config.uri)
    watch(deployment)
    assert watch(deployment, cursor=None)[0] == []


def test_a_tick_is_bounded(deployment: Deployment) -> None:
    write_dataset(rows(0), deployment.config.uri)
    for number in range(1, 5):
        write_dataset(rows(number), deployment.config.uri, mode="append")
    first, cursor = watch(deployment, max_versions_per_tick=3)
    second, _ = watch(deployment, cursor, max_versions_per_tick=3)
    assert (first, second) == ([1, 2, 3], [4, 5])


def test_only_a_watcher_without_a_cursor_leaves_old_versions_out_and_says_so(
    deployment: Deployment, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(version_sensor, "_WINDOW", 2)
    for number in range(4):
        write_dataset(rows(number), deployment.config.uri, mode="append" if number else "create")
    sensor = build_version_sensor(deployment.config, grace=timedelta(0))
    with dg.build_sensor_context(instance=deployment.instance) as context:
        said = sensor.evaluate_tick(context).skip_message or ""
    assert said.endswith("; 2 versions below 3 are older than the newest 2 and left out")
    found, cursor = watch(deployment)
    assert (found, handled(cursor)) == ([3, 4], 4)
    for number in range(4):
        write_dataset(rows(number), deployment.config.uri, mode="append")
    found, cursor = watch(deployment, cursor)
    assert (found, handled(cursor)) == ([5, 6, 7, 8], 8)


def test_versions_that_runs_recorded_behind_those_of_another_writer_are_not_recorded_again(
    deployment: Deployment, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The sensor's own events are the newest ones then. No query asks Dagster for more than it reads at once."""
    for number in range(10):
        write_dataset(rows(number), deployment.config.uri, mode="append" if number else "create")
    record(deployment, 5, 6, 7, 10)
    monkeypatch.setattr(recorded_versions, "_NEWEST", 1)
    monkeypatch.setattr(recorded_versions, "_PAGE", 2)
    monkeypatch.setenv("MAX_LIMIT_GET_EVENT_RECORDS", "203")
    cursor, found = None, []
    for _ in range(5):
        some, cursor = watch(deployment, cursor, max_versions_per_tick=2)
        found.append(some)
    assert found == [[1, 2], [3, 4], [], [8], [9]]


def test_an_event_is_found_by_pages_from_its_versions_commit_on(
    deployment: Deployment, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Growth: a version that its run recorded costs one page, however many events are older or newer."""
    for number in range(12):
        write_dataset(rows(number), deployment.config.uri, mode="append" if number else "create")
        record(deployment, number + 1)
    monkeypatch.setattr(recorded_versions, "_NEWEST", 2)
    monkeypatch.setattr(recorded_versions, "_PAGE", 5)
    monkeypatch.setattr(recorded_versions, "MOST_CLOCK_SKEW_SECONDS", 0)
    asked: list[int] = []
    fetch = deployment.instance.fetch_materializations

    def noted(wanted: dg.AssetRecordsFilter, limit: int, **others: Any) -> Any:
        asked.append(limit)
        return fetch(wanted, limit, **others)

    monkeypatch.setattr(deployment.instance, "fetch_materializations", noted)
    assert watch(deployment, cursor="3", max_versions_per_tick=4)[0] == []
    assert asked == [2, 5]


def test_a_tick_without_a_newer_version_lists_none(deployment: Deployment, monkeypatch: pytest.MonkeyPatch) -> None:
    write_dataset(rows(0), deployment.config.uri)
    _, cursor = watch(deployment)

    def listed(*_: object) -> NoReturn:
        raise AssertionError("the versions were listed")

    monkeypatch.setattr(version_sensor, "unrecorded", listed)
    assert watch(deployment, cursor) == ([], cursor)


def test_removed_versions_are_skipped(deployment: Deployment) -> None:
    for number in range(4):
        write_dataset(rows(number), deployment.config.uri, mode="append" if number else "create")
    deployment.data.cleanup_old_versions(timedelta(0), retain_versions=1)
    found, cursor = watch(deployment, cursor="1")
    assert (found, handled(cursor)) == ([4], 4)
    assert watch(deployment, cursor="4") == ([], cursor), "a number alone is a cursor, too"


def test_a_recreated_dataset_is_watched_from_its_first_version(deployment: Deployment) -> None:
    for number in range(3):
        write_dataset(rows(number), deployment.config.uri, mode="append" if number else "create")
    _, cursor = watch(deployment)
    shutil.rmtree(deployment.config.uri)
    write_dataset(rows(7), deployment.config.uri)
    found, cursor = watch(deployment, cursor)
    assert (found, handled(cursor)) == ([1], 1)


@pytest.mark.parametrize("num_versions", [2, 3])
def test_a_dataset_that_is_made_anew_every_night_is_recorded_every_night(
    deployment: Deployment, num_versions: int
) -> None:
    """The new dataset has as many versions as the cursor says, or more."""
    cursor = None
    for night in range(3):
        shutil.rmtree(deployment.config.uri, ignore_errors=True)
        for number in range(num_versions + night // 2):
            write_dataset(rows(night, number), deployment.config.uri, mode="append" if number else "create")
        found, cursor = watch(deployment, cursor)
        assert found == list(range(1, num_versions + 1 + night // 2))
        assert watch(deployment, cursor) == ([], cursor)


@pytest.mark.parametrize("cursor", ["", "{", "{}", "[]", "[1]", "null", '"x"', '["x", 1]', "[1, 2, 3]"])
def test_a_cursor_that_cannot_be_read_records_nothing_twice(deployment: Deployment, cursor: str) -> None:
    write_dataset(rows(1), deployment.config.uri)
    _, good = watch(deployment)
    assert watch(deployment, cursor) == ([], good)


def test_a_tick_without_time_records_one_version_and_the_next_ones_go_on(
    deployment: Deployment, monkeypatch: pytest.MonkeyPatch
) -> None:
    for number in range(3):
        write_dataset(rows(number), deployment.config.uri, mode="append" if number else "create")
    monkeypatch.setattr(version_sensor, "_MAX_SECONDS", 0.0)
    cursor = None
    for version in (1, 2, 3):
        found, cursor = watch(deployment, cursor)
        assert (found, handled(cursor)) == ([version], version)
    assert watch(deployment, cursor) == ([], cursor)


def test_a_tick_reads_no_manifest_of_a_version_that_is_left_to_later_ones(
    deployment: Deployment, monkeypatch: pytest.MonkeyPatch
) -> None:
    for number in range(9):
        write_dataset(rows(number), deployment.config.uri, mode="append" if number else "create")
    read: list[int] = []
    reads = committed_versions._read

    def noted(committer: Committer, version: int, as_listed: bool) -> pa.Buffer:
        read.append(version)
        return reads(committer, version, as_listed)

    monkeypatch.setattr(committed_versions, "_read", noted)
    assert watch(deployment, max_versions_per_tick=2)[0] == [1, 2]
    assert set(read) <= {1, 2, 9}, "9 is the newest, which is opened"


def test_a_young_version_is_left_to_the_run_that_made_it(deployment: Deployment) -> None:
    write_dataset(rows(1), deployment.config.uri)
    ticked = deployment.tick("versions")
    assert ticked.events == ()
    assert ticked.skip_message == "every version up to 0 is recorded; 1 is the newest"


def test_a_version_that_a_wrong_clock_has_dated_far_ahead_is_recorded_once(
    deployment: Deployment, monkeypatch: pytest.MonkeyPatch
) -> None:
    with writers_clock_ahead(timedelta(days=3650)):
        write_dataset(rows(1), deployment.config.uri)
    write_dataset(rows(2), deployment.config.uri, mode="append")
    assert watch(deployment, grace=timedelta(minutes=1))[0] == [1]
    assert watch(deployment)[0] == [2]
    monkeypatch.setattr(recorded_versions, "_NEWEST", 1)
    assert watch(deployment)[0] == [], "without a cursor"


def valid_results(deployment: Deployment) -> list[tuple[bool, str]]:
    """Evaluate the watcher twice; return the results of the check `valid` that it reports."""
    sensor = build_version_sensor(deployment.config, grace=timedelta(0))
    found = []
    for _ in range(2):
        with dg.build_sensor_context(instance=deployment.instance, cursor="1") as context:
            data = sensor.evaluate_tick(context)
        for event in data.asset_events:
            deployment.instance.report_runless_asset_event(event)
            if isinstance(event, dg.AssetCheckEvaluation):
                assert event.check_name == "valid"
                found.append((event.passed, event.description or ""))
    return found


def test_a_newest_version_that_does_not_open_turns_the_check_red_once_and_green_when_it_opens(
    deployment: Deployment,
) -> None:
    write_dataset(rows(1), deployment.config.uri)
    assert valid_results(deployment) == [], "the watcher leaves the check of a sound table to the runs"
    (manifest,) = Path(deployment.config.uri, "_versions").glob("*.manifest")
    sound = manifest.read_bytes()
    manifest.write_bytes(b"garbage")
    ((passed, said),) = valid_results(deployment)
    assert not passed and manifest.name in said and "run trips_verify" in said and "trips_repair" in said
    manifest.write_bytes(sound)
    assert valid_results(deployment) == [(True, "")]


def test_a_table_that_has_gone_turns_the_check_red_and_its_return_turns_it_green(deployment: Deployment) -> None:
    write_dataset(rows(1), deployment.config.uri)
    watch(deployment)
    lost = Path(deployment.config.uri).rename(deployment.landing.parent / "unmounted")
    ((passed, said),) = valid_results(deployment)
    assert not passed and deployment.config.uri in said and "version 1 was recorded" in said
    assert not deployment.check()["valid"].passed
    newest = newest_evaluation(deployment.instance, dg.AssetCheckKey(deployment.names.head, "valid"))
    assert newest is not None and newest.run_id, "a run says the same, so the watcher is quiet"
    assert valid_results(deployment) == []
    lost.rename(deployment.config.uri)
    assert valid_results(deployment) == [(True, "")]


def test_a_tick_that_records_versions_says_so(deployment: Deployment) -> None:
    write_dataset(rows(1), deployment.config.uri)
    sensor = build_version_sensor(deployment.config, grace=timedelta(0))
    with dg.build_sensor_context(instance=deployment.instance) as context:
        data = sensor.evaluate_tick(context)
    assert data.skip_message == "every version up to 1 is recorded; 1 is the newest"
