"""Options of scans besides the filter and the columns."""

from __future__ import annotations

import struct
from pathlib import Path
from typing import Any

import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc
import pytest

import lance_ops
from lance_ops.api import ColumnOrdering, ScannerBuilder
from lance_ops.api.scanning import scanner
from lance_ops.core.errors import InvalidFilter, InvalidInput, UnsupportedFeature
from lance_ops.snapshot.fragment_reader import FragmentReader
from tests.reading.watched_columns import count_columns


@pytest.fixture(scope="module")
def dataset(tmp_path_factory: pytest.TempPathFactory) -> lance_ops.LanceDataset:
    uri = str(tmp_path_factory.mktemp("rows") / "t")
    table = pa.table(
        {
            "id": pa.array(range(40), pa.int32()),
            "text": [None if i % 5 == 0 else "x" * i for i in range(40)],
            "st": [{"a": i, "b": str(i)} for i in range(40)],
        }
    )
    dataset = lance_ops.write_dataset(table, uri, max_rows_per_file=15)
    dataset.delete("id % 10 = 3")
    return dataset


def sizes(scanner: Any) -> list[int]:
    return [batch.num_rows for batch in scanner.to_batches()]


def test_batches_have_the_requested_length(dataset: lance_ops.LanceDataset) -> None:
    whole = dataset.to_table()
    assert sizes(dataset.scanner()) == [13, 14, 9]
    assert sizes(dataset.scanner(batch_size=10)) == [10, 3, 10, 4, 9]
    strict = dataset.scanner(batch_size=10, strict_batch_size=True)
    assert sizes(strict) == [10, 10, 10, 6]
    assert strict.to_reader().read_all() == whole
    assert sizes(dataset.scanner(["id"], batch_size=12, strict_batch_size=True, filter="id != 0")) == [12, 12, 11]
    in_bytes = dataset.scanner(["id"], batch_size_bytes=20)
    assert sizes(in_bytes) == [5, 5, 3, 5, 5, 4, 5, 4]
    assert max(sizes(dataset.scanner(["id"], batch_size=2, batch_size_bytes=20))) == 2
    assert set(sizes(dataset.scanner(["text"], batch_size_bytes=1))) == {1}
    assert sizes(dataset.scanner(batch_size=20, strict_batch_size=True, filter="id > 100")) == []


@pytest.mark.parametrize(
    ("late", "names"),
    [(True, ["st", "text"]), (False, []), (["text"], ["text"]), (["st.a", "id"], ["st"])],
    ids=str,
)
@pytest.mark.parametrize("matching", ["id = 7", "id > 4"])
def test_late_materialization_takes_only_columns_that_the_filter_did_not_read(
    dataset: lance_ops.LanceDataset, late: Any, names: list[str], matching: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    expected = dataset.to_table(filter=matching)
    taken = count_columns(monkeypatch, ["take"])
    assert dataset.to_table(filter=matching, late_materialization=late, with_row_id=False) == expected
    assert sorted(taken) == names


def test_fast_search_reads_only_indexed_fragments(dataset_uri: str) -> None:
    dataset = lance_ops.write_dataset(pa.table({"id": range(10)}), dataset_uri)
    dataset.create_scalar_index("id", "BTREE")
    dataset = lance_ops.write_dataset(pa.table({"id": range(5, 15)}), dataset_uri, mode="append")
    assert dataset.to_table(filter="id > 6", fast_search=True)["id"].to_pylist() == [7, 8, 9]
    assert dataset.count_rows("id > 6", fast_search=True) == 3
    assert dataset.to_table(filter="id % 2 = 0", fast_search=True).num_rows == 10
    assert dataset.to_table(filter="id > 6", fast_search=True, use_scalar_index=False).num_rows == 11


def test_use_stats_false_ignores_statistics(dataset_uri: str, monkeypatch: pytest.MonkeyPatch) -> None:
    dataset = lance_ops.write_dataset(pa.table({"id": range(5000)}), dataset_uri, data_storage_version="0.1")
    runs: list[tuple[int, int]] = []
    read = FragmentReader.read

    def watched(self: FragmentReader, schema: Any, start: int = 0, stop: int | None = None, **options: Any) -> pa.Table:
        runs.append((start, stop or 0))
        return read(self, schema, start, stop, **options)

    monkeypatch.setattr(FragmentReader, "read", watched)
    assert dataset.to_table(filter="id = 2000")["id"].to_pylist() == [2000]
    assert set(runs) == {(1024, 2048)}
    runs.clear()
    assert dataset.to_table(filter="id = 2000", use_stats=False)["id"].to_pylist() == [2000]
    assert set(runs) == {(0, 5000)}


def test_scans_return_computed_columns(dataset: lance_ops.LanceDataset) -> None:
    columns = {"twice": "id * 2", "word": "upper(text)", "b": "st.b", "many": "id > 37", "all": "st"}
    table = dataset.to_table(columns, filter="id >= 37", with_row_id=True, order_by=[ColumnOrdering("id", False)])
    assert table.schema == pa.schema(
        {
            "twice": pa.int32(),
            "word": pa.string(),
            "b": pa.string(),
            "many": pa.bool_(),
            "all": pa.struct({"a": pa.int64(), "b": pa.string()}),
            "_rowid": pa.uint64(),
        }
    )
    assert [row["twice"] for row in table.to_pylist()] == [78, 76, 74]
    assert table.slice(0, 1).to_pylist() == [
        {"twice": 78, "word": "X" * 39, "b": "39", "many": True, "all": {"a": 39, "b": "39"}, "_rowid": 2 << 32 | 9}
    ]
    assert dataset.to_table({"where": "_rowaddr % 5"}, limit=3)["where"].to_pylist() == [0, 1, 2]
    assert dataset.to_table({"one": "1"}, limit=2).to_pylist() == [{"one": 1}] * 2
    assert dataset.to_table({}, limit=2).num_rows == 2
    assert pa.table(dataset.scanner({"id": "st.a", "a": "id"}, limit=1).to_reader()).to_pylist() == [{"id": 0, "a": 0}]
    with pytest.raises(InvalidFilter, match="no column 'nope'"):
        dataset.scanner({"x": "nope + 1"})


def test_a_filter_that_only_pyarrow_can_answer_is_answered(dataset: lance_ops.LanceDataset) -> None:
    odd = pc.bit_wise_and(pc.field("id"), 1) == 1
    expected = [row for row in range(31, 40, 2) if row % 10 != 3]
    assert dataset.to_table(filter=odd & (pc.field("id") > 30))["id"].to_pylist() == expected
    assert dataset.count_rows(odd & (pc.field("id") > 30)) == len(expected)
    with pytest.raises(UnsupportedFeature, match="bit_wise_and"):
        dataset.update({"text": "'x'"}, where=odd)


def test_the_builder_makes_the_same_scan(dataset: lance_ops.LanceDataset) -> None:
    fragments = dataset.get_fragments()[1:]
    options: dict[str, Any] = {
        "columns": ["text", "id"],
        "filter": "id > 16",
        "limit": 9,
        "offset": 2,
        "batch_size": 4,
        "batch_readahead": 2,
        "fragment_readahead": 1,
        "io_buffer_size": 1 << 20,
        "scan_in_order": False,
        "prefilter": True,
        "with_row_id": True,
        "with_row_address": True,
        "late_materialization": ["text"],
        "blob_handling": "all_binary",
        "use_stats": False,
        "use_scalar_index": False,
        "fast_search": False,
        "include_deleted_rows": True,
        "strict_batch_size": True,
        "order_by": [ColumnOrdering("id", ascending=False)],
        "disable_scoring_autoprojection": True,
    }
    expected = dataset.scanner(fragments=fragments, **options)
    built = ScannerBuilder(dataset).apply_defaults(options).with_fragments(fragments).to_scanner()
    assert list(built.to_batches()) == list(expected.to_batches())
    assert [batch.num_rows for batch in built.to_batches()] == [4, 4, 1]
    assert built.explain_plan() == expected.explain_plan()
    assert ScannerBuilder(dataset).batch_size_bytes(20).columns(["id"]).to_scanner().to_table().num_rows == 36
    with pytest.raises(InvalidInput, match="unknown option 'nprobes'"):
        ScannerBuilder(dataset).apply_defaults({"nprobes": 3})


@pytest.mark.parametrize(
    "option",
    ["nearest", "full_text_query", "index_segments"],
)
def test_unsupported_scan_options_are_refused_by_name(dataset: lance_ops.LanceDataset, option: str) -> None:
    asked: dict[str, Any] = {option: ["a"] if option == "index_segments" else {"q": b"x"}}
    with pytest.raises(UnsupportedFeature, match=f"option {option}="):
        dataset.scanner(**asked)


@pytest.mark.parametrize("option", ["batch_size", "batch_size_bytes", "batch_readahead", "io_buffer_size"])
def test_numbers_that_must_be_positive_are_checked(dataset: lance_ops.LanceDataset, option: str) -> None:
    asked: dict[str, Any] = {option: 0}
    with pytest.raises(InvalidInput, match=f"{option} must be positive, not 0"):
        dataset.scanner(**asked)


# Roaring bitmaps of one container with two values.
OUT_OF_ORDER = struct.pack("<IIHHIHH", 0x303A, 1, 0, 1, 16, 5, 3)
TOO_LONG = struct.pack("<IIHHIHHH", 0x303A, 1, 0, 1, 16, 3, 5, 0)


@pytest.mark.parametrize(
    "mask",
    [
        b"",
        b"\x01\0\0\0",
        b"\x01\0\0\0\0\0\0\0\x04\0\0\0abcd",
        b"\x01\0\0\0\0\0\0\0\x09\0\0\0abcd",
        struct.pack("<III", 1, 0, len(OUT_OF_ORDER)) + OUT_OF_ORDER,
        struct.pack("<III", 1, 0, len(TOO_LONG)) + TOO_LONG,
    ],
)
def test_an_invalid_row_address_bitmap_is_refused(dataset: lance_ops.LanceDataset, mask: bytes) -> None:
    with pytest.raises(InvalidInput, match="row_addr_allowlist is not a serialized set"):
        dataset.scanner(row_addr_allowlist=mask)


def test_options_that_exclude_each_other_are_refused(dataset: lance_ops.LanceDataset) -> None:
    with pytest.raises(InvalidInput, match="strict_batch_size and batch_size_bytes exclude each other"):
        dataset.scanner(batch_size_bytes=10, strict_batch_size=True)


def test_analyze_plan_runs_the_scan(dataset: lance_ops.LanceDataset) -> None:
    analyzed = dataset.scanner(filter="id > 30").analyze_plan().splitlines()
    assert analyzed[0].startswith("AnalyzeExec: elapsed=")
    assert analyzed[0].endswith("metrics=[output_rows=8]")
    assert "full_filter=id > 30" in analyzed[1]
    assert "output_rows=8" in dataset.scanner(filter="id > 30").analyze_plan(count_rows=True)


def test_heads_slices_and_fragments_take_the_same_options(dataset: lance_ops.LanceDataset) -> None:
    whole = dataset.to_table()
    assert dataset.head(3, columns=["id"], filter="id > 5")["id"].to_pylist() == [6, 7, 8]
    assert dataset.scanner(["id"], limit=2).head(9)["id"].to_pylist() == [0, 1]
    assert dataset.slice(4, 9) == whole.slice(4, 5)
    assert dataset.slice(4, 4).num_rows == 0
    with pytest.raises(InvalidInput, match="0 <= start <= end"):
        dataset.slice(4, 3)
    fragment = dataset.get_fragments(pc.field("id") > 3)[1]
    assert fragment.head(2)["id"].to_pylist() == [15, 16]
    ordered = fragment.to_table(["id"], order_by=[ColumnOrdering("id", False)], limit=2)
    assert ordered["id"].to_pylist() == [29, 28]
    assert sizes(fragment.scanner(dataset.schema, batch_size=10)) == [10, 4]
    with pytest.raises(UnsupportedFeature, match="another schema"):
        fragment.scanner(pa.schema({"id": pa.int64()}))


def test_to_pandas_returns_blobs_as_requested(dataset_uri: str) -> None:
    blobs = [b"one", None, b"three"]
    schema = pa.schema(
        [pa.field("id", pa.int64()), pa.field("b", pa.large_binary(), metadata={"lance-encoding:blob": "true"})]
    )
    dataset = lance_ops.write_dataset(pa.table({"id": [1, 2, 3], "b": blobs}, schema=schema), dataset_uri)
    dataset.delete("id = 1")
    lazy = dataset.to_pandas()
    assert list(lazy.columns) == ["id", "b"]
    assert lazy["b"][0] is None
    assert lazy["b"][1].read() == b"three"
    assert list(dataset.to_pandas(blob_mode="bytes")["b"]) == [None, b"three"]
    assert list(dataset.get_fragments()[0].to_pandas(["b"], blob_mode="bytes")["b"]) == [None, b"three"]
    assert list(dataset.scanner(["b"], blob_handling="all_binary").to_pandas()["b"]) == [None, b"three"]
    described = dataset.to_pandas(blob_mode="descriptions")
    assert described["b"][1]["size"] == 5
    with pytest.raises(InvalidInput, match="blob_mode 'eager' is none of lazy, bytes, descriptions"):
        dataset.to_pandas(blob_mode="eager")


def test_to_pandas_returns_the_rows(dataset: lance_ops.LanceDataset) -> None:
    frame = dataset.to_pandas(["id", "text"], "id > 35", order_by="id", split_blocks=True)
    pd.testing.assert_frame_equal(frame, dataset.to_table(["id", "text"], "id > 35").to_pandas())


def test_a_computed_column_whose_name_is_no_text_is_refused() -> None:
    dataset = lance_ops.write_dataset(pa.table({"a": [1, 2]}), "memory://surrogate")
    with pytest.raises(InvalidInput, match="surrogate"):
        dataset.to_table(columns={"\ud800": "a"})


def test_a_batch_ends_before_its_texts_are_too_many_for_one_array(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(scanner, "_MOST_BYTES", 1000)
    rows = pa.table({"text": [f"{number:0200d}" for number in range(20)]})
    dataset = lance_ops.write_dataset(rows, tmp_path / "t", max_rows_per_file=2, data_storage_version="2.0")
    batches = [*dataset.to_batches(filter="text != ''", batch_size=9)]
    assert pa.Table.from_batches(batches) == rows
    assert [batch.num_rows for batch in batches] == [4] * 5
