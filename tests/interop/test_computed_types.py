"""Computed columns have the reference's types and values where operands of several integer types or constants meet."""

from __future__ import annotations

from itertools import product
from pathlib import Path
from random import Random

import pytest

import lance_ops
from tests.fuzz.predicates.answers import Form, ask_ours, ask_theirs
from tests.fuzz.predicates.proof import Subject
from tests.fuzz.predicates.tables import rows

lance = pytest.importorskip("lance", reason="pylance, the reference implementation, is not installed")
pytestmark = pytest.mark.interop

INTEGERS = ("i8", "i16", "i32", "i64", "u8", "u16", "u32", "u64")
CHOICES = [f"{name}({left}, {right})" for name, left, right in product(("coalesce", "nullif"), INTEGERS, INTEGERS)]
OTHERS = [
    "array_length(ints) + 1",
    "array_length(ints) % 7",
    "(u64 + 1) + 1",
    "(u64 % 7) * 2",
    "- TRY_CAST(-1 AS TINYINT)",
    "u32 + (CAST(0 AS SMALLINT) - 7)",
    "u8 + CAST(7 AS SMALLINT)",
    "f32 + CAST('NaN' AS DOUBLE)",
    "arrow_cast(- coalesce(i8, u16), 'Int64')",
    "CAST((i8 % 7) + (i8 % 7) AS BIGINT)",
    "coalesce(f64, -0.0)",
    "u64 % 18446744073709551615",
]


@pytest.fixture(scope="module")
def subject(tmp_path_factory: pytest.TempPathFactory) -> Subject:
    uri = str(tmp_path_factory.mktemp("types") / "t")
    lance.write_dataset(rows(Random(1), 0, 40), uri)
    return Subject("a table", lance_ops.dataset(uri), lance.dataset(uri), lance)


@pytest.mark.parametrize("text", [*CHOICES, *OTHERS])
def test_a_computed_column_has_the_type_and_the_values_of_the_reference(subject: Subject, text: str) -> None:
    ours, theirs = (
        ask(side, Form.COLUMN, text) for ask, side in ((ask_ours, subject.ours), (ask_theirs, subject.theirs))
    )
    assert not ours.error and ours.same_as(theirs), f"{ours}\n{theirs}"


@pytest.mark.parametrize(
    ("text", "same"),
    [
        (
            "paris < timestamp '2020-03-29 02:30:00'",
            "paris <= arrow_cast('2020-03-29T00:59:59.999Z', 'Timestamp(ms, Some(\"UTC\"))')",
        ),
        ("coalesce(paris, timestamp '2020-03-29 02:30:00') = timestamp '2020-03-29 02:30:00'", "paris IS NULL"),
        ("i64 > -9223372036854775808", "i64 IS NOT NULL"),
        ("i64 < 9223372036854775808", "i64 IS NOT NULL"),
        ("u64 = 18446744073709551615", "u64 > 18446744073709551614"),
        ("CAST(wide AS BOOLEAN)", "wide != 0"),
    ],
)
def test_two_filters_select_the_same_rows(subject: Subject, text: str, same: str) -> None:
    first, second = (ask_ours(subject.ours, Form.FILTER, each) for each in (text, same))
    assert first.values and first.values == second.values


def test_the_reference_is_asked(subject: Subject, tmp_path: Path) -> None:
    other = lance.write_dataset(rows(Random(2), 0, 40), str(tmp_path / "t"))
    assert not ask_ours(subject.ours, Form.COLUMN, "i8").same_as(ask_theirs(other, Form.COLUMN, "i8"))
