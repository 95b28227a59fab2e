"""Dates and moments of raw files are those that the file states, or the file is refused."""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pyarrow.orc
import pyarrow.parquet
import pytest

import lance_ops
from lance_ops.core.schema import SchemaMode
from lance_ops.errors import RawFileRefused
from lance_ops.maintenance.ingest import IngestOptions, RawReading, TextReading, survey_ingest
from lance_ops.maintenance.ingest.decoding.text_values import parsed
from tests.maintenance.ingest.decoding.text_files import BOTH, batch, load

FAR = [dt.datetime(1, 1, 1), dt.datetime(1582, 10, 15, 1, 2, 3, 4), dt.datetime(2026, 1, 2, 3, 4, 5, 6), None]
FAR += [dt.datetime(9999, 12, 31, 23, 59, 59, 999999)]


@BOTH
@pytest.mark.parametrize("nested", [False, True], ids=["plain", "nested"])
def test_int96_of_parquet_holds_every_year(tmp_path: Path, nested: bool, isolated: bool) -> None:
    moments = pa.array(FAR, pa.timestamp("us"))
    column = pa.array([[each] for each in FAR], pa.list_(moments.type)) if nested else moments
    path = tmp_path / "a.parquet"
    pyarrow.parquet.write_table(pa.table({"t": column}), path, use_deprecated_int96_timestamps=True)
    rows = load(tmp_path, "a.parquet", path.read_bytes(), None, isolated=isolated)
    assert [row["t"] for row in rows] == column.to_pylist()
    led = load(tmp_path, "b.parquet", path.read_bytes(), None, isolated=isolated)
    assert led == rows * 2


MONTHS = ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"]
STATED: dict[str, Callable[[int, int, int], str]] = {
    "%d.%m.%Y": lambda year, month, day: f"{day:02}.{month:02}.{year}",
    "%-d/%-m/%Y": lambda year, month, day: f"{day}/{month}/{year}",
    "%e %b %Y": lambda year, month, day: f"{day:2} {MONTHS[month - 1].upper()} {year}",
    "Mon, %d %b %Y": lambda year, month, day: f"Mon, {day} {MONTHS[month - 1]} {year}",
    "%a, %d %b %Y": lambda year, month, day: f"Mon, {day:02} {MONTHS[month - 1]} {year}",
    "%D": lambda year, month, day: f"{month:02}/{day:02}/{year % 100:02}",
    "%F%%d": lambda year, month, day: f"{year}-{month:02}-{day:02}%d",
    "%Y%m%d": lambda year, month, day: f"{year}{month:02}{day:02}",
    "%d.%m.%Y %H:%M:%S": lambda year, month, day: f"{day:02}.{month:02}.{year} 23:59:59",
    "%d.%m.%Y %H:%M %z": lambda year, month, day: f"{day:02}.{month:02}.{year} 00:30 +1400",
    "%m/%d/%Y %H:%M%z": lambda year, month, day: f"{month:02}/{day:02}/{year} 23:30-11:30",
}


@pytest.mark.parametrize("form", STATED)
def test_every_day_of_a_calendar_is_read_and_no_other_one(form: str) -> None:
    text = TextReading(date_formats=(form,), timestamp_formats=(form,))
    days, cells = [], []
    for year in (2000, 2023, 2024):
        for month in range(1, 13):
            for day in range(1, 32):
                cell = STATED[form](year, month, day)
                try:
                    days.append(dt.date(year, month, day))
                except ValueError:
                    for kind in (pa.date32(), pa.timestamp("us"), pa.timestamp("ms", "Europe/Berlin")):
                        with pytest.raises(pa.ArrowInvalid, match=cell.replace("+", r"\+")):
                            parsed(pa.array([cell]), kind, text)
                else:
                    cells.append(cell)
    assert parsed(pa.array(cells), pa.date32(), text).to_pylist() == days
    if "%z" not in form:
        assert [each.date() for each in parsed(pa.array(cells), pa.timestamp("us"), text).to_pylist()] == days


DAYS = [dt.date(2024, 1, 1) + dt.timedelta(number) for number in range(366)]
DAYS += [dt.date(2026, 1, 1) + dt.timedelta(number) for number in range(365)]


@pytest.mark.parametrize("form", ["%Y%j", "%y-%j", "%Y-%W-%w", "%Y-%U-%w", "%y %W %a", "%j/%Y %H:%M%z"])
def test_every_day_of_a_year_is_read_by_weeks_and_numbers_and_no_other_one(form: str) -> None:
    text = TextReading(date_formats=(form,), timestamp_formats=(form,))
    cells = [day.strftime(form.replace("%H:%M%z", "12:00+0500")) for day in DAYS]
    assert parsed(pa.array(cells), pa.date32(), text).to_pylist() == DAYS
    assert [each.date() for each in parsed(pa.array(cells), pa.timestamp("us"), text).to_pylist()] == DAYS
    others = [
        "2026366",
        "26-366",
        "2026-53-1",
        "2026-52-5",
        "2026-00-1",
        "26 53 Mon",
        "26 00 Wed",
        "366/2026 12:00+0100",
    ]
    for other in others:
        for kind in (pa.date32(), pa.timestamp("us")):
            with pytest.raises(pa.ArrowInvalid, match=other.replace("+", r"\+")):
                parsed(pa.array([other]), kind, text)


def test_an_offset_may_move_a_moment_into_another_year() -> None:
    text = TextReading(timestamp_formats=("%Y-%j %H:%M%z",))
    found = parsed(pa.array(["2026-365 23:30-1130", "2026-001 00:30+1400"]), pa.timestamp("us"), text).to_pylist()
    assert found == [dt.datetime(2027, 1, 1, 11), dt.datetime(2025, 12, 31, 10, 30)]


def test_weeks_that_c_does_not_read_are_no_day() -> None:
    with pytest.raises(pa.ArrowInvalid, match="2026-W07-1"):
        parsed(pa.array(["2026-W07-1"]), pa.date32(), TextReading(date_formats=("%G-W%V-%u",)))


@pytest.mark.parametrize("form", ["%d%m%Y", "%e%m%y", "%d%b%Y", "%d.%m.%Y %H:%M"])
def test_days_without_their_leading_zero_are_read_as_c_does(form: str) -> None:
    days = [dt.date(2026, month, day) for month in range(1, 13) for day in (4, 5, 6, 7, 8, 9, 28)]
    cells = pa.array([day.strftime(form).removeprefix("0").lstrip() for day in days])
    text = TextReading(date_formats=(form,), timestamp_formats=(form,))
    assert parsed(cells, pa.date32(), text).to_pylist() == days
    assert [each.date() for each in parsed(cells, pa.timestamp("us"), text).to_pylist()] == days


@BOTH
@pytest.mark.parametrize("name", ["a.csv", "a.jsonl"])
@pytest.mark.parametrize("cell", ["31.02.2026", "29.02.2025", "31.4.2026"])
def test_a_day_that_does_not_exist_is_refused_by_its_line(tmp_path: Path, name: str, cell: str, isolated: bool) -> None:
    rows = f"d\n01.01.2026\n{cell}\n" if name == "a.csv" else f'\n{{"d": "01.01.2026"}}\n{{"d": "{cell}"}}\n'
    text = TextReading(date_formats=("%d.%m.%Y",))
    with pytest.raises(RawFileRefused, match=f"line 3: column 'd': .{cell}. is no date32"):
        load(tmp_path, name, rows, pa.schema([("d", pa.date32())]), text, isolated)


def test_a_new_column_with_a_day_that_does_not_exist_stays_text(tmp_path: Path) -> None:
    text = TextReading(date_formats=("%d.%m.%Y",), timestamp_formats=("%d.%m.%Y",))
    rows = load(tmp_path, "a.csv", "d,e\n31.01.2026,31.01.2026\n31.02.2026,28.02.2026\n", None, text)
    assert [row["d"] for row in rows] == ["31.01.2026", "31.02.2026"]
    assert [row["e"] for row in rows] == [dt.date(2026, 1, 31), dt.date(2026, 2, 28)]


@pytest.mark.parametrize("formats", [("%d.%m.%Y", "%d.%m.%y"), ("%d.%m.%y", "%d.%m.%Y")])
def test_a_year_of_two_digits_fits_the_format_that_says_so(formats: tuple[str, ...]) -> None:
    cells = pa.array(["12.01.26", "12.01.2026", "03.03.0026", "1.1.0001", "31.12.9999"])
    found = parsed(cells, pa.date32(), TextReading(date_formats=formats)).to_pylist()
    assert [str(each) for each in found] == ["2026-01-12", "2026-01-12", "0026-03-03", "0001-01-01", "9999-12-31"]
    for cell in ("12.01.26", "12.01.202"):
        with pytest.raises(pa.ArrowInvalid, match=cell):
            parsed(pa.array([cell]), pa.date32(), TextReading(date_formats=("%d.%m.%Y",)))


def test_a_moment_that_nanoseconds_do_not_hold_is_refused() -> None:
    text = TextReading(timestamp_formats=("%d.%m.%Y",))
    for kind in (pa.timestamp("ns"), pa.timestamp("ns", "UTC")):
        assert len(parsed(pa.array(["31.12.2261"]), kind, text)) == 1
        with pytest.raises(pa.ArrowInvalid, match=r"31\.12\.9999"):
            parsed(pa.array(["31.12.9999"]), kind, text)


@BOTH
def test_a_format_may_have_an_offset(tmp_path: Path, isolated: bool) -> None:
    """A column without a zone has the clock of UTC, as elsewhere. Other formats are times in the column's zone."""
    text = TextReading(timestamp_formats=("%d.%m.%Y %H:%M %z", "%d.%m.%Y %H:%M"))
    rows = "t,z\n01.07.2026 00:30 +0200,01.07.2026 00:30 -05:00\n2026-07-01 10:00,01.07.2026 10:00\n"
    table = pa.schema([("t", pa.timestamp("us")), ("z", pa.timestamp("ms", "Europe/Berlin"))])
    found = load(tmp_path, "a.csv", rows.replace("2026-07-01 10:00,", "2026-07-01T10:00:00,"), table, text, isolated)
    assert [row["t"] for row in found] == [dt.datetime(2026, 6, 30, 22, 30), dt.datetime(2026, 7, 1, 10)]
    utc = [row["z"].astimezone(dt.UTC).replace(tzinfo=None) for row in found]
    assert utc == [dt.datetime(2026, 7, 1, 5, 30), dt.datetime(2026, 7, 1, 8)]


def test_a_format_with_an_offset_leaves_other_text_columns_as_they_are(tmp_path: Path) -> None:
    text = TextReading(timestamp_formats=("%Y-%m-%d %H:%M:%S %z",))
    rows = load(tmp_path, "a.csv", "t,s\n2026-07-01 10:00:00 +0200,a\n", None, text)
    assert rows == [{"t": dt.datetime(2026, 7, 1, 8), "s": "a"}]


@pytest.mark.parametrize("compression", ["uncompressed", "zlib", "snappy", "zstd"])
@pytest.mark.parametrize("nested", [False, True], ids=["plain", "nested"])
def test_moments_that_arrow_would_misread_in_orc_are_refused(tmp_path: Path, compression: str, nested: bool) -> None:
    path = tmp_path / "a.orc"

    def written(moments: list[dt.datetime | None]) -> bytes:
        column = pa.array([[each] for each in moments] if nested else moments)
        many = {f"n{number}": [number] * len(moments) for number in range(100)}
        pyarrow.orc.write_table(pa.table({**many, "t": column}), path, compression=compression)
        return path.read_bytes()

    near = [dt.datetime(1678, 1, 1), dt.datetime(2026, 1, 2, 3, 4, 5, 6), None, dt.datetime(2261, 12, 31)]
    rows = load(tmp_path, "good.orc", written(near), None)
    shown = [row["t"][0] if nested else row["t"] for row in rows]
    assert [each and each.to_pydatetime() for each in shown] == near
    for far in (dt.datetime(1600, 1, 1), dt.datetime(9999, 12, 31)):
        with pytest.raises(RawFileRefused, match="a moment before 1677 or after 2262.*; write it as Parquet"):
            load(tmp_path, f"bad{far.year}.orc", written([*near, far]), None)


ZONED = '{{"s": {{"t": "2026-01-02T03:04:05Z"}}}}\n{{"s": {{"t": {}}}}}\n'


@BOTH
def test_new_moments_of_json_with_offsets_are_moments_of_utc(tmp_path: Path, isolated: bool) -> None:
    load(tmp_path, "a.json", ZONED.format('"2026-01-02 03:04+02:00"') + '{"s": null}\n', None, isolated=isolated)
    found = lance_ops.dataset(str(tmp_path / "table.lance")).to_table()["s"].combine_chunks().field("t")
    assert found.type == pa.timestamp("s", "UTC")
    assert [None if each is None else each.isoformat() for each in found.to_pylist()] == [
        "2026-01-02T03:04:05+00:00",
        "2026-01-02T01:04:00+00:00",
        None,
    ]


def test_new_moments_of_json_of_which_some_have_an_offset_are_text(tmp_path: Path) -> None:
    rows = load(tmp_path, "a.json", ZONED.format('"2026-01-02"'), None)
    assert [row["s"]["t"] for row in rows] == ["2026-01-02T03:04:05Z", "2026-01-02"]


@pytest.mark.parametrize("kind", [pa.string(), pa.timestamp("s")])
def test_a_declared_column_takes_moments_of_json_of_which_some_have_an_offset(
    tmp_path: Path, kind: pa.DataType
) -> None:
    content = '{"t": "2026-01-02T03:04:05Z"}\n{"t": "2026-01-02T03:04:05"}\n'
    first, second = load(tmp_path, "a.json", content, None, column_types={"t": kind})
    assert first["t"] == (second["t"] if pa.types.is_timestamp(kind) else "2026-01-02T03:04:05Z")
    again = batch(tmp_path / "b.json", content.encode())
    options = IngestOptions(schema_mode=SchemaMode.ADD, reading=RawReading(isolated=False))
    survey = survey_ingest(str(tmp_path / "table.lance"), [again], options=options)
    assert not survey.refused and survey.plan is not None and not survey.plan.change


def test_new_moments_of_json_without_offsets_are_clocks(tmp_path: Path) -> None:
    load(tmp_path, "a.json", '{"t": "2026-01-02"}\n{"t": "2026-01-02T03:04:05"}\n', None)
    assert lance_ops.dataset(str(tmp_path / "table.lance")).schema.field("t").type == pa.timestamp("s")
