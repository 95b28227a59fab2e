"""A table of a fleet that fails or is removed holds no other back, and too many failures call a night off."""

from __future__ import annotations

import shutil
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from lance_ops.errors import StoreError
from lance_ops.maintenance.fleet import FleetStatus, TableOutcome, find_tables, maintain, maintaining, why_excluded
from lance_ops.runners import InThreads
from lance_ops.snapshot import Snapshot
from tests.maintenance.fleet.planted_tables import plant

DONE, WAITING, FAILED = FleetStatus.DONE, FleetStatus.WAITING, FleetStatus.FAILED


@pytest.mark.parametrize("threshold", [0.0, 0.25])
def test_a_damaged_table_is_named_and_the_others_are_maintained(tmp_path: Path, threshold: float) -> None:
    for name in "abcd":
        plant(tmp_path / name, 30)
    for manifest in (tmp_path / "b" / "_versions").glob("*.manifest"):
        manifest.write_bytes(b"junk")
    night = maintain(str(tmp_path), failure_threshold=threshold)
    assert (night.count(FAILED), night.count(DONE)) == (1, 3)
    assert night.ok is (threshold > 0), "the night has failed where no table may"
    assert night.outcomes[0].table == "b" and "manifest" in str(night.outcomes[0].reason)


@pytest.mark.parametrize(("threshold", "ended"), [(0.25, DONE), (0.1, WAITING)])
def test_tables_that_the_store_does_not_give_call_the_night_off_if_they_are_too_many(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, threshold: float, ended: FleetStatus
) -> None:
    for name in "abcd":
        plant(tmp_path / name, 30)
    opens = Snapshot.open

    def refuse_one(uri: str, **options: Any) -> Snapshot:
        if uri.endswith("b"):
            raise StoreError("403 Forbidden")
        return opens(uri, **options)

    monkeypatch.setattr(Snapshot, "open", refuse_one)
    night = maintain(str(tmp_path), failure_threshold=threshold)
    assert (night.count(FAILED), night.count(ended)) == (1, 3)
    called_off = (
        "called off: 1 of 4 tables failed for what may be the store's fault, more than failure_threshold allows; "
    )
    reasons = [str(each.reason) for each in night.outcomes if each.status is WAITING]
    assert reasons == [f"{called_off}look at the store, or raise it"] * night.count(WAITING)


def test_tables_that_somebody_removes_during_the_night_have_not_failed(tmp_path: Path) -> None:
    for name in "abcd":
        plant(tmp_path / name, 30)

    def remove(outcome: TableOutcome) -> None:
        if outcome.table == "a":
            for name in "bc":
                shutil.rmtree(tmp_path / name)

    night = maintain(str(tmp_path), failure_threshold=0.0, on_outcome=remove)
    assert night.ok and (night.count(DONE), night.count(FleetStatus.VANISHED)) == (2, 2)
    assert {each.reason for each in night.outcomes if each.table in "bc"} == {"removed since the night began"}
    assert "2 vanished" in night.sentence
    assert find_tables(str(tmp_path)) == ("a", "d"), "nothing is written where the tables were"


def test_a_table_that_is_removed_before_it_is_measured_or_verified_has_not_failed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in "abc":
        plant(tmp_path / name, 30)
    found = find_tables(str(tmp_path))
    monkeypatch.setattr(maintaining, "find_tables", lambda *_: found)
    shutil.rmtree(tmp_path / "c")

    told: list[TableOutcome] = []

    def note(outcome: TableOutcome) -> None:
        told.append(outcome)
        if outcome.table == "b" and outcome.status is DONE:
            shutil.rmtree(tmp_path / "b")

    night = maintain(str(tmp_path), failure_threshold=0.0, verify_after=timedelta(0), on_outcome=note)
    assert night.ok and {each.table: each.status for each in night.outcomes} == {
        "a": DONE,
        "b": FleetStatus.VANISHED,
        "c": FleetStatus.VANISHED,
    }
    assert [(each.table, each.status) for each in told if each.table == "b"] == [
        ("b", DONE),
        ("b", FleetStatus.VANISHED),
    ]


def test_a_table_whose_versions_are_lost_while_its_data_is_there_has_failed(tmp_path: Path) -> None:
    for name in "abc":
        plant(tmp_path / name, 30)

    def lose(outcome: TableOutcome) -> None:
        if outcome.table == "a":
            shutil.rmtree(tmp_path / "b" / "_versions")

    night = maintain(str(tmp_path), failure_threshold=0.0, on_outcome=lose)
    assert not night.ok and (night.count(DONE), night.count(FAILED), night.count(WAITING)) == (1, 1, 1)
    assert next(each.table for each in night.outcomes if each.status is FAILED) == "b"


def test_a_root_that_is_lost_during_the_night_is_a_failure(tmp_path: Path) -> None:
    root = tmp_path / "lake"
    for name in "abcd":
        plant(root / name, 30)

    def unmount(outcome: TableOutcome) -> None:
        if outcome.table == "a":
            root.rename(tmp_path / "elsewhere")
            root.mkdir()

    night = maintain(str(root), failure_threshold=0.0, on_outcome=unmount)
    assert not night.ok and (night.count(DONE), night.count(FAILED), night.count(WAITING)) == (1, 1, 2)
    (failed,) = [each for each in night.outcomes if each.status is FAILED]
    assert failed.reason == f"nothing is left beneath {root}: check it"


@pytest.mark.parametrize("names", ["a", "ab"])
def test_the_last_table_may_be_removed_as_any_other(tmp_path: Path, names: str) -> None:
    for name in names:
        plant(tmp_path / name, 30)

    class Removing(InThreads):
        """Removes every table as soon as its debt is known."""

        def map(self, function: Any, tasks: Any, *rest: Any) -> Any:
            found = super().map(function, tasks, *rest)
            for name in names:
                shutil.rmtree(tmp_path / name, ignore_errors=True)
            return found

    night = maintain(str(tmp_path), failure_threshold=0.0, runner=Removing())
    assert night.ok and {each.status for each in night.outcomes} == {FleetStatus.VANISHED}
    assert len(night.outcomes) == len(names)


def test_the_share_of_failures_is_one_of_the_tables_that_are_maintained(tmp_path: Path) -> None:
    for name in "abcd":
        plant(tmp_path / name, 30)
    for manifest in (tmp_path / "a" / "_versions").glob("*.manifest"):
        manifest.write_bytes(b"junk")
    night = maintain(str(tmp_path), failure_threshold=0.4, leave_out=why_excluded(["[cd]"]))
    assert (night.num_tables, night.failed_ratio, night.ok) == (2, 0.5, False)
    assert maintain(str(tmp_path), leave_out=why_excluded(["*"])).ok


def test_a_table_that_is_gone_from_a_store_that_does_not_answer_has_failed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in "ab":
        plant(tmp_path / name, 30)

    def lose_connection(outcome: TableOutcome) -> None:
        if outcome.table == "a":
            shutil.rmtree(tmp_path / "b")
            monkeypatch.setattr(maintaining, "open_store", refuse)

    def refuse(*_: object) -> None:
        raise StoreError("no connection")

    night = maintain(str(tmp_path), failure_threshold=0.0, on_outcome=lose_connection)
    assert (night.count(DONE), night.count(FAILED)) == (1, 1)
