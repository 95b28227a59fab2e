"""Long lists and chains of `=` give the predicate that the parser gives, without a node and a call for each item."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lance_ops.core.errors import InvalidFilter, LanceOpsError
from lance_ops.core.predicate import In, parse_filter
from lance_ops.core.predicate.sql import parsing
from lance_ops.core.predicate.sql.long_lists import LEAST_ITEMS, TakenOut, take_out_long_lists

SCHEMA = pa.schema(
    [
        ("i8", pa.int8()),
        ("u64", pa.uint64()),
        ("i64", pa.int64()),
        ("f16", pa.float16()),
        ("f32", pa.float32()),
        ("f64", pa.float64()),
        ("dec", pa.decimal128(8, 2)),
        ("s", pa.string()),
        ("large", pa.large_string()),
        ("word", pa.dictionary(pa.int8(), pa.string())),
        ("raw", pa.binary()),
        ("day", pa.date32()),
        ("a b", pa.int64()),
        ("st", pa.struct([("x", pa.int32())])),
    ]
)
COLUMNS = ["i8", "u64", "i64", "f16", "f32", "f64", "dec", "s", "large", "word", "raw", "day", "`a b`", "st.x", "I64"]
NUMBERS = st.one_of(
    st.integers(-(10**18), 10**19).map(str),
    st.integers(-200, 200).map(str),
    st.floats(-300, 300, allow_nan=False).map(lambda number: f"{number:.3f}"),
    st.sampled_from(["-0.0", "0.0", "007", "65504.0", "65520.0", "123456789012345678.5", "0.1"]),
)
TEXTS = st.one_of(
    st.text("ab, OR=é😀()`\\%", max_size=4).map(lambda text: f"'{text}'"),
    st.sampled_from(["''", "'2020-01-01'", "'it''s'", "'1.25'", "'x\ny'", '"double"', "'a\"b'", "'IN (1)'"]),
)
ODD = st.sampled_from(["NULL", "- 5", "1e3", "X'41'", "date '2020-01-01'", "CAST(1 AS INT)", "(1)", "i64", "1 -- a\n"])
SPACE = st.sampled_from(["", " ", "\n", "\t ", "\u00a0"])
CONTEXTS = st.sampled_from(
    [
        "{}",
        "NOT {}",
        "NOT ({})",
        "({}) AND s = 'a, b'",
        "{} AND i64 > 3",
        "s = 'x' OR {}",
        "{} OR s = 'x'",
        "i64 > 3 AND {}",
        "{} IS TRUE",
        "({}) = true",
        "CASE WHEN {} THEN true ELSE s = 'it''s' END",
        "/* IN ( */ {}",
        "{} -- a comment",
        "s = ' IN (' OR {}",
        "`a b` = 1 AND ({})",
        "s = 'list 1' OR {}",
    ]
)


@st.composite
def filters(draw: st.DrawFn) -> str:
    """Draw a filter with one or two long lists, most of them of plain literals of one kind."""
    parts = [draw(_membership()) for _ in range(draw(st.integers(1, 2)))]
    return draw(CONTEXTS).format(draw(st.sampled_from([" AND ", " OR "])).join(parts))


@st.composite
def _membership(draw: st.DrawFn) -> str:
    few = draw(st.lists(draw(st.sampled_from([NUMBERS, TEXTS])), min_size=1, max_size=5))
    count = LEAST_ITEMS + draw(st.integers(-1, 3))
    items = [few[place % len(few)] for place in range(count)]
    if draw(st.integers(0, 3)) == 0:
        items[draw(st.integers(0, count - 1))] = draw(ODD)
    column, space = draw(st.sampled_from(COLUMNS)), draw(SPACE)
    if draw(st.booleans()):
        word = draw(st.sampled_from(["IN", "in", "NOT IN"]))
        return f"{column} {word}{space}({space}{f'{space},{space}'.join(items)}{space})"
    word = draw(st.sampled_from(["OR", "or"]))
    return f" {word} ".join(f"{column}{space}={space}{item}" for item in items)


def outcome(text: str) -> Any:
    """Return the predicate as SQL and as a tree, or the kind of error."""
    try:
        predicate = parse_filter(text, SCHEMA)
    except LanceOpsError as error:
        return type(error)
    return predicate.to_sql(), predicate


@given(filters())
def test_a_long_list_gives_the_predicate_of_the_parser(text: str) -> None:
    fast = outcome(text)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(parsing, "take_out_long_lists", lambda text: TakenOut(text, {}))
        assert fast == outcome(text)


PLAIN = [
    "i64 IN ({})",
    "NOT (i64 IN ({}))",
    "i64 not in ( {} )",
    "s = 'it' AND i64 IN ({})",
    "`a b` IN ({}) OR f64 in({})",
]


@pytest.mark.parametrize("text", PLAIN)
@pytest.mark.parametrize("item", ["{}", "-{}", "{}.5", "'{}'"])
def test_plain_lists_do_not_reach_the_parser(text: str, item: str) -> None:
    items = ", ".join(item.format(number) for number in range(LEAST_ITEMS))
    taken = take_out_long_lists(text.replace("{}", items))
    assert len(taken.lists) == text.count("{}")
    assert len(taken.text) < 60


@pytest.mark.parametrize(
    "text",
    [
        "s = 'i64 IN ({})'",
        "`i64 IN ({})` = 1",
        "i64 IN ({}, NULL)",
        "i64 -- IN ({})",
        "/* i64 IN ({}) */ true",
        "i64.IN ({})",
    ],
)
def test_lists_that_are_not_plain_stay(text: str) -> None:
    text = text.format(", ".join(map(str, range(LEAST_ITEMS))))
    assert take_out_long_lists(text) == TakenOut(text, {})


@pytest.mark.parametrize("context", ["{} AND f64 > 1", "NOT {}", "1 + {}", "f64 < {}", "i8.{}"])
def test_a_chain_beside_an_operator_stays(context: str) -> None:
    text = context.format(" OR ".join(f"i64 = {number}" for number in range(LEAST_ITEMS)))
    assert take_out_long_lists(text).text == text


def test_the_name_of_a_list_is_not_a_text_of_the_filter() -> None:
    items = ", ".join(f"'{number}'" for number in range(LEAST_ITEMS))
    predicate = parse_filter(f"s IN ('list 1') OR s IN ({items})", SCHEMA)
    mask = predicate.mask(pa.table({"s": ["list 1", "5", "x"]}))
    assert mask.to_pylist() == [True, True, False]


def calls(action: Callable[[], Any]) -> int:
    """Return how many Python functions an action calls."""
    count = 0

    def profile(_: Any, event: str, __: Any) -> None:
        nonlocal count
        count += event == "call"

    sys.setprofile(profile)
    try:
        action()
    finally:
        sys.setprofile(None)
    return count


def _texts(count: int) -> Iterator[str]:
    yield f"i64 IN ({', '.join(map(str, range(count)))})"
    yield f"s IN ({', '.join(map(repr, map(str, range(count))))})"
    yield f"f32 IN ({', '.join(f'{number}.5' for number in range(count))})"
    yield " OR ".join(f"i64 = {number}" for number in range(count))
    yield " OR ".join(f"s = '{number}'" for number in range(count))


def test_the_calls_do_not_grow_with_the_list() -> None:
    for text in _texts(100):
        parse_filter(text, SCHEMA)  # imports
    for short, long in zip(_texts(100), _texts(20_000), strict=True):
        few, many = (calls(partial(parse_filter, text, SCHEMA)) for text in (short, long))
        assert many <= few + 20
        predicate = parse_filter(long, SCHEMA)
        assert isinstance(predicate, In) and len(predicate.values) == 20_000


def test_alternatives_of_several_columns_become_one_membership_each() -> None:
    text = " OR ".join(f"{column} = {number % 100}" for number in range(3000) for column in ("i8", "i64", "f64"))
    predicate = parse_filter(text, SCHEMA)
    found = [node for node in predicate.walk() if isinstance(node, In)]
    assert sorted(node.operand.to_sql() for node in found) == ["f64", "i64", "i8"]
    assert len(list(predicate.walk())) == 7


def test_an_error_shows_a_part_of_a_long_filter() -> None:
    with pytest.raises(InvalidFilter) as caught:
        parse_filter(f"i64 IN ({', '.join(map(str, range(20_000)))}", SCHEMA)
    assert len(str(caught.value)) < 2000
