"""Scanned rows and their physical offsets."""

import pyarrow as pa
import pytest

import lance_ops
from lance_ops.core.schema import Schema
from lance_ops.reading.filters import bind_filter
from lance_ops.reading.row_columns import ROW_ADDRESS
from lance_ops.reading.scan_execution import scan, scan_rows
from lance_ops.reading.scan_plan import ScanRequest
from lance_ops.reading.scanned_rows import ScannedRows, offset_array


@pytest.fixture
def dataset(dataset_uri: str) -> lance_ops.LanceDataset:
    return lance_ops.write_dataset(pa.table({"id": range(40)}), dataset_uri, max_rows_per_file=10)


def test_offsets_of_whole_blocks_are_ranges(dataset: lance_ops.LanceDataset) -> None:
    found = list(scan_rows(dataset.snapshot, ScanRequest(dataset.snapshot.schema)))
    assert [rows.offsets for rows in found] == [range(10)] * 4
    assert [rows.table.column_names for rows in found] == [["id"]] * 4


@pytest.mark.parametrize("gone", ["false", "id = 9", "id % 3 = 0", "id < 20"])
@pytest.mark.parametrize("predicate", [None, "id % 2 = 0", "_rowaddr % 2 = 1", "true"])
def test_offsets_of_scanned_rows_match_their_addresses(
    dataset: lance_ops.LanceDataset, gone: str, predicate: str | None
) -> None:
    dataset.delete(gone)
    snapshot = dataset.snapshot
    bound = None if predicate is None else bind_filter(snapshot, predicate)
    found = list(scan_rows(snapshot, ScanRequest(snapshot.schema, bound)))
    expected = list(scan(snapshot, ScanRequest(snapshot.schema, bound, with_row_address=True)))
    assert [addresses_of(rows) for rows in found] == [table.column(ROW_ADDRESS).to_pylist() for table in expected]
    assert [rows.table for rows in found] == [table.drop_columns([ROW_ADDRESS]) for table in expected]


@pytest.mark.parametrize("gone", ["false", "id = 9"])
def test_scanned_rows_without_columns_have_a_length(dataset: lance_ops.LanceDataset, gone: str) -> None:
    dataset.delete(gone)
    found = list(scan_rows(dataset.snapshot, ScanRequest(Schema(()))))
    assert sum(map(len, found)) == dataset.count_rows()
    assert all(rows.table.num_columns == 0 for rows in found)


@pytest.mark.parametrize("gone", ["false", "id = 3"])
def test_a_slice_of_scanned_rows_keeps_its_offsets(dataset: lance_ops.LanceDataset, gone: str) -> None:
    dataset.delete(gone)
    rows = next(iter(scan_rows(dataset.snapshot, ScanRequest(dataset.snapshot.schema, with_row_address=True))))
    part = rows.slice(2, 5)
    assert addresses_of(part) == addresses_of(rows)[2:7] == part.table.column(ROW_ADDRESS).to_pylist()
    assert list(part.bitmap()) == offset_array(part.offsets).tolist()


def addresses_of(rows: ScannedRows) -> list[int]:
    addresses: list[int] = rows.addresses(offset_array(range(len(rows))).astype("i8")).tolist()
    return addresses
