"""A fleet is maintained worst first, within a budget a night; its tables are found beneath a root."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

import pyarrow as pa
import pytest

import lance_ops
from lance_ops.errors import DatasetNotFound
from lance_ops.maintenance.cleanup import CleanupOptions
from lance_ops.maintenance.debt import DebtPolicy, Rates, measure_debt
from lance_ops.maintenance.fleet import Budget, FleetReport, FleetStatus, find_tables, maintain, why_excluded
from lance_ops.maintenance.fleet.ledger import LEDGER_PATH
from lance_ops.maintenance.health import HealthThresholds
from lance_ops.store import MemoryStore, ObjectInfo, Store, open_store
from tests.maintenance.fleet.planted_tables import copy, plant

DONE, WAITING, FAILED, QUIET = FleetStatus.DONE, FleetStatus.WAITING, FleetStatus.FAILED, FleetStatus.NOTHING_OWED
NUM_TABLES = 200


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


def test_nothing_is_written_into_a_folder_without_tables(tmp_path: Path) -> None:
    report = maintain(str(tmp_path))
    assert report.ok and report.outcomes == ()
    assert list(tmp_path.iterdir()) == []


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
