from __future__ import annotations

import re

import pytest
from fsspec.utils import glob_translate
from hypothesis import given, settings
from hypothesis import strategies as st

from lance_ops.dagster.declaration.patterns import KeyPattern, PathGlob
from lance_ops.errors import ConfigError

pytestmark = pytest.mark.dagster

SEGMENTS = st.text("ab*?[]!^", min_size=1, max_size=5).filter(lambda segment: "**" not in segment)
GLOBS = st.lists(SEGMENTS | st.just("**"), min_size=1, max_size=5).map("/".join)
PATHS = st.lists(st.text("ab[", min_size=1, max_size=4), min_size=1, max_size=5).map("/".join)


@settings(derandomize=True, max_examples=500, deadline=None)
@given(pattern=GLOBS, path=PATHS)
def test_a_glob_matches_what_fsspec_s_translation_matches(pattern: str, path: str) -> None:
    assert PathGlob(pattern).matches(path) == bool(re.compile(glob_translate(pattern)).match(path))


@pytest.mark.parametrize(
    ("pattern", "path", "expected"),
    [
        ("**", "a/b.csv", True),
        ("**/*.csv", "b.csv", True),
        ("*.csv", "a/b.csv", False),
        ("a/**", "a", False),
        ("a/**/b", "a/b", True),
        ("a/**/b/**/c", "a/x/b/c", True),
        ("a/**/b/**/b", "a/b", False),
        ("**/[0-9]?.csv", "x/y/1a.csv", True),
        ("[!_]*", "_a", False),
        ("*.csv", "a\nb.csv", True),
    ],
)
def test_a_glob_counts_segments_as_documented(pattern: str, path: str, expected: bool) -> None:
    assert PathGlob(pattern).matches(path) is expected


@pytest.mark.timeout(60)
@pytest.mark.parametrize("pattern", ["*a" * 100 + "b", "**/*a/" * 100 + "b", "*a" + "?*" * 100 + "[b]"])
def test_a_glob_that_makes_a_backtracking_engine_hang_answers(pattern: str) -> None:
    assert not PathGlob(pattern).matches("a" * 4000)
    assert not PathGlob(pattern).matches("/".join(["a" * 10] * 400))


@pytest.mark.timeout(60)
@pytest.mark.parametrize(
    "pattern", [r"(?P<key>(a+)+)$", r"(?P<key>(a|a)*)b$", r"(?P<key>(a?){60}a{60})c", r"(.*)*(?P<key>=.*)z"]
)
def test_a_key_that_makes_a_backtracking_engine_hang_answers(pattern: str) -> None:
    assert KeyPattern(pattern).search(["a" * 4000 + "!", "=" * 4000]) == [None, None]


def test_a_key_is_searched_and_an_empty_one_is_none() -> None:
    pattern = KeyPattern(r"(day|date)=(?P<key>[0-9(]*)")
    assert pattern.search(["x/day=20(24/a.csv", "x/date=/a.csv", "x/a.csv"]) == ["20(24", None, None]
    assert pattern.search([]) == []


@pytest.mark.parametrize(
    ("pattern", "expected"),
    [(r"\((?P<key>a)[(]", "(a("), (r"[](](?P<key>a)", "](a"), (r"[[:alpha:](](?P<key>a)(\))", "(a)")],
)
def test_parentheses_that_are_no_groups_stay(pattern: str, expected: str) -> None:
    assert KeyPattern(pattern).search([expected]) == ["a"]


@pytest.mark.parametrize("pattern", [r"(?P<key>a)(?=b)", r"(?P<key>a)\1", "((a{1000}){1000}){1000}(?P<key>b)"])
def test_a_key_that_needs_backtracking_or_much_memory_is_refused(pattern: str) -> None:
    with pytest.raises(ConfigError, match="not a regular expression of RE2"):
        KeyPattern(pattern)


def test_a_pattern_that_is_too_long_or_spans_a_part_of_a_segment_is_refused() -> None:
    with pytest.raises(ConfigError, match="1001 characters"):
        PathGlob("a" * 1001)
    with pytest.raises(ConfigError, match="1008 characters"):
        KeyPattern("(?P<key>" + "a" * 999 + ")")
    with pytest.raises(ConfigError, match="whole segment"):
        PathGlob("a**/b")
