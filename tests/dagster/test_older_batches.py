"""A dataset whose newest batch is the whole table takes each newer batch, and never goes back to an older one.

It does not go back while the newest batch waits, nor when the files of the newest batch are moved away.
"""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import dagster as dg
import pytest

from lance_ops.dagster import batch_states
from lance_ops.dagster.landing import batch_report
from lance_ops.dagster.landing.tick import Cursor, Watermark
from lance_ops.dagster.ops.landed_batches import landed_files
from lance_ops.snapshot import Snapshot
from tests.dagster.deployment import Deploy, Deployment
from tests.dagster.test_lacking_files import BY_DAY
from tests.dagster.test_late_repairs import days_later, handled, later, state

pytestmark = pytest.mark.dagster


@pytest.fixture
def deployed(deploy: Deploy) -> Deployment:
    """A deployment with a folder for each of three days."""
    made = deploy(raw={"key": BY_DAY, "glob": "**/*.parquet", "schema_mode": "overwrite", "settle_seconds": 60})
    for day in "012":
        (made.landing / f"day={day}").mkdir()
    return made


def let_wait(deployed: Deployment, why: str = "it is being written") -> None:
    """Have the files of day 2 change and not be complete."""
    path = deployed.land("day=2/a", range(6))
    if why == "it lacks a file":
        (deployed.landing / "day=2" / "b.parquet").symlink_to("nowhere")
    else:
        path.touch()


@pytest.mark.parametrize("why", ["it lacks a file", "it is being written"])
def test_no_older_batch_becomes_the_table_while_the_newest_one_waits(deployed: Deployment, why: str) -> None:
    deployed.land("day=1/a", range(3))
    deployed.land("day=2/a", range(5))
    deployed.tick()
    assert deployed.data.count_rows() == 5
    let_wait(deployed, why)
    deployed.tick()
    assert deployed.data.count_rows() == 5


def test_a_lost_instance_lets_no_older_batch_become_the_table_while_the_newest_one_waits(deployed: Deployment) -> None:
    deployed.land("day=1/a", range(3))
    deployed.land("day=2/a", range(5))
    deployed.tick()
    deployed.instance.delete_dynamic_partition(deployed.names.of("batches"), "2")
    deployed.location.cursors.clear()
    let_wait(deployed)
    assert deployed.tick().run_requests == ()
    assert deployed.data.count_rows() == 5


@pytest.mark.parametrize("was_asked_for", [True, False])
def test_the_verb_takes_no_older_batch_while_one_that_was_asked_for_waits(
    deployed: Deployment, was_asked_for: bool
) -> None:
    deployed.land("day=0/a", range(2))
    deployed.tick()
    deployed.land("day=1/a", range(3))
    let_wait(deployed)
    if was_asked_for:
        deployed.instance.add_dynamic_partitions(deployed.names.of("batches"), ["2"])
    chosen = landed_files(deployed.config, deployed.data.snapshot, deployed.instance, {})
    assert set(chosen["batches"].values()) == (set() if was_asked_for else {"1"})


@pytest.mark.parametrize("lost", ["nothing", "the cursor", "Dagster's storage"])
def test_no_older_batch_becomes_the_table_after_the_files_of_the_newest_one_were_moved_away(
    deployed: Deployment, lost: str
) -> None:
    deployed.land("day=1/a", range(3))
    archived = deployed.land("day=2/a", range(5))
    deployed.tick()
    archived.unlink()
    if lost != "nothing":
        deployed.location.cursors.clear()
    if lost == "Dagster's storage":
        deployed.forget()
    assert deployed.tick().run_requests == ()
    assert landed_files(deployed.config, deployed.data.snapshot, deployed.instance, {})["batches"] == {}
    states = {each.key: each.state.value for each in batch_states(deployed.config, deployed.instance).batches}
    assert states["1"] == "superseded"


def test_an_older_batch_whose_run_failed_does_not_become_the_table_when_the_files_of_a_newer_one_are_gone(
    deployed: Deployment,
) -> None:
    (deployed.landing / "day=1" / "a.parquet").write_bytes(b"junk")
    deployed.tick(raise_on_error=False)
    deployed.land("day=1/a", range(3))
    archived = deployed.land("day=2/a", range(5))
    deployed.tick()
    archived.unlink()
    deployed.location.cursors.clear()
    deployed.tick()
    assert deployed.data.count_rows() == 5


def test_a_batch_whose_run_failed_does_not_replace_a_newer_one_that_somebody_ingested_since(
    deployed: Deployment, monkeypatch: pytest.MonkeyPatch
) -> None:
    failed = deployed.land("day=1/a", range(3))
    deployed.know("1")
    watermark = Watermark(datetime.fromtimestamp(failed.stat().st_mtime, UTC), "1")
    deployed.location.cursors[deployed.names.of("raw_files")] = Cursor(watermark, datetime.now(UTC)).encode()
    deployed.add_run("1", dg.DagsterRunStatus.FAILURE)
    from_elsewhere = deployed.land("day=2/a", range(5))
    deployed.ingest_directly("2")
    from_elsewhere.unlink()
    later(monkeypatch, minutes=6)
    assert state(deployed, "1")[0] == "superseded" and deployed.tick().run_requests == ()


def test_a_newest_batch_that_landed_before_the_last_ingestion_is_not_taken_for_an_older_one(
    deployed: Deployment,
) -> None:
    archived = deployed.land("day=1/a", range(3))
    deployed.tick()
    deployed.land("day=2/a", range(5))
    archived.unlink()
    deployed.tick()
    assert deployed.data.count_rows() == 5


def test_a_key_that_is_delivered_again_is_newer_than_a_batch_whose_files_were_moved_away(deployed: Deployment) -> None:
    deployed.land("day=1/a", range(3))
    deployed.ingest_directly("1")
    archived = deployed.land("day=2/a", range(5))
    deployed.ingest_directly("2")
    deployed.know("1", "2")
    watermark = Watermark(datetime.fromtimestamp(archived.stat().st_mtime, UTC), "2")
    archived.unlink()
    deployed.land("day=1/a", range(7))
    deployed.location.cursors[deployed.names.of("raw_files")] = Cursor(watermark, datetime.now(UTC)).encode()
    assert state(deployed, "1") == ("landed", "changed since it was taken out: the sensor asks for it next")
    chosen = landed_files(deployed.config, deployed.data.snapshot, deployed.instance, {})
    assert set(chosen["batches"].values()) == {"1"}
    deployed.tick()
    assert deployed.data.count_rows() == 7 and state(deployed, "1")[0] == "ingested"


def test_a_newest_batch_that_the_sensor_has_passed_is_asked_for_if_neither_dagster_nor_the_table_has_it(
    deployed: Deployment, monkeypatch: pytest.MonkeyPatch
) -> None:
    deployed.land("day=2/a", range(5))
    handled(deployed)
    days_later(monkeypatch, 1)
    assert len(deployed.tick().run_requests) == 1 and state(deployed, "2")[0] == "ingested"


def test_a_batch_is_newer_if_it_landed_after_the_version_of_the_table_s_batch_which_was_cleaned_up(
    deployed: Deployment,
) -> None:
    archived = deployed.land("day=1/a", range(3))
    deployed.ingest_directly("1")
    archived.unlink()
    deployed.land("day=2/a", range(5))
    deployed.data.delete("id = 0")
    deployed.data.cleanup_old_versions(timedelta(0))
    assert [each["version"] for each in deployed.data.versions()] == [2]
    chosen = landed_files(deployed.config, deployed.data.snapshot, deployed.instance, {})
    assert set(chosen["batches"].values()) == {"2"}


def test_a_tick_reads_the_history_for_a_batch_that_waits_only_if_an_older_one_is_ready(
    deployed: Deployment, monkeypatch: pytest.MonkeyPatch
) -> None:
    deployed.land("day=1/a", range(3))
    deployed.tick()
    read: list[Snapshot] = []
    monkeypatch.setattr(batch_report, "batch_history", read.append)
    (deployed.landing / "day=1" / "a.parquet").unlink()
    let_wait(deployed)
    deployed.tick()
    assert not read
