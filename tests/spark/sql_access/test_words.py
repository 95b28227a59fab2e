"""Words of Spark's SQL with their positions."""

from __future__ import annotations

import pytest
from sqlglot import exp

from lance_ops.core.errors import InvalidInput
from lance_ops.spark.sql_access.expressions import parse_expression
from lance_ops.spark.sql_access.words import Kind, Reader, split_words


def test_words_are_where_they_stand_and_comments_are_none() -> None:
    text = "SELECT `a``b`, 'it\\'s; --', \"x\" -- end's\n/* /* in */ ' */ FROM t1.c2 WHERE x>=1.5e3"
    words = split_words(text)
    assert [word.value for word in words] == (
        ["SELECT", "a`b", ",", "it's; --", ",", "x", "FROM", "t1", ".", "c2", "WHERE", "x", ">", "=", "1.5e3"]
    )
    assert [words[i].kind for i in (0, 1, 2, 3, 14)] == [Kind.NAME, Kind.QUOTED, Kind.SIGN, Kind.TEXT, Kind.NUMBER]
    assert all(text[word.start : word.stop] for word in words)
    assert text[words[1].start : words[1].stop] == "`a``b`"


@pytest.mark.parametrize(
    ("text", "rest"),
    [
        ("a = 1 -- old\rAND b = 2", "a = 1 -- old\rAND b = 2"),
        ("a = 1 -- note \\\nOR b = 2", "a = 1"),
        ("a = '--' -- end", "a = '--'"),
    ],
)
def test_a_comment_ends_where_spark_ends_it(text: str, rest: str) -> None:
    assert Reader(text).rest("a condition") == rest
    tree = parse_expression(text)
    assert [column.name for column in tree.find_all(exp.Column)] == ["a", "b"][: 1 + rest.count("AND")]


def test_a_backslash_in_a_raw_text_escapes_nothing() -> None:
    words = split_words("r'C:\\' R\"\\\" or 'it\\'s'")
    assert [(word.kind, word.value) for word in words] == [
        (Kind.TEXT, "C:\\"),
        (Kind.TEXT, "\\"),
        (Kind.NAME, "or"),
        (Kind.TEXT, "it's"),
    ]


@pytest.mark.parametrize("text", ["SELECT 'a", "SELECT `a", "SELECT /* /* */ 1"])
def test_what_does_not_end_is_refused(text: str) -> None:
    with pytest.raises(InvalidInput, match="does not end"):
        split_words(text)


def test_a_part_ends_at_a_keyword_outside_of_brackets_and_case() -> None:
    reader = Reader("(a THEN b) + CASE WHEN x THEN y END THEN rest;")
    assert reader.until("THEN", what="x") == "(a THEN b) + CASE WHEN x THEN y END"
    reader.expect("THEN")
    assert reader.rest("x") == "rest"
    reader.end()
    with pytest.raises(InvalidInput, match=r"a condition is needed in place of the end"):
        reader.rest("a condition")
    with pytest.raises(InvalidInput, match=r"WHERE is needed in place of 'x'"):
        Reader("x y").expect("WHERE")


@pytest.mark.parametrize(
    "part",
    [
        "t.end + t.case",
        "CASE WHEN t.end > 1 THEN t.then END",
        "s.`end`.case",
        "t . then",
        "CASE t.case WHEN 1 THEN 2 END",
    ],
)
def test_a_name_behind_a_dot_is_no_keyword(part: str) -> None:
    reader = Reader(f"{part} THEN rest")
    assert reader.until("THEN", what="x") == part
    reader.expect("THEN", "REST")


@pytest.mark.parametrize("words", ["IS DISTINCT FROM", "is not distinct /* FROM */ from"])
def test_the_from_of_a_comparison_ends_no_part(words: str) -> None:
    reader = Reader(f"a {words} 5 FROM t")
    assert reader.until("FROM", what="a condition") == f"a {words} 5"
    assert reader.accept("FROM", "T")


def test_a_quoted_name_is_no_keyword() -> None:
    reader = Reader("`WHERE` x")
    assert not reader.accept("WHERE")
    assert reader.path("a name") == ("WHERE",)


def test_a_number_has_digits_of_ascii() -> None:
    assert Reader("3").number("a number") == 3
    with pytest.raises(InvalidInput, match="a number is needed in place of '\u0663'"):
        Reader("\u0663").number("a number")
