from __future__ import annotations

import struct
from bisect import bisect_left, bisect_right
from datetime import date, datetime, time, timedelta
from decimal import Decimal

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lance_ops.indices.sort_keys import Side, is_sortable, key_of, rank_in, ranks_in, sort_indices, sort_keys


def in_order(values: pa.Array) -> pa.Array:
    return values.take(sort_indices(sort_keys(values)))


@pytest.mark.parametrize("width", [16, 32, 64])
def test_floats_sort_by_the_total_order_of_their_bits(width: int) -> None:
    kind, exponent = {16: ("e", 5), 32: ("f", 8), 64: ("d", 11)}[width]
    sign, infinity = 1 << width - 1, (1 << exponent) - 1 << width - 1 - exponent
    one = struct.unpack(f"<{_UNSIGNED[width]}", struct.pack(f"<{kind}", 1.0))[0]
    ordered = [sign | infinity | 1, sign | infinity, sign | one, sign | 1, sign, 0, 1, one, infinity, infinity | 1]
    bits = np.array([*ordered[::-1]], dtype=f"u{width // 8}")
    values = pa.array(bits.view(f"f{width // 8}"))
    assert in_order(values).view(pa.from_numpy_dtype(bits.dtype)).to_pylist() == ordered


_UNSIGNED = {16: "H", 32: "I", 64: "Q"}


@pytest.mark.parametrize(
    ("value_type", "ordered"),
    [
        (pa.bool_(), [None, False, True]),
        (pa.int8(), [None, -128, -1, 0, 127]),
        (pa.uint64(), [None, 0, 1, 2**63, 2**64 - 1]),
        (pa.float32(), [None, -1.5, 0.5]),
        (pa.decimal128(10, 2), [None, Decimal("-3.00"), Decimal("1.20")]),
        (pa.decimal256(60, 0), [None, Decimal(-(10**50)), Decimal(0), Decimal(10**50)]),
        (pa.date32(), [None, date(1960, 1, 1), date(2020, 1, 1)]),
        (pa.date64(), [None, date(1960, 1, 1), date(2020, 1, 1)]),
        (pa.time32("s"), [None, time(0), time(23, 59)]),
        (pa.time64("us"), [None, time(0), time(23, 59, 59, 1)]),
        (pa.timestamp("us"), [None, datetime(1960, 1, 1), datetime(2020, 1, 1)]),
        (pa.duration("ms"), [None, timedelta(seconds=-1), timedelta(0)]),
        (pa.string(), [None, "", "Z", "a", "a\0", "b", "é", "\uffff", "😀"]),
        (pa.large_string(), [None, "a", "é"]),
        (pa.binary(), [None, b"", b"a", b"\xff"]),
        (pa.large_binary(), [None, b"a", b"\xff"]),
        (pa.binary(2), [None, b"aa", b"ab"]),
    ],
    ids=lambda value: str(value) if isinstance(value, pa.DataType) else "",
)
def test_values_of_each_type_sort_nulls_first(value_type: pa.DataType, ordered: list[object]) -> None:
    assert is_sortable(value_type)
    values = pa.array(ordered[::-1], value_type)
    assert in_order(values).to_pylist() == ordered
    keys = sort_keys(pa.array(ordered, value_type))
    for position, value in enumerate(ordered[1:], start=1):
        key = key_of(pa.scalar(value, value_type))
        assert keys[position].as_py() == key
        assert (rank_in(keys, key, "left"), rank_in(keys, key, "right")) == (position, position + 1)


@pytest.mark.parametrize(
    "value_type",
    [
        pa.null(),
        pa.list_(pa.int8()),
        pa.struct([]),
        pa.month_day_nano_interval(),
        pa.dictionary(pa.int8(), pa.string()),
    ],
    ids=str,
)
def test_other_types_are_not_sortable(value_type: pa.DataType) -> None:
    assert not is_sortable(value_type)


def test_a_timestamp_keeps_its_nanoseconds() -> None:
    assert key_of(pa.scalar(1_600_000_000_000_000_001, pa.timestamp("ns", "UTC"))) == 1_600_000_000_000_000_001


def test_equal_values_keep_their_order() -> None:
    assert sort_indices(pa.array([1, None, 1, None, 0, 1])).to_pylist() == [1, 3, 4, 0, 2, 5]


@given(st.lists(st.none() | st.integers(-5, 5)), st.none() | st.integers(-6, 6))
def test_ranks_count_the_rows_before_a_key(values: list[int | None], key: int | None) -> None:
    keys = in_order(pa.array(values, pa.int64()))
    as_tuples = [(value is not None, value or 0) for value in keys.to_pylist()]
    needle = (key is not None, key or 0)
    assert rank_in(keys, key, "left") == bisect_left(as_tuples, needle)
    assert rank_in(keys, key, "right") == bisect_right(as_tuples, needle)


@given(st.lists(st.none() | st.integers(-5, 5)), st.lists(st.integers(-6, 6)), st.sampled_from(["left", "right"]))
def test_many_ranks_are_those_of_each(values: list[int | None], wanted: list[int], side: Side) -> None:
    for kind, spell in ((pa.int16(), int), (pa.string(), str)):
        keys = sort_keys(in_order(pa.array([None if value is None else spell(value) for value in values], kind)))
        asked = [key_of(pa.scalar(spell(value), kind)) for value in wanted]
        assert ranks_in(keys, asked, side) == [rank_in(keys, key, side) for key in asked]
