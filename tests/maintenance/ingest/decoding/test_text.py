"""CSV and JSON lines led by a table's types, and what is said of rows that do not fit."""

from __future__ import annotations

import bz2
import datetime as dt
import gzip
import re
from collections.abc import Callable, Mapping
from pathlib import Path

import pyarrow as pa
import pytest

import lance_ops
from lance_ops.core.schema import SchemaMode
from lance_ops.errors import InvalidInput, RawFileRefused, RawFileTooLarge, SchemaMismatch
from lance_ops.maintenance.ingest import (
    ExtraColumns,
    IngestOptions,
    MissingColumns,
    RawLimits,
    RawReading,
    TextReading,
    ingest,
)
from tests.maintenance.ingest.decoding.text_files import BOTH, batch, load

CODES = pa.schema([("code", pa.string()), ("n", pa.int32()), ("x", pa.float64())])


@BOTH
def test_leading_zeros_stay_in_text_columns_and_names_match_without_case(tmp_path: Path, isolated: bool) -> None:
    assert load(tmp_path, "a.csv", "N,Code\n7,007\n,\n", CODES, isolated=isolated) == [
        {"code": "007", "n": 7, "x": None},
        {"code": "", "n": None, "x": None},
    ]
    assert load(tmp_path, "a.json", '{"Code": "007", "x": 1}\n', None, isolated=isolated)[-1] == {
        "code": "007",
        "n": None,
        "x": 1.0,
    }


@BOTH
def test_a_time_in_the_hours_of_a_clock_change_is_read_with_the_offset_before_it(
    tmp_path: Path, isolated: bool
) -> None:
    schema = pa.schema([("t", pa.timestamp("ms", "Europe/Berlin"))])
    given = "t\n29.03.2026 01:30\n29.03.2026 02:30\n29.03.2026 03:30\n25.10.2026 02:30\n25.10.2026 03:30\n"
    text = TextReading(timestamp_formats=("%d.%m.%Y %H:%M",))
    rows = load(tmp_path, "a.csv", given, schema, text, isolated=isolated)
    shown = [f"{row['t'].astimezone(dt.UTC):%m-%d %H:%M}" for row in rows]
    assert shown == ["03-29 00:30", "03-29 01:30", "03-29 01:30", "10-25 00:30", "10-25 02:30"]


@pytest.mark.parametrize(
    ("text", "codes", "numbers"),
    [
        (TextReading(), ["", "NA", "-", "x"], [None, None, 3, 4]),
        (TextReading(empty_as_null=True), [None, "NA", "-", "x"], [None, None, 3, 4]),
        (TextReading(null_values=("-", "NA")), ["", None, None, "x"], [None, None, 3, 4]),
        (TextReading(null_values=("NA",), empty_as_null=True), [None, None, "-", "x"], [None, None, 3, 4]),
    ],
    ids=["default", "empty", "values", "both"],
)
def test_empty_cells_and_words_are_null_as_options_say(
    tmp_path: Path, text: TextReading, codes: list[str | None], numbers: list[int | None]
) -> None:
    rows = load(tmp_path, "a.csv", 'code,n\n"",""\nNA,NA\n-,3\nx,4\n', CODES, text)
    assert ([row["code"] for row in rows], [row["n"] for row in rows]) == (codes, numbers)


@pytest.mark.parametrize("text", [TextReading(), TextReading(null_values=("-",)), TextReading(empty_as_null=True)])
def test_a_column_with_a_dictionary_of_texts_has_the_nulls_of_a_column_of_texts(
    tmp_path: Path, text: TextReading
) -> None:
    columns = {"kind": pa.dictionary(pa.int32(), pa.string())}
    cells = "kind,name\nNA,NA\nnull,null\n-,-\n,\nx,x\n"
    rows = load(tmp_path, "a.csv", cells, None, text, column_types={**columns, "name": pa.string()})
    assert [row["kind"] for row in rows] == [row["name"] for row in rows]
    assert rows[0] == {"kind": "NA", "name": "NA"}


@BOTH
def test_delimiter_quote_encoding_and_a_missing_header(tmp_path: Path, isolated: bool) -> None:
    text = TextReading(delimiter=";", quote="'", header=False, encoding="latin-1")
    rows = load(tmp_path, "a.csv", "'é;\n1';2;0.5\n".encode("latin-1"), CODES, text, isolated)
    assert rows == [{"code": "é;\n1", "n": 2, "x": 0.5}]
    with pytest.raises(SchemaMismatch, match=r"b\.csv has 2 columns and no header, and the table has 3: code, n, x"):
        load(tmp_path, "b.csv", "a;1\n", None, text, isolated)


@BOTH
@pytest.mark.parametrize("sign", [";", "\t", "|"])
@pytest.mark.parametrize("content", ["code,n\n", "code,n\n01,2\n02,3\n", "\n\ncode,n\n\n01,2\n"])
def test_another_delimiter_than_the_stated_one_is_named_with_its_option(
    tmp_path: Path, sign: str, content: str, isolated: bool
) -> None:
    reason = f"its header is one column, {f'code{sign}n'!r}: set the delimiter {sign!r} (raw.text.delimiter, or --delim"
    with pytest.raises(RawFileRefused, match=re.escape(reason)):
        load(tmp_path, "a.csv", content.replace(",", sign), None, isolated=isolated)
    assert not (tmp_path / "table.lance").exists(), "no table of one column is made"


@pytest.mark.parametrize("content", ["a;b\n1\n2\n", "a;b\n1;2\n3\n", '"a;b"\n"1;2"\n', "note\na;b\n"])
def test_a_column_whose_name_or_cells_hold_a_delimiter_is_read(tmp_path: Path, content: str) -> None:
    assert load(tmp_path, "a.csv", content, None)


def test_a_date_of_json_that_does_not_fit_is_told_with_its_option(tmp_path: Path) -> None:
    with pytest.raises(RawFileRefused, match=r"\"1.2.2026\" is no date32\[day\]; mend .* raw.text.date_formats"):
        load(tmp_path, "a.jsonl", '{"n": "1.2.2026"}\n', pa.schema([("n", pa.date32())]))


@pytest.mark.parametrize(
    ("kind", "cell", "remedy"),
    [
        (pa.int64(), "1.5", "make the column double, by write.columns (--schema) for a new table and by alter_columns"),
        (pa.int32(), "3000000000", "make the column int64"),
        (pa.int64(), "9223372036854775808", "make the column uint64"),
        (pa.int64(), "-9223372036854775809", "make the column decimal128(38, 0)"),
        (pa.int64(), "many", "make the column string"),
        (pa.float64(), "viel", "make the column string"),
        (pa.float64(), '"1,5"', "say what its comma is by raw.text.decimal_point or raw.text.thousands (--decimal"),
        (pa.date32(), "1.2.2026", "state its form in raw.text.date_formats (--date-format)"),
        (pa.timestamp("us"), "1.2.2026", "state its form in raw.text.timestamp_formats (--timestamp-format)"),
        (pa.bool_(), "maybe", "make the column string"),
    ],
)
def test_a_cell_that_does_not_fit_is_told_with_a_remedy(
    tmp_path: Path, kind: pa.DataType, cell: str, remedy: str
) -> None:
    reason = f"'{cell.strip(chr(34))}' is no {kind}; mend the file, or {remedy}"
    with pytest.raises(RawFileRefused, match=re.escape(reason)):
        load(tmp_path, "a.csv", f"n\n{cell}\n", pa.schema([("n", kind)]))


def test_a_value_of_json_that_does_not_fit_is_told_with_a_remedy(tmp_path: Path) -> None:
    table = pa.schema([("n", pa.int64())])
    with pytest.raises(RawFileRefused, match=r"1\.5 is no int64; mend the file, or make the column double"):
        load(tmp_path, "a.jsonl", '{"n": 1.5}\n', table)
    with pytest.raises(RawFileRefused, match=r'"two" is no int64; mend the file, or make the column string'):
        load(tmp_path, "b.jsonl", '{"n": "two"}\n', None)


COMPRESSIONS: Mapping[str, Callable[[bytes], bytes]] = {
    "gz": gzip.compress,
    "bz2": bz2.compress,
    "zst": lambda data: bytes(pa.compress(data, "zstd", asbytes=True)),
}


@BOTH
@pytest.mark.parametrize("ending", COMPRESSIONS)
def test_compressed_text_is_read_and_its_faults_have_lines(tmp_path: Path, ending: str, isolated: bool) -> None:
    compress = COMPRESSIONS[ending]
    assert load(tmp_path, f"a.csv.{ending}", compress(b"code,n\n01,2\n"), CODES, isolated=isolated)[0]["code"] == "01"
    assert load(tmp_path, f"a.jsonl.{ending}", compress(b'{"n": 5}\n'), None, isolated=isolated)[1]["n"] == 5
    with pytest.raises(RawFileRefused, match=rf"bad\.csv\.{ending}.*line 3: column 'n': 'x' is no int32"):
        load(tmp_path, f"bad.csv.{ending}", compress(b"code,n\n01,2\n02,x\n"), None, isolated=isolated)


def test_a_compressed_bomb_of_json_is_refused(tmp_path: Path) -> None:
    limits = RawLimits(expansion=1)
    path = tmp_path / "a.json.gz"
    bomb = batch(path, gzip.compress(b'{"a": 1}\n' + (b" " * 1024**2 + b"\n") * 300 + b"{}", 1))
    with pytest.raises(RawFileTooLarge, match="expansion"):
        ingest(str(tmp_path / "t"), [bomb], options=IngestOptions(reading=RawReading(limits, isolated=False)))


TIMES = pa.schema(
    [
        ("d", pa.date32()),
        ("t", pa.timestamp("us")),
        ("z", pa.timestamp("ms", "Europe/Berlin")),
        ("c", pa.time64("us")),
        ("h", pa.float16()),
        ("v", pa.list_(pa.float32(), 2)),
    ]
)


@BOTH
def test_dates_and_times_are_read_by_stated_formats_or_iso(tmp_path: Path, isolated: bool) -> None:
    text = TextReading(date_formats=("%d.%m.%Y", "%Y/%m/%d"), timestamp_formats=("%d.%m.%Y %H:%M",))
    rows = (
        '{"d": "31.12.2026", "t": "31.12.2026 10:00", "z": "01.07.2026 10:00", "c": "10:00:00.5", '
        '"h": 1.5, "v": [1, 2]}\n'
        '{"d": "2026/01/02", "t": "2026-01-02T03:04:05", "z": "2026-07-01T08:00:00Z"}\n{"d": "2026-01-03"}\n'
    )
    zone = dt.timezone(dt.timedelta(hours=2))
    expected = [
        (dt.date(2026, 12, 31), dt.datetime(2026, 12, 31, 10), dt.datetime(2026, 7, 1, 10, tzinfo=zone)),
        (dt.date(2026, 1, 2), dt.datetime(2026, 1, 2, 3, 4, 5), dt.datetime(2026, 7, 1, 10, tzinfo=zone)),
        (dt.date(2026, 1, 3), None, None),
    ]
    found = load(tmp_path, "a.json", rows, TIMES, text, isolated)
    assert [(row["d"], row["t"], row["z"]) for row in found] == expected
    assert (found[0]["c"], found[0]["h"], found[0]["v"]) == (dt.time(10, 0, 0, 500000), 1.5, [1.0, 2.0])
    csv = "d,t,z,c,h\n31.12.2026,31.12.2026 10:00,01.07.2026 10:00,10:00:00,1.5\n"
    csv += "2026/01/02,2026-01-02T03:04:05,2026-07-01T08:00:00Z,,\n"
    assert [
        (row["d"], row["t"], row["z"]) for row in load(tmp_path, "a.csv", csv, None, text, isolated)[3:]
    ] == expected[:2]


@pytest.mark.parametrize(
    ("text", "null"),
    [
        (TextReading(date_formats=("%d.%m.%Y",)), "NULL"),
        (TextReading(date_formats=("%d.%m.%Y",), null_values=("-",)), "-"),
    ],
    ids=["Arrow's", "declared"],
)
def test_a_new_column_of_dates_may_have_cells_that_are_null(tmp_path: Path, text: TextReading, null: str) -> None:
    rows = load(tmp_path, "a.csv", f"d,e\n31.12.2026,{null}\n{null},x\n,\n", None, text)
    assert [row["d"] for row in rows] == [dt.date(2026, 12, 31), None, None]


def test_a_column_that_is_declared_as_binary_holds_any_bytes(tmp_path: Path) -> None:
    rows = load(
        tmp_path, "a.csv", b"raw;n\n\xff\xfe;1\n", None, TextReading(delimiter=";"), column_types={"raw": pa.binary()}
    )
    assert rows == [{"raw": b"\xff\xfe", "n": 1}]
    assert load(tmp_path, "b.csv", b"raw;n\n\x80;2\n", None, TextReading(delimiter=";"))[1:] == [
        {"raw": b"\x80", "n": 2}
    ]


def test_options_of_text_are_checked_where_they_are_made() -> None:
    for wrong in (-1, 2**31):
        with pytest.raises(InvalidInput, match="skip_lines must be from 0 to"):
            RawReading(text=TextReading(skip_lines=wrong))
    for limit, limits in (
        ("seconds", RawLimits(seconds=float("inf"))),
        ("seconds", RawLimits(seconds=float("nan"))),
        ("memory_bytes", RawLimits(memory_bytes=2**70)),
        ("rows", RawLimits(rows=0)),
    ):
        with pytest.raises(InvalidInput, match=f"limits of raw files: {limit} must be more than 0"):
            RawReading(limits)
    for sign in ("ab", "7", "-"):
        with pytest.raises(InvalidInput, match="thousands must be one character that is no part of a number"):
            RawReading(text=TextReading(thousands=sign))
    with pytest.raises(InvalidInput, match="cannot be both thousands and decimal_point"):
        RawReading(text=TextReading(thousands="."))
    with pytest.raises(InvalidInput, match="decimal_point must be one ASCII character"):
        RawReading(text=TextReading(decimal_point=""))


BAD: dict[str, tuple[str | bytes, str]] = {
    "a.csv": ('code,n,x\n"a\nb",1,2\n\nc,many,3\n', "line 5: column 'n': 'many' is no int32"),
    "range.csv": ("code,n\na,3000000000\n", "line 2: column 'n': '3000000000' is no int32"),
    "short.csv": ("code,n,x\na,1,2\nb,1\n", "line 3: it has 2 cells, and the header has 3"),
    "utf8.csv": (b"code,n\na,1\n\xff,2\n", "line 3: column 'code': a cell is not UTF-8: set the file's encoding"),
    "type.json": ('{"n": 1}\n{"n": "2"}\n', "line 2: column 'n': \"2\" is no int32"),
    "range.json": ('{"n": 1}\n\n{"n": 3000000000}\n', "line 3: column 'n': 3000000000 is no int32"),
    "number.json": ('{"code": "1"}\n{"code": 7}', "line 2: column 'code': 7 is no string"),
    "late.json": (
        '{"n": 1}\n' * 200_000 + '{"n": 1, "late": 2}\n',
        'line 200001: the field "late" is not in the table',
    ),
}


@BOTH
@pytest.mark.parametrize("name", BAD)
def test_a_bad_row_is_named_by_file_line_column_and_value(tmp_path: Path, name: str, isolated: bool) -> None:
    content, message = BAD[name]
    with pytest.raises(RawFileRefused) as refused:
        load(tmp_path, name, content, CODES, isolated=isolated)
    assert name in str(refused.value) and message in str(refused.value)
    assert lance_ops.dataset(str(tmp_path / "table.lance")).version == 1


@pytest.mark.parametrize(
    ("name", "row"), [("a.csv", "d\n2.1.2026\n32.1.2026\n"), ("a.json", '{"d": "2.1.2026"}\n{"d": "32.1.2026"}\n')]
)
def test_a_date_that_fits_no_format_has_its_line(tmp_path: Path, name: str, row: str) -> None:
    with pytest.raises(RawFileRefused, match=rf"line {row.count(chr(10))}: column 'd': .32\.1\.2026. is no date32"):
        load(tmp_path, name, row, TIMES, TextReading(date_formats=("%d.%m.%Y",)))


NESTED = pa.schema([("s", pa.struct([("a", pa.string()), ("l", pa.list_(pa.struct([("d", pa.date32())])))]))])


def test_nested_json_has_the_tables_types(tmp_path: Path) -> None:
    rows = load(tmp_path, "a.json", '{"s": {"l": [{"d": "2026-01-02"}, null]}}\n{"s": {"a": "7"}}\n{}\n', NESTED)
    assert rows == [
        {"s": {"a": None, "l": [{"d": dt.date(2026, 1, 2)}, None]}},
        {"s": {"a": "7", "l": None}},
        {"s": None},
    ]
    with pytest.raises(RawFileRefused, match=r"line 1: column 's\.l\.d': \"soon\" is no date32"):
        load(tmp_path, "b.json", '{"s": {"l": [{"d": "soon"}]}}\n', None)
    with pytest.raises(RawFileRefused, match="column 's' is struct.*one value: use JSON lines"):
        load(tmp_path, "c.csv", "s\n1\n", None)


def test_columns_that_are_missing_or_extra_follow_the_policies(tmp_path: Path) -> None:
    for name, content in (("a.csv", "code,more\nx,1\n"), ("a.json", '{"code": "x", "more": 1}\n')):
        folder = tmp_path / name
        folder.mkdir()
        with pytest.raises(SchemaMismatch, match=rf"{name}: column 'more' \(int64\) is not in the table"):
            load(folder, name, content, CODES)
        with pytest.raises(SchemaMismatch, match=f"{name} has no column 'n'"):
            load(folder, name, content, None, extra_columns=ExtraColumns.IGNORE, missing_columns=MissingColumns.REFUSE)
        rows = load(folder, name, content, None, extra_columns=ExtraColumns.IGNORE)
        assert rows == [{"code": "x", "n": None, "x": None}]


def test_a_declared_schema_leads_the_first_ingest(tmp_path: Path) -> None:
    schema = pa.schema([("id", pa.string()), ("day", pa.date32())])
    rows = load(tmp_path, "a.csv", "id,day\n01,2026-01-02\n", None, schema=schema)
    assert rows == [{"id": "01", "day": dt.date(2026, 1, 2)}]


def test_without_a_schema_all_files_of_the_call_decide(tmp_path: Path) -> None:
    contents = [b"a,b\n1,2\n", b"A,b\nx7,0.5\n", b"a,c\n,3\n", b"a\ny\n"]
    batches = [batch(tmp_path / f"{at}.csv", content) for at, content in enumerate(contents)]
    ingest(str(tmp_path / "t"), batches, options=IngestOptions(schema_mode=SchemaMode.ADD))
    assert lance_ops.dataset(str(tmp_path / "t")).to_table().to_pylist() == [
        {"a": "1", "b": 2.0, "c": None},
        {"a": "x7", "b": 0.5, "c": None},
        {"a": "", "b": None, "c": 3},
        {"a": "y", "b": None, "c": None},
    ]


def test_orc_is_read_and_avro_is_refused_by_name(tmp_path: Path) -> None:
    orc = pytest.importorskip("pyarrow.orc", reason="this pyarrow reads no ORC")
    orc.write_table(pa.table({"code": ["1"], "n": [2], "x": [0.5]}), tmp_path / "a.orc")
    assert load(tmp_path, "a.orc", (tmp_path / "a.orc").read_bytes(), CODES, isolated=True) == [
        {"code": "1", "n": 2, "x": 0.5}
    ]
    with pytest.raises(RawFileRefused, match="does not read Avro: write the file as Parquet"):
        load(tmp_path, "a.avro", b"Obj\x01", None)
    with pytest.raises(RawFileRefused, match=r"\.jsonl, \.ndjson may be followed by \.gz"):
        load(tmp_path, "a.parquet.gz", b"", None)


def test_an_ending_may_be_in_capitals(tmp_path: Path) -> None:
    assert load(tmp_path, "A.CSV", "id\n1\n", None) == [{"id": 1}]
    assert load(tmp_path, "B.JSON.GZ", gzip.compress(b'{"id": 2}\n'), None)[1:] == [{"id": 2}]


def test_a_file_without_a_header_that_has_other_columns_than_are_declared_says_so(tmp_path: Path) -> None:
    types = {"a": pa.int64(), "b": pa.int64()}
    with pytest.raises(RawFileRefused, match=r"a\.csv: line 1: it has 3 cells, and 2 names are declared"):
        load(tmp_path, "a.csv", "1,2,3\n", None, TextReading(header=False), column_types=types)


@pytest.mark.parametrize(
    "text", [TextReading(delimiter=""), TextReading(delimiter="||"), TextReading(quote="é"), TextReading(encoding="x")]
)
def test_impossible_text_options_are_refused(text: TextReading) -> None:
    with pytest.raises(InvalidInput, match="raw text files"):
        RawReading(text=text)
