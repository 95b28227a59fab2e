"""Structs and lists sort as in the reference, in either direction and with nulls first or last."""

from __future__ import annotations

import itertools
from importlib import import_module
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import lance_ops
from lance_ops.api import ColumnOrdering
from lance_ops.errors import InvalidInput, UnsupportedFeature
from lance_ops.reading.scan_plan import ScanRequest
from lance_ops.reading.sorted_scan import scan_sorted

lance = pytest.importorskip("lance", reason="pylance, the reference implementation, is not installed")
pytestmark = pytest.mark.interop

COLUMNS = {
    "struct": pa.array([{"x": 1, "y": "b"}, None, {"x": None, "y": "a"}, {"x": 0, "y": "z"}, {"x": 1, "y": None}]),
    "list": pa.array([[1, 2], [], None, [0], [1, None]], pa.list_(pa.int32())),
    "vector": pa.array([[1.0, 2.0], [0.0, -1.0], [5.0, 5.0], [0.0, 1.0], [-1.0, 9.0]], pa.list_(pa.float32(), 2)),
    "lists": pa.array([[["b"]], [["a"], ["c"]], [[]], None, [["a", "b"]]]),
    "structs": pa.array([[{"x": 2}], [{"x": 1}], None, [], [{"x": 1}, {"x": None}]]),
    "within": pa.array([{"q": [3]}, {"q": [1]}, {"q": None}, None, {"q": []}]),
    "nothing": pa.nulls(5),
}


@pytest.fixture(scope="module")
def both(tmp_path_factory: pytest.TempPathFactory) -> list[Any]:
    """One table: in fragments for us, whole for the reference, which picks wrong first rows of several batches."""
    folder, rows = tmp_path_factory.mktemp("nested"), pa.table({"k": range(5), **COLUMNS})
    ours = lance_ops.write_dataset(rows, folder / "ours", max_rows_per_file=2)
    return [ours, lance.write_dataset(rows, str(folder / "theirs"))]


@pytest.mark.parametrize("column", COLUMNS)
def test_nested_columns_sort_as_in_the_reference(both: list[Any], column: str) -> None:
    reference = import_module("lance.dataset").ColumnOrdering  # the package's attribute of that name is the function
    for ascending, nulls_first, limit in itertools.product((True, False), (True, False), (None, 3)):
        ours, theirs = (
            dataset.to_table(order_by=[make(column, ascending, nulls_first), make("k")], limit=limit)
            for dataset, make in zip(both, (ColumnOrdering, reference), strict=True)
        )
        assert ours.to_pylist() == theirs.to_pylist(), (ascending, nulls_first, limit)
        assert ours.num_rows == (limit or 5)


def test_sorting_more_rows_than_fit_in_memory_gives_the_same_order(both: list[Any], tmp_path: Path) -> None:
    rows = pa.table({"v": [[i * 7919 % 1000, i] for i in range(5000)]})
    snapshot = lance_ops.write_dataset(rows, tmp_path / "table").snapshot
    tables = scan_sorted(snapshot, ScanRequest(snapshot.schema), [ColumnOrdering("v", ascending=False)], 20_000)
    found = [pair for table in tables for pair in table["v"].to_pylist()]
    assert found == sorted(rows["v"].to_pylist(), reverse=True)


def test_sorting_by_a_map_is_refused_by_both(tmp_path: Path) -> None:
    rows = pa.table({"k": [1, 2], "m": pa.array([[("b", 1)], [("a", 1)]], pa.map_(pa.string(), pa.int32()))})
    place = lance_ops.write_dataset(rows, tmp_path / "table").uri
    with pytest.raises(UnsupportedFeature, match="order_by on values of map"):
        lance_ops.dataset(place).to_table(order_by=["m"])
    with pytest.raises(ValueError, match=r"(?i)not yet implemented"):
        lance.dataset(place).to_table(order_by=["m", "k"], limit=1)


@pytest.mark.parametrize("column", ["list.item", "structs.x", "structs.item.x", "absent"])
def test_sorting_by_anything_but_one_value_per_row_is_refused(both: list[Any], column: str) -> None:
    ours, theirs = both
    with pytest.raises(InvalidInput):
        ours.to_table(order_by=[column])
    with pytest.raises(ValueError, match=r".+"):
        theirs.to_table(order_by=[column])
