"""A batch that failed or was set aside days ago is asked for again, however old the times of its files are."""

from __future__ import annotations

import os
import shutil
import time
from datetime import UTC, datetime, timedelta
from types import SimpleNamespace
from typing import Any

import dagster as dg
import pytest

from lance_ops.dagster import batch_states
from lance_ops.dagster.landing import batch_report, batch_runs, raw_sensor
from lance_ops.dagster.landing.tick import Cursor, Watermark
from tests.dagster.deployment import LANDED, Deploy, Deployment, writers_clock_ahead

pytestmark = pytest.mark.dagster


def later(monkeypatch: pytest.MonkeyPatch, **time: float) -> None:
    """Have the sensor and the report take all that happened so far for so long ago."""
    clock = SimpleNamespace(
        now=lambda zone: datetime.now(zone) + timedelta(**time), fromtimestamp=datetime.fromtimestamp
    )
    for module in (raw_sensor, batch_report):
        monkeypatch.setattr(module, "datetime", clock)


def days_later(monkeypatch: pytest.MonkeyPatch, days: int) -> None:
    later(monkeypatch, days=days)


def land_junk(deployment: Deployment, key: str, size: int = 9) -> None:
    """Land a file that is none, older than all others."""
    path = deployment.landing / f"{key}.parquet"
    path.write_bytes(b"x" * size)
    os.utime(path, (LANDED - 60, LANDED - 60))


def mend(deployment: Deployment, key: str) -> None:
    """Replace a file by a good one with an older time, as copies do that keep times."""
    os.utime(deployment.land(key, range(5)), (LANDED - 120, LANDED - 120))


def state(deployment: Deployment, key: str) -> tuple[str, str]:
    report = batch_states(deployment.config, deployment.instance)
    return next((batch.state.value, batch.reason) for batch in report.batches if batch.key == key)


@pytest.fixture
def with_junk(deployment: Deployment) -> Deployment:
    """A batch that was set aside, with an older time than another one that was ingested."""
    deployment.land("good", range(10, 12))
    land_junk(deployment, "bad")
    deployment.tick(raise_on_error=False)
    assert state(deployment, "bad")[0] == "quarantined"
    return deployment


def test_a_batch_that_is_mended_with_an_older_time_is_ingested_days_later(
    with_junk: Deployment, monkeypatch: pytest.MonkeyPatch
) -> None:
    days_later(monkeypatch, 3)
    assert with_junk.tick().runs == (), "it is not mended"
    days_later(monkeypatch, 4)
    mend(with_junk, "bad")
    assert "the sensor asks for it" in state(with_junk, "bad")[1]
    with_junk.tick()
    assert with_junk.data.count_rows() == 7


def test_a_mended_batch_is_asked_for_also_if_its_runs_are_not_known_any_more(
    with_junk: Deployment, monkeypatch: pytest.MonkeyPatch
) -> None:
    for run in with_junk.instance.get_runs():
        with_junk.instance.run_storage.delete_run(run.run_id)
    mend(with_junk, "bad")
    assert state(with_junk, "bad") == ("landed", "changed since it was left alone: the sensor asks for it next")
    days_later(monkeypatch, 3)
    with_junk.tick()
    assert with_junk.data.count_rows() == 7
    days_later(monkeypatch, 6)
    assert with_junk.tick().runs == ()


def test_a_batch_whose_mended_content_is_bad_too_is_asked_for_once(
    with_junk: Deployment, monkeypatch: pytest.MonkeyPatch
) -> None:
    land_junk(with_junk, "bad", 11)
    days_later(monkeypatch, 3)
    assert len(with_junk.tick(raise_on_error=False).runs) == 1
    days_later(monkeypatch, 6)
    assert with_junk.tick(raise_on_error=False).runs == ()


@pytest.mark.parametrize("cause", ["five failures", "cancelled"])
def test_a_mended_batch_is_asked_for_although_runs_of_its_earlier_content_gave_it_up(
    with_junk: Deployment, without_runs: None, monkeypatch: pytest.MonkeyPatch, cause: str
) -> None:
    if cause == "cancelled":
        for run in with_junk.instance.get_runs():
            with_junk.instance.run_storage.delete_run(run.run_id)
        with_junk.add_run("bad", dg.DagsterRunStatus.CANCELED)
    else:
        for _ in range(4):
            with_junk.add_run("bad", dg.DagsterRunStatus.FAILURE)
    soon = time.time() + 30
    os.utime(with_junk.land("bad", range(5)), (soon, soon))
    handled(with_junk)
    days_later(monkeypatch, 3)
    assert state(with_junk, "bad") == ("landed", "changed since it was left alone: the sensor asks for it next")
    assert [request.partition_key for request in with_junk.tick().run_requests] == ["bad"]


def test_a_batch_that_was_set_aside_stays_so_when_its_run_is_deleted(
    with_junk: Deployment, monkeypatch: pytest.MonkeyPatch
) -> None:
    for run in with_junk.instance.get_runs():
        with_junk.instance.delete_run(run.run_id)
    days_later(monkeypatch, 3)
    assert with_junk.tick().run_requests == () and state(with_junk, "bad")[0] == "quarantined"
    with_junk.location.cursors.clear()
    assert with_junk.tick(raise_on_error=False).run_requests == ()


@pytest.mark.usefixtures("without_runs")
def test_a_batch_whose_run_failed_is_asked_for_again_after_a_pause(
    with_lost_run: Deployment, monkeypatch: pytest.MonkeyPatch
) -> None:
    (with_lost_run.landing / "good.parquet").unlink()
    assert state(with_lost_run, "a")[1].endswith("failed; the sensor asks for it again 5 minutes after its end")
    asked = []
    for minutes in (1, 6):
        later(monkeypatch, minutes=minutes)
        asked.append(len(with_lost_run.tick().run_requests))
    assert asked == [0, 1]


def test_a_cancelled_batch_is_left_alone_when_its_run_is_deleted(
    with_lost_run: Deployment, monkeypatch: pytest.MonkeyPatch
) -> None:
    with_lost_run.add_run("a", dg.DagsterRunStatus.CANCELED)
    days_later(monkeypatch, 3)
    (noted,) = with_lost_run.tick().events
    assert isinstance(noted, dg.AssetObservation) and noted.partition == "a"
    days_later(monkeypatch, 4)
    assert with_lost_run.tick().events == (), "it is noted once"
    for each in with_lost_run.instance.get_runs():
        with_lost_run.instance.delete_run(each.run_id)
    days_later(monkeypatch, 5)
    assert with_lost_run.tick().run_requests == ()
    with_lost_run.location.cursors.clear()
    assert with_lost_run.tick().run_requests == ()
    assert state(with_lost_run, "a")[1] == "no run of it ended well, and none is under way: materialize partition a"
    with_lost_run.add_run("a", dg.DagsterRunStatus.FAILURE)
    assert "the sensor asks for it again" in state(with_lost_run, "a")[1], "somebody asked for it since"


@pytest.mark.usefixtures("without_runs")
@pytest.mark.parametrize("num_failures", [1, 5])
def test_a_lost_cursor_has_no_failed_batch_asked_for_early(
    deployment: Deployment, monkeypatch: pytest.MonkeyPatch, num_failures: int
) -> None:
    deployment.land("a", range(3))
    deployment.know("a")
    for _ in range(num_failures):
        deployment.add_run("a", dg.DagsterRunStatus.FAILURE)
    later(monkeypatch, minutes=4)
    assert deployment.tick().run_requests == ()
    later(monkeypatch, minutes=10)
    assert len(deployment.tick().run_requests) == (1 if num_failures == 1 else 0)


@pytest.mark.usefixtures("without_runs")
@pytest.mark.parametrize("when", ["below the watermark, after it was noted", "above the watermark"])
def test_a_cancelled_batch_whose_files_changed_is_asked_for(
    deployment: Deployment, monkeypatch: pytest.MonkeyPatch, when: str
) -> None:
    deployment.land("a", range(3))
    deployment.know("a")
    deployment.add_run("a", dg.DagsterRunStatus.CANCELED)
    if when != "above the watermark":
        handled(deployment)
        days_later(monkeypatch, 3)
        (noted,) = deployment.tick().events
        assert isinstance(noted, dg.AssetObservation) and noted.partition == "a"
    soon = time.time() + 30
    os.utime(deployment.land("a", range(5)), (soon, soon))
    days_later(monkeypatch, 4)
    if when != "above the watermark":
        assert state(deployment, "a") == ("landed", "changed since it was left alone: the sensor asks for it next")
    asked = deployment.tick()
    assert [request.partition_key for request in asked.run_requests] == ["a"] and asked.events == ()


def test_a_marker_that_comes_late_has_a_mended_batch_ingested(deploy: Deploy, monkeypatch: pytest.MonkeyPatch) -> None:
    deployment = deploy(raw={"batch": "folder", "marker": "_SUCCESS", "glob": "**/*.parquet"})
    for folder in ("day1", "day2"):
        (deployment.landing / folder).mkdir()
        (deployment.landing / folder / "_SUCCESS").touch()
    land_junk(deployment, "day1/a")
    deployment.land("day2/a", range(10, 12))
    deployment.tick(raise_on_error=False)
    (deployment.landing / "day1" / "_SUCCESS").unlink()
    mend(deployment, "day1/a")
    days_later(monkeypatch, 3)
    assert deployment.tick().runs == ()
    (deployment.landing / "day1" / "_SUCCESS").touch()
    days_later(monkeypatch, 6)
    deployment.tick()
    assert deployment.data.count_rows() == 7


def handled(deployment: Deployment) -> None:
    """Have the sensor take all batches as handled: they are below its watermark."""
    watermark = Watermark(datetime(2100, 1, 1, tzinfo=UTC), "")
    deployment.location.cursors[deployment.names.of("raw_files")] = Cursor(watermark, datetime.now(UTC)).encode()


@pytest.fixture
def with_lost_run(deployment: Deployment) -> Deployment:
    """A batch below the watermark whose run failed, and a new one."""
    deployment.land("a", range(3))
    deployment.instance.add_dynamic_partitions(deployment.names.of("batches"), ["a"])
    deployment.land("good", range(10, 12))
    handled(deployment)
    deployment.add_run("a", dg.DagsterRunStatus.FAILURE)
    return deployment


def test_a_run_that_failed_while_the_sensor_was_off_is_made_up_for(
    with_lost_run: Deployment, monkeypatch: pytest.MonkeyPatch
) -> None:
    days_later(monkeypatch, 3)
    assert "the sensor asks for it again" in state(with_lost_run, "a")[1]
    with_lost_run.tick()
    assert with_lost_run.data.count_rows() == 5
    days_later(monkeypatch, 6)
    assert with_lost_run.tick().runs == ()


@pytest.mark.parametrize("cause", ["five failures", "cancelled"])
def test_a_batch_that_is_left_to_a_person_stays_so(
    with_lost_run: Deployment, monkeypatch: pytest.MonkeyPatch, cause: str
) -> None:
    if cause == "cancelled":
        with_lost_run.add_run("a", dg.DagsterRunStatus.CANCELED)
    else:
        for _ in range(4):
            with_lost_run.add_run("a", dg.DagsterRunStatus.FAILURE)
    days_later(monkeypatch, 3)
    assert state(with_lost_run, "a")[1].endswith("materialize partition a")
    assert with_lost_run.tick().new_partitions == ("good",)
    assert with_lost_run.data.count_rows() == 2


@pytest.mark.parametrize("why_unseen", ["its file was touched", "newer runs are many"])
def test_a_cancelled_batch_is_not_taken_for_one_without_a_run(
    deployment: Deployment, monkeypatch: pytest.MonkeyPatch, why_unseen: str
) -> None:
    path = deployment.land("a", range(3))
    deployment.instance.add_dynamic_partitions(deployment.names.of("batches"), ["a"])
    handled(deployment)
    for key in ("a", "other"):
        deployment.add_run(key, dg.DagsterRunStatus.CANCELED)
    if why_unseen == "newer runs are many":
        monkeypatch.setattr(batch_runs, "_MOST_RUNS", 1)
    else:
        time.sleep(1.1)
        path.chmod(0o600)
    assert state(deployment, "a")[1] == "no run of it ended well, and none is under way: materialize partition a"
    days_later(monkeypatch, 3)
    assert deployment.tick().run_requests == ()


@pytest.mark.parametrize("why_unseen", ["all are seen", "newer runs are many"])
def test_a_batch_is_asked_for_after_its_failure_though_newer_runs_of_others_are_many(
    with_lost_run: Deployment, monkeypatch: pytest.MonkeyPatch, why_unseen: str
) -> None:
    with_lost_run.add_run("other", dg.DagsterRunStatus.FAILURE)
    if why_unseen == "newer runs are many":
        monkeypatch.setattr(batch_runs, "_MOST_RUNS", 1)
    assert "failed; the sensor asks for it again" in state(with_lost_run, "a")[1]
    days_later(monkeypatch, 3)
    with_lost_run.tick()
    assert with_lost_run.data.count_rows() == 5


@pytest.mark.parametrize("days", [0, 3])
def test_a_batch_stays_given_up_though_newer_failures_of_others_are_many(
    with_lost_run: Deployment, monkeypatch: pytest.MonkeyPatch, days: int
) -> None:
    for _ in range(4):
        with_lost_run.add_run("a", dg.DagsterRunStatus.FAILURE)
    with_lost_run.instance.add_dynamic_partitions(with_lost_run.names.of("batches"), ["b"])
    for _ in range(3):
        with_lost_run.add_run("b", dg.DagsterRunStatus.FAILURE)
    monkeypatch.setattr(batch_runs, "_MOST_RUNS", 5)
    now, names = datetime.now(UTC) + timedelta(days=days), with_lost_run.names
    found = batch_runs.failed_runs(with_lost_run.instance, names, ["a", "b"], now)
    assert {key: runs.count for key, runs in found.items()} == ({"b": 3} if days else {"a": 5, "b": 3})
    recent = batch_runs.failed_runs(with_lost_run.instance, names, ["a", "b"], now, only_last_day=True)
    assert {key: runs.count for key, runs in recent.items()} == ({} if days else {"a": 5, "b": 3})


def test_the_failed_runs_are_found_once_for_a_report_and_for_a_tick_that_compares_all(
    with_lost_run: Deployment, monkeypatch: pytest.MonkeyPatch
) -> None:
    find, found = batch_runs._counted, []

    def counted(*args: Any) -> dict[str, tuple[str, datetime, int]]:
        found.append(args)
        return find(*args)

    monkeypatch.setattr(batch_runs, "_counted", counted)
    state(with_lost_run, "a")
    assert len(found) == 1
    with_lost_run.location.cursors.clear()
    later(monkeypatch, minutes=6)
    with_lost_run.tick()
    assert len(found) == 2 and with_lost_run.data.count_rows() == 5


def test_a_batch_whose_run_was_never_launched_is_asked_for(
    deployment: Deployment, monkeypatch: pytest.MonkeyPatch
) -> None:
    for key in ("lost", "running"):
        deployment.land(key, range(3))
    deployment.instance.add_dynamic_partitions(deployment.names.of("batches"), ["running", "lost"])
    deployment.add_run("running", dg.DagsterRunStatus.STARTED)
    handled(deployment)
    assert deployment.tick().runs == (), "the next comparison finds it"
    assert "no run of it is found: the sensor asks for it" in state(deployment, "lost")[1]
    days_later(monkeypatch, 3)
    (asked,) = deployment.tick().run_requests
    assert asked.partition_key == "lost" and state(deployment, "lost")[0] == "ingested"
    days_later(monkeypatch, 6)
    assert deployment.tick().run_requests == ()


def test_a_run_key_that_had_a_run_does_not_hinder_the_run_of_a_batch_of_which_no_run_is_found(
    deployment: Deployment, monkeypatch: pytest.MonkeyPatch
) -> None:
    deployment.land("a", range(3))
    deployment.tick()
    shutil.rmtree(deployment.config.uri)
    deployment.instance.wipe_assets([deployment.names.batches])
    assert "no run of it is found: the sensor asks for it" in state(deployment, "a")[1]
    days_later(monkeypatch, 3)
    deployment.tick()
    assert deployment.data.count_rows() == 3


@pytest.mark.parametrize("end", ["a", "d"])
def test_the_other_batches_of_a_failed_run_are_asked_for_after_its_first_or_last_partition_was_deleted(
    deploy: Deploy, monkeypatch: pytest.MonkeyPatch, end: str
) -> None:
    deployment = deploy(raw={"bad": "refuse"})
    for key in "abcd":
        deployment.land(key, range(2))
    path = deployment.landing / f"{end}.parquet"
    landed_at = path.stat().st_mtime
    path.write_bytes(b"junk")
    os.utime(path, (landed_at, landed_at))
    (failed,) = deployment.tick(raise_on_error=False).runs
    assert not failed.success
    path.unlink()
    deployment.instance.delete_dynamic_partition(deployment.names.of("batches"), end)
    days_later(monkeypatch, 3)
    deployment.tick()
    assert deployment.data.count_rows() == 6
    assert not batch_states(deployment.config, deployment.instance).unsettled


@pytest.mark.usefixtures("without_runs")
@pytest.mark.parametrize("when", ["before", "since"])
def test_a_batch_that_a_restore_took_out_is_asked_for_only_if_a_run_failed_since(
    deployment: Deployment, monkeypatch: pytest.MonkeyPatch, when: str
) -> None:
    deployment.add_run("a", dg.DagsterRunStatus.FAILURE)
    with writers_clock_ahead(timedelta(seconds=5 if when == "before" else -5)):
        for key in ("good", "a"):
            deployment.know(key)
            deployment.land(key, range(3))
            deployment.ingest_directly(key)
        deployment.data.checkout_version(1).restore()
    handled(deployment)
    later(monkeypatch, minutes=6)
    said = "a restore or an overwrite took it out" if when == "before" else "failed; the sensor asks for it again"
    assert said in state(deployment, "a")[1]
    assert len(deployment.tick().run_requests) == (0 if when == "before" else 1)


def test_a_batch_that_a_restore_took_out_is_not_asked_for_because_a_run_failed_before(
    deployment: Deployment, monkeypatch: pytest.MonkeyPatch
) -> None:
    deployment.land("a", range(3))
    deployment.land("good", range(10, 12))
    deployment.instance.add_dynamic_partitions(deployment.names.of("batches"), ["a", "good"])
    handled(deployment)
    deployment.add_run("a", dg.DagsterRunStatus.FAILURE)
    deployment.ingest("good")
    deployment.ingest("a")
    deployment.data.checkout_version(1).restore()
    days_later(monkeypatch, 3)
    assert "a restore or an overwrite took it out" in state(deployment, "a")[1]
    version = deployment.data.version
    assert deployment.tick().runs == () and deployment.data.version == version


def test_a_batch_that_a_restore_took_out_is_not_asked_for_though_dagster_has_no_record_of_it_any_more(
    deployment: Deployment, monkeypatch: pytest.MonkeyPatch
) -> None:
    for key in "ab":
        deployment.land(key, range(3))
        deployment.tick()
    deployment.data.checkout_version(1).restore()
    for run in deployment.instance.get_runs():
        deployment.instance.delete_run(run.run_id)
    assert not deployment.instance.get_materialized_partitions(deployment.names.batches)
    days_later(monkeypatch, 3)
    assert deployment.tick().run_requests == () and deployment.data.count_rows() == 3
