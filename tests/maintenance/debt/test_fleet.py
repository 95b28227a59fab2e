"""A fleet is maintained worst first, within a budget a night, and a table that fails holds no other back."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator, Sequence
from datetime import timedelta
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import lance_ops
from lance_ops.errors import CorruptFile, DatasetNotFound, InvalidInput, StoreError
from lance_ops.maintenance.cleanup import CleanupOptions
from lance_ops.maintenance.debt import DebtPolicy, Rates, measure_debt
from lance_ops.maintenance.fleet import (
    Budget,
    FleetReport,
    FleetStatus,
    TableOutcome,
    find_tables,
    maintain,
    maintaining,
    measure_fleet,
    why_excluded,
)
from lance_ops.maintenance.fleet.ledger import LEDGER_PATH, Ledger, TableRecord
from lance_ops.maintenance.health import HealthThresholds
from lance_ops.runners import InThreads
from lance_ops.snapshot import Snapshot
from lance_ops.store import MemoryStore, ObjectInfo, Store, open_store

DONE, WAITING, FAILED, QUIET = (
    FleetStatus.DONE,
    FleetStatus.WAITING,
    FleetStatus.FAILED,
    FleetStatus.NOTHING_OWED,
)
NUM_TABLES = 200


def plant(place: Path, num_fragments: int) -> str:
    """Write a table of so many fragments in one version."""
    table = pa.table({"id": range(2 * num_fragments)})
    return lance_ops.write_dataset(table, str(place), max_rows_per_file=2).uri


def copy(source: str, place: Path) -> None:
    """Copy a table by links: no verb changes a file of a table in place."""
    shutil.copytree(source, place, copy_function=os.link)


def plant_fleet(root: Path) -> None:
    """Make tables of 1 to 60 fragments, some with deleted rows or rows without an index, in folders of folders."""
    kinds = [plant(root.parent / "kinds" / f"{count}.lance", count) for count in (1, 3, 12, 30, 60)]
    for number in range(NUM_TABLES - 20):
        kind = kinds[2 + number % 3] if number < 60 else kinds[number % 2]
        copy(kind, root / f"team{number % 7}" / f"t{number:03}.lance")
    deleted = lance_ops.dataset(plant(root.parent / "kinds" / "deleted.lance", 1))
    deleted.delete("id = 0")
    half = lance_ops.dataset(plant(root.parent / "kinds" / "half.lance", 1))
    half.create_scalar_index("id", "BTREE")
    lance_ops.write_dataset(pa.table({"id": [7, 8]}), half, mode="append")
    for number in range(10):
        copy(deleted.uri, root / "deep" / "er" / f"d{number}")
        copy(half.uri, root / f"i{number}.lance")


def test_two_hundred_tables_are_healthy_after_some_nights_within_their_budget(tmp_path: Path) -> None:
    root = tmp_path / "lake"
    plant_fleet(root)
    tables = find_tables(str(root))
    assert len(tables) == NUM_TABLES
    costs = {each: measure_debt(lance_ops.dataset(str(root / each)).snapshot).rewrite_bytes for each in tables}
    most_bytes = sum(costs.values()) // 3
    budget = Budget(max_bytes=most_bytes)

    dry = maintain(str(root), budget, dry_run=True)
    assert dry.count(FleetStatus.PLANNED) and not (root / LEDGER_PATH).exists()

    nights: list[FleetReport] = []
    while not nights or nights[-1].count(DONE):
        nights.append(maintain(str(root), budget, night=f"night {len(nights)}"))
        assert nights[-1].spent_bytes <= most_bytes and not nights[-1].count(FAILED)
        assert len(nights) <= 6

    first, last = nights[0], nights[-1]
    assert [each.table for each in first.outcomes if each.status is DONE] == [
        each.table for each in dry.outcomes if each.status is FleetStatus.PLANNED
    ]
    scores = [each.score for each in first.outcomes]
    assert scores == sorted(scores, reverse=True) and len(set(scores)) > 3
    # A table waits only if what is left does not pay for it.
    spent = 0
    for each in first.outcomes:
        assert each.status is not WAITING or spent + costs[each.table] > most_bytes
        spent += each.spent_bytes
    assert first.count(WAITING) and all("budget" in str(e.reason) for e in first.outcomes if e.status is WAITING)
    assert len(nights) >= 4  # three that are full of work, and one that finds nothing

    assert last.count(QUIET) == NUM_TABLES and last.spent_bytes == 0
    assert sum(night.count(DONE) for night in nights) >= 80
    for table in tables:
        found = measure_debt(lance_ops.dataset(str(root / table)).snapshot)
        assert not found.owed and found.health.is_healthy, table
    assert sum(each.saved_read_bytes for night in nights for each in night.outcomes) > 0
    # A new table appears by itself.
    copy(str(tmp_path / "kinds" / "60.lance"), root / "new.lance")
    (outcome,) = [each for each in maintain(str(root), budget).outcomes if each.status is DONE]
    assert outcome.table == "new.lance" and (outcome.num_fragments_before, outcome.num_fragments_after) == (60, 1)


def test_calls_of_one_night_share_its_budget(tmp_path: Path) -> None:
    for name in "ab":
        plant(tmp_path / name, 30)
    (tmp_path / "other").mkdir()
    cost = measure_debt(lance_ops.dataset(str(tmp_path / "a")).snapshot).rewrite_bytes
    budget = Budget(max_bytes=cost + cost // 2)
    assert maintain(str(tmp_path), budget, night="1").count(DONE) == 1
    again = maintain(str(tmp_path), budget, night="1")
    assert (again.count(DONE), again.count(WAITING)) == (0, 1)
    assert maintain(str(tmp_path), budget, night="2").count(DONE) == 1


def test_no_table_is_begun_beyond_the_budget_s_time_or_number(tmp_path: Path) -> None:
    for name in "abc":
        plant(tmp_path / name, 30)
    assert maintain(str(tmp_path), Budget(max_seconds=0)).count(WAITING) == 3
    assert maintain(str(tmp_path), Budget(max_tables=1)).count(DONE) == 1
    assert maintain(str(tmp_path), Budget(max_bytes=0)).count(WAITING) == 2


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


def test_tables_that_are_left_out_are_named_and_nothing_of_them_is_read(tmp_path: Path) -> None:
    for name in ("a", "raw/b", "raw/deep/c"):
        plant(tmp_path / name, 30)
    for manifest in (tmp_path / "raw/b/_versions").glob("*.manifest"):
        manifest.write_bytes(b"junk")
    night = maintain(str(tmp_path), failure_threshold=0.0, leave_out=why_excluded(["b", "raw/*"]))
    assert night.ok and {each.table: each.status for each in night.outcomes} == {
        "a": DONE,
        "raw/b": FleetStatus.LEFT_OUT,
        "raw/deep/c": FleetStatus.LEFT_OUT,
    }
    assert {each.reason for each in night.outcomes} == {None, "excluded by raw/*"}
    assert night.sentence.endswith(f"1 tables beneath {tmp_path}: 1 done; 2 more left out")
    assert len(lance_ops.dataset(str(tmp_path / "raw/deep/c")).get_fragments()) == 30


def test_the_share_of_failures_is_one_of_the_tables_that_are_maintained(tmp_path: Path) -> None:
    for name in "abcd":
        plant(tmp_path / name, 30)
    for manifest in (tmp_path / "a" / "_versions").glob("*.manifest"):
        manifest.write_bytes(b"junk")
    night = maintain(str(tmp_path), failure_threshold=0.4, leave_out=why_excluded(["[cd]"]))
    assert (night.num_tables, night.failed_ratio, night.ok) == (2, 0.5, False)
    assert maintain(str(tmp_path), leave_out=why_excluded(["*"])).ok


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


def test_nothing_is_written_into_a_folder_without_tables(tmp_path: Path) -> None:
    report = maintain(str(tmp_path))
    assert report.ok and report.outcomes == ()
    assert list(tmp_path.iterdir()) == []


def test_a_night_that_owes_nothing_needs_no_right_to_write(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    plant(tmp_path / "a", 1)

    def refused(*arguments: object) -> None:
        raise StoreError("read only")

    monkeypatch.setattr(Ledger, "save", refused)
    assert maintain(str(tmp_path)).count(QUIET) == 1


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


def test_a_dry_run_promises_what_a_night_saves(tmp_path: Path) -> None:
    data = lance_ops.dataset(plant(tmp_path / "a", 30))
    data.create_scalar_index("id", "BTREE")
    lance_ops.write_dataset(pa.table({"id": range(30)}), data, mode="append", max_rows_per_file=2)
    policy = DebtPolicy(Rates(run_cost_bytes=1), HealthThresholds())
    dry = maintain(str(tmp_path), policy=policy, dry_run=True)
    (planned,) = dry.outcomes
    assert [step.partition(":")[0] for step in planned.steps] == ["compact", "reindex id_idx"]
    assert dry.saved_read_bytes == pytest.approx(maintain(str(tmp_path), policy=policy).saved_read_bytes, rel=0.01)


def test_a_fleet_has_tables_of_other_writers_and_no_branches(tmp_path: Path) -> None:
    import lance

    lance.write_dataset(pa.table({"x": range(40)}), str(tmp_path / "theirs.lance"), max_rows_per_file=2)
    ours = lance_ops.dataset(plant(tmp_path / "x" / "ours.lance", 2))
    ours.create_branch("b")
    (tmp_path / "x" / "file").write_text("no table")
    (tmp_path / "linked").symlink_to(tmp_path / "x" / "ours.lance")
    assert find_tables(str(tmp_path)) == ("theirs.lance", "x/ours.lance")
    assert maintain(str(tmp_path)).count(DONE) == 1
    assert len(lance.dataset(str(tmp_path / "theirs.lance")).get_fragments()) == 1
    assert find_tables(str(tmp_path / "theirs.lance")) == (".",)
    assert find_tables(str(tmp_path / "x" / "ours.lance" / "data")) == ()


@pytest.mark.parametrize("root", ["{tmp_path}/nowhere", "memory://"])
def test_a_root_that_is_not_there_is_named(root: str, tmp_path: Path) -> None:
    with pytest.raises(DatasetNotFound, match="nowhere: there is no such folder|memory://.*: no object is there"):
        maintain(root.format(tmp_path=tmp_path))


def test_tables_in_an_object_store_are_found_by_their_manifests(memory_fleet: str) -> None:
    assert find_tables(memory_fleet) == ("a/b", "c")
    policy = DebtPolicy(Rates(run_cost_bytes=1), HealthThresholds(), cleanup=CleanupOptions(retain_versions=1))
    assert maintain(memory_fleet, policy=policy).count(DONE) == 2


def test_folders_above_tables_are_listed_and_nothing_beneath_tables(
    memory_fleet: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    lance_ops.dataset(f"{memory_fleet}/c").create_branch("b")
    open_store(memory_fleet).put("a/raw/1.csv", b"1")
    asked: list[str] = []
    listings: list[str] = []

    def folders(store: Store, directory: str) -> Sequence[str]:
        asked.append(directory)
        return Store.list_folders(store, directory)

    def listed(store: MemoryStore, prefix: str = "") -> Iterator[ObjectInfo]:
        listings.append(prefix)
        return list_all(store, prefix)

    list_all = MemoryStore.list
    monkeypatch.setattr(MemoryStore, "list_folders", folders)
    monkeypatch.setattr(MemoryStore, "list", listed)
    assert find_tables(memory_fleet) == ("a/b", "c")
    assert sorted(asked) == ["", "a", "a/b", "a/raw", "c"]
    assert len(listings) == len(asked), "each folder is one request"


@pytest.fixture
def memory_fleet(request: pytest.FixtureRequest) -> str:
    root = f"memory://{request.node.name}"
    for name in ("a/b", "c"):
        lance_ops.write_dataset(pa.table({"id": range(20)}), f"{root}/{name}", max_rows_per_file=2)
    return root


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
