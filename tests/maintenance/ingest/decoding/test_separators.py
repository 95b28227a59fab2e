"""Numbers of CSV with another decimal point, or with separators of thousands."""

from __future__ import annotations

import re
from decimal import Decimal
from pathlib import Path

import pyarrow as pa
import pytest

from lance_ops.errors import RawFileRefused
from lance_ops.maintenance.ingest import TextReading
from tests.maintenance.ingest.decoding.text_files import BOTH, load


@pytest.mark.parametrize("kind", [pa.decimal128(6, 2), pa.decimal256(50, 2)], ids=["decimal128", "decimal256"])
def test_decimals_have_the_stated_point(tmp_path: Path, kind: pa.DataType) -> None:
    table, text = pa.schema([("n", kind)]), TextReading(delimiter=";", decimal_point=",")
    rows = load(tmp_path, "a.csv", "n\n12,5\n7\n-0,25\nNULL\n", table, text)
    assert [row["n"] for row in rows] == [Decimal("12.50"), Decimal(7), Decimal("-0.25"), None]
    for bad in ("1.234", "12,x", "1.234,5"):
        with pytest.raises(RawFileRefused, match=rf"b\.csv: line 3: column 'n': '{re.escape(bad)}' is no decimal"):
            load(tmp_path, "b.csv", f"n\n1\n{bad}\n", None, text)


GROUPED = [
    (TextReading(thousands=","), ["1,234.50", "-12,345,678", "7.25", ""]),
    (TextReading(thousands=".", decimal_point=","), ["1.234,50", "-12.345.678", "7,25", ""]),
    (TextReading(thousands=" ", decimal_point=","), [" 1 234,50", "-12 345 678", "7,25", "NA"]),
    (TextReading(thousands="\u202f", null_values=("-",)), ["1\u202f234.50", "-12\u202f345\u202f678", "7.25", "-"]),
]
AMOUNTS = [Decimal("1234.50"), Decimal(-12345678), Decimal("7.25"), None]


@BOTH
@pytest.mark.parametrize(("text", "cells"), GROUPED, ids=["comma", "point", "space", "narrow space"])
def test_numbers_may_have_separators_of_thousands(
    tmp_path: Path, text: TextReading, cells: list[str], isolated: bool
) -> None:
    content = "n,d\n" + "".join(f'"{cell}","{cell}"\n' for cell in cells)
    table = pa.schema([("n", pa.float64()), ("d", pa.decimal128(12, 2))])
    rows = load(tmp_path, "a.csv", content, table, text, isolated)
    assert [row["d"] for row in rows] == AMOUNTS
    assert [row["n"] for row in rows] == [None if each is None else float(each) for each in AMOUNTS]


@BOTH
def test_new_columns_are_numbers_if_all_their_cells_have_separators_of_thousands_or_none(
    tmp_path: Path, isolated: bool
) -> None:
    content = 'id,whole,part,phone,date,code\n1,"1,234","1,234.5","030,123,456","12,5",1\n2,7,8,"1,234,567","1,2",x\n'
    rows = load(tmp_path, "a.csv", content, None, TextReading(thousands=","), isolated)
    assert rows == [
        {"id": 1, "whole": 1234, "part": 1234.5, "phone": "030,123,456", "date": "12,5", "code": "1"},
        {"id": 2, "whole": 7, "part": 8.0, "phone": "1,234,567", "date": "1,2", "code": "x"},
    ]
    assert load(tmp_path, "b.csv", 'id,whole\n"1,000","2,000,000"\n', None, TextReading(thousands=","), isolated)[
        2:
    ] == [{"id": 1000, "whole": 2_000_000, "part": None, "phone": None, "date": None, "code": None}]


@BOTH
@pytest.mark.parametrize("cell", ["1,23", "12,34,567", ",123", "1,234.5", "0,123", "1,,234", "3,000,000,000"])
def test_a_separator_in_another_place_is_refused_by_line_column_and_value(
    tmp_path: Path, cell: str, isolated: bool
) -> None:
    table = pa.schema([("n", pa.int32())])
    with pytest.raises(RawFileRefused, match=rf"line 3: column 'n': '{cell}' is no int32"):
        load(tmp_path, "a.csv", f'n\n"1,000"\n"{cell}"\n', table, TextReading(thousands=","), isolated)
