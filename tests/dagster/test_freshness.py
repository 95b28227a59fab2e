"""The check `fresh` tells the newest change of rows, whichever versions have events; its sensor's ticks are cheap."""

from __future__ import annotations

import json
import shutil
from datetime import UTC, datetime, timedelta
from typing import Any, NoReturn

import dagster as dg
import pyarrow as pa
import pytest

from lance_ops.api import write_dataset
from lance_ops.dagster import opening
from lance_ops.dagster.declaration import DatasetConfig
from lance_ops.dagster.head import freshness as room
from lance_ops.dagster.head import recorded_versions as events
from lance_ops.dagster.head.freshness import FRESH, freshness
from lance_ops.dagster.head.report import unrecorded
from lance_ops.errors import StoreError
from lance_ops.maintenance.health import last_change
from lance_ops.snapshot import Snapshot
from tests.dagster.deployment import Deploy, Deployment, writers_clock_ahead

pytestmark = pytest.mark.dagster


@pytest.fixture
def deployment(deploy: Deploy) -> Deployment:
    return deploy(health={"hours_without_version": 2})


def rows(*ids: int) -> pa.Table:
    return pa.table({"id": list(ids)})


def record(deployment: Deployment, *versions: int) -> None:
    """Record versions on the head, as one tick or one run does."""
    newest = deployment.data.snapshot
    for event in unrecorded(deployment.instance, deployment.config, newest, versions).events:
        deployment.instance.report_runless_asset_event(event)


def changed_in(deployment: Deployment) -> int | None:
    change = freshness(deployment.instance, deployment.config).change
    return None if change is None else change.version


def told_in_newest_event(deployment: Deployment) -> object:
    (record,) = deployment.instance.fetch_materializations(deployment.names.head, limit=1).records
    assert record.asset_materialization is not None
    return record.asset_materialization.metadata["lance/rows_changed_in"].value


def existing_table(deployment: Deployment) -> None:
    """Make five versions that insert rows and a sixth that does not."""
    for number in range(5):
        write_dataset(rows(number), deployment.config.uri, mode="append" if number else "create")
    deployment.data.create_scalar_index("id", "BTREE")


def test_a_change_in_versions_that_have_no_event_yet_is_told(deployment: Deployment) -> None:
    existing_table(deployment)
    record(deployment, 1, 2)
    assert changed_in(deployment) == 5
    record(deployment, 6)  # a maintenance run records its own version before the sensor comes to the others
    assert told_in_newest_event(deployment) == 5
    assert changed_in(deployment) == 5


def test_events_without_a_gap_are_believed(deployment: Deployment, monkeypatch: pytest.MonkeyPatch) -> None:
    existing_table(deployment)
    searched: list[int] = []

    def search(newest: Snapshot, above: int = 0) -> Any:
        searched.append(above)
        return last_change(newest, above)

    monkeypatch.setattr(events, "last_change", search)
    record(deployment, *range(1, 7))
    assert (changed_in(deployment), searched) == (5, [])


def test_events_of_a_removed_dataset_tell_nothing_of_the_new_one(deployment: Deployment) -> None:
    for number in range(3):
        write_dataset(rows(number), deployment.config.uri, mode="append" if number else "create")
    record(deployment, 1, 2, 3)
    shutil.rmtree(deployment.config.uri)
    for mode in ("create", "append"):
        data = write_dataset(rows(7), deployment.config.uri, mode=mode)
        found = freshness(deployment.instance, deployment.config).change
        assert found is not None
        assert (found.version, found.committed_at) == (data.version, data.snapshot.manifest.timestamp)


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> list[timedelta]:
    """How far the sensor's clock is ahead."""
    ahead = [timedelta(0)]

    class Clock(datetime):
        @classmethod
        def now(cls, tz: Any = None) -> Any:
            return datetime.now(UTC) + ahead[0]

    monkeypatch.setattr(room, "datetime", Clock)
    return ahead


def reported(deployment: Deployment) -> list[bool]:
    """Evaluate the sensor; return the results that it reports."""
    found = deployment.tick("freshness").events
    return [event.passed for event in found if isinstance(event, dg.AssetCheckEvaluation)]


def report(deployment: Deployment, *, passed: bool) -> None:
    """Record a result of the check, as the job of checks does."""
    found = dg.AssetCheckEvaluation(deployment.names.head, FRESH, passed, {})
    deployment.instance.report_runless_asset_event(found)


def test_the_sensor_reports_what_differs_from_the_newest_result_also_of_a_run(deployment: Deployment) -> None:
    write_dataset(rows(1), deployment.config.uri)
    assert reported(deployment) == [True]
    assert (deployment.tick("freshness").skip_message or "").startswith("still green")
    report(deployment, passed=False)
    assert reported(deployment) == [True]


def test_a_tick_without_a_new_version_reads_no_event_of_the_head(
    deployment: Deployment, clock: list[timedelta], monkeypatch: pytest.MonkeyPatch
) -> None:
    looked: list[int] = []

    def look(instance: dg.DagsterInstance, config: DatasetConfig, limit: int) -> Any:
        looked.append(limit)
        return events.recorded_versions(instance, config, limit)

    monkeypatch.setattr(room, "recorded_versions", look)
    assert reported(deployment) == [True] and not looked, "there is no table yet"
    write_dataset(rows(1), deployment.config.uri)
    for _ in range(3):
        deployment.tick("freshness")
    assert len(looked) == 1
    clock[0] = timedelta(hours=3)
    assert reported(deployment) == [False], "time passes all the same"
    assert len(looked) == 1
    write_dataset(rows(2), deployment.config.uri, mode="append")
    deployment.tick("freshness")
    assert len(looked) == 2


def test_a_change_of_a_clock_that_is_far_ahead_does_not_count_as_fresh(deployment: Deployment) -> None:
    with writers_clock_ahead(timedelta(minutes=50)):
        write_dataset(rows(1), deployment.config.uri)
    assert reported(deployment) == [True]
    with writers_clock_ahead(timedelta(days=3650)):
        write_dataset(rows(2), deployment.config.uri, mode="append")
    assert reported(deployment) == [False]
    assert "the clock of its writer was ahead" in (deployment.tick("freshness").skip_message or "")


def test_a_change_dated_ahead_is_not_fresh_when_its_date_comes(deployment: Deployment, clock: list[timedelta]) -> None:
    with writers_clock_ahead(timedelta(days=3)):
        write_dataset(rows(1), deployment.config.uri)
    assert reported(deployment) == [False]
    deployment.data.create_scalar_index("id", "BTREE")
    assert reported(deployment) == []
    clock[0] = timedelta(hours=73)
    assert reported(deployment) == []
    assert "the clock of its writer was ahead" in (deployment.tick("freshness").skip_message or "")
    assert not freshness(deployment.instance, deployment.config).passed, "the check says what the sensor says"
    write_dataset(rows(2), deployment.config.uri, mode="append")
    clock[0] = timedelta(0)
    assert reported(deployment) == [True]


def test_a_change_dated_ahead_that_a_check_saw_first_is_known_to_the_sensor(
    deployment: Deployment, clock: list[timedelta]
) -> None:
    write_dataset(rows(1), deployment.config.uri)
    clock[0] = timedelta(hours=3)
    assert reported(deployment) == [False]
    with writers_clock_ahead(timedelta(days=3)):
        write_dataset(rows(2), deployment.config.uri, mode="append")
    assert reported(deployment) == [False], "red already, and a check must know when the change was first seen"
    deployment.location.cursors.clear()
    clock[0] = timedelta(hours=73)
    assert reported(deployment) == []


def test_a_cursor_of_before_this_was_kept_is_read(deployment: Deployment, clock: list[timedelta]) -> None:
    with writers_clock_ahead(timedelta(days=3)):
        write_dataset(rows(1), deployment.config.uri)
    manifest = deployment.data.snapshot.manifest
    assert manifest.timestamp is not None
    cursor = json.dumps([*events.identity_of(manifest), [1, manifest.timestamp.isoformat()]])
    deployment.location.cursors[deployment.names.of("freshness")] = cursor
    report(deployment, passed=False)
    assert reported(deployment) == [False], "it tells when the change was first seen"
    clock[0] = timedelta(hours=73)
    assert reported(deployment) == []


def test_rows_too_old_in_a_store_that_refuses_turn_the_check_red(
    deployment: Deployment, clock: list[timedelta], monkeypatch: pytest.MonkeyPatch
) -> None:
    write_dataset(rows(1), deployment.config.uri)
    assert reported(deployment) == [True]

    def refused(*_: object) -> NoReturn:
        raise StoreError("the key has expired: set new credentials")

    with monkeypatch.context() as outage:
        outage.setattr(opening, "open_to_look", refused)
        with pytest.raises(StoreError, match="the key has expired"):
            deployment.tick("freshness")
        clock[0] = timedelta(hours=4)
        assert reported(deployment) == [False]
        said = deployment.tick("freshness").skip_message or ""
        assert "before the last 2 hours, and the table cannot be looked at: the key has expired" in said
    write_dataset(rows(2), deployment.config.uri, mode="append")
    clock[0] = timedelta(0)
    assert reported(deployment) == [True]


@pytest.mark.parametrize("cursor", [None, "green", "[1]", "[1, 2.0, 3]", '[1, 2.0, [3, "then"]]', "{}"])
def test_an_unreadable_cursor_is_as_none(deployment: Deployment, cursor: str | None) -> None:
    write_dataset(rows(1), deployment.config.uri)
    deployment.location.cursors[deployment.names.of("freshness")] = cursor
    assert reported(deployment) == [True]
