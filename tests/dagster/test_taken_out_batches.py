"""A batch that a restore took out of the table stays away, whatever Dagster has forgotten of it."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from lance_ops.core.cached_property import cached_property
from lance_ops.dagster import batch_states
from lance_ops.dagster.landing import batch_report, raw_sensor
from lance_ops.dagster.landing.batch_report import TableToCompare
from lance_ops.dagster.landing.landing import list_landing
from lance_ops.maintenance import BatchHistory, batch_history
from lance_ops.snapshot import Snapshot
from tests.dagster.deployment import Deploy, Deployment
from tests.dagster.test_late_repairs import days_later, state

pytestmark = pytest.mark.dagster


@pytest.fixture
def restored(deployment: Deployment) -> Deployment:
    """A table from which a restore took batch b out."""
    for key in "ab":
        deployment.land(key, range(3))
        deployment.tick()
    deployment.data.checkout_version(1).restore()
    return deployment


def delete_partition(deployment: Deployment, key: str) -> None:
    deployment.instance.delete_dynamic_partition(deployment.names.of("batches"), key)


@pytest.mark.parametrize("what", ["its partition", "cursor and runs", "all"])
def test_the_sensor_does_not_bring_it_back(restored: Deployment, what: str) -> None:
    if what == "its partition":
        delete_partition(restored, "b")
    elif what == "all":
        restored.forget()
    else:
        restored.location.cursors.clear()
        for run in restored.instance.get_runs():
            restored.instance.delete_run(run.run_id)
    for _ in range(2):
        restored.tick()
    assert restored.data.count_rows() == 3
    if what != "cursor and runs":
        reason = "it stays away unless its files change; to have it back, add partition b and materialize it"
        assert state(restored, "b")[0] == "landed" and state(restored, "b")[1].endswith(reason)
        assert not batch_states(restored.config, restored.instance).unsettled


def test_its_corrected_files_are_asked_for_after_its_partition_was_deleted(restored: Deployment) -> None:
    delete_partition(restored, "b")
    restored.land("b", range(5))
    assert state(restored, "b") == ("landed", "the sensor asks for it next")
    restored.tick()
    assert restored.data.count_rows() == 8


@pytest.mark.usefixtures("without_runs")
@pytest.mark.parametrize("known", [(), ("a",)], ids=["no partition", "a partition of the first content"])
@pytest.mark.parametrize("changed", ["append", "replace"])
def test_the_sensor_does_not_bring_changed_content_back(deploy: Deploy, changed: str, known: tuple[str, ...]) -> None:
    deployment = deploy(raw={"changed": changed}, write={"batch_column": "batch"} if changed == "replace" else {})
    deployment.land("a", range(3))
    deployment.ingest_directly("a")
    deployment.land("a", range(10, 12))
    (landed,) = list_landing(deployment.config.landing(), datetime.now(UTC)).ready
    deployment.ingest_directly("a" if changed == "replace" else landed.as_changed().key)
    deployment.data.checkout_version(1).restore()
    deployment.know(*known)
    for _ in range(2):
        ticked = deployment.tick()
        assert (ticked.run_requests, ticked.new_partitions) == ((), ())
    is_partition = known and changed == "replace"
    said = "no run is under way: materialize partition a" if is_partition else "it stays away unless its files change"
    assert said in state(deployment, "a")[1]


def test_a_batch_without_partition_is_compared_with_the_history_as_often_as_others(
    restored: Deployment, monkeypatch: pytest.MonkeyPatch
) -> None:
    delete_partition(restored, "b")
    restored.location.cursors.clear()
    read = []

    def counted(snapshot: Snapshot) -> BatchHistory:
        read.append(snapshot)
        return batch_history(snapshot)

    monkeypatch.setattr(batch_report, "batch_history", counted)
    for _ in range(3):
        assert restored.tick().run_requests == ()
    assert len(read) == 1
    days_later(monkeypatch, 1)
    restored.tick()
    assert len(read) == 2


@pytest.mark.parametrize("is_newer", [False, True])
def test_a_tick_reads_the_history_once_and_only_for_batches_that_may_have_been_in_the_table(
    deploy: Deploy, monkeypatch: pytest.MonkeyPatch, is_newer: bool
) -> None:
    deployment = deploy(raw={"settle_seconds": 0})
    deployment.land("a", range(3))
    deployment.tick()
    read = []

    class Counted(TableToCompare):
        @cached_property
        def history(self) -> BatchHistory:
            read.append(self)
            return super().history

    monkeypatch.setattr(raw_sensor, "TableToCompare", Counted)
    deployment.tick()
    assert not read, "no batch is new"
    path = deployment.land("b", range(3))
    if is_newer:
        path.touch()
    deployment.tick()
    assert len(read) == (0 if is_newer else 1) and deployment.data.count_rows() == 6


def test_a_comparison_of_all_batches_reads_the_history_once(
    restored: Deployment, monkeypatch: pytest.MonkeyPatch
) -> None:
    read = []

    def counted(snapshot: Snapshot) -> BatchHistory:
        read.append(snapshot)
        return batch_history(snapshot)

    monkeypatch.setattr(batch_report, "batch_history", counted)
    days_later(monkeypatch, 3)
    assert restored.tick().run_requests == () and len(read) == 1
