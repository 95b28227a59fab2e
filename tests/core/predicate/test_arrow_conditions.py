"""pyarrow evaluates the conditions of an expression that have no translation into the tree."""

from __future__ import annotations

import pickle

import pyarrow as pa
import pyarrow.compute as pc
import pytest

from lance_ops.core.errors import InvalidFilter, UnsupportedFeature
from lance_ops.core.predicate import And, Compare, Predicate, parse_filter
from lance_ops.core.predicate.arrow.arrow_condition import ArrowCondition

ROWS = pa.table(
    {
        "i": pa.array([1, 2, 3, 4, None, 6], pa.int32()),
        "s": ["a", "B", None, "ab", "b", "a"],
        "st": [{"x": 1, "y": 2}, {"x": 2, "y": 2}, None, {"x": None, "y": 0}, {"x": 5, "y": 1}, {"x": 6, "y": 3}],
    }
)
INT, S, X = pc.field("i"), pc.field("s"), pc.field("st", "x")
ODD = pc.bit_wise_and(INT, 1) == 1


def parsed(expression: pc.Expression) -> Predicate:
    return parse_filter(expression, ROWS.schema, whatever_arrow_can=True)


def kept(predicate: Predicate) -> list[int]:
    mask = predicate.mask(ROWS).fill_null(False).to_pylist()
    return [row for row, matches in enumerate(mask) if matches]


@pytest.mark.parametrize(
    ("expression", "expected"),
    [
        (ODD, [0, 2]),
        (ODD | (S == "a"), [0, 2, 5]),
        (~ODD, [1, 3, 5]),
        ((INT > 1) & ODD & S.is_null(), [2]),
        (pc.starts_with(S, "A", ignore_case=True) & (X > 1), [5]),
        (pc.bit_wise_or(X, 1) == 1, [0]),
        (pc.utf8_reverse(S) == S, [0, 1, 4, 5]),
    ],
    ids=str,
)
def test_pyarrow_evaluates_a_condition_without_a_translation(expression: pc.Expression, expected: list[int]) -> None:
    numbered = ROWS.append_column("row", pa.array(range(len(ROWS))))
    assert numbered.filter(expression)["row"].to_pylist() == expected
    assert kept(parsed(expression)) == expected


def test_pyarrow_evaluates_only_the_conjuncts_without_a_translation() -> None:
    predicate = parsed((INT > 1) & (ODD & (S == "a")))
    assert isinstance(predicate, And)
    first, second, third = predicate.parts
    assert isinstance(first, Compare)
    assert isinstance(second, ArrowCondition)
    assert isinstance(third, Compare)
    assert (first.columns(), second.columns(), third.columns()) == (("i",), ("i",), ("s",))
    assert "bit_wise_and" in predicate.to_sql()
    assert parsed(X > 3).columns() == ("st.x",)


def test_an_arrow_condition_can_be_pickled_hashed_and_compared() -> None:
    condition = parsed(ODD)
    sent = pickle.loads(pickle.dumps(condition))
    assert sent == condition
    assert hash(sent) == hash(condition)
    assert kept(sent) == [0, 2]
    assert parsed(pc.bit_wise_and(INT, 1) == 0) != condition


def test_without_whatever_arrow_can_a_condition_without_a_translation_is_refused() -> None:
    with pytest.raises(UnsupportedFeature, match="function bit_wise_and"):
        parse_filter(ODD, ROWS.schema)


@pytest.mark.parametrize(
    ("expression", "error", "words"),
    [
        (pc.bit_wise_and(pc.field("I"), 1) == 1, InvalidFilter, "no column 'I'"),
        (pc.bit_wise_and(S, 1) == 1, UnsupportedFeature, "function bit_wise_and"),
        (INT + 1, InvalidFilter, "not a condition"),
    ],
    ids=str,
)
def test_a_condition_that_pyarrow_cannot_evaluate_either_is_refused(
    expression: pc.Expression, error: type[Exception], words: str
) -> None:
    with pytest.raises(error, match=words):
        parsed(expression)


def test_pyarrow_does_not_evaluate_conditions_on_extension_columns() -> None:
    stored = pa.schema([pa.field("j", pa.large_binary(), metadata={"ARROW:extension:name": "lance.json"})])
    with pytest.raises(UnsupportedFeature, match="function binary_reverse"):
        parse_filter(pc.binary_reverse(pc.field("j")) == b"", stored, whatever_arrow_can=True)


def test_membership_with_a_null_check_becomes_plain_membership() -> None:
    null = pa.scalar(None, pa.bool_())
    among = S.isin(["a", "b"])
    assert parse_filter(pc.if_else(S.is_valid(), among, null), ROWS.schema) == parse_filter(among, ROWS.schema)
    assert parse_filter(pc.if_else(S.is_valid(), ~among, null), ROWS.schema) == parse_filter(~among, ROWS.schema)
    other = parse_filter(pc.if_else(INT.is_valid(), among, null), ROWS.schema)
    assert kept(other) == [0, 5]
    assert kept(parse_filter(~pc.if_else(INT > 2, among, null), ROWS.schema)) == [3]
