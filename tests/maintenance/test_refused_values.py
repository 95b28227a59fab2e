"""Values of raw files that a table cannot hold as they are refuse their own batch, and the error names the file."""

from __future__ import annotations

from dataclasses import replace
from datetime import date, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.feather
import pyarrow.parquet as pq
import pytest

import lance_ops
from lance_ops.errors import SchemaMismatch
from lance_ops.maintenance.ingest import (
    BadBatches,
    IngestBatch,
    IngestMode,
    IngestOptions,
    IngestResult,
    MissingColumns,
    RawFile,
    RawReading,
    ingest,
)
from lance_ops.maintenance.ingest.running.value_checks import ValueChecks

OPTIONS = IngestOptions(bad_batches=BadBatches.SET_ASIDE, reading=RawReading(isolated=False))
UPSERT = replace(OPTIONS, mode=IngestMode.UPSERT, keys=("id",))
HISTORY = replace(OPTIONS, mode=IngestMode.HISTORY, keys=("id",))


def raw(path: Path) -> IngestBatch:
    return IngestBatch(path.stem, (RawFile(str(path), path.stat().st_size, "t"),))


def parquet(folder: Path, name: str, table: pa.Table) -> IngestBatch:
    pq.write_table(table, folder / f"{name}.parquet")
    return raw(folder / f"{name}.parquet")


def text(folder: Path, name: str, content: str) -> IngestBatch:
    (folder / name).write_text(content)
    return raw(folder / name)


def refused(uri: str, options: IngestOptions, *batches: IngestBatch) -> str:
    """Ingest the batches, of which `bad` is set aside and the others are not; return the reason."""
    found: IngestResult = ingest(uri, batches, options=options)
    assert (sorted(found.refused), found.ingested) == (
        ["bad"],
        tuple(each.key for each in batches if each.key != "bad"),
    )
    return found.refused["bad"]


def test_different_keys_that_a_cast_makes_equal_are_refused(tmp_path: Path, dataset_uri: str) -> None:
    schema = pa.schema({"id": pa.decimal128(10, 2), "v": pa.string()})
    lance_ops.write_dataset(schema.empty_table(), dataset_uri)
    bad = parquet(tmp_path, "bad", pa.table({"id": [1.001, 1.002], "v": ["a", "b"]}))
    good = parquet(tmp_path, "good", pa.table({"id": [1.25, 2.0], "v": ["c", "d"]}))
    reason = refused(dataset_uri, UPSERT, bad, good)
    assert "bad.parquet: key 'id' is decimal128(10, 2) in the table and double in the source" in reason
    assert lance_ops.dataset(dataset_uri).to_table()["id"].to_pylist() == [Decimal("1.25"), Decimal("2.00")]
    with pytest.raises(SchemaMismatch, match=r"bad\.parquet: key 'id'"):
        ingest(dataset_uri, [bad], options=replace(UPSERT, bad_batches=BadBatches.REFUSE))


def test_changes_of_a_history_at_two_times_of_one_day_are_refused(tmp_path: Path, dataset_uri: str) -> None:
    schema = pa.schema({"id": pa.int64(), "v": pa.string(), "valid_from": pa.date32()})
    good = parquet(tmp_path, "good", pa.table({"id": [7], "v": ["a"], "valid_from": [date(2026, 1, 1)]}))
    moments = [datetime(2026, 1, 2, 8), datetime(2026, 1, 2, 17)]
    bad = parquet(tmp_path, "bad", pa.table({"id": [7, 7], "v": ["b", "c"], "valid_from": moments}))
    reason = refused(dataset_uri, replace(HISTORY, schema=schema), good, bad)
    assert "bad.parquet: key 'valid_from' is date32[day] in the table and timestamp" in reason
    assert "2026-01-02 08:00:00" in reason
    assert lance_ops.dataset(dataset_uri).to_table()["v"].to_pylist() == ["a"]


def test_text_that_is_no_json_refuses_its_own_batch(tmp_path: Path, dataset_uri: str) -> None:
    lance_ops.write_dataset(pa.table({"x": [0], "j": pa.array(["{}"], pa.json_())}), dataset_uri)
    bad = text(tmp_path, "bad.csv", 'x,j\n1,{"a":\n')
    assert "bad.csv: column 'j':" in refused(dataset_uri, OPTIONS, text(tmp_path, "good.csv", "x,j\n2,[1]\n"), bad)
    assert lance_ops.dataset(dataset_uri).count_rows() == 2


def test_a_blob_with_bytes_and_a_uri_refuses_its_own_batch(tmp_path: Path, dataset_uri: str) -> None:
    def blobs(name: str, value: dict[str, Any]) -> IngestBatch:
        kind = pa.struct([("data", pa.large_binary()), ("uri", pa.string())])
        field = pa.field("b", kind, metadata={"ARROW:extension:name": "lance.blob.v2"})
        pyarrow.feather.write_feather(pa.table([pa.array([value], kind)], pa.schema([field])), tmp_path / name)
        return raw(tmp_path / name)

    lance_ops.write_dataset(pa.table({"b": lance_ops.blob_array([b"x"])}), dataset_uri, data_storage_version="2.2")
    both = blobs("bad.arrow", {"data": b"a", "uri": "memory://u"})
    reason = refused(dataset_uri, OPTIONS, both, blobs("good.arrow", {"data": b"b", "uri": None}))
    assert "bad.arrow: column 'b': a blob has either data or a uri" in reason
    assert lance_ops.dataset(dataset_uri).count_rows() == 2


def test_an_upsert_of_a_file_without_a_column_makes_it_null_unless_missing_columns_are_refused(
    tmp_path: Path, dataset_uri: str
) -> None:
    lance_ops.write_dataset(pa.table({"id": [1], "v": ["kept"]}), dataset_uri)
    bad = parquet(tmp_path, "bad", pa.table({"id": [1]}))
    reason = refused(dataset_uri, replace(UPSERT, missing_columns=MissingColumns.REFUSE), bad)
    assert "bad.parquet has no column 'v', and missing columns are not filled" in reason
    ingest(dataset_uri, [bad], options=UPSERT)
    assert lance_ops.dataset(dataset_uri).to_table().to_pylist() == [{"id": 1, "v": None}]


BIG, HALF, MORNING = 1e300, 70000.0, datetime(2026, 1, 2, 8)


@pytest.mark.parametrize(
    ("given", "wanted", "reason"),
    [
        (pa.array([1.5, None, -BIG]), pa.float32(), "column 'x' is float in the table and double .*: -1e\\+300 would"),
        (pa.array([float("inf"), BIG]), pa.float32(), "1e\\+300 would become infinite"),
        (pa.array([HALF], pa.float32()), pa.float16(), "70000.* would become infinite"),
        (pa.array([Decimal(HALF)], pa.decimal128(10, 2)), pa.float16(), "70000.* would become infinite"),
        (pa.array([70000]), pa.float16(), "70000.* would become infinite"),
        (pa.array([10**50], pa.decimal256(60, 0)), pa.float32(), "10{50} would become infinite"),
        (pa.array([[1.0], None, [0.0, BIG]]), pa.list_(pa.float32()), "column 'x' .*1e"),
        (pa.array([{"a": 1, "b": BIG}]), pa.struct({"b": pa.float32(), "a": pa.int8()}), r"column 'x\.b' .*1e"),
        (pa.array([[("k", BIG)]], pa.map_("string", "double")), pa.map_("string", "float"), r"column 'x\.value' .*1e"),
        (pa.array([BIG]).dictionary_encode(), pa.float32(), "1e"),
        (pa.array([MORNING, None]), pa.date32(), "2026-01-02 08:00:00 would lose its time of day"),
        (
            pa.array([MORNING], pa.timestamp("s", "Asia/Tokyo")),
            pa.date32(),
            "2026-01-02 17:00:00.* lose its time of day",
        ),
        (pa.array([[MORNING]]), pa.list_(pa.date64()), "lose its time of day"),
    ],
    ids=str,
)
def test_a_value_that_a_cast_changes_is_refused(given: pa.Array, wanted: pa.DataType, reason: str) -> None:
    with pytest.raises(SchemaMismatch, match=reason):
        ValueChecks(pa.schema({"x": wanted}), ()).check(pa.record_batch({"x": given}))


@pytest.mark.parametrize(
    ("given", "wanted"),
    [
        (pa.array([0.1, 3.4e38, None, float("nan"), float("inf"), -float("inf")]), pa.float32()),
        (pa.array([float(2**128 - 2**103 - 2**75)]), pa.float32()),
        (pa.array([], pa.float64()), pa.float16()),
        (pa.StructArray.from_arrays([[BIG]], ["a"], mask=pa.array([True])), pa.struct({"a": pa.float32()})),
        (pa.array([datetime(2026, 1, 2), None]), pa.date32()),
        (pa.array([datetime(2026, 1, 1, 15)], pa.timestamp("ns", "Asia/Tokyo")), pa.date32()),
        (pa.array([Decimal(7), None], pa.decimal128(38, 0)), pa.float32()),
        (pa.array([BIG, 1.0])[1:], pa.float32()),
        (pa.array([BIG]), pa.float64()),
        (pa.array([BIG]), pa.string()),
    ],
    ids=str,
)
def test_a_value_that_a_cast_keeps_or_rounds_is_not_refused(given: pa.Array, wanted: pa.DataType) -> None:
    ValueChecks(pa.schema({"x": wanted}), ()).check(pa.record_batch({"x": given}))


def test_a_changed_value_refuses_its_own_batch(tmp_path: Path, dataset_uri: str) -> None:
    lance_ops.write_dataset(pa.table({"x": pa.array([], pa.float32())}), dataset_uri)
    good, bad = (parquet(tmp_path, name, pa.table({"x": [x]})) for name, x in (("good", 0.1), ("bad", BIG)))
    assert "bad.parquet: column 'x' is float in the table" in refused(dataset_uri, OPTIONS, good, bad)
    assert lance_ops.dataset(dataset_uri).to_table()["x"].to_pylist() == pa.array([0.1], pa.float32()).to_pylist()
