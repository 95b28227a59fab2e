"""Every function and operator gives the reference's answers on special values, but for a list of known differences."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Any
from zlib import crc32

import pyarrow as pa
import pytest

import lance_ops
from lance_ops.core.errors import InvalidFilter, LanceOpsError, UnsupportedFeature
from lance_ops.core.predicate import parse_value
from lance_ops.core.schema import Schema
from tests.interop.predicate_semantics import TABLE, contexts, expressions

lance = pytest.importorskip("lance", reason="pylance, the reference implementation, is not installed")
pytestmark = pytest.mark.interop

AT_ONCE = 64  # expressions in one scan
RAISES = "raises"
SCHEMA = Schema.from_arrow(TABLE.schema).to_arrow_storage()
DIFFERENCES = Path(__file__).parents[2] / "docs" / "differences.md"
SHARE = 16
"""The usual run tests each expression whose checksum is a multiple of this; `make soak` tests all."""


class Outcome(StrEnum):
    """How two libraries' answers differ."""

    TYPES = "other types"
    VALUES = "other values"
    OURS_RAISES = "ours raises for some values"
    THEIRS_RAISES = "theirs raises for some values"
    OURS_REFUSES = "ours refuses the expression"
    THEIRS_REFUSES = "theirs refuses the expression"


@dataclass(frozen=True)
class Known:
    """A difference that `docs/differences.md` explains under this title; `example` is an expression that shows it.

    With `rows`, answers may differ in these rows alone.
    """

    title: str
    example: str
    pattern: str
    outcomes: tuple[Outcome, ...]
    rows: frozenset[int] | None = None

    def covers(self, found: Difference) -> bool:
        if found.outcome not in self.outcomes or re.search(self.pattern, found.text) is None:
            return False
        return self.rows is None or found.rows <= self.rows


@dataclass(frozen=True)
class Difference:
    """An expression with different answers in some rows; of a filter that fails, and of types, none are known."""

    text: str
    outcome: Outcome
    detail: str
    rows: frozenset[int]


class Side:
    """A library with the table, as one fragment and as one fragment for each row."""

    def __init__(self, library: Any, root: Path) -> None:
        self.whole = library.dataset(str(root / "whole"))
        self.fragments = library.dataset(str(root / "rows")).get_fragments()

    def columns(self, texts: Sequence[str]) -> list[pa.ChunkedArray | None]:
        """Return the computed column of each expression; None for one that raises."""
        if not texts:
            return []
        try:
            return computed(self.whole, texts)
        except BaseException as error:  # noqa: BLE001 the reference's panics derive from it
            check_type(error)
        if len(texts) == 1:
            return [None]
        middle = len(texts) // 2
        return [*self.columns(texts[:middle]), *self.columns(texts[middle:])]

    def rows(self, text: str) -> list[str]:
        """Return the expression's value of each row, computed row by row."""
        return [self._row(fragment, text) for fragment in self.fragments]

    def _row(self, fragment: Any, text: str) -> str:
        try:
            (column,) = computed(fragment, [text])
        except BaseException as error:  # noqa: BLE001 the reference's panics derive from it
            check_type(error)
            return RAISES
        return plain(column)[0]

    def matches(self, text: str) -> Any:
        """Return the ids of the rows that a filter selects."""
        try:
            return self.whole.to_table(columns=["id"], filter=text).column("id").to_pylist()
        except BaseException as error:  # noqa: BLE001 the reference's panics derive from it
            check_type(error)
            return RAISES


def computed(source: Any, texts: Sequence[str]) -> list[pa.ChunkedArray]:
    names = [f"column {number}" for number in range(len(texts))]
    table = source.to_table(columns={"id": "id", **dict(zip(names, texts, strict=True))})
    return [table.column(name) for name in names]


def check_type(error: BaseException) -> None:
    """Raise an error that is not a library's answer."""
    is_answer = isinstance(error, (LanceOpsError, ValueError, OSError, RuntimeError, NotImplementedError))
    if not is_answer and type(error).__module__ != "pyo3_runtime":
        raise error


def plain(column: pa.ChunkedArray) -> list[str]:
    """Return values as text that shows the sign of zeros; any NaN is `nan`."""
    if pa.types.is_temporal(column.type):
        column = column.cast(pa.int32() if column.type.bit_width == 32 else pa.int64())
    return [repr(value.as_py()) for value in column]


def type_name(column: pa.ChunkedArray) -> str:
    """Return the name of a type; text is one type."""
    return str(column.type).replace("string_view", "string").replace("large_string", "string")


def compare(
    sides: tuple[Side, Side], text: str, our: pa.ChunkedArray | None, their: pa.ChunkedArray | None
) -> Difference | None:
    """Return how two computed columns differ; None if they do not."""
    ours, theirs = sides
    if our is not None and their is not None:
        if type_name(our) != type_name(their):
            return Difference(text, Outcome.TYPES, f"{our.type}, {their.type}", frozenset())
        pairs = list(zip(plain(our), plain(their), strict=True))
    else:
        pairs = list(zip(ours.rows(text), theirs.rows(text), strict=True))
    rows = frozenset(row for row, (left, right) in enumerate(pairs) if left != right)
    if not rows:
        return None
    wrong = [pairs[row] for row in sorted(rows)]
    if all(left == RAISES for left, _ in wrong):
        outcome = Outcome.OURS_REFUSES if len(wrong) == len(pairs) else Outcome.OURS_RAISES
    elif all(right == RAISES for _, right in wrong):
        outcome = Outcome.THEIRS_REFUSES if len(wrong) == len(pairs) else Outcome.THEIRS_RAISES
    else:
        outcome = Outcome.VALUES
    return Difference(text, outcome, f"(ours, theirs): {wrong}", rows)


def differences(sides: tuple[Side, Side], texts: Sequence[str]) -> Iterator[Difference]:
    """Yield the expressions whose computed columns differ."""
    ours, theirs = sides
    for start in range(0, len(texts), AT_ONCE):
        some = texts[start : start + AT_ONCE]
        for text, our, their in zip(some, ours.columns(some), theirs.columns(some), strict=True):
            found = compare(sides, text, our, their)
            if found is not None:
                yield found


def is_condition(text: str) -> bool | None:
    """Return whether an expression is a truth value; None if this library refuses it."""
    try:
        return bool(pa.types.is_boolean(parse_value(text, SCHEMA).type))
    except (InvalidFilter, UnsupportedFeature):
        return None


def in_contexts(texts: Sequence[str]) -> list[str]:
    """Return the expressions, and those that can be tested further in their contexts."""
    found = list(texts)
    for text in texts:
        condition = is_condition(text)
        if condition is not None:
            found += contexts(text, is_condition=condition)
    return found


def unexpected(found: Iterator[Difference]) -> list[Difference]:
    return [each for each in found if not any(known.covers(each) for known in KNOWN)]


def shown(found: Sequence[Difference]) -> str:
    lines = [f"{each.text}: {each.outcome}: {each.detail[:300]}" for each in found[:40]]
    return "\n".join([f"{len(found)} differences that are not in the list:", *lines])


@pytest.fixture(scope="module")
def sides(tmp_path_factory: pytest.TempPathFactory) -> tuple[Side, Side]:
    root = tmp_path_factory.mktemp("semantics")
    lance.write_dataset(TABLE, str(root / "whole"))
    lance.write_dataset(TABLE, str(root / "rows"), max_rows_per_file=1)
    return Side(lance_ops, root), Side(lance, root)


def test_computed_values_are_those_of_the_reference(sides: tuple[Side, Side]) -> None:
    texts = [text for text in expressions() if crc32(text.encode()) % SHARE == 0]
    found = unexpected(differences(sides, in_contexts(texts)))
    assert not found, shown(found)


@pytest.mark.soak
def test_all_computed_values_are_those_of_the_reference(sides: tuple[Side, Side]) -> None:
    found = unexpected(differences(sides, in_contexts(expressions())))
    assert not found, shown(found)


@pytest.mark.parametrize("share", [SHARE, pytest.param(1, marks=pytest.mark.soak)])
def test_filters_select_the_rows_that_the_reference_selects(sides: tuple[Side, Side], share: int) -> None:
    ours, theirs = sides
    wrong = []
    texts = [text for text in expressions() if "regexp_match(s" in text or crc32(text.encode()) % share == 1 % share]
    for text in texts:
        if is_condition(text) is None and "regexp_match" not in text:
            continue
        for condition in (text, f"NOT ({text})", f"({text}) IS NULL", f"({text}) IS NOT NULL OR id < 3"):
            left, right = ours.matches(condition), theirs.matches(condition)
            found = difference_of(text, left, right)
            if found is not None and not any(known.covers(found) for known in KNOWN):
                wrong.append((condition, left, right))
    assert not wrong


def difference_of(text: str, left: Any, right: Any) -> Difference | None:
    """Return how the rows that two filters select differ; None if they do not."""
    if left == right:
        return None
    if RAISES in (left, right):
        return Difference(text, Outcome.OURS_RAISES if left == RAISES else Outcome.THEIRS_REFUSES, "", frozenset())
    return Difference(text, Outcome.VALUES, "", frozenset(left) ^ frozenset(right))


@pytest.mark.parametrize(
    "condition",
    [
        "regexp_match(s, 'app') IS NOT NULL",
        "regexp_match(s, 'app') IS NULL",
        "NOT regexp_match(s, 'app')",
        "upper(s) = 'STRASSE É'",
        "u64 + 1 > 9223372036854775808",
        "ny >= date '2020-01-01'",
        "outer.inner.Z IS NOT NULL",
        "f64 = 0",
    ],
)
def test_a_delete_removes_the_rows_that_the_reference_removes(tmp_path: Path, condition: str) -> None:
    left = []
    for library in (lance_ops, lance):
        dataset = library.write_dataset(TABLE, str(tmp_path / library.__name__))
        dataset.delete(condition)
        left.append(dataset.to_table(columns=["id"]).column("id").to_pylist())
    assert left[0] == left[1]
    assert len(left[0]) < TABLE.num_rows


TYPES, VALUES = Outcome.TYPES, Outcome.VALUES
OURS = (Outcome.OURS_RAISES, Outcome.OURS_REFUSES)
THEIRS = (Outcome.THEIRS_RAISES, Outcome.THEIRS_REFUSES)
_INTEGER = r"\(*\b[iIu](8|32|64)\b\)*"
_ARITHMETIC = rf"{_INTEGER} [-+*/%] |-[iu](8|32|64)|[-+*] {_INTEGER}"
_LISTS = r"\b(numbers|words|pair)"
EXTREMES, HUNDRED = (4, 5, 7, 8), 9
"""The rows in which integers are the extremes of their types, or next to them, and in which they are 100."""
NEGATIVE_NAN = 8
NEGATIVE_NANS = frozenset({1, 2, 5, 6, NEGATIVE_NAN})
"""The rows of zeros and infinities, of which arithmetic makes NaNs with a sign, and of one that has it."""
KNOWN: tuple[Known, ...] = (
    Known(
        "Overflow is an error", "i8 + 1", _ARITHMETIC, (Outcome.OURS_RAISES, VALUES), frozenset({*EXTREMES, HUNDRED})
    ),
    Known("Overflow is an error", "u8 - 2", r"u(8|64) - [12]", (Outcome.OURS_RAISES,), frozenset({1, 2, *EXTREMES})),
    Known("NaN has no sign", "f64 < 0", r"\bf(16|32|64)\b", (VALUES,), frozenset({NEGATIVE_NAN})),
    Known("NaN has no sign", "(f64 - f64) > 0", r"\(f(16|32|64) [-/%] \S+\) > 0", (VALUES,), NEGATIVE_NANS),
    Known("`nullif` compares as `=` does", "nullif(f64, 0.0)", r"nullif\(f", (VALUES,)),
    Known("Null lists stay null", "array_has_any(numbers, [])", r"\[\]\)", (VALUES,)),
    Known("More is accepted", "floor(f64)", r"(floor|ceil|trim|isnull|coalesce|nullif)\(|\|\||concat\(two", THEIRS),
    Known("More is accepted", "OUTER.X", r"OUTER\.X|Outer\['X'\]|inner\.z|outer\.inner\.Z", THEIRS),
    Known("More is accepted", "u8 + -1", r"u(8|64) [-+*/%] -1|-u(8|64)", THEIRS),
    Known("More is accepted", "dec = 2.25", r"dec (=|!=|<|<=|>|>=|IN|NOT IN|BETWEEN|NOT BETWEEN) .*2\.25", THEIRS),
    Known("More is accepted", "array_has_all(numbers, NULL)", r"_has_all\(.*NULL|NULL, 'g'", THEIRS),
    Known("More is accepted", "TRY_CAST(raw AS INT)", r"CAST\((raw|two|js|f16|dec|day|day64|clock) AS", THEIRS),
    Known("Text beside numbers", "coalesce(s, 1.5)", r"(coalesce|nullif)\((s|large|word), 1\.5\)", (VALUES, *THEIRS)),
    Known("Decimals", "dec / 2", r"\bdec [/%]|[/%] dec|u64 / (i8|2)|dec \S NULL|\(dec, 1\.5", (*OURS, TYPES, VALUES)),
    Known("Dates", "date_trunc('month', day)", r"date_?trunc\('\w+', day", (TYPES,)),
    Known("Half floats", "abs(f16)", r"\bf16\b", (TYPES,)),
    Known("Half floats", "concat(f16)", r"^\(*concat\(f16", (VALUES,)),
    Known("Dictionaries", "coalesce(word, 'É')", r"\bword\b", (TYPES,)),
    Known("Lists", "numbers = numbers", rf"{_LISTS} [=!<>]", (Outcome.OURS_REFUSES,)),
    Known("Lists", "nullif(numbers, NULL)", rf"nullif\({_LISTS},", (Outcome.OURS_REFUSES,)),
    Known("Lists", "CAST(numbers AS STRING)", rf"CAST\({_LISTS} AS STRING|concat\({_LISTS}", (Outcome.OURS_REFUSES,)),
    Known("Lists", "array_has(words, 1.5)", r"array_has\w*\(words, (1\.5|\[1, 7\])\)", (Outcome.OURS_RAISES,)),
    Known("Casts", "CAST(i8 AS BINARY)", r"AS BINARY", OURS),
    Known(
        "Empty text is no number",
        "CAST(s AS DECIMAL(10, 2))",
        r"CAST\((s|large) AS DECIMAL",
        (*OURS, VALUES),
        frozenset({1}),
    ),
    Known("A pattern that does not parse", "regexp_match(s, '(')", r"regexp_\w+\(\w+, '\('", OURS),
    Known(
        "Local mean time",
        "date_part('second', ny)",
        r"date_?(part|trunc)\('(minute|\w*seconds?)', ny",
        (VALUES,),
        frozenset({6}),
    ),
    Known("Names in back quotes", "`outer`.x", r"`outer`", OURS),
)


@pytest.mark.parametrize("known", KNOWN, ids=lambda known: known.example)
def test_each_known_difference_still_exists_and_is_documented(known: Known, sides: tuple[Side, Side]) -> None:
    found = list(differences(sides, [known.example]))
    assert [known.covers(each) for each in found] == [True], found
    assert f"- **{known.title}" in DIFFERENCES.read_text()
