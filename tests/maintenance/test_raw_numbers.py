"""New columns of whole numbers keep all their digits."""

from __future__ import annotations

import json
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import lance_ops
from lance_ops.core.schema import SchemaMode
from lance_ops.maintenance.ingest import TextReading
from tests.maintenance.text_files import BOTH, load

LARGE = [12345678901234567890, 12345678901234567891]
CELLS: dict[str, tuple[list[str], pa.DataType]] = {
    "int64": (["9223372036854775807", "-9223372036854775808"], pa.int64()),
    "beyond int64": (["9223372036854775808", "1"], pa.decimal128(38, 0)),
    "below int64": (["1", "-9223372036854775809"], pa.decimal128(38, 0)),
    "38 digits": (["9" * 38, "-" + "9" * 38], pa.decimal128(38, 0)),
    "a fraction": (["12345678901234567890", "0.5"], pa.float64()),
    "an exponent": (["12345678901234567890", "1e3"], pa.float64()),
    "fractions": (["1.0", "2.0"], pa.float64()),
}


def written(name: str, cells: list[str], form: str) -> str:
    if name.endswith(".csv"):
        return "id;n\n" + "".join(f"{at};{form.format(cell)}\n" for at, cell in enumerate([*cells, ""]))
    return "".join(f'{{"id": {at}, "n": {form.format(cell)}}}\n' for at, cell in enumerate([*cells, "null"]))


@BOTH
@pytest.mark.parametrize(("cells", "kind"), CELLS.values(), ids=CELLS)
@pytest.mark.parametrize("name", ["a.csv", "a.json"])
def test_whole_numbers_beyond_int64_become_decimals(
    tmp_path: Path, name: str, cells: list[str], kind: pa.DataType, isolated: bool
) -> None:
    rows = load(tmp_path, name, written(name, cells, "{}"), None, TextReading(delimiter=";"), isolated)
    assert lance_ops.dataset(str(tmp_path / "table.lance")).schema.field("n").type == kind
    number: Any = float if kind == pa.float64() else Decimal
    assert [row["n"] for row in rows] == [*map(number, cells), None]


@pytest.mark.parametrize("form", ['[{{"x": {}}}]', '{{"x": [{}]}}'])
def test_they_do_so_within_lists_and_structs(tmp_path: Path, form: str) -> None:
    content = written("a.json", [str(each) for each in LARGE], form)
    found = json.dumps([row["n"] for row in load(tmp_path, "a.json", content, None)], default=int)
    assert all(str(each) in found for each in LARGE)


def test_longer_numbers_are_text_in_csv(tmp_path: Path) -> None:
    cells = ["1" * 38 + "2", "1" * 38 + "3"]
    rows = load(tmp_path, "a.csv", written("a.csv", cells, "{}"), None, TextReading(delimiter=";"))
    assert [row["n"] for row in rows[:2]] == cells


@BOTH
@pytest.mark.parametrize(
    ("cells", "kind"),
    [
        (["12,345,678,901,234,567,890", "1"], pa.decimal128(38, 0)),
        (["12,345", "12345678901234567890"], pa.decimal128(38, 0)),
        (["12,345,678,901,234,567,890", "1.5"], pa.float64()),
        (["1,000", "2.0"], pa.float64()),
    ],
)
def test_separators_of_thousands_do_not_cost_digits(
    tmp_path: Path, cells: list[str], kind: pa.DataType, isolated: bool
) -> None:
    text = TextReading(delimiter=";", thousands=",")
    rows = load(tmp_path, "a.csv", written("a.csv", cells, "{}"), None, text, isolated)
    assert lance_ops.dataset(str(tmp_path / "table.lance")).schema.field("n").type == kind
    assert [row["n"] for row in rows[:2]] == [
        float(each.replace(",", "")) if kind == pa.float64() else Decimal(each.replace(",", "")) for each in cells
    ]


@pytest.mark.parametrize("name", ["a.csv", "a.json"])
def test_a_column_that_is_added_keeps_the_digits_too(tmp_path: Path, name: str) -> None:
    content = written(name, [str(each) for each in LARGE], "{}")
    table = pa.schema([("id", pa.int64())])
    rows = load(tmp_path, name, content, table, TextReading(delimiter=";"), schema_mode=SchemaMode.ADD)
    assert [row["n"] for row in rows] == [*LARGE, None]
