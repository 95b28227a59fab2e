"""`date_trunc` gives the same moments as the reference where a clock goes back or skips a time."""

from __future__ import annotations

from datetime import datetime, timedelta
from pathlib import Path

import lance
import pyarrow as pa
import pytest

import lance_ops

UNITS = ("second", "minute", "hour", "day", "week", "month", "quarter", "year")


@pytest.mark.interop
@pytest.mark.parametrize(
    ("zone", "begin"),
    [
        pytest.param("Europe/Berlin", datetime(2025, 10, 25, 20), id="an hour comes twice"),
        pytest.param("Europe/Berlin", datetime(2025, 3, 29, 20), id="an hour is skipped"),
        pytest.param("America/Havana", datetime(2025, 11, 2, 1), id="midnight comes twice"),
        pytest.param("America/Sao_Paulo", datetime(2018, 11, 3, 20), id="midnight is skipped"),
        pytest.param("Australia/Lord_Howe", datetime(2025, 4, 5, 10), id="half an hour comes twice"),
        pytest.param("Asia/Kathmandu", datetime(1985, 12, 31, 15), id="a quarter of an hour is skipped"),
    ],
)
def test_a_unit_of_the_clock_begins_when_it_does_in_the_reference(zone: str, begin: datetime, tmp_path: Path) -> None:
    moments = pa.array([begin + timedelta(minutes=17 * step) for step in range(60)], pa.timestamp("us", "UTC"))
    lance.write_dataset(pa.table({"t": moments.cast(pa.timestamp("us", zone))}), tmp_path / "t.lance")
    begun = {unit: f"date_trunc('{unit}', t)" for unit in UNITS}
    ours, theirs = (
        opened.scanner(columns=begun).to_table()
        for opened in (lance_ops.dataset(tmp_path / "t.lance"), lance.dataset(tmp_path / "t.lance"))
    )
    assert ours == theirs
