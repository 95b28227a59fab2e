"""Instants, days and durations of different units compare as they are, also beyond the range of one unit."""

from __future__ import annotations

import datetime as dt

import pyarrow as pa
import pyarrow.compute as pc
import pytest

from lance_ops.core.predicate import parse_filter

_SENTINELS = {  # the first and the last second of the years 1 to 9999, and the least and the greatest nanosecond
    "s": [-62_135_596_800, 253_402_300_799, 0, 0, -1, -2, 1, None, 0],
    "ns": [-(2**63), 2**63 - 1, 1, 0, -1, -(10**9), -1, 0, None],
}


@pytest.mark.parametrize("op", ["=", "!=", "<", "<=", ">", ">="])
@pytest.mark.parametrize(
    ("coarse", "fine"),
    [
        (pa.timestamp("s"), pa.timestamp("ns")),
        (pa.timestamp("s", "UTC"), pa.timestamp("ns", "Europe/Paris")),
        (pa.timestamp("s", "UTC"), pa.timestamp("ns")),
        (pa.timestamp("ms"), pa.timestamp("ns")),
        (pa.duration("s"), pa.duration("ns")),
        (pa.duration("us"), pa.duration("ns")),
    ],
)
def test_instants_compare_also_beyond_the_range_of_the_finer_unit(
    coarse: pa.DataType, fine: pa.DataType, op: str
) -> None:
    length = {"s": 10**9, "ms": 10**6, "us": 10**3}[coarse.unit]
    ticks = [None if second is None else second * 10**9 // length for second in _SENTINELS["s"]]
    rows = pa.record_batch({"a": pa.array(ticks, coarse), "b": pa.array(_SENTINELS["ns"], fine)})
    known = {"=": "__eq__", "!=": "__ne__", "<": "__lt__", "<=": "__le__", ">": "__gt__", ">=": "__ge__"}[op]
    expected = [
        None if left is None or right is None else getattr(left * length, known)(right)
        for left, right in zip(ticks, _SENTINELS["ns"], strict=True)
    ]
    mirrored = {"<": ">", "<=": ">=", ">": "<", ">=": "<="}.get(op, op)
    assert parse_filter(f"a {op} b", rows.schema).mask(rows).to_pylist() == expected
    assert parse_filter(f"b {mirrored} a", rows.schema).mask(rows).to_pylist() == expected


def test_days_compare_with_nanoseconds_of_other_centuries() -> None:
    days = pa.array([dt.date(9999, 12, 31), dt.date(1, 1, 1), dt.date(1970, 1, 1), dt.date(1970, 1, 1)])
    rows = pa.record_batch({"day": days, "at": pa.array([0, 0, -1, 0], pa.timestamp("ns"))})
    assert parse_filter("day > at", rows.schema).mask(rows).to_pylist() == [True, False, True, False]
    assert parse_filter("day = at", rows.schema).mask(rows).to_pylist() == [False, False, False, True]


@pytest.mark.parametrize("ticks", [2**63 - 1, -(2**63), 10**13, 5, 0, -1])
@pytest.mark.parametrize("unit", ["s", "ms", "us", "ns"])
def test_a_duration_of_any_length_survives_a_round_trip_through_sql(unit: str, ticks: int) -> None:
    rows = pa.record_batch({"d": pa.array([ticks, ticks, None, 1], pa.duration(unit))})
    column, value = pc.field("d"), rows["d"][0]
    for condition in (column == value, column < value, column.isin(rows["d"])):
        predicate = parse_filter(condition, rows.schema)
        again = parse_filter(predicate.to_sql(), rows.schema)
        assert again == predicate
        assert again.mask(rows).to_pylist() == predicate.mask(rows).to_pylist()
