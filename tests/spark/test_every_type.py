"""Every type that a table holds, through Spark and back, in one job; and the page that lists them."""

from __future__ import annotations

import datetime as dt
import re
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest

from lance_ops.api import blob_array, dataset, write_dataset
from lance_ops.arrow import bfloat16_array
from lance_ops.core.schema import logical_type_of
from lance_ops.core.schema.logical_types import _SIMPLE
from lance_ops.errors import SchemaMismatch, UnsupportedFeature
from lance_ops.spark.data_source import SourceOptions, plan_write
from lance_ops.spark.translation import fit, schema_for_spark

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

MOMENT = dt.datetime(2026, 1, 2, 3, 4, 5, 678901)
UTC = MOMENT.replace(tzinfo=dt.UTC)
DAY, CLOCK, TIME = dt.date(2026, 1, 2), dt.time(3, 4, 5), dt.timedelta(days=1, seconds=2)
BIG = Decimal("12345678901234567890.12")

COLUMNS: list[tuple[pa.DataType, list[Any]]] = [
    (pa.null(), [None]),
    (pa.bool_(), [True]),
    (pa.int8(), [-(2**7)]),
    (pa.int16(), [-(2**15)]),
    (pa.int32(), [-(2**31)]),
    (pa.int64(), [-(2**63)]),
    (pa.uint8(), [2**8 - 1]),
    (pa.uint16(), [2**16 - 1]),
    (pa.uint32(), [2**32 - 1]),
    (pa.uint64(), [2**64 - 1]),
    (pa.float16(), [1.5]),
    (pa.float32(), [1.25]),
    (pa.float64(), [1e300]),
    (pa.decimal128(22, 2), [BIG]),
    (pa.decimal256(38, 2), [BIG]),
    (pa.string(), ["é"]),
    (pa.large_string(), ["large"]),
    (pa.binary(), [b"\x00"]),
    (pa.large_binary(), [b"\xff"]),
    (pa.binary(3), [b"abc"]),
    (pa.date32(), [DAY]),
    (pa.date64(), [DAY]),
    (pa.time32("s"), [CLOCK]),
    (pa.time32("ms"), [CLOCK]),
    (pa.time64("us"), [CLOCK]),
    (pa.time64("ns"), [CLOCK]),
    (pa.timestamp("s"), [MOMENT.replace(microsecond=0)]),
    (pa.timestamp("ms", "UTC"), [UTC.replace(microsecond=678000)]),
    (pa.timestamp("us", "Europe/Rome"), [UTC]),
    (pa.timestamp("ns"), [MOMENT]),
    (pa.duration("s"), [TIME]),
    (pa.duration("ms"), [TIME]),
    (pa.duration("us"), [TIME]),
    (pa.duration("ns"), [TIME]),
    (pa.dictionary(pa.int8(), pa.string()), ["word"]),
    (pa.dictionary(pa.int8(), pa.binary()), [b"word"]),
    (pa.dictionary(pa.int16(), pa.int64()), [2**40]),
    (pa.dictionary(pa.int8(), pa.float64()), [0.5]),
    (pa.dictionary(pa.int8(), pa.bool_()), [True]),
    (pa.list_(pa.int32()), [[1, None]]),
    (pa.large_list(pa.string()), [["a"]]),
    (pa.list_(pa.float32(), 2), [[0.5, 1.5]]),
    (pa.list_(pa.float16(), 2), [[0.5, 1.5]]),
    (pa.list_(pa.dictionary(pa.int32(), pa.int64())), [[5, None, 7, 5]]),
    (pa.struct([("a", pa.uint8()), ("b", pa.list_(pa.float32(), 2))]), [{"a": 255, "b": [1.0, 2.0]}]),
    (pa.map_(pa.string(), pa.int32()), [[("k", 1)]]),
    (pa.json_(), ['{"k": 1}']),
]


def every_type() -> pa.Table:
    """One column of each type, with a null between two values; blobs, bfloat16, and metadata on a field."""
    columns = [pa.array([*values, None, *values], kind) for kind, values in COLUMNS]
    fields = [pa.field(f"c{at}", kind) for at, (kind, _) in enumerate(COLUMNS)]
    fields[4] = fields[4].with_metadata({"comment": "why", "lance-encoding:compression": "zstd"})
    brain = bfloat16_array([1.5, None, -0.25])
    vectors = pa.FixedSizeListArray.from_arrays(bfloat16_array([0.5, 1.5] * 3), 2)
    for name, column in (("blob", blob_array([b"blob", None, b""])), ("brain", brain), ("brains", vectors)):
        columns.append(column)
        fields.append(pa.field(name, column.type))
    return pa.Table.from_arrays(columns, schema=pa.schema(fields))


def logical_kinds() -> set[str]:
    storage = [kind.storage_type if isinstance(kind, pa.BaseExtensionType) else kind for kind, _ in COLUMNS]
    return {logical_type_of(kind, "x").split(":")[0] for kind in storage}


def test_the_columns_have_every_type_of_the_format() -> None:
    simple = {name.split(":")[0] for name in _SIMPLE} - {"json"}  # whose storage here is text
    nested = {"struct", "list", "large_list", "map", "fixed_size_list", "fixed_size_binary", "dict", "decimal"}
    assert logical_kinds() >= simple | nested | {"timestamp"}


@pytest.mark.spark
def test_every_type_goes_through_spark_and_comes_back_unchanged(spark: SparkSession, tmp_path: Path) -> None:
    source, copy, new = (str(tmp_path / name) for name in ("source", "copy", "new"))
    write_dataset(every_type(), source, data_storage_version="2.2")
    write_dataset(every_type().slice(0, 0), copy, data_storage_version="2.2")
    frame = spark.read.format("lance").option("blob_handling", "all_binary").load(source)
    frame.write.format("lance").mode("append").save(copy)
    before, after = dataset(source), dataset(copy)
    assert after.version == 2
    assert after.schema.equals(before.schema, check_metadata=True)
    frame.write.format("lance").mode("append").save(new)
    fresh = dataset(new)
    (first,) = fresh.take_blobs("blob", indices=[0])
    assert first is not None and first.readall() == b"blob"
    for at, (kind, _) in enumerate(COLUMNS):
        is_same = schema_for_spark(pa.schema([("x", kind)])).field("x").type == kind
        if is_same or pa.types.is_float16(kind) or pa.types.is_fixed_size_list(kind):
            assert fresh.schema.field(f"c{at}").equals(before.schema.field(f"c{at}"), check_metadata=True), kind
    assert before.to_table(blob_handling="all_binary").equals(after.to_table(blob_handling="all_binary"))
    for name in ("brain", "brains"):
        assert fresh.schema.field(name).equals(before.schema.field(name))
        assert fresh.to_table([name]).equals(before.to_table([name]))


NS = 1_234_567_890_123_456_789
FINE: list[tuple[pa.DataType, list[int], list[int]]] = [
    (pa.timestamp("ns"), [NS, -1], [NS - 789, -1000]),
    (pa.timestamp("ns", "UTC"), [NS, -1], [NS - 789, -1000]),
    (pa.duration("ns"), [NS, -1999], [NS - 789, -1000]),
    (pa.time64("ns"), [3_723_000_000_789, 1], [3_723_000_000_789, 1]),
]
"""Types with values in nanoseconds, and what they are after a way through Spark and back."""


@pytest.mark.spark
def test_nanoseconds_are_cut_to_microseconds_except_those_of_times(spark: SparkSession, tmp_path: Path) -> None:
    source, copy = str(tmp_path / "source"), str(tmp_path / "copy")
    rows = pa.table({f"c{at}": pa.array(values, kind) for at, (kind, values, _) in enumerate(FINE)})
    write_dataset(rows, source)
    write_dataset(rows.slice(0, 0), copy)
    frame = spark.read.format("lance").load(source)
    (shown, _) = frame.collect()
    assert shown["c0"] == dt.datetime(2009, 2, 13, 23, 31, 30, 123456)
    assert shown["c2"] == dt.timedelta(microseconds=NS // 1000)
    frame.write.format("lance").mode("append").save(copy)
    after = dataset(copy).to_table()
    assert after.schema == rows.schema
    for at, (_, _, cut) in enumerate(FINE):
        assert after[f"c{at}"].cast(pa.int64()).to_pylist() == cut, FINE[at][0]


@pytest.mark.spark
@pytest.mark.parametrize("version", ["2.0", "2.1", "2.2"])
def test_a_marked_column_of_bytes_is_read_as_bytes_before_2_2_and_stays_a_blob(
    spark: SparkSession, tmp_path: Path, version: str
) -> None:
    marked = pa.schema([pa.field("b", pa.large_binary(), metadata={"lance-encoding:blob": "true"})])
    rows = pa.table({"b": [b"one", None, b""]}, schema=marked)
    source, copy, new = (str(tmp_path / name) for name in ("source", "copy", "new"))
    before = write_dataset(rows, source, data_storage_version=version)
    write_dataset(rows.slice(0, 0), copy, data_storage_version=version)
    read = spark.read.format("lance")
    assert read.load(source).schema["b"].dataType.typeName() == ("struct" if version == "2.2" else "binary")
    frame = (read.option("blob_handling", "all_binary") if version == "2.2" else read).load(source)
    assert [row.b for row in frame.collect()] == [b"one", None, b""]
    frame.write.format("lance").mode("append").save(copy)
    frame.write.format("lance").option("data_storage_version", version).mode("append").save(new)
    for made in (dataset(copy), dataset(new)):
        assert made.schema.equals(before.schema, check_metadata=True)
        assert made.to_table(blob_handling="all_binary") == before.to_table(blob_handling="all_binary")


def test_types_that_spark_cannot_hold_are_refused_by_the_column_s_name() -> None:
    for kind, message in ((pa.month_day_nano_interval(), "interval"), (pa.decimal128(5, -2), "decimal")):
        with pytest.raises(UnsupportedFeature, match=f"column 'x'.*{message}"):
            schema_for_spark(pa.schema([("x", kind)]))
    long = pa.record_batch({"x": pa.array([Decimal("1" * 40)], pa.decimal256(40, 0))})
    with pytest.raises(SchemaMismatch, match="column 'x'"):
        fit(long, schema_for_spark(long.schema))


def test_a_column_of_blobs_stays_one_when_bytes_overwrite_it(dataset_uri: str) -> None:
    write_dataset(pa.table({"b": blob_array([b"old"])}), dataset_uri, data_storage_version="2.2")
    rows = pa.record_batch({"b": [b"new"]})
    plan = plan_write(SourceOptions.parse({"path": dataset_uri}), rows.schema, "overwrite")
    plan.commit(plan.write([rows]))
    (blob,) = dataset(dataset_uri).take_blobs("b", indices=[0])
    assert blob is not None and blob.readall() == b"new"


def test_the_page_lists_every_type() -> None:
    page = (Path(__file__).parents[2] / "docs/spark.md").read_text()
    table = page.partition("\n## Types\n")[2].partition("\n## ")[0]
    listed = set(re.findall(r"`([a-z0-9_]+)`", table))
    words = {str(kind).partition("[")[0].partition("(")[0].partition("<")[0] for kind, _ in COLUMNS}
    assert words - {"extension"} <= listed, words - listed


def test_more_different_values_than_a_dictionary_s_indices_can_count_are_refused_by_the_column_s_name() -> None:
    schema = pa.schema([("x", pa.dictionary(pa.int8(), pa.int64()))])
    fitted = fit(pa.record_batch({"x": pa.array([*range(128), None, 0], pa.int64())}), schema)
    assert fitted["x"].to_pylist() == [*range(128), None, 0]
    with pytest.raises(SchemaMismatch, match="column 'x' is int64"):
        fit(pa.record_batch({"x": pa.array(range(129), pa.int64())}), schema)
