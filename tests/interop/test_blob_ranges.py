"""Ranges of blobs, requested by row: the same bytes and the same refusals as the reference's."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import lance_ops
from lance_ops.errors import InvalidInput

lance = pytest.importorskip("lance", reason="pylance, the reference implementation, is not installed")
pytestmark = pytest.mark.interop

VALUES = [b"hello world", None, b"", b"xyz", b"p" * 70_000]
Part = tuple[int, int, int]


@pytest.fixture(params=["2.0", "2.2"])
def both(request: pytest.FixtureRequest, tmp_path: Path) -> list[Any]:
    """One table for both libraries, its first kind of blobs in 2.0 and its second in 2.2."""
    if request.param == "2.0":
        field = pa.field("b", pa.large_binary(), metadata={"lance-encoding:blob": "true"})
        blobs = pa.array(VALUES, pa.large_binary())
    else:
        field, blobs = lance.blob_field("b"), lance.blob_array(VALUES)
    table = pa.table([range(len(VALUES)), blobs], schema=pa.schema([("k", pa.int64()), field]))
    lance_ops.write_dataset(table, tmp_path / "table", data_storage_version=request.param, max_rows_per_file=3)
    return [library.dataset(str(tmp_path / "table")) for library in (lance_ops, lance)]


@pytest.mark.parametrize("selector", ["ids", "addresses", "indices"])
def test_blob_ranges_are_returned_in_the_requested_order(both: list[Any], selector: str) -> None:
    rows = [0, 1, 2, 3, 4] if selector == "indices" else [0, 1, 2, 1 << 32, (1 << 32) + 1]
    asked = [(4, 69_990, 10), (0, 6, 5), (3, 1, 1), (0, 0, 5), (1, 0, 5), (1, 0, 0), (2, 0, 0), (0, 11, 0), (0, 6, 5)]
    parts = [(rows[row], offset, length) for row, offset, length in asked]
    ours, theirs = (dataset.read_blob_ranges("b", parts, selector=selector) for dataset in both)
    assert ours == theirs
    assert [data for _, _, data in ours] == [
        b"p" * 10, b"world", b"y", b"hello", None, None, b"", b"", b"world"
    ]  # fmt: skip
    for dataset in both:
        assert dataset.read_blob_ranges("b", [], selector=selector) == []
        loose = dataset.read_blob_ranges("b", parts, selector=selector, io_buffer_size=1, preserve_order=False)
        assert sorted(loose) == sorted(ours, key=lambda part: part[0])


def test_positions_count_live_rows_and_deleted_rows_are_refused(both: list[Any]) -> None:
    both[0].delete("k = 0")
    both[1].checkout_latest()
    parts = [(0, 0, 0), (2, 0, 1)]
    assert len({str(dataset.read_blob_ranges("b", parts, selector="indices")) for dataset in both}) == 1
    for dataset in both:
        for selector in ("ids", "addresses"):
            with pytest.raises((ValueError, NotImplementedError)):
                dataset.read_blob_ranges("b", [(0, 0, 0)], selector=selector)


@pytest.mark.parametrize("stable", [False, True])
def test_blobs_of_a_row_that_is_gone_are_refused_and_not_left_out(tmp_path: Path, stable: bool) -> None:
    field = pa.field("b", pa.large_binary(), metadata={"lance-encoding:blob": "true"})
    table = pa.table([range(3), [b"0", b"1", b"2"]], schema=pa.schema([("k", pa.int64()), field]))
    lance_ops.write_dataset(table, tmp_path / "t", enable_stable_row_ids=stable).delete("k = 1")
    for library in (lance_ops, lance):
        dataset = library.dataset(str(tmp_path / "t"))
        with pytest.raises((ValueError, NotImplementedError)):
            dataset.take_blobs("b", ids=[0, 1, 2])
        with pytest.raises((ValueError, NotImplementedError)):
            dataset.read_blobs("b", ids=[0, 1, 2])
        assert [blob.readall() for blob in dataset.take_blobs("b", ids=[2, 0])] == [b"2", b"0"]
    with pytest.raises(InvalidInput, match="row id 1 has no row; 2 of 3"):
        lance_ops.dataset(tmp_path / "t").take_blobs("b", ids=[0, 1, 2])


@pytest.mark.parametrize(
    ("part", "options"),
    [
        pytest.param((0, 6, 6), {}, id="beyond the end"),
        pytest.param((0, 12, 0), {}, id="empty beyond the end"),
        pytest.param((1, 1 << 63, 1 << 63), {}, id="more than 64 bits of a null"),
        pytest.param((0, -1, 1), {}, id="before the start"),
        pytest.param((9, 0, 1), {}, id="no such row"),
        pytest.param((0, 0, 1), {"selector": "rows"}, id="no such selector"),
        pytest.param((0, 0, 1), {"io_buffer_size": 0}, id="no buffer"),
        pytest.param((0, 0, 1), {"column": "k"}, id="no blobs"),
    ],
)
def test_blob_ranges_that_the_reference_refuses_are_refused(
    both: list[Any], part: Part, options: dict[str, Any]
) -> None:
    given = {"selector": "indices"} | options
    column = given.pop("column", "b")
    for dataset in both:
        with pytest.raises((ValueError, OverflowError)):
            dataset.read_blob_ranges(column, [part], **given)
