"""Rows that somebody else chose are deleted, updated and inserted by address, in one commit."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import lance_ops
from lance_ops.changing import ChosenRowsOutcome, ChosenRowsTask, RowChosenTwice, chosen_rows, commit_chosen
from lance_ops.core.schema import PRIMARY_KEY
from lance_ops.errors import InvalidInput, RetryableConflict
from lance_ops.indices import RowAddressSet
from tests.pickling_runner import PicklingRunner

_Change = tuple[str, int | None, int, str | None]
"""What happens, the row's address, and values of `x` and `v`."""


def made(uri: str | Path, **options: Any) -> lance_ops.LanceDataset:
    """A table of five fragments, of which row 5 is deleted; `x` is 0 to 19."""
    rows = pa.table({"x": range(20), "v": [f"old{x}" for x in range(20)], "n": np.arange(20) / 2})
    dataset = lance_ops.write_dataset(rows, uri, max_rows_per_file=4, **options)
    dataset.delete("x = 5")
    return dataset


def addresses(dataset: lance_ops.LanceDataset) -> dict[int, int]:
    rows = dataset.to_table(["x"], with_row_address=True)
    return dict(zip(rows["x"].to_pylist(), rows["_rowaddr"].to_pylist(), strict=True))


def as_it_is(batch: pa.RecordBatch) -> pa.RecordBatch:
    return batch


def batch_of(changes: list[_Change]) -> pa.RecordBatch:
    action, address, x, v = zip(*changes, strict=True) if changes else ((), (), (), ())
    columns = [pa.array(action, pa.string()), pa.array(address, pa.int64()), pa.array(x, pa.int64()), pa.array(v)]
    return pa.record_batch([*columns[:3], columns[3].cast(pa.string())], ["action", "address", "x", "v"])


def change(
    dataset: lance_ops.LanceDataset, *tasks: list[_Change], updated: tuple[str, ...] = ("v",), on: str = "x"
) -> Any:
    """Change rows in these tasks, each of batches of two rows; return the new version and the counts."""
    task = ChosenRowsTask.of(dataset.snapshot, ["v"], as_it_is, [on] if on else [])
    parts = [[batch_of(each[at : at + 2]) for at in range(0, len(each), 2)] for each in tasks]
    outcomes = PicklingRunner().map(task, parts, ChosenRowsTask.job("change", dataset.snapshot))
    return commit_chosen(dataset.snapshot, task, outcomes, "chosen")


def rows_of(uri: str | Path) -> dict[int, tuple[str | None, float | None]]:
    rows = lance_ops.dataset(uri).to_table().to_pylist()
    assert len({row["x"] for row in rows}) == len(rows)
    return {row["x"]: (row["v"], row["n"]) for row in rows}


@pytest.mark.parametrize("stable", [False, True])
@pytest.mark.parametrize("rows_at_once", [1, 3, 1 << 16])
@pytest.mark.parametrize("on", ["x", ""])
def test_rows_are_deleted_updated_and_inserted_at_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, stable: bool, rows_at_once: int, on: str
) -> None:
    monkeypatch.setattr(chosen_rows, "_ROWS_AT_ONCE", rows_at_once)
    dataset = made(tmp_path / "t.lance", enable_stable_row_ids=stable)
    before = {row["x"]: row["_rowid"] for row in dataset.to_table(["x"], with_row_id=True).to_pylist()}
    at = addresses(dataset)
    one: list[_Change] = [("INSERT", None, 30, "added"), ("DELETE", at[0], 0, None), ("UPDATE", at[19], 0, "new")]
    other: list[_Change] = [("UPDATE", at[1], 0, None), ("DELETE", at[0], 0, None), ("UPDATE", at[18], 0, "also")]
    made_version, counts = change(dataset, one, other, on=on)
    assert (counts.updated, counts.deleted, counts.inserted) == (3, 1, 1)
    assert made_version.version == dataset.version + 1
    expected: dict[int, tuple[str | None, float | None]]
    expected = {x: (f"old{x}", x / 2) for x in range(1, 20) if x != 5}
    expected |= {19: ("new", 9.5), 1: (None, 0.5), 18: ("also", 9.0), 30: ("added", None)}
    after = lance_ops.dataset(tmp_path / "t.lance")
    assert rows_of(after.uri) == expected
    if stable:
        ids = {row["x"]: row["_rowid"] for row in after.to_table(["x"], with_row_id=True).to_pylist()}
        assert {x: ids[x] for x in expected if x < 30} == {x: before[x] for x in expected if x < 30}
        assert ids[30] not in before.values()
    assert not after.verify().findings


def test_an_index_still_finds_updated_rows_and_not_the_old_ones(tmp_path: Path) -> None:
    dataset = made(tmp_path / "t.lance", enable_stable_row_ids=True)
    for column in ("v", "n"):
        dataset.create_scalar_index(column, "BTREE")
    change(dataset, [("UPDATE", addresses(dataset)[7], 0, "new")])
    after = lance_ops.dataset(tmp_path / "t.lance")
    for condition, found in (("v = 'old7'", []), ("v = 'new'", [7]), ("n = 3.5", [7])):
        assert after.to_table(["x"], filter=condition)["x"].to_pylist() == found
        assert "ScalarIndexQuery" in after.scanner(filter=condition).explain_plan()


def test_a_mere_deletion_is_one_and_nothing_is_no_version(tmp_path: Path) -> None:
    dataset = made(tmp_path / "t.lance")
    same, counts = change(dataset, [], [])
    assert (same.version, counts.deleted) == (dataset.version, 0)
    change(dataset, [("DELETE", addresses(dataset)[x], 0, None) for x in range(4)])
    after = lance_ops.dataset(dataset.uri)
    (transaction,) = after.get_transactions(1)
    assert transaction is not None
    assert isinstance(transaction.operation, lance_ops.LanceOperation.Delete)
    assert transaction.operation.predicate == "chosen"
    assert (after.count_rows(), len(after.get_fragments())) == (15, 4)


@pytest.mark.parametrize("second", ["UPDATE", "DELETE"])
@pytest.mark.parametrize("apart", ["in one batch", "in two batches", "in two tasks"])
def test_a_row_with_two_fates_is_refused_and_no_file_stays(tmp_path: Path, second: str, apart: str) -> None:
    dataset = made(tmp_path / "t.lance")
    at, files = addresses(dataset), sorted((tmp_path / "t.lance" / "data").iterdir())
    twice: list[_Change] = [("UPDATE", at[9], 0, "one"), (second, at[9], 0, "two")]
    others: list[_Change] = [("UPDATE", at[x], 0, "x") for x in (0, 1, 2)]
    tasks = {
        "in one batch": [twice],
        "in two batches": [[twice[0], *others, twice[1]]],
        "in two tasks": [[twice[0], others[0]], [twice[1]]],
    }[apart]
    with pytest.raises(RowChosenTwice) as raised:
        change(dataset, *tasks)
    assert raised.value.address == at[9]
    assert sorted((tmp_path / "t.lance" / "data").iterdir()) == files
    assert lance_ops.dataset(dataset.uri).version == dataset.version


def test_a_row_that_is_deleted_twice_is_deleted_once(tmp_path: Path) -> None:
    dataset = made(tmp_path / "t.lance")
    deleted: _Change = ("DELETE", addresses(dataset)[9], 0, None)
    assert change(dataset, [deleted, deleted], [deleted])[1].deleted == 1


def test_a_task_that_fails_leaves_no_file(tmp_path: Path) -> None:
    dataset = made(tmp_path / "t.lance")
    at, files = addresses(dataset), sorted((tmp_path / "t.lance" / "data").iterdir())
    task = ChosenRowsTask.of(dataset.snapshot, ["v"], as_it_is)

    def batches() -> Iterator[pa.RecordBatch]:
        yield batch_of([("UPDATE", at[x], 0, "new") for x in range(4)])
        yield batch_of([("UPDATE", 5 << 32, 0, "of no fragment")])

    with pytest.raises(InvalidInput):
        task(batches())
    assert sorted((tmp_path / "t.lance" / "data").iterdir()) == files


def test_rows_that_somebody_changed_meanwhile_are_a_conflict(tmp_path: Path) -> None:
    dataset = made(tmp_path / "t.lance")
    lance_ops.dataset(dataset.uri).update({"v": "'theirs'"}, "x = 7")
    with pytest.raises(RetryableConflict):
        change(dataset, [("UPDATE", addresses(dataset)[7], 0, "ours")])
    change(dataset, [("UPDATE", addresses(dataset)[8], 0, "ours")])
    found = rows_of(dataset.uri)
    assert (found[7][0], found[8][0]) == ("theirs", "ours")


def test_two_insertions_of_one_primary_key_are_a_conflict(tmp_path: Path) -> None:
    key = pa.field("x", pa.int64(), False, {PRIMARY_KEY: "true"})
    schema = pa.schema([key, pa.field("v", pa.string()), pa.field("n", pa.float64())])
    dataset = lance_ops.write_dataset(pa.table({"x": [1], "v": ["a"], "n": [1.0]}, schema), tmp_path / "t.lance")
    change(dataset, [("INSERT", None, 2, "first")], [("INSERT", None, 3, "third")])
    with pytest.raises(RetryableConflict):
        change(dataset, [("INSERT", None, 4, "x")], [("INSERT", None, 3, "second")])
    change(dataset, [("INSERT", None, 5, "fifth")])
    assert sorted(rows_of(dataset.uri)) == [1, 2, 3, 5]


def test_blobs_of_updated_rows_are_kept(tmp_path: Path) -> None:
    values = [b"a" * 10, b"b" * 100_000, None]
    rows = {"x": [1, 2, 3], "v": ["p", "q", "r"], "b": lance_ops.blob_array(values)}
    dataset = lance_ops.write_dataset(pa.table(rows), tmp_path / "t.lance", data_storage_version="2.2")
    change(dataset, [("UPDATE", addresses(dataset)[x], 0, "new") for x in (1, 2, 3)])
    after = lance_ops.dataset(dataset.uri)
    assert after.to_table(["v"])["v"].to_pylist() == ["new"] * 3
    kept = after.take_blobs("b", indices=[0, 1])
    assert [blob and blob.read() for blob in kept] == values[:2]


@settings(max_examples=60, deadline=None)
@given(data=st.data(), stable=st.booleans(), num_tasks=st.integers(1, 3))
def test_any_choice_of_rows_gives_what_a_dictionary_gives(
    tmp_path_factory: pytest.TempPathFactory, data: st.DataObject, stable: bool, num_tasks: int
) -> None:
    dataset = made(tmp_path_factory.mktemp("chosen") / "t.lance", enable_stable_row_ids=stable)
    at, expected = addresses(dataset), rows_of(dataset.uri)
    tasks: list[list[_Change]] = [[] for _ in range(num_tasks)]
    fates = data.draw(st.dictionaries(st.sampled_from([*at]), st.sampled_from(["UPDATE", "DELETE"])))
    new = data.draw(st.sets(st.integers(100, 110)))
    for x in data.draw(st.permutations([*fates, *new])):
        action = fates.get(x, "INSERT")
        tasks[data.draw(st.integers(0, num_tasks - 1))].append((action, at.get(x), x, f"new{x}"))
        if action == "DELETE":
            del expected[x]
        else:
            expected[x] = (f"new{x}", expected[x][1] if action == "UPDATE" else None)
    change(dataset, *tasks)
    assert rows_of(dataset.uri) == expected


def test_an_outcome_is_small(tmp_path: Path) -> None:
    dataset = made(tmp_path / "t.lance")
    named = RowAddressSet.from_addresses([*addresses(dataset).values()])
    task = ChosenRowsTask.of(dataset.snapshot, ["v"], as_it_is)
    outcome = task([batch_of([("DELETE", address, 0, None) for address in addresses(dataset).values()])])
    assert isinstance(outcome, ChosenRowsOutcome)
    assert {*outcome.deleted_offsets} == {*named.fragment_ids}
    assert sum(map(len, outcome.deleted_offsets.values())) < 500
