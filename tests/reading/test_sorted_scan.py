"""Sorted scans: any columns and directions, in memory or through the disk, without deleted rows."""

from __future__ import annotations

import datetime as dt
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import lance_ops
from lance_ops.api import ColumnOrdering
from lance_ops.core.errors import InvalidInput
from lance_ops.indices import RowOrder
from lance_ops.reading import sorted_scan
from lance_ops.reading.scan_plan import ScanRequest
from lance_ops.reading.sorted_scan import scan_sorted
from tests.reading.watched_columns import count_columns

NUM_ROWS = 300


def rows() -> pa.Table:
    rng = np.random.default_rng(7)
    few = rng.integers(0, 6, NUM_ROWS)
    gone = rng.random(NUM_ROWS) < 0.2

    def sparse(values: list[Any], arrow_type: pa.DataType) -> pa.Array:
        kept = [None if null else value for value, null in zip(values, np.roll(gone, len(values) % 7), strict=True)]
        return pa.array(kept, arrow_type)

    texts = ["", "a", "B", "é", "zz", "z"]
    return pa.table(
        {
            "id": range(NUM_ROWS),
            "few": sparse(few.tolist(), pa.int16()),
            "half": sparse((few / 2).astype(np.float16).tolist(), pa.float16()),
            "text": sparse([texts[i] for i in few], pa.string()),
            "kind": pa.array([texts[i] for i in few]).dictionary_encode(),
            "price": sparse([Decimal(int(i) * 25) / 100 for i in few], pa.decimal128(9, 2)),
            "at": sparse([dt.datetime(2024, 1, 1 + int(i)) for i in few], pa.timestamp("ns")),
            "flag": sparse((few > 2).tolist(), pa.bool_()),
            "deep": pa.array([{"x": int(i), "y": str(i)} if i else None for i in few]),
            "vector": pa.FixedSizeListArray.from_arrays(pa.array(np.arange(NUM_ROWS * 4, dtype=np.float32)), 4),
        }
    )


@pytest.fixture(scope="module")
def dataset(tmp_path_factory: pytest.TempPathFactory) -> lance_ops.LanceDataset:
    dataset = lance_ops.write_dataset(rows(), str(tmp_path_factory.mktemp("rows") / "t"), max_rows_per_file=70)
    dataset.delete("id % 7 = 3")
    return dataset


def ids(table: pa.Table) -> list[int]:
    return list(table.column("id").to_pylist())


def expected_ids(*orderings: ColumnOrdering) -> list[int]:
    """Sort in Python by one key after the other, the last key first, with a stable sort."""
    found = [row for row in rows().to_pylist() if row["id"] % 7 != 3]
    for ordering in reversed(orderings):
        name, _, below = ordering.column_name.partition(".")
        values = [(row[name] or {}).get(below) if below else row[name] for row in found]
        nulls = [row for row, value in zip(found, values, strict=True) if value is None]
        pairs = [(value, row) for row, value in zip(found, values, strict=True) if value is not None]
        ordered = sorted(pairs, key=lambda pair: pair[0], reverse=not ordering.ascending)  # ties stay in order
        solid = [row for _, row in ordered]
        found = nulls + solid if ordering.nulls_first else solid + nulls
    return [row["id"] for row in found]


ORDERS = [
    (ColumnOrdering("few"),),
    (ColumnOrdering("half", ascending=False),),
    (ColumnOrdering("text", nulls_first=True), ColumnOrdering("id", ascending=False)),
    (ColumnOrdering("kind", ascending=False), ColumnOrdering("few")),
    (ColumnOrdering("price", ascending=False, nulls_first=True), ColumnOrdering("flag")),
    (ColumnOrdering("at"), ColumnOrdering("text", ascending=False)),
    (ColumnOrdering("deep.x", ascending=False), ColumnOrdering("id")),
]


@pytest.mark.parametrize("orderings", ORDERS, ids=str)
@pytest.mark.parametrize("columns", [None, ["vector", "id"]], ids=str)
def test_sorted_rows_keep_ties_in_scan_order(
    dataset: lance_ops.LanceDataset,
    orderings: tuple[ColumnOrdering, ...],
    columns: list[str] | None,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    expected = expected_ids(*orderings)
    table = dataset.to_table(columns, order_by=orderings)
    assert ids(table) == expected
    taken = dataset.take([sorted(expected).index(row) for row in expected], columns)
    assert table.schema == taken.schema
    assert table.to_pylist() == taken.to_pylist()
    first = dataset.to_table(columns, order_by=orderings, limit=20, offset=5, with_row_id=True)
    assert ids(first) == expected[5:25]
    monkeypatch.setattr(sorted_scan, "MOST_KEPT_ROWS", 0)
    again = dataset.to_table(columns, order_by=orderings, limit=20, offset=5, with_row_id=True)
    assert again.to_pylist() == first.to_pylist()


@pytest.mark.parametrize("sort_bytes", [1, 20_000])
def test_a_sort_larger_than_its_budget_uses_the_disk(
    dataset: lance_ops.LanceDataset, sort_bytes: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    orderings = (ColumnOrdering("text", ascending=False), ColumnOrdering("few"))
    request = ScanRequest(dataset.snapshot.schema)
    parts = scan_sorted(dataset.snapshot, request, orderings, sort_bytes)
    first = next(parts)
    assert list(tmp_path.iterdir())
    table = pa.concat_tables([first, *parts])
    assert table.to_pylist() == pa.concat_tables(scan_sorted(dataset.snapshot, request, orderings)).to_pylist()
    assert ids(table) == expected_ids(*orderings)
    assert not list(tmp_path.iterdir())


def test_a_sorted_scan_with_a_limit_reads_other_columns_only_of_its_rows(
    dataset: lance_ops.LanceDataset, monkeypatch: pytest.MonkeyPatch
) -> None:
    scanned = count_columns(monkeypatch, ["read"])
    table = dataset.to_table(order_by=[ColumnOrdering("few", ascending=False)], limit=3, filter="flag")
    assert table.num_rows == 3
    assert {*scanned} == {"few", "flag"}


@pytest.mark.parametrize("limit", [0, 1, 250, 1000])
def test_limit_offset_and_filter_apply_to_the_sorted_answer(dataset: lance_ops.LanceDataset, limit: int) -> None:
    expected = [row for row in expected_ids(ColumnOrdering("text")) if row > 100]
    for offset in (0, 3, 500):
        scanner = dataset.scanner(["id"], "id > 100", limit, offset, order_by="text")
        assert ids(scanner.to_table()) == expected[offset : offset + limit]
        assert scanner.count_rows() == len(expected[offset : offset + limit])
        assert [row for batch in scanner.to_batches() for row in batch["id"].to_pylist()] == ids(scanner.to_table())


def test_included_deleted_rows_are_sorted_too(dataset: lance_ops.LanceDataset) -> None:
    table = dataset.to_table(
        ["id"], order_by=[ColumnOrdering("id", ascending=False)], limit=9, with_row_id=True, include_deleted_rows=True
    )
    assert ids(table) == list(range(299, 290, -1))
    assert [row for row, key in zip(ids(table), table["_rowid"].to_pylist(), strict=True) if key is None] == [297]


def test_an_explained_plan_names_the_sort_order(dataset: lance_ops.LanceDataset) -> None:
    orderings = [ColumnOrdering("few", ascending=False), ColumnOrdering("deep.x", nulls_first=True)]
    plan = dataset.scanner(["id"], order_by=orderings, limit=2, offset=1).explain_plan()
    assert plan.splitlines()[0] == "SortExec: TopK(fetch=3), expr=[few DESC NULLS LAST, deep.x ASC NULLS FIRST]"
    assert "num_fragments=5" in plan


def test_sorting_by_a_column_without_an_order_is_refused(dataset: lance_ops.LanceDataset) -> None:
    with pytest.raises(InvalidInput, match="no column 'nope'"):
        dataset.scanner(order_by=["nope"])
    with pytest.raises(InvalidInput, match="order_by must be"):
        dataset.scanner(order_by=[3])  # type: ignore[list-item]  # what is refused


def test_a_sort_stays_within_its_memory_budget(dataset_uri: str) -> None:
    budget = 4 << 20
    values = np.random.default_rng(3).permutation(600_000)
    wide = pa.table({"key": values, "a": values * 2, "b": values * 3})
    dataset = lance_ops.write_dataset(wide, dataset_uri, max_rows_per_file=50_000)
    before, peak, last = pa.total_allocated_bytes(), 0, -1
    request = ScanRequest(dataset.snapshot.schema, readahead=1)
    for part in scan_sorted(dataset.snapshot, request, [ColumnOrdering("key")], budget):
        peak = max(peak, pa.total_allocated_bytes() - before)
        keys = part["key"].to_numpy()
        assert keys[0] == last + 1
        assert (np.diff(keys) == 1).all()
        assert (part["b"].to_numpy() == keys * 3).all()
        last = int(keys[-1])
    assert last == len(values) - 1
    assert peak < budget < wide.nbytes / 3


def test_the_first_rows_by_long_texts_stay_within_the_memory_budget(dataset_uri: str) -> None:
    budget, num_rows = 4 << 20, 400
    texts = [f"{number:04d}" * (25 << 8) for number in np.random.default_rng(3).permutation(num_rows)]
    texts_of_rows = pa.table({"text": texts})
    version = "2.0"  # whose fragments are read one by one
    dataset = lance_ops.write_dataset(texts_of_rows, dataset_uri, max_rows_per_file=10, data_storage_version=version)
    before, peak, found = pa.total_allocated_bytes(), 0, list[str]()
    request = ScanRequest(dataset.snapshot.schema, limit=num_rows - 3, offset=1, readahead=1)
    for part in scan_sorted(dataset.snapshot, request, [ColumnOrdering("text", ascending=False)], budget):
        peak = max(peak, pa.total_allocated_bytes() - before)
        found += [text[:4] for text in part["text"].to_pylist()]
    assert found == [f"{number:04d}" for number in range(num_rows - 2, 1, -1)]
    assert peak < budget < texts_of_rows.nbytes / 2


@pytest.mark.parametrize("ascending", [True, False])
def test_the_first_rows_are_not_sorted_again_for_each_few_rows(
    dataset_uri: str, ascending: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    version = "2.0"  # whose fragments are read one by one
    rows = pa.table({"n": range(3000)})
    dataset = lance_ops.write_dataset(rows, dataset_uri, max_rows_per_file=30, data_storage_version=version)
    counts, indices = list[int](), RowOrder.indices

    def counting(order: RowOrder, batch: pa.RecordBatch) -> pa.Array:
        counts.append(batch.num_rows)
        return indices(order, batch)

    monkeypatch.setattr(RowOrder, "indices", counting)
    found = dataset.to_table(order_by=[ColumnOrdering("n", ascending=ascending)], limit=1000)["n"].to_pylist()
    assert found == (list(range(1000)) if ascending else list(range(2999, 1999, -1)))
    assert sum(counts) < 3 * len(rows)


def test_the_first_rows_are_taken_in_parts_that_fit_into_memory(
    dataset_uri: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sorted_scan, "BLOCK_BYTES", 64 << 10)
    rng = np.random.default_rng(3)
    rows = pa.table({"n": range(2000), "large": [rng.bytes(16 << 10) for _ in range(2000)]})
    dataset = lance_ops.write_dataset(rows, dataset_uri, max_rows_per_file=500)
    for columns, largest in ((["large", "n"], 4), (["n"], 1000)):
        request = ScanRequest(dataset.snapshot.schema.project(columns), limit=1000)
        parts = [*scan_sorted(dataset.snapshot, request, [ColumnOrdering("n", ascending=False)])]
        assert pa.concat_tables(parts) == rows.select(columns).take([*range(1999, 999, -1)])
        assert largest / 2 < max(part.num_rows for part in parts) <= largest
