"""What a fleet's ledger remembers from night to night: verifications, fruitless steps, and what steps cost."""

from __future__ import annotations

import shutil
from datetime import timedelta
from pathlib import Path

import pyarrow as pa
import pytest

import lance_ops
from lance_ops.errors import CorruptFile, InvalidInput, StoreError
from lance_ops.maintenance.fleet import Budget, FleetStatus, TableOutcome, maintain, measure_fleet
from lance_ops.maintenance.fleet.ledger import LEDGER_PATH, Ledger, TableRecord
from lance_ops.store import Store, open_store
from tests.maintenance.fleet.planted_tables import copy, plant

DONE, FAILED, QUIET = FleetStatus.DONE, FleetStatus.FAILED, FleetStatus.NOTHING_OWED


def test_the_ledger_forgets_tables_that_are_gone(tmp_path: Path) -> None:
    for name in "ab":
        plant(tmp_path / name, 30)
    assert maintain(str(tmp_path), verify_after=timedelta(days=1)).ok
    verified = Ledger.load(open_store(str(tmp_path))).of("a")
    shutil.rmtree(tmp_path / "b")
    plant(tmp_path / "c", 30)
    assert maintain(str(tmp_path), verify_after=timedelta(days=1)).ok
    ledger = Ledger.load(open_store(str(tmp_path)))
    assert ledger.tables.keys() == {"a", "c"} and ledger.of("a") == verified


@pytest.mark.parametrize("is_interrupted", [False, True])
def test_a_night_saves_its_ledger_now_and_then_and_at_its_end(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, is_interrupted: bool
) -> None:
    kind = plant(tmp_path / "kind", 12)
    for name in "abcdef":
        copy(kind, tmp_path / "lake" / name)
    saved: list[int] = []
    save = Ledger.save

    def noted(ledger: Ledger, store: Store) -> None:
        saved.append(len(ledger.tables))
        save(ledger, store)

    def interrupt(outcome: TableOutcome) -> None:
        if is_interrupted and outcome.table == "e":
            raise KeyboardInterrupt

    monkeypatch.setattr(Ledger, "save", noted)
    try:
        maintain(str(tmp_path / "lake"), verify_after=timedelta(days=1), on_outcome=interrupt)
    except KeyboardInterrupt:
        assert is_interrupted
    assert saved == [0, 1, 5 if is_interrupted else 6], "at the beginning, after the first table, at the end"


def test_a_night_that_owes_nothing_needs_no_right_to_write(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    plant(tmp_path / "a", 1)

    def refused(*arguments: object) -> None:
        raise StoreError("read only")

    monkeypatch.setattr(Ledger, "save", refused)
    assert maintain(str(tmp_path)).count(QUIET) == 1


def test_a_step_that_gained_nothing_is_remembered_by_the_ledger(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from lance_ops.maintenance.debt import payment

    plant(tmp_path / "a", 30)
    tried: list[object] = []

    def gain_nothing(snapshot: object, *_: object) -> tuple[object, str]:
        tried.append(snapshot)
        return snapshot, "nothing"

    monkeypatch.setattr(payment, "_compact", gain_nothing)
    assert maintain(str(tmp_path)).count(DONE) == 1
    assert maintain(str(tmp_path)).count(QUIET) == 1 and len(tried) == 1
    lance_ops.write_dataset(pa.table({"id": [1]}), str(tmp_path / "a"), mode="append")
    assert maintain(str(tmp_path)).count(DONE) == 1 and len(tried) == 2


def test_what_is_left_verifies_the_table_that_waited_longest(tmp_path: Path) -> None:
    for name in "ab":
        plant(tmp_path / name, 3)
    assert maintain(str(tmp_path), verify_after=timedelta(days=30)).ok
    ledger = Ledger.load(open_store(str(tmp_path)))
    assert {name: record.verified is not None for name, record in ledger.tables.items()} == {"a": True, "b": True}
    data_file = next((tmp_path / "b" / "data").glob("*.lance"))
    data_file.write_bytes(data_file.read_bytes()[:-8])
    assert maintain(str(tmp_path), verify_after=timedelta(days=30)).ok  # it is not due
    told: list[TableOutcome] = []
    found = maintain(str(tmp_path), verify_after=timedelta(0), failure_threshold=0.5, on_outcome=told.append)
    (failed,) = [each for each in found.outcomes if each.status is FAILED]
    assert failed.table == "b" and "lance-ops repair" in str(failed.reason)
    assert told[-1] == failed and sorted(each.table for each in told) == ["a", "b", "b"]


def test_a_table_is_verified_when_bounded_nights_have_reached_its_end(tmp_path: Path) -> None:
    plant(tmp_path / "a", 3)
    seen = []
    for _ in range(3):  # a part each, because a part is larger than the budget
        maintain(str(tmp_path), Budget(max_bytes=1), verify_after=timedelta(0))
        record = Ledger.load(open_store(str(tmp_path))).of("a")
        seen.append((record.next_part, record.verified is not None))
    assert seen == [(1, False), (2, False), (0, True)]


def test_what_a_night_measures_prices_the_next_one(tmp_path: Path) -> None:
    plant(tmp_path / "a", 30)
    night = maintain(str(tmp_path))
    (outcome,) = night.outcomes
    assert 0 < outcome.moved_bytes == night.moved_bytes
    ledger = Ledger.load(open_store(str(tmp_path)))
    assert ledger.of("a").past_costs == {"compact": [outcome.spent_bytes, outcome.moved_bytes]}

    plant(tmp_path / "b", 30)
    as_estimated = {each.table: each.debt for each in measure_fleet(str(tmp_path))}["b"]
    for past_costs, ratio in (({"compact": [100, 300]}, 3), ("?", 1), ({"compact": "?"}, 1)):
        record = TableRecord(past_costs=past_costs)  # type: ignore[arg-type] # a wrong record, as a damaged ledger has
        ledger.with_table("b", record).save(open_store(str(tmp_path)))
        measured = {each.table: each.debt for each in measure_fleet(str(tmp_path))}["b"]
        assert measured is not None and as_estimated is not None
        assert measured.rewrite_bytes == ratio * as_estimated.rewrite_bytes
        planned = {each.table: each.spent_bytes for each in maintain(str(tmp_path), dry_run=True).outcomes}
        assert planned["b"] == measured.rewrite_bytes


def test_the_ledger_of_an_earlier_release_is_read(tmp_path: Path) -> None:
    plant(tmp_path / "a", 30)
    ledger = tmp_path / LEDGER_PATH
    ledger.parent.mkdir()
    ledger.write_text(
        '{"format": 1, "night": null, "spent_bytes": 0,'
        ' "tables": {"a": {"fruitless": [], "verified_at": null, "next_part": 0}}}'
    )
    assert maintain(str(tmp_path)).count(DONE) == 1


def test_wrong_arguments_and_a_wrong_ledger_are_refused_by_name(tmp_path: Path) -> None:
    with pytest.raises(InvalidInput, match="failure_threshold"):
        maintain(str(tmp_path), failure_threshold=2)
    with pytest.raises(InvalidInput, match="max_bytes"):
        Budget(max_bytes=-1)
    ledger = tmp_path / LEDGER_PATH
    ledger.parent.mkdir()
    for text in ("{", "[]", '{"format": 2}', '{"format": 1, "night": null, "spent_bytes": 0, "tables": {"a": 1}}'):
        ledger.write_text(text)
        with pytest.raises(CorruptFile, match="ledger.json"):
            maintain(str(tmp_path))
