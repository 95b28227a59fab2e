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
from lance_ops.errors import RawFileRefused
from lance_ops.maintenance.ingest import IngestOptions, RawReading, TextReading, ingest
from tests.maintenance.ingest.decoding.text_files import BOTH, batch, load

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


def test_a_sign_does_not_cost_digits(tmp_path: Path) -> None:
    cells = [f"+{LARGE[0]}", "+" + "9" * 38]
    rows = load(tmp_path, "a.csv", written("a.csv", cells, "{}"), None, TextReading(delimiter=";"))
    assert [row["n"] for row in rows] == [Decimal(LARGE[0]), Decimal("9" * 38), None]


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
        (["+12,345,678,901,234,567,890", "-1"], pa.decimal128(38, 0)),
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


@BOTH
@pytest.mark.parametrize("cell", ["x", "0.5", "1" * 39])
@pytest.mark.parametrize("name", ["a.csv", "a.json"])
def test_what_is_no_such_decimal_is_refused_by_its_line(tmp_path: Path, name: str, cell: str, isolated: bool) -> None:
    content = written(name, ["1", '"x"' if (name, cell) == ("a.json", "x") else cell], "{}")
    table = pa.schema([("id", pa.int64()), ("n", pa.decimal128(38, 0))])
    line = 3 if name == "a.csv" else 2
    wider = "double" if cell == "0.5" else "string"
    reason = (
        rf"{name}: line {line}: column 'n': .*{cell}.* is no decimal128\(38, 0\); mend the file, or make the column"
    )
    with pytest.raises(RawFileRefused, match=f"{reason} {wider}"):
        load(tmp_path, name, content, table, TextReading(delimiter=";"), isolated)


@pytest.mark.parametrize("name", ["a.csv", "a.json"])
def test_a_column_that_is_added_keeps_the_digits_too(tmp_path: Path, name: str) -> None:
    content = written(name, [str(each) for each in LARGE], "{}")
    table = pa.schema([("id", pa.int64())])
    rows = load(tmp_path, name, content, table, TextReading(delimiter=";"), schema_mode=SchemaMode.ADD)
    assert [row["n"] for row in rows] == [*LARGE, None]


@pytest.mark.parametrize(
    ("others", "kind"),
    [
        (["1", "2"], pa.decimal128(38, 0)),
        (["0.5"], pa.float64()),
    ],
    ids=["short numbers", "fractions"],
)
@pytest.mark.parametrize("large_first", [False, True])
def test_files_of_a_new_table_agree_on_the_type_of_large_numbers(
    tmp_path: Path, others: list[str], kind: pa.DataType, large_first: bool
) -> None:
    contents = [["n", *map(str, LARGE)], ["n", *others]]
    contents = contents if large_first else contents[::-1]
    batches = [batch(tmp_path / f"{at}.csv", "\n".join(lines).encode()) for at, lines in enumerate(contents)]
    ingest(str(tmp_path / "t"), batches, options=IngestOptions(reading=RawReading(isolated=False)))
    found = lance_ops.dataset(str(tmp_path / "t")).to_table()["n"]
    assert found.type == kind
    number: Any = float if kind == pa.float64() else Decimal
    assert found.to_pylist() == [number(cell) for lines in contents for cell in lines[1:]]
