"""What is guessed from the first bytes of text files, and what is left to a person."""

from __future__ import annotations

from dataclasses import fields
from typing import Any

import pytest

from lance_ops.dagster.project.text_guess import TextGuess, guess_text, joint_guess
from lance_ops.maintenance.ingest import TextReading

pytestmark = pytest.mark.dagster


def guess(text: str | bytes, *, is_csv: bool = True, is_whole: bool = True) -> TextGuess:
    return guess_text(text if isinstance(text, bytes) else text.encode(), is_csv=is_csv, is_whole=is_whole)


def changed(found: TextGuess) -> dict[str, Any]:
    """Return the options that are not the usual ones."""
    usual = TextReading()
    values = {each.name: getattr(found.reading, each.name) for each in fields(TextReading)}
    return {name: value for name, value in values.items() if value != getattr(usual, name)}


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("a,b\n1,x\n", {}),
        ("a\n1\n", {}),
        ("", {}),
        ("a;b\n1;2,5\n", {"delimiter": ";", "decimal_point": ","}),
        ("a;b\n1;2.5\n", {"delimiter": ";"}),
        ('a,b\n1,"2,50"\n', {"decimal_point": ","}),
        ('a|b\n1|"x;y;z"\n', {"delimiter": "|"}),
        ("Sales;;\n\nid;city;n\n1;Bern;2\n", {"delimiter": ";", "skip_lines": 2}),
        ("1;2\n3;4;5\n6;7;8\n", {}),
        ("id;a;A;\n1;x;y;\n", {"delimiter": ";", "distinct_names": True}),
        ("a,d\n1,31.12.2026\n2,\n", {"date_formats": ("%d.%m.%Y",)}),
        (
            "d,t\n01/02/2026,12/31/2026 10:00\n",
            {"date_formats": ("%m/%d/%Y",), "timestamp_formats": ("%m/%d/%Y %H:%M",)},
        ),
        ("a,d\n1,2026/01/02\n", {"date_formats": ("%Y/%m/%d",)}),
        ("a,d\n1,2026-01-02\n", {}),
        ("a,d\n1,31.12.2026\n2,soon\n", {}),
        ("a,d\n1,31.02.2026\n", {}),
    ],
)
def test_options_follow_from_what_all_rows_have(text: str, expected: dict[str, Any]) -> None:
    found = guess(text)
    assert changed(found) == expected
    assert found.doubts == () and found.text_columns == ()


@pytest.mark.parametrize("is_csv", [True, False], ids=["csv", "json"])
@pytest.mark.parametrize(
    ("encoding", "expected"),
    [
        ("utf-8", "utf-8"),
        ("utf-8-sig", "utf-8"),
        ("cp1252", "cp1252"),
        ("utf-16", "utf-16"),
        ("utf-16-le", "utf-16-le"),
    ],
)
def test_an_encoding_is_one_that_decodes_the_bytes(encoding: str, expected: str, is_csv: bool) -> None:
    found = guess("city,n\nZürich,1\nBern,2\n".encode(encoding), is_csv=is_csv)
    assert found.reading.encoding == expected
    assert found.special_words == (() if expected == "utf-8" else ("Zürich",))


def test_bytes_that_cp1252_lacks_are_latin_1() -> None:
    assert guess(b"city,n\nZ\x81\xfcrich,1\nBern,2\n").reading.encoding == "latin-1"


@pytest.mark.parametrize("num_bytes", range(10, 16))
def test_a_character_and_a_row_may_be_cut_at_the_end(num_bytes: int) -> None:
    start = "a;b\n1;2\n3;€€\n".encode()[:num_bytes]
    assert changed(guess(start, is_whole=False)) == {"delimiter": ";"}


def test_digits_that_are_no_numbers_are_text() -> None:
    long = "9" * 19
    found = guess(f"zip,n,iban,mixed\n01234,1,{long},01\n99999,0,1,x\n")
    assert found.text_columns == ("zip", "iban") and found.doubts == ()


@pytest.mark.parametrize(
    ("text", "doubt"),
    [
        ("a,d\n1,01/02/2026\n", "d: does the day or the month come first? Set text.date_formats to ['%d/%m/%Y'] or"),
        ("d,e\n31/01/2026,12/31/2026\n", "d: does the day or the month come first?"),
        ("a;n\n1;1,234\n", "n: does the comma of its numbers stand before a fraction, or between thousands?"),
        ('a;n\n1;"123 456"\n2;789 012\n', 'n: does " " stand between the thousands of its numbers?'),
        (
            "a;n\n1;1,234,567\n",
            'n: does "," stand between the thousands of its numbers? If so, set text.thousands: ","',
        ),
        ("a;n\n1;12\u00a0345\n", 'n: does "\\u00a0" stand between the thousands of its numbers?'),
        ("a;n\n1;1,234,567\n2;1,5\n", 'n: does "," stand between the thousands'),
        ("a;n;m\n1;1,5;2.5\n", "Some numbers have a comma before their fraction, some a point"),
        ("7,x\n8,y\n", "Is 7 a column's name?"),
    ],
)
def test_what_may_mean_two_things_is_a_doubt_and_no_guess(text: str, doubt: str) -> None:
    found = guess(text)
    assert found.doubts[0].startswith(doubt)
    assert changed(found).keys() <= {"delimiter"}


def test_files_of_a_dataset_tell_what_others_of_it_do_not() -> None:
    plain = guess("d;n;z\n01.02.2026;1;1\n")
    telling = guess("d;n;z\n01.02.2026;1,5;007\nZürich;1;1\n".encode("cp1252"))
    found = joint_guess([plain, telling])
    assert changed(found) == {
        "delimiter": ";",
        "encoding": "cp1252",
        "decimal_point": ",",
        "date_formats": ("%d.%m.%Y",),
    }
    assert (found.text_columns, found.special_words) == (("z",), ("Zürich",))


def test_files_that_contradict_each_other_about_days_leave_them_text_and_a_doubt() -> None:
    european, american = guess("d,n\n31/01/2026,1\n"), guess("d,n\n01/31/2026,1\n")
    found = joint_guess([european, american])
    assert changed(found) == {}
    (doubt,) = found.doubts
    assert doubt.startswith("d: does the day or the month come first?")


@pytest.mark.parametrize(
    ("newer", "older", "option", "values"),
    [
        ("n,c\n1,Zürich\n", "n,c\n1,Zürich\n".encode("cp1252"), "encoding", ("utf-8", "cp1252")),
        ("n,c\n1,Zürich\n".encode("cp1252"), "n,c\n1,Zürich\n", "encoding", ("cp1252", "utf-8")),
        ("n,c\n1,Bern\n", "n,c\n1,Bern\n".encode("utf-16"), "encoding", ("utf-8", "utf-16")),
        ("a;b\n1;2.5\n", "a;b\n1;2,5\n", "decimal_point", (".", ",")),
        ("a;b\n1;2,5\n", "a;b\n1;2.5\n", "decimal_point", (",", ".")),
        ("a;b\n1;2\n", "a,b\n1,2\n", "delimiter", (";", ",")),
        ("a,b\n1,2\n", "Sales,\n\na,b\n1,2\n", "skip_lines", (0, 2)),
    ],
)
def test_the_newer_of_two_files_that_differ_decides_and_a_doubt_says_so(
    newer: str | bytes, older: str | bytes, option: str, values: tuple[Any, Any]
) -> None:
    found = joint_guess([guess(newer), guess(older)])
    assert getattr(found.reading, option) == values[0]
    (doubt,) = found.doubts
    assert doubt.startswith(f"text.{option} is {values[0]!r} by the newest file that shows it, and {values[1]!r} by")
    assert found.special_words == (("Zürich",) if found.reading.encoding == "cp1252" else ())


@pytest.mark.parametrize(
    ("newer", "older", "expected"),
    [
        ("d,n\n01/02/2026,1\n", "d,n\n31/01/2026,1\n", {"date_formats": ("%d/%m/%Y",)}),
        (
            "d,n\n01/02/2026,1\n",
            "t,n\n12/31/2026 10:00,1\n",
            {"date_formats": ("%m/%d/%Y",), "timestamp_formats": ("%m/%d/%Y %H:%M",)},
        ),
        ("a;n\n1;1,234\n", "a;n\n1;1,5\n", {"delimiter": ";", "decimal_point": ","}),
        ("a\n1\n", "a;a\n1;2\n", {"delimiter": ";", "distinct_names": True}),
    ],
)
def test_a_doubt_that_another_file_answers_is_none(newer: str, older: str, expected: dict[str, Any]) -> None:
    found = joint_guess([guess(newer), guess(older)])
    assert (changed(found), found.doubts) == (expected, ())
    assert joint_guess([guess(older), guess(newer)]).doubts == ()


@pytest.mark.parametrize(
    ("numbers", "expected"),
    [
        ("1,234.50", {"thousands": ","}),
        ("1.234,50", {"thousands": ".", "decimal_point": ","}),
        ("1 234,50", {"thousands": " ", "decimal_point": ","}),
        ("1\u202f234,5", {"thousands": "\u202f", "decimal_point": ","}),
        ("1'234'567|999", {"thousands": "'"}),
        ("1,234,567|1,234|7", {"thousands": ","}),
        ("1.234.567|7", {"thousands": ".", "decimal_point": ","}),
        ("-1.234,50|1.234|12,5", {"thousands": ".", "decimal_point": ","}),
        ("1,234.50|x", {}),
        ("01,234.50", {}),
        ("1,23,456.50", {}),
        ("1,234,50", {}),
    ],
)
def test_separators_of_thousands_are_guessed_where_numbers_tell(numbers: str, expected: dict[str, Any]) -> None:
    found = guess("a;n\n" + "".join(f'x;"{number}"\n' for number in numbers.split("|")))
    assert (changed(found), found.doubts) == ({"delimiter": ";"} | expected, ())


def test_one_column_tells_what_the_comma_and_the_point_of_others_are() -> None:
    found = guess("a;b;c;d\n1,5;1.234,50;1,234;1.234\n")
    assert (changed(found), found.doubts) == ({"delimiter": ";", "decimal_point": ",", "thousands": "."}, ())
    found = guess("a;b\n1,234.50;1,234\n")
    assert (changed(found), found.doubts) == ({"delimiter": ";", "thousands": ","}, ())


@pytest.mark.parametrize(
    ("columns", "shown"),
    [("1,234.50;1.234,50", ',", "."'), ("1 234,50;1'234,50", '" ", "\'", ","'), ("1,234.5;1,5", '",", "."')],
)
def test_columns_that_contradict_each_other_leave_thousands_text_and_a_doubt(columns: str, shown: str) -> None:
    found = guess(f"a;b\n{columns}\n")
    assert found.reading.thousands == ""
    assert found.doubts[-1].startswith("Numbers have several separators of thousands, or of fractions: ")
    assert shown in found.doubts[-1]


def test_files_that_contradict_each_other_about_numbers_can_be_read() -> None:
    found = joint_guess([guess("a;b\nx;1,5\n"), guess("a;b\nx;1,234.50\n")])
    assert (found.reading.decimal_point, found.reading.thousands) == (",", "")
    assert found.reading.flaw() is None
    assert [doubt.partition(" is ")[0] for doubt in found.doubts] == ["text.decimal_point"]


def test_columns_have_the_names_that_ingestion_gives_them() -> None:
    found = guess("id;a;A;;d;d\n1;x;007;008;01/02/2026;31/01/2026\n")
    assert found.text_columns == ("A_2", "column_4")
    assert changed(found) == {"delimiter": ";", "distinct_names": True, "date_formats": ("%d/%m/%Y",)}
    found = guess("id;d;d\n1;01/02/2026;02/01/2026\n")
    assert [doubt.partition(":")[0] for doubt in found.doubts] == ["d", "d_2"]


@pytest.mark.parametrize("content", [b"name\nJos\xe9\n", b"name\nJos\xe9", b"\xe9"])
def test_the_last_bytes_of_a_whole_file_count(content: bytes) -> None:
    assert guess(content).reading.encoding == "cp1252"


def test_the_header_may_stand_below_an_empty_line() -> None:
    assert changed(guess("\nid;a;a\n1;2;3\n")) == {"delimiter": ";", "distinct_names": True}
