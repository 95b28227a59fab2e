"""A table's versions become a history, and a recorded history loads."""

from __future__ import annotations

import time
from pathlib import Path

import pyarrow as pa
import pytest

from lance_ops import LanceDataset, write_dataset
from lance_ops.core.errors import CorruptFile, InvalidInput
from lance_ops.maintenance.debt import DebtPolicy
from tests.bench.policy.histories import Day
from tests.bench.policy.recording import load, record, recorded, save
from tests.bench.policy.simulation import STORES, compare
from tests.bench.policy.table_state import Stored

DAY_NS = 24 * 3600 * 10**9
NOON_NS = 20_000 * DAY_NS + DAY_NS // 2


def _append(uri: str, num_rows: int) -> LanceDataset:
    return write_dataset(pa.table({"id": range(num_rows)}), uri, mode="append")


@pytest.fixture
def table(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> LanceDataset:
    """Three days after its creation: two appends and a delete; a compaction and an index; nothing; an update."""
    uri = str(tmp_path / "table")
    monkeypatch.setattr(time, "time_ns", lambda: NOON_NS)
    write_dataset(pa.table({"id": range(1000)}), uri)
    write_dataset(pa.table({"id": range(100)}), uri, mode="overwrite")
    _append(uri, 50)
    _append(uri, 50).delete("id = 7")
    monkeypatch.setattr(time, "time_ns", lambda: NOON_NS + DAY_NS)
    made = _append(uri, 3)
    made.optimize.compact_files()
    made.create_scalar_index("id", "BTREE")
    monkeypatch.setattr(time, "time_ns", lambda: NOON_NS + 3 * DAY_NS)
    made.update({"id": "id + 1000"}, where="id = 1")
    return made


def test_appends_deletes_and_updates_are_recorded_by_day_without_maintenance(table: LanceDataset) -> None:
    found = record(table, "small", "made by a test")
    assert found.start.fragments == (Stored(100, is_indexed=True),) and found.start.has_index
    assert found.days == (Day((50, 50), 3 / 200), Day((3,), 0.0), Day(), Day((4,), 4 / 204))


def test_in_a_rehearsal_each_version_that_writes_rows_is_a_day(table: LanceDataset) -> None:
    found = record(table, "small", "made by a test", rehearsed=True)
    assert found.days == (Day((50,)), Day((50,)), Day((), 3 / 200), Day((3,)), Day((4,), 4 / 204))


def test_versions_that_clean_up_removed_count_as_one_append(table: LanceDataset) -> None:
    for version in (3, 4):
        (name,) = (Path(table.uri) / "_versions").glob(f"{2**64 - 1 - version}.manifest")
        name.unlink()
    assert record(LanceDataset(table.uri), "small", "made by a test").days[0] == Day((97,), 0.0)


def test_a_table_that_retains_no_writes_cannot_be_recorded(tmp_path: Path) -> None:
    made = write_dataset(pa.table({"id": [1]}), tmp_path / "table")
    with pytest.raises(InvalidInput, match="no version after 1 writes or deletes rows"):
        record(made, "empty", "made by a test")


def test_a_saved_history_loads_as_it_was_and_another_file_is_refused(table: LanceDataset, tmp_path: Path) -> None:
    found = record(table, "small", "made by a test")
    path = save(found, tmp_path / "recorded")
    assert load(path) == found
    path.write_text('{"name": "small"}')
    with pytest.raises(CorruptFile, match=r"small\.json.*record it again"):
        load(path)


def test_the_recorded_histories_can_be_simulated() -> None:
    histories = recorded()
    assert len({each.name for each in histories}) == len(histories) >= 1
    for history in histories:
        found = compare(history, STORES[0], DebtPolicy())
        assert found.best.total <= found.policy.total <= max(found.never.total, found.nightly.total), history.name
