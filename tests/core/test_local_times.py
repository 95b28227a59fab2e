"""Times that clocks show become moments, also in the hours of a change."""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta
from zoneinfo import ZoneInfo

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lance_ops.core.local_times import moments_of

ZONES = ("Europe/Berlin", "America/New_York", "Australia/Lord_Howe", "Africa/Casablanca", "UTC")


@pytest.mark.parametrize("unit", ["s", "ms", "us", "ns"])
@given(
    st.sampled_from(ZONES),
    st.lists(st.datetimes(datetime(1980, 1, 1), datetime(2035, 1, 1)).map(lambda each: each.replace(microsecond=0))),
    st.sampled_from((datetime(2026, 3, 29, 2), datetime(2026, 10, 25, 2), datetime(2026, 4, 5, 1, 30))),
    st.lists(st.integers(-180, 180)),
)
def test_they_are_python_s_of_the_first_fold(
    unit: str, zone: str, clocks: list[datetime], change: datetime, minutes: list[int]
) -> None:
    shown = [*clocks, *(change + timedelta(minutes=each) for each in minutes)]
    found = moments_of(pa.array(shown, pa.timestamp(unit)), zone)
    assert found.type == pa.timestamp(unit, "UTC")
    known = ZoneInfo(zone)
    expected = [each.replace(tzinfo=known, fold=0).astimezone(UTC) for each in shown]
    assert [each.to_pydatetime() if unit == "ns" else each for each in found.to_pylist()] == expected


def test_a_date_is_the_moment_at_which_it_begins() -> None:
    (moment,) = moments_of(pa.array([date(2026, 7, 1)]), "Europe/Berlin").to_pylist()
    assert moment == datetime(2026, 6, 30, 22, tzinfo=UTC)
