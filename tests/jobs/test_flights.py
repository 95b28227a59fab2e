from __future__ import annotations

from datetime import UTC, date, datetime
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet
import pytest

from jobs.flights import days_of, land_days, read_flights

pytestmark = pytest.mark.dagster


@pytest.fixture(scope="module")
def flights() -> pa.Table:
    return read_flights()


def test_every_flight_is_read_with_real_types_and_nulls(flights: pa.Table) -> None:
    assert flights.num_rows == 336_776
    assert flights.schema.field("time_hour").type == pa.timestamp("us", "UTC")
    assert flights["tailnum"].null_count == 2512
    assert flights["dep_time"].null_count == 8255


def test_a_day_lands_as_one_file_delivered_the_next_morning(flights: pa.Table, tmp_path: Path) -> None:
    days = days_of(flights)
    assert (len(days), days[0], days[-1]) == (365, date(2013, 1, 1), date(2013, 12, 31))
    size = land_days(flights, days[:2], tmp_path / "in")
    paths = sorted((tmp_path / "in").iterdir())
    assert [path.name for path in paths] == ["2013-01-01.parquet", "2013-01-02.parquet"]
    assert size == sum(path.stat().st_size for path in paths)
    assert pyarrow.parquet.read_table(paths[0]).num_rows == 842
    assert datetime.fromtimestamp(paths[0].stat().st_mtime, UTC) == datetime(2013, 1, 2, 2, tzinfo=UTC)
