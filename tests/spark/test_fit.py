"""Rows cast between the table's types and Spark's shapes: pure Arrow, no session."""

from __future__ import annotations

import datetime as dt
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lance_ops.core.errors import SchemaMismatch
from lance_ops.spark.translation import fit, schema_for_spark


def there_and_back(array: pa.Array) -> pa.Array:
    """Cast to Spark's shape and back to the table's type."""
    schema = pa.schema([("x", array.type)])
    shaped = fit(pa.record_batch([array], schema=schema), schema_for_spark(schema))
    assert shaped.schema.equals(schema_for_spark(schema))
    back = fit(shaped, schema)
    back.validate(full=True)
    return back.column(0)


ARRAYS = {
    "uint8": pa.array([0, 255, None], pa.uint8()),
    "uint64": pa.array([0, 2**64 - 1, None], pa.uint64()),
    "float16": pa.array(np.array([1.5, -2.0], np.float16)),
    "large string": pa.array(["a", None, ""], pa.large_string()),
    "fixed-size binary": pa.array([b"ab", None], pa.binary(2)),
    "date64": pa.array([dt.date(1969, 12, 31), None], pa.date64()),
    "time32": pa.array([dt.time(1, 2, 3), None], pa.time32("s")),
    "duration": pa.array([dt.timedelta(seconds=3), None], pa.duration("ms")),
    "timestamp": pa.array([dt.datetime(1960, 1, 1, tzinfo=dt.UTC), None], pa.timestamp("ms", "Asia/Tokyo")),
    "decimal256": pa.array([Decimal("1.25"), None], pa.decimal256(40, 2)),
    "fixed-size list": pa.array([[1.0, 2.0], None, [None, 3.0]], pa.list_(pa.float32(), 2)),
    "fixed-size list of halves": pa.array([[1.0, 2.0], None], pa.list_(pa.float16(), 2)),
    "nested fixed-size list": pa.array([[[1, 2], None], None], pa.list_(pa.list_(pa.int64(), 2), 2)),
    "list of fixed-size lists": pa.array([[[1, 2], None], None, []], pa.list_(pa.list_(pa.int64(), 2))),
    "struct": pa.array([{"v": [1.0, 2.0]}, None, {"v": None}], pa.struct([("v", pa.list_(pa.float32(), 2))])),
    "map": pa.array([[("a", [1, 2])], None, []], pa.map_(pa.large_string(), pa.list_(pa.uint8(), 2))),
}


@pytest.mark.parametrize("name", ARRAYS)
def test_values_round_trip_through_spark_s_types(name: str) -> None:
    assert there_and_back(ARRAYS[name]).equals(ARRAYS[name])


@pytest.mark.parametrize("name", ARRAYS)
def test_values_of_a_slice_round_trip(name: str) -> None:
    part = ARRAYS[name].slice(1)
    assert there_and_back(part).to_pylist() == part.to_pylist()


@given(
    rows=st.lists(st.none() | st.lists(st.none() | st.floats(width=32, allow_nan=False), min_size=3, max_size=3)),
    start=st.integers(0, 5),
)
def test_a_list_with_nulls_becomes_a_fixed_size_list_of_as_many_rows(
    rows: list[list[float | None] | None], start: int
) -> None:
    lists = pa.array(rows, pa.list_(pa.float32())).slice(start)
    wanted = pa.schema([("x", pa.list_(pa.float32(), 3))])
    fitted = fit(pa.record_batch([lists], names=["x"]), wanted)
    assert fitted.column(0).to_pylist() == rows[start:]


def test_a_list_under_a_null_struct_may_have_any_length() -> None:
    lists = pa.array([[1.0, 2.0], [9.0]], pa.list_(pa.float32()))
    struct = pa.StructArray.from_arrays([lists], names=["v"], mask=pa.array([False, True]))
    wanted = pa.schema([("x", pa.struct([("v", pa.list_(pa.float32(), 2))]))])
    fitted = fit(pa.record_batch([struct], names=["x"]), wanted)
    assert fitted.column(0).to_pylist() == [{"v": [1.0, 2.0]}, None]


def test_instants_finer_than_a_microsecond_are_cut_downwards() -> None:
    array = pa.array([1_001, -1, None], pa.int64()).cast(pa.timestamp("ns", "UTC"))
    shaped = fit(pa.record_batch([array], names=["x"]), pa.schema([("x", pa.timestamp("us", "UTC"))]))
    assert shaped.column(0).cast(pa.int64()).to_pylist() == [1, -1, None]


@pytest.mark.parametrize("wanted", [pa.timestamp("us", "Europe/Berlin"), pa.timestamp("us")], ids=str)
def test_nanoseconds_of_an_hour_that_comes_twice_are_cut(wanted: pa.DataType) -> None:
    hours = pa.array([1_761_438_600_000_000_001 + hour * 3_600_000_000_000 for hour in range(3)], pa.int64())
    array = hours.cast(pa.timestamp("ns", "Europe/Berlin"))
    shaped = fit(pa.record_batch([array], names=["x"]), pa.schema([("x", wanted)])).column(0)
    shown = [value.replace(tzinfo=None) for value in shaped.to_pylist()]
    assert shown == [dt.datetime(2025, 10, 26, hour, 30) for hour in (2, 2, 3)]


@pytest.mark.parametrize(
    ("clock", "zone", "moment"),
    [
        (dt.date(2026, 1, 31), "America/New_York", dt.datetime(2026, 1, 31, 5)),
        (dt.date(2018, 11, 4), "America/Sao_Paulo", dt.datetime(2018, 11, 4, 3)),
        (dt.datetime(2026, 3, 29, 2, 30), "Europe/Paris", dt.datetime(2026, 3, 29, 1, 30)),
        (dt.datetime(2026, 10, 25, 2, 30), "Europe/Paris", dt.datetime(2026, 10, 25, 0, 30)),
        (dt.datetime(2026, 1, 31), "+02:00", dt.datetime(2026, 1, 30, 22)),
    ],
    ids=["a date", "a day without a midnight", "an hour that is skipped", "an hour that comes twice", "an offset"],
)
def test_a_clock_without_a_zone_is_read_in_the_zone_of_the_session(
    clock: dt.date, zone: str, moment: dt.datetime
) -> None:
    wanted = pa.schema([("x", pa.list_(pa.timestamp("ns", "UTC")))])
    fitted = fit(pa.record_batch([pa.array([[clock, None]])], names=["x"]), wanted, time_zone=zone)
    assert fitted.column(0).cast(pa.list_(pa.timestamp("us"))).to_pylist() == [[moment, None]]


def test_a_zone_that_no_list_knows_is_refused_with_the_column() -> None:
    batch = pa.record_batch([pa.array([dt.date(2026, 1, 31)])], names=["x"])
    with pytest.raises(SchemaMismatch, match="column 'x' is date32.* Moon/Tycho not found"):
        fit(batch, pa.schema([("x", pa.timestamp("us", "UTC"))]), time_zone="Moon/Tycho")


def test_columns_are_found_by_name_in_any_order() -> None:
    batch = pa.record_batch({"b": [1], "a": ["x"], "c": [None]})
    fitted = fit(batch, pa.schema([("a", pa.string()), ("b", pa.int64())]))
    assert fitted.to_pylist() == [{"a": "x", "b": 1}]


def test_struct_fields_are_found_by_name_in_any_order() -> None:
    batch = pa.record_batch({"s": [{"b": 1, "a": "x"}]})
    fitted = fit(batch, pa.schema([("s", pa.struct([("a", pa.string()), ("b", pa.int64())]))]))
    assert fitted.to_pylist() == [{"s": {"a": "x", "b": 1}}]


def test_rows_without_columns_keep_their_number() -> None:
    assert fit(pa.record_batch({"a": [1, 2, 3]}), pa.schema([])).num_rows == 3


@pytest.mark.parametrize(
    ("array", "wanted", "message"),
    [
        (pa.array([-1]), pa.uint8(), "column 'x' is int64 and does not fit uint8"),
        (pa.array([[1.0]]), pa.list_(pa.float64(), 2), "column 'x'"),
        (pa.array(["a"]), pa.int32(), "column 'x' is string and does not fit int32"),
        (pa.array([1]), pa.list_(pa.int64()), "column 'x' is int64 and does not fit list"),
        (pa.array([{"a": 1}]), pa.struct([("b", pa.int64())]), "column 'x' has fields a, not b"),
        (pa.array([[1, None]]), pa.list_(pa.field("item", pa.int64(), nullable=False)), "column 'x.item' holds nulls"),
        (pa.array([{"a": None}], pa.struct([("a", pa.int64())])), pa.struct([pa.field("a", pa.int64(), False)]), "x.a"),
    ],
)
def test_values_that_do_not_fit_are_refused_by_column_name(array: pa.Array, wanted: pa.DataType, message: str) -> None:
    with pytest.raises(SchemaMismatch, match=message):
        fit(pa.record_batch([array], names=["x"]), pa.schema([("x", wanted)]))


def test_a_missing_column_is_refused_by_its_name() -> None:
    with pytest.raises(SchemaMismatch, match="no column 'b': there are a"):
        fit(pa.record_batch({"a": [1]}), pa.schema([("b", pa.int64())]))


def test_a_child_that_allows_no_nulls_may_be_null_where_its_parent_is() -> None:
    struct = pa.array([None, {"a": 1}], pa.struct([("a", pa.int64())]))
    wanted = pa.schema([("x", pa.struct([pa.field("a", pa.int32(), nullable=False)]))])
    assert fit(pa.record_batch([struct], names=["x"]), wanted).to_pylist() == [{"x": None}, {"x": {"a": 1}}]


@pytest.mark.parametrize(
    ("array", "wanted", "stored"),
    [
        (pa.array([Decimal("1.555"), Decimal("-9.995")]), pa.decimal128(4, 2), [Decimal("1.56"), Decimal("-10.00")]),
        (pa.array([Decimal("1.7"), Decimal("-1.7")]), pa.int8(), [1, -1]),
        (pa.array([Decimal("1.5"), Decimal("0.4")]), pa.uint64(), [2, 0]),
        (pa.array([1.5, None]), pa.uint64(), [2, None]),
        (pa.array([1.9, -1.9, None]), pa.int32(), [1, -1, None]),
        (pa.array([1.005, 2.675, 1e-300, None]), pa.decimal128(10, 2), [*map(Decimal, ("1.01", "2.68", "0.00")), None]),
        (pa.array([2**53 + 1]), pa.float64(), [2.0**53]),
        (pa.array([2049]), pa.float16(), [2048.0]),
        (pa.array([[1.5], None]), pa.list_(pa.int64()), [[1], None]),
    ],
)
def test_numbers_are_rounded_where_the_caller_says_so(array: pa.Array, wanted: pa.DataType, stored: list[Any]) -> None:
    fitted = fit(pa.record_batch([array], names=["x"]), pa.schema([("x", wanted)]), rounds=True)
    assert fitted.column(0).to_pylist() == stored


@pytest.mark.parametrize(
    ("array", "wanted"),
    [
        (pa.array([Decimal("99.995")]), pa.decimal128(4, 2)),
        (pa.array([128.0]), pa.int8()),
        (pa.array([float("nan")]), pa.int64()),
        (pa.array([float("inf")]), pa.decimal128(10, 2)),
        (pa.array([1e30]), pa.decimal128(10, 2)),
        (pa.array([Decimal("128.5")]), pa.int8()),
        (pa.array([-1.0]), pa.uint64()),
    ],
)
def test_numbers_that_are_too_large_when_rounded_are_refused(array: pa.Array, wanted: pa.DataType) -> None:
    with pytest.raises(SchemaMismatch, match="column 'x' is .* and does not fit"):
        fit(pa.record_batch([array], names=["x"]), pa.schema([("x", wanted)]), rounds=True)


@pytest.mark.parametrize(
    ("array", "wanted", "message"),
    [
        (pa.array(["0x10"]), pa.int32(), "hexadecimal"),
        (pa.array([b"5"]), pa.int64(), "no bytes to a column of numbers"),
        (pa.array([5], pa.duration("us")), pa.int64(), "no intervals to a column of numbers"),
        (pa.array([5], pa.int32()), pa.time32("s"), "no numbers to a column of times"),
        (pa.array([5], pa.int64()), pa.dictionary(pa.int8(), pa.date32()), "date_from_unix_date"),
        (pa.array([1.0]), pa.string(), "CAST.* AS STRING"),
        (pa.array([Decimal("0.0000001")]), pa.large_string(), "CAST.* AS STRING"),
        (pa.array([4_000_000], pa.int32()).cast(pa.date32()), pa.string(), "CAST.* AS STRING"),
        (pa.array([dt.time(1)], pa.time64("us")), pa.string(), "CAST.* AS STRING"),
    ],
)
def test_values_that_arrow_would_store_as_others_are_refused(
    array: pa.Array, wanted: pa.DataType, message: str
) -> None:
    with pytest.raises(SchemaMismatch, match=f"column 'x' is .* and does not fit .*{message}"):
        fit(pa.record_batch([array], names=["x"]), pa.schema([("x", wanted)]))


@pytest.mark.parametrize(
    ("array", "text"),
    [
        (pa.array([-7]), "-7"),
        (pa.array([True]), "true"),
        (pa.array([Decimal("0.000001")]), "0.000001"),
        (pa.array([dt.date(1, 1, 1)]), "0001-01-01"),
        (pa.array(["é".encode()]), "é"),
    ],
)
def test_values_that_arrow_spells_as_spark_does_become_text(array: pa.Array, text: str) -> None:
    assert fit(pa.record_batch([array], names=["x"]), pa.schema([("x", pa.string())])).to_pylist() == [{"x": text}]


@pytest.mark.parametrize(
    ("values", "kind", "fits"),
    [
        ([None, -2.25, *(number / 100 for number in range(100))], pa.float64(), True),
        ([None, -2.25, *(number / 100 for number in range(100))], pa.float32(), True),
        ([], pa.float64(), True),
        ([1.005], pa.float64(), False),
        ([1.126], pa.float32(), False),
    ],
)
def test_a_float_that_decimals_would_round_is_refused_unless_numbers_are_rounded(
    values: list[float | None], kind: pa.DataType, fits: bool
) -> None:
    given, wanted = pa.record_batch([pa.array(values, kind)], names=["x"]), pa.schema([("x", pa.decimal128(10, 2))])
    if fits:
        assert fit(given, wanted).equals(fit(given, wanted, rounds=True))
        return
    with pytest.raises(SchemaMismatch, match="'x' is .* would be rounded"):
        fit(given, wanted)
