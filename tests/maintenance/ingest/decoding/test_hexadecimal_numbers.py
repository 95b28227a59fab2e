"""Codes of CSV such as 0x1F, which Arrow reads as whole numbers, are no numbers here."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest

import lance_ops
from lance_ops.errors import RawFileRefused
from tests.maintenance.ingest.decoding.text_files import load


@pytest.mark.parametrize("cells", [["0x1F", "0xFFFFFFFFFFFFFFFF"], ["7", " 0X1f"]], ids=["all", "one"])
def test_a_new_column_with_hexadecimal_codes_is_text(tmp_path: Path, cells: list[str]) -> None:
    content = "id,code,n\n" + "".join(f"{at},{cell},5\n" for at, cell in enumerate(cells))
    rows = load(tmp_path, "a.csv", content, None)
    assert rows == [{"id": at, "code": cell, "n": 5} for at, cell in enumerate(cells)]


def test_whole_numbers_beside_codes_stay_numbers(tmp_path: Path) -> None:
    load(tmp_path, "a.csv", "hash,n,big\n0x1Fz,5,12345678901234567890\n0xab,,1\n", None)
    kinds = lance_ops.dataset(str(tmp_path / "table.lance")).schema.types
    assert kinds == [pa.string(), pa.int64(), pa.decimal128(38, 0)]


@pytest.mark.parametrize("kind", [pa.int8(), pa.int64(), pa.uint64()], ids=str)
def test_a_declared_column_of_whole_numbers_refuses_a_code(tmp_path: Path, kind: pa.DataType) -> None:
    with pytest.raises(RawFileRefused, match=rf"line 3: column 'n': '0xFF' is no {kind}; .* make the column string"):
        load(tmp_path, "a.csv", "n\n7\n0xFF\n", pa.schema([("n", kind)]))


def test_a_late_code_in_a_new_column_of_whole_numbers_is_refused_by_its_line(tmp_path: Path) -> None:
    content = "n,text\n" + f"1,{'x' * 1000}\n" * 5000 + "0x1F,\n"
    with pytest.raises(RawFileRefused, match="line 5002: column 'n': '0x1F' is no int64"):
        load(tmp_path, "a.csv", content, None)


def test_a_code_in_a_late_column_of_text_costs_no_row(tmp_path: Path) -> None:
    content = "n,text\n" + f"1,{'x' * 1000}\n" * 5000 + "2,0x1F\n"
    rows = load(tmp_path, "a.csv", content, None)
    assert [row["n"] for row in rows] == [*[1] * 5000, 2] and rows[-1]["text"] == "0x1F"
