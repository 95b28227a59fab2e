"""Scans with the reference's options return what the reference returns."""

from __future__ import annotations

import math
from importlib import import_module
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import lance_ops
from lance_ops.api import ColumnOrdering

lance = pytest.importorskip("lance", reason="pylance, the reference implementation, is not installed")
pytestmark = pytest.mark.interop

ROWS = pa.table(
    {
        "id": pa.array(range(12), pa.int32()),
        "f": [1.0, math.nan, None, -0.0, 0.0, math.inf, -math.nan, 2.0, -math.inf, None, 1.0, 0.0],
        "s": ["b", None, "a", "é", "zz", "", "B", "b", "z", "😀", None, "a"],
        "day": pa.array([None, 3, 1, 2, 3, 1, 2, 3, 1, 2, 3, None], pa.date32()),
        "flag": [True, None, False] * 4,
        "st": [{"a": i % 3, "b": str(i)} for i in range(12)],
    }
)


@pytest.fixture(scope="module")
def both(tmp_path_factory: pytest.TempPathFactory) -> tuple[Any, Any]:
    uri = str(tmp_path_factory.mktemp("rows") / "t")
    lance.write_dataset(ROWS, uri, max_rows_per_file=5)
    lance.dataset(uri).delete("id = 7")
    return lance_ops.dataset(uri), lance.dataset(uri)


def same(mine: pa.Table, other: pa.Table) -> None:
    assert mine.schema.names == other.schema.names
    assert str(mine.to_pylist()) == str(other.to_pylist())  # NaN is not equal to itself


# The reference only sorts by columns that the scan returns, so the scan returns them all.
@pytest.mark.parametrize("first", ["f", "s", "day", "flag"])
@pytest.mark.parametrize("ascending", [True, False])
@pytest.mark.parametrize("nulls_first", [True, False])
def test_order_by_sorts_as_the_reference_does(
    both: tuple[Any, Any], first: str, ascending: bool, nulls_first: bool
) -> None:
    reference = import_module("lance.dataset")
    ours, theirs = both
    keys = [(first, ascending, nulls_first), ("id", not ascending, False)]
    for more in ({}, {"filter": "id > 2", "limit": 4, "offset": 1}, {"with_row_id": True, "limit": 20}):
        mine = ours.to_table([first, "id"], order_by=[ColumnOrdering(*key) for key in keys], **more)
        same(mine, theirs.to_table([first, "id"], order_by=[reference.ColumnOrdering(*key) for key in keys], **more))


def test_computed_columns_equal_the_reference_s(both: tuple[Any, Any]) -> None:
    ours, theirs = both
    columns = {"x": "id * 2", "y": "s", "z": "st.a", "w": "id > 3 AND flag", "t": "upper(s)", "r": "_rowid", "c": "-id"}
    for more in ({}, {"filter": "id > 2", "limit": 4, "offset": 1}, {"with_row_id": True}):
        mine, other = ours.to_table(columns, **more), theirs.to_table(columns, **more)
        same(mine, other)
        assert mine.schema == other.schema


def test_options_for_speed_do_not_change_the_rows(both: tuple[Any, Any]) -> None:
    ours, theirs = both
    expected = theirs.to_table(filter="id > 2")
    for option in (
        {"late_materialization": True},
        {"late_materialization": ["s"]},
        {"io_buffer_size": 1024},
        {"scan_in_order": False},
        {"use_stats": False},
        {"prefilter": True},
        {"fast_search": True},
    ):
        same(ours.to_table(filter="id > 2", **option), expected)
        same(theirs.to_table(filter="id > 2", **option), expected)
    strict = {"batch_size": 4, "strict_batch_size": True}
    for dataset in both:
        assert [batch.num_rows for batch in dataset.to_batches(**strict)] == [4, 4, 3]


def test_fast_search_reads_only_indexed_fragments_in_both(tmp_path: Path) -> None:
    uri = str(tmp_path / "t")
    lance.write_dataset(pa.table({"id": range(10)}), uri).create_scalar_index("id", "BTREE")
    lance.write_dataset(pa.table({"id": range(5, 15)}), uri, mode="append")
    for matching in ("id > 6", "id % 2 = 0"):
        mine = lance_ops.dataset(uri).to_table(filter=matching, fast_search=True)
        same(mine, lance.dataset(uri).to_table(filter=matching, fast_search=True))


@pytest.mark.parametrize("stable", [False, True])
def test_row_address_lists_allow_and_block_the_reference_s_rows(tmp_path: Path, stable: bool) -> None:
    reference = import_module("lance.dataset")
    uri = str(tmp_path / "t")
    theirs = lance.write_dataset(pa.table({"id": range(12)}), uri, max_rows_per_file=5, enable_stable_row_ids=stable)
    theirs.delete("id = 2")
    theirs.optimize.compact_files(target_rows_per_fragment=7)
    ours = lance_ops.dataset(uri)
    ids = theirs.to_table(with_row_id=True)["_rowid"].to_pylist()
    some, few = reference.serialize_row_addrs([*ids[1:8], 1 << 50]), reference.serialize_row_addrs(ids[3:5])
    whole = b"\x01\0\0\0" + (ids[0] >> 32).to_bytes(4, "little") + bytes(4)
    for masks in (
        {"row_addr_allowlist": some},
        {"row_addr_blocklist": few},
        {"row_addr_allowlist": some, "row_addr_blocklist": few, "filter": "id > 1"},
        {"row_addr_allowlist": whole, "row_addr_blocklist": few},
    ):
        mine = ours.scanner(**masks, with_row_id=True)
        same(mine.to_table(), theirs.scanner(**masks, with_row_id=True).to_table())
        assert 0 < mine.count_rows() < 11


@pytest.mark.parametrize("version", ["2.1", "2.2"])
@pytest.mark.parametrize("indexed", [False, True])
def test_fields_of_a_null_struct_are_null_to_both(tmp_path: Path, version: str, *, indexed: bool) -> None:
    inner = [{"a": 1, "s": {"b": 2}, "l": [3]}, {"a": 4, "s": {"b": 5}, "l": []}]
    kind = pa.struct([("a", pa.int64()), ("s", pa.struct([("b", pa.int64())])), ("l", pa.list_(pa.int64()))])
    table = pa.table({"id": range(3), "c": pa.array([inner[0], None, inner[1]], kind)})
    uri = lance_ops.write_dataset(table, tmp_path / "t", data_storage_version=version).uri
    if indexed:
        lance.dataset(uri).create_scalar_index("c.a", "BTREE")
    for field in ("c", "c.a", "c.s", "c.s.b", "c.l"):
        for dataset in (lance_ops.dataset(uri), lance.dataset(uri)):
            found = dataset.to_table(columns=["id"], filter=f"{field} IS NULL")
            assert found.column("id").to_pylist() == [1], field
