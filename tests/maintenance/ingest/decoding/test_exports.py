"""CSV as spreadsheets export it: titles, empty lines, names that occur twice, other encodings and delimiters."""

from __future__ import annotations

import datetime as dt
import io
from pathlib import Path

import pytest

from lance_ops.errors import RawFileRefused, SchemaMismatch
from lance_ops.maintenance.ingest import TextReading
from tests.maintenance.ingest.decoding.text_files import BOTH, load

EXPORTED = TextReading(
    delimiter=";",
    encoding="cp1252",
    decimal_point=",",
    skip_lines=2,
    distinct_names=True,
    date_formats=("%d.%m.%Y",),
    timestamp_formats=("%d.%m.%Y %H:%M",),
)
EXPORT = """\
Umsätze;;;;;

Ort;Betrag;Tag;Um;ort;
Zürich;12,5;31.12.2026;31.12.2026 10:00;a;
"Köln
Süd";7;;;b;
"""


@BOTH
def test_the_export_of_a_spreadsheet_is_read_without_a_schema(tmp_path: Path, isolated: bool) -> None:
    rows = load(tmp_path, "a.csv", EXPORT.encode("cp1252"), None, EXPORTED, isolated)
    assert rows == [
        {
            "Ort": "Zürich",
            "Betrag": 12.5,
            "Tag": dt.date(2026, 12, 31),
            "Um": dt.datetime(2026, 12, 31, 10),
            "ort_2": "a",
            "column_6": None,
        },
        {"Ort": "Köln\nSüd", "Betrag": 7.0, "Tag": None, "Um": None, "ort_2": "b", "column_6": None},
    ]
    bad = (EXPORT + "Bern;viel;;;c;\n").encode("cp1252")
    with pytest.raises(RawFileRefused, match=r"b\.csv: line 7: column 'Betrag': 'viel' is no double"):
        load(tmp_path, "b.csv", bad, None, EXPORTED, isolated)


@BOTH
@pytest.mark.parametrize(
    ("content", "reason"),
    [
        ("Ort;n\nZürich;1\n".encode("cp1252"), "column 'Ort': a cell is not UTF-8: set the file's encoding"),
        (b"n;n\n1;2\n", "two of its columns have the same name, 'n': set distinct_names"),
        (b"a,b\n1,2;3\n", "line 2: it has 2 cells, and the header has 1: set the delimiter ','"),
        ("Ort;n\nZürich;1\n".encode("utf-16"), "it is UTF-16: set the file's encoding to utf-16"),
    ],
    ids=["encoding", "names", "delimiter", "utf-16"],
)
def test_a_file_that_needs_an_option_names_it(tmp_path: Path, content: bytes, reason: str, isolated: bool) -> None:
    with pytest.raises((RawFileRefused, SchemaMismatch), match=rf"a\.csv: {reason}"):
        load(tmp_path, "a.csv", content, None, TextReading(delimiter=";"), isolated)
    assert not (tmp_path / "table.lance").exists()


@BOTH
@pytest.mark.parametrize("distinct_names", [False, True], ids=["plain", "distinct"])
@pytest.mark.parametrize(
    ("before", "skip_lines"),
    [("\n", 0), ("\r\n", 0), ("\r\n\r\n", 0), ("Title\n\n", 1), ("\nTitle;2026\n\n\n", 2), ("\ufeff\n", 0)],
)
def test_empty_lines_before_a_header_cost_no_row(
    tmp_path: Path, before: str, skip_lines: int, distinct_names: bool, isolated: bool
) -> None:
    text = TextReading(delimiter=";", skip_lines=skip_lines, distinct_names=distinct_names)
    expected = [{"id": 1, "city": "x"}, {"id": 2, "city": "y\nz"}]
    assert load(tmp_path, "a.csv", f'{before}id;city\n1;x\n\n2;"y\nz"\n', None, text, isolated) == expected
    bad = f"{before}id;city\n1;x\n\nmany;y\n"
    with pytest.raises(RawFileRefused, match=rf"b\.csv: line {bad.count(chr(10))}: column 'id': 'many' is no int64"):
        load(tmp_path, "b.csv", bad, None, text, isolated)


def test_names_below_an_empty_line_are_numbered_or_refused(tmp_path: Path) -> None:
    content = '\n"id";"a\nb";"a\nb";\n1;2;3;4\n5;6;7;8\n'
    with pytest.raises(RawFileRefused, match="two of its columns have the same name"):
        load(tmp_path, "a.csv", content, None, TextReading(delimiter=";"))
    rows = load(tmp_path, "a.csv", content, None, TextReading(delimiter=";", distinct_names=True))
    assert [list(row.items()) for row in rows] == [
        [("id", 1), ("a\nb", 2), ("a\nb_2", 3), ("column_4", 4)],
        [("id", 5), ("a\nb", 6), ("a\nb_2", 7), ("column_4", 8)],
    ]


def test_skipping_more_lines_than_a_file_has_ends_at_its_end(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    num_read = 0

    class Counted(io.StringIO):
        def readline(self, size: int | None = -1) -> str:  # type: ignore[override]  # as in StringIO
            nonlocal num_read
            num_read += 1
            return super().readline(-1 if size is None else size)

    monkeypatch.setattr(io, "StringIO", Counted)
    with pytest.raises(RawFileRefused, match=r"a\.csv: "):
        load(tmp_path, "a.csv", "id\n1\n", None, TextReading(skip_lines=1_000_000))
    assert 0 < num_read < 100
