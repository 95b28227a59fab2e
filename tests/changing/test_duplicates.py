"""Rows with the same key: counted, shown and deleted by tasks."""

from __future__ import annotations

from datetime import date
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import lance_ops
from lance_ops.changing import DuplicateKey, Duplicates, find_duplicates
from lance_ops.changing.duplicates import Keep, delete_duplicates
from lance_ops.changing.merge_insert.by_tasks import TaskSizes
from lance_ops.errors import InvalidInput, RetryableConflict, UnsupportedFeature
from lance_ops.runners import InThreads
from tests.pickling_runner import PicklingRunner

SMALL = TaskSizes(rows_per_bucket=300)


def table(num_rows: int) -> pa.Table:
    """Return rows whose pairs of `a` and `b` often repeat; some are null."""
    random = Random(7)
    return pa.table(
        {
            "a": pa.array([random.choice([None, *range(40)]) for _ in range(num_rows)], pa.int32()),
            "b": [random.choice(["x", "y", "é", "", None]) for _ in range(num_rows)],
            "place": range(num_rows),
        }
    )


def places_by_key(dataset: lance_ops.LanceDataset) -> dict[tuple[Any, ...], list[int]]:
    """Return the places of the rows of each key without a null, in the order of a scan."""
    found: dict[tuple[Any, ...], list[int]] = {}
    for row in dataset.to_table().to_pylist():
        if row["a"] is not None and row["b"] is not None:
            found.setdefault((row["a"], row["b"]), []).append(row["place"])
    return found


@pytest.mark.parametrize("sizes", [TaskSizes(), SMALL], ids=["one bucket", "buckets"])
def test_counts_are_those_of_the_rows_and_messages_are_small(
    dataset_uri: str, sizes: TaskSizes, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("lance_ops.writing.task_shares._ROWS_PER_TASK", 80)
    dataset = lance_ops.write_dataset(table(1200), dataset_uri, max_rows_per_file=40)
    dataset.delete("place % 9 = 1")
    runner = PicklingRunner()
    found = find_duplicates(dataset.snapshot, ("a", "b"), None, runner, 3, sizes)
    counts = {key: len(places) for key, places in places_by_key(dataset).items() if len(places) > 1}
    assert (found.num_keys, found.num_rows) == (len(counts), sum(counts.values()))
    assert found.num_surplus_rows == found.num_rows - found.num_keys > 500
    assert [each.num_rows for each in found.examples] == sorted(counts.values(), reverse=True)[:3]
    assert all(counts[each.values] == each.num_rows for each in found.examples)
    verbs = dict(runner.jobs)
    assert verbs == ({"compare keys of": 1} if sizes is not SMALL else {"read keys of": 2, "compare keys of": 4})
    assert max(runner.outcome_bytes) < 1000
    assert {path.suffix for path in Path(dataset_uri, "data").iterdir()} == {".lance"}  # no folder of keys is left
    assert dataset.duplicates("b", "a < 10").num_rows == dataset.count_rows("a < 10 AND b IS NOT NULL")


@pytest.mark.parametrize("keep", ["first", "last"])
@pytest.mark.parametrize("sizes", [TaskSizes(), SMALL], ids=["one bucket", "buckets"])
def test_the_first_or_the_last_row_of_each_key_stays(dataset_uri: str, sizes: TaskSizes, keep: str) -> None:
    dataset = lance_ops.write_dataset(table(1200), dataset_uri, max_rows_per_file=40)
    dataset.update({"b": "'x'"}, where="place < 30")  # these rows move behind the others
    before = places_by_key(dataset)
    expected = {key: [places[0 if keep == "first" else -1]] for key, places in before.items()}
    nulls = dataset.count_rows("a IS NULL OR b IS NULL")
    made, num_rows = delete_duplicates(dataset.snapshot, ("a", "b"), Keep(keep), PicklingRunner(), None, sizes)
    again = lance_ops.dataset(dataset_uri)
    assert (again.version, made.version) == (dataset.version + 1, dataset.version + 1)
    assert places_by_key(again) == expected
    assert num_rows == sum(map(len, before.values())) - len(before)
    assert again.count_rows() == len(expected) + nulls
    assert again.delete_duplicates(["a", "b"], keep) == {"num_deleted_rows": 0} and again.version == made.version
    again.validate()


def test_keys_are_equal_as_in_a_merge(dataset_uri: str) -> None:
    types = {"f": pa.float64(), "d": pa.date32(), "s": pa.struct([("x", pa.int8())]), "l": pa.list_(pa.int8())}
    rows = {
        "f": [0.0, -0.0, float("nan"), -np.nan, None, None, 1.0],
        "d": [date(2026, 1, 1)] * 7,
        "s": [{"x": 1}, {"x": 2}, {"x": 2}, None, {"x": None}, {"x": None}, {"x": 3}],
        "l": [[1]] * 7,
    }
    dataset = lance_ops.write_dataset(pa.table(rows, pa.schema(types)), dataset_uri)
    assert (dataset.duplicates("f").num_keys, dataset.duplicates("f").num_rows) == (2, 4)
    assert dataset.duplicates(["d"], examples=1) == Duplicates(1, 7, (DuplicateKey((date(2026, 1, 1),), 7),))
    assert dataset.duplicates("s.x").examples == (DuplicateKey((2,), 2),)
    assert dataset.duplicates("d", "f < -100") == Duplicates(0, 0, ())
    for on, error in (([], InvalidInput), ("nothing", InvalidInput), ("l", UnsupportedFeature)):
        with pytest.raises(error):
            dataset.duplicates(on)
    with pytest.raises(InvalidInput, match="'first' or 'last'"):
        dataset.delete_duplicates("d", "newest")


def test_two_deletions_that_keep_different_rows_leave_one(dataset_uri: str) -> None:
    dataset = lance_ops.write_dataset(
        pa.table({"k": [1, 1], "k2": [3, 3], "x": [1, 2]}), dataset_uri, max_rows_per_file=1
    )
    stale = dataset.snapshot
    dataset.delete_duplicates("k", "first")
    for on in (["k"], ["k", "k2"]):
        with pytest.raises(RetryableConflict, match="replace 'duplicates'"):
            delete_duplicates(stale, on, Keep.LAST, InThreads())
    assert lance_ops.dataset(dataset_uri).to_table()["x"].to_pylist() == [1]


def test_a_deletion_that_loses_a_race_looks_again(dataset_uri: str, monkeypatch: pytest.MonkeyPatch) -> None:
    dataset = lance_ops.write_dataset(pa.table({"k": [1, 1, 2, 2]}), dataset_uri, max_rows_per_file=2)
    other = lance_ops.dataset(dataset_uri)
    plain = InThreads.map

    def raced(self: InThreads, *arguments: Any) -> Any:
        found = plain(self, *arguments)
        monkeypatch.undo()
        other.optimize.compact_files()
        return found

    monkeypatch.setattr(InThreads, "map", raced)
    assert dataset.delete_duplicates("k") == {"num_deleted_rows": 2}
    assert dataset.to_table()["k"].to_pylist() == [1, 2] and dataset.version > other.version
