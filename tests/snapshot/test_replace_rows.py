"""Rows in the place of others, in one version, whoever else is at work."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import lance_ops
from lance_ops.errors import RetryableConflict, SchemaMismatch
from lance_ops.snapshot.filters import bind_filter
from lance_ops.snapshot.replace_rows import replace_rows
from lance_ops.snapshot.runners import InThreads
from lance_ops.snapshot.snapshot import Snapshot


def rows(day: int, *ids: int) -> pa.Table:
    return pa.table({"day": [day] * len(ids), "id": pa.array(ids, pa.int64())})


def replaced(snapshot: Snapshot, condition: str, new: pa.Table) -> Snapshot:
    return replace_rows(snapshot, bind_filter(snapshot, condition), new.to_batches(), InThreads(2))


def found(dataset: Any) -> list[tuple[int, int]]:
    columns = dataset.to_table(columns=["day", "id"]).to_pydict()
    return sorted(zip(columns["day"], columns["id"], strict=True))


def files(uri: str) -> set[Path]:
    return {path for path in Path(uri).rglob("*") if path.is_file()}


@pytest.fixture(params=[False, True], ids=["addresses", "stable row ids"])
def dataset(request: pytest.FixtureRequest, dataset_uri: str) -> lance_ops.LanceDataset:
    """Two days in three fragments, one of which holds rows of both."""
    both = pa.concat_tables([rows(1, 0, 1, 2), rows(2, 3, 4, 5)])
    return lance_ops.write_dataset(both, dataset_uri, max_rows_per_file=2, enable_stable_row_ids=request.param)


@pytest.mark.interop
def test_both_libraries_read_the_new_rows_and_the_others_and_find_them_by_an_index(
    dataset: lance_ops.LanceDataset,
) -> None:
    lance = pytest.importorskip("lance", reason="pylance, the reference implementation, is not installed")
    dataset.create_scalar_index("id", "BTREE")
    before = lance_ops.dataset(dataset.uri)

    made = replaced(before.snapshot, "day = 1", rows(1, 2, 7))

    assert made.version == before.version + 1
    for library in (lance_ops, lance):
        after = library.dataset(dataset.uri)
        after.validate()
        assert found(after) == [(1, 2), (1, 7), (2, 3), (2, 4), (2, 5)]
        for key, day in ((0, []), (2, [1]), (3, [2]), (7, [1])):
            assert "ScalarIndexQuery" in after.scanner(filter=f"id = {key}").explain_plan()
            assert after.to_table(filter=f"id = {key}")["day"].to_pylist() == day
        after.optimize.compact_files()
        assert found(library.dataset(dataset.uri)) == [(1, 2), (1, 7), (2, 3), (2, 4), (2, 5)]
    if dataset.has_stable_row_ids:
        kept = before.to_table(filter="day = 2", columns=["id"], with_row_id=True)
        assert lance_ops.dataset(dataset.uri).to_table(filter="day = 2", columns=["id"], with_row_id=True) == kept


@pytest.mark.parametrize(
    ("condition", "new", "left"),
    [
        ("day = 3", rows(3, 9), 7),
        ("day = 1", rows(1), 3),
        ("true", rows(3, 9), 1),
    ],
    ids=["nothing goes", "nothing comes", "all go"],
)
def test_rows_may_only_come_or_only_go(
    dataset: lance_ops.LanceDataset, condition: str, new: pa.Table, left: int
) -> None:
    made = replaced(dataset.snapshot, condition, new)
    assert (made.version, lance_ops.dataset(dataset.uri).count_rows()) == (2, left)


def test_where_nothing_goes_and_nothing_comes_nothing_is_committed(dataset: lance_ops.LanceDataset) -> None:
    before = files(dataset.uri)
    assert replaced(dataset.snapshot, "day = 3", rows(3)) is dataset.snapshot
    assert files(dataset.uri) == before


def test_rows_that_do_not_fit_replace_nothing_and_leave_no_file(dataset: lance_ops.LanceDataset) -> None:
    before = files(dataset.uri)
    with pytest.raises(SchemaMismatch, match="id"):
        replaced(dataset.snapshot, "day = 1", pa.table({"day": [1], "id": ["x"]}))
    assert files(dataset.uri) == before and lance_ops.dataset(dataset.uri).version == 1


def test_what_others_did_to_other_rows_stays(dataset: lance_ops.LanceDataset) -> None:
    stale = dataset.snapshot
    other = lance_ops.dataset(dataset.uri)
    other.delete("id = 3")
    other.insert(rows(2, 6))
    assert replaced(stale, "day = 1", rows(1, 7)).version == 4
    assert found(lance_ops.dataset(dataset.uri)) == [(1, 7), (2, 4), (2, 5), (2, 6)]


def test_rows_that_another_deleted_meanwhile_are_a_conflict_and_leave_no_file(dataset: lance_ops.LanceDataset) -> None:
    stale = dataset.snapshot
    lance_ops.dataset(dataset.uri).delete("id = 2")
    before = files(dataset.uri)
    with pytest.raises(RetryableConflict):
        replaced(stale, "day = 1", rows(1, 7))
    assert files(dataset.uri) == before
