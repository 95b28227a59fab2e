"""Random filters and computed columns have one answer: by an index, a scan, a take and, in general, by pylance."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from random import Random
from typing import Any

import pyarrow as pa
import pytest

import lance_ops
from tests.fuzz.predicates.answers import Form
from tests.fuzz.predicates.comparison import ALL_REASONS, compare, compare_column
from tests.fuzz.predicates.grammar import Grammar, Node
from tests.fuzz.predicates.proof import Subject
from tests.fuzz.predicates.tables import COLUMNS, INDEXED, Kind, rows

lance = pytest.importorskip("lance", reason="pylance, the reference implementation, is not installed")
pytestmark = pytest.mark.interop


@pytest.mark.parametrize("seed", [1, 2])
def test_random_predicates_have_one_answer(seed: int) -> None:
    from tests.fuzz.predicates.survey import survey

    found = survey(120, seed, of_each_state=20)
    assert not found.unknown, "\n".join(map(str, found.unknown))
    assert found.compared == 120 and found.columns == 60 and found.used > 15 and found.agreed > 90


def test_the_columns_have_all_types_and_most_have_an_index() -> None:
    assert len({column.type for column in COLUMNS}) >= 19
    assert len(INDEXED) >= 30


def test_the_predicates_mention_every_column_and_nest() -> None:
    grammar = Grammar(Random(1))
    drawn = [grammar.predicate() for _ in range(2000)]
    mentioned = {node.sql for predicate in drawn for node in predicate.walk()}
    assert mentioned >= {column.path for column in COLUMNS}
    assert max(len(list(predicate.walk())) for predicate in drawn) > 20
    assert sum(bool(predicate.served_by) for predicate in drawn) > 500


@dataclass(frozen=True)
class Broken:
    """A dataset that loses a row: always, or only if it may use no index."""

    dataset: Any
    loses: tuple[bool, ...]

    def take(self, positions: list[int], **options: Any) -> pa.Table:
        return self.dataset.take(positions, **options)

    def to_table(self, columns: list[str], **options: Any) -> pa.Table:
        found: pa.Table = self.dataset.to_table(columns, **options)
        may_use_index = options.get("use_scalar_index", True)
        return found.slice(1) if may_use_index in self.loses and "i8" in options.get("filter", "") else found


@pytest.fixture(scope="module")
def uri(tmp_path_factory: pytest.TempPathFactory) -> str:
    uri = str(tmp_path_factory.mktemp("fuzz") / "t")
    lance_ops.write_dataset(rows(Random(1), 0, 40), uri).create_scalar_index("i8", "BTREE", name="i8_index")
    return uri


@pytest.mark.parametrize(
    ("loses", "what"),
    [
        ((), ""),
        ((False,), "an index and a scan differ"),
        ((False, True), "ours and pylance differ"),
    ],
)
def test_a_wrong_answer_is_found_and_reduced(uri: str, loses: tuple[bool, ...], what: str) -> None:
    small = Node("(i8 > 0)", Kind.BOOLEAN, (Node("i8", Kind.INTEGER),))
    other = Node("(s IS NOT NULL)", Kind.BOOLEAN, (Node("s", Kind.TEXT),))
    whole = Node(f"({other.sql} OR {small.sql})", Kind.BOOLEAN, (other, small))
    broken = Broken(lance_ops.dataset(uri), loses)
    found = compare(whole, Subject("a table", broken, lance.dataset(uri), lance))
    assert [(each.what, each.sql) for each in found] == ([(what, small.sql)] if what else [])


def test_an_unused_index_is_found(uri: str) -> None:
    predicate = Node("(i8 > 0)", Kind.BOOLEAN, (Node("i8", Kind.INTEGER),), frozenset(["i8"]))
    ours, theirs = lance_ops.dataset(uri), lance.dataset(uri)
    assert not compare(predicate, Subject("a table", ours, theirs, lance))
    hidden = Node("(i8 + 0 > 0)", Kind.BOOLEAN, (Node("i8", Kind.INTEGER),), frozenset(["i8"]))
    (found,) = compare(hidden, Subject("a table", ours, theirs, lance))
    assert found.what == "the index on i8 is not used"


def test_an_error_of_one_side_only_is_found(uri: str, tmp_path: Path) -> None:
    empty = lance_ops.write_dataset(rows(Random(1), 0, 1).slice(1).drop_columns(["i16"]), tmp_path / "t")
    predicate = Node("(i16 IS NULL)", Kind.BOOLEAN, (Node("i16", Kind.INTEGER),))
    (found,) = compare(predicate, Subject("a table", empty, lance.dataset(uri), lance))
    assert "no column 'i16'" in found.left.error


@dataclass(frozen=True)
class Changed:
    """A dataset that takes other values than it scans, or scans others where a condition may use an index."""

    dataset: Any
    reader: str

    def take(self, positions: list[int], **options: Any) -> pa.Table:
        return self._changed(self.dataset.take(positions, **options), self.reader == "take")

    def to_table(self, columns: Any, **options: Any) -> pa.Table:
        by_index = "filter" in options and options.get("use_scalar_index", True)
        return self._changed(self.dataset.to_table(columns, **options), self.reader == "index" and by_index)

    def _changed(self, found: pa.Table, wrong: bool) -> pa.Table:
        if not wrong or "x" not in found.column_names:
            return found
        return found.set_column(found.column_names.index("x"), "x", pa.nulls(found.num_rows, found["x"].type))


@pytest.mark.parametrize(
    ("reader", "what"), [("", ""), ("take", "a take and a scan"), ("index", "an index and a scan")]
)
def test_a_wrong_value_of_a_computed_column_is_found(uri: str, reader: str, what: str) -> None:
    value = Node("(u64 % 7)", Kind.INTEGER, (Node("u64", Kind.INTEGER),))
    condition = Node("(i8 > 0)", Kind.BOOLEAN, (Node("i8", Kind.INTEGER),))
    subject = Subject("a table", Changed(lance_ops.dataset(uri), reader), lance.dataset(uri), lance)
    found = compare_column(value, subject, condition, [5, 3, 8, 1])
    assert [each.sql for each in found] == (["u64"] if what else [])
    assert all(each.what.startswith(what) and not each.known for each in found)


_I, _F, _N, _B = Kind.INTEGER, Kind.FLOAT, Kind.DECIMAL, Kind.BOOLEAN


def _tree(kind: Kind, sql: str, *parts: Node | tuple[str, Kind]) -> tuple[Form, Node]:
    nodes = tuple(part if isinstance(part, Node) else Node(*part) for part in parts)
    return Form.FILTER if kind is _B else Form.COLUMN, Node(sql, kind, nodes)


_CASE = Node("CASE WHEN b THEN i8 ELSE i64 END", _I, (Node("b", _B), Node("i8", _I), Node("i64", _I)))
_SUM = Node("(i8 + 9223372036854775807)", _I, (Node("i8", _I),))
_NEGATIVE = Node("(- u32)", _I, (Node("u32", _I),))
_REFUSED = Node("CAST(CAST(i64 AS SMALLINT) AS BOOLEAN)", _B, (Node("CAST(i64 AS SMALLINT)", _I, (Node("i64", _I),)),))
EXAMPLES = {
    "pylance has no CASE": _tree(_B, f"({_CASE.sql} > 0)", _CASE),
    "pylance has no intervals": _tree(_B, "(took <= interval '3 hours')", ("took", Kind.DURATION)),
    "pylance has no FLOOR and CEIL": _tree(_B, "(ceil(f64) > 0)", Node("ceil(f64)", _F, (Node("f64", _F),))),
    "a literal of another type is compared by value": _tree(_B, "(u8 < 300)", ("u8", _I)),
    "times of different units compare": _tree(_B, "(t32 <= t64)", ("t32", Kind.TIME), ("t64", Kind.TIME)),
    "fixed-size binary compares with binary": _tree(
        _B, "(two < large_raw)", ("two", Kind.BINARY), ("large_raw", Kind.BINARY)
    ),
    "pylance has no coalesce of different binary types": _tree(
        Kind.BINARY, "coalesce(two, large_raw)", ("two", Kind.BINARY), ("large_raw", Kind.BINARY)
    ),
    "unsigned integers can be negated": _tree(_B, "((- u32) < 0)", _NEGATIVE),
    "decimals are cast to truth values": _tree(_B, "CAST(wide AS BOOLEAN)", ("wide", _N)),
    "a wall time that a zone skips or repeats has an instant": _tree(
        _B, "(paris > timestamp '2020-03-29 02:30:00.000000')", ("paris", Kind.ZONED)
    ),
    "decimals are divided as doubles": _tree(_N, "(dec % 7)", ("dec", _N)),
    "an overflow is an error": _tree(_B, f"({_SUM.sql} > 0)", _SUM),
    "instants are compared in the finer unit": _tree(
        _B, "(ts_s = timestamp '2020-01-01 00:00:00.001000')", ("ts_s", Kind.INSTANT)
    ),
    "a literal beside a float is rounded everywhere": _tree(
        _B, "((f32 > 0.1) = b)", Node("(f32 > 0.1)", _B, (Node("f32", _F),)), ("b", _B)
    ),
    "a year may be any number": _tree(
        _B, "(date_part('year', ts_ns) >= 7)", Node("date_part('year', ts_ns)", _I, (Node("ts_ns", Kind.INSTANT),))
    ),
    "a TRY_CAST that fails is null": _tree(
        _B, "(TRY_CAST(u16 AS TINYINT) != 7)", Node("TRY_CAST(u16 AS TINYINT)", _I, (Node("u16", _I),))
    ),
    "integers are computed in 64 bits, or exactly": _tree(
        _B, "((u64 - u8) > 0)", Node("(u64 - u8)", _I, (Node("u64", _I), Node("u8", _I)))
    ),
    "a quotient of integers is an integer": _tree(
        _I, "(array_length(ints) / 7)", Node("array_length(ints)", _I, (Node("ints", Kind.INTEGERS),))
    ),
    "half floats are computed as floats": _tree(_F, "(f16 * i32)", ("f16", _F), ("i32", _I)),
    "decimals become the nearest double": _tree(_F, "CAST(wide AS DOUBLE)", ("wide", _N)),
    "NaN and zero have no sign": _tree(_B, "(f64 > 1.0)", ("f64", _F)),
    "a conjunction raises no error for a row that another part leaves out": _tree(
        _B, f"((i64 = 7) AND {_REFUSED.sql})", Node("(i64 = 7)", _B), _REFUSED
    ),
    "computed text is text and not a view": _tree(Kind.TEXT, "concat(large_s, 'a')", ("large_s", Kind.TEXT)),
    "a value computed from a dictionary is text": _tree(
        Kind.TEXT, "nullif(dictionary, 'a')", ("dictionary", Kind.TEXT)
    ),
    "computed half floats have the type of floats": _tree(_F, "round(f16)", ("f16", _F)),
    "instants are combined in the finer unit": _tree(
        Kind.INSTANT, "coalesce(ts_ms, timestamp '2020-01-01 00:00:00.000000')", ("ts_ms", Kind.INSTANT)
    ),
    "instants of dates and literals are in microseconds": _tree(
        Kind.INSTANT, "date_trunc('month', CAST(d32 AS TIMESTAMP))", ("CAST(d32 AS TIMESTAMP)", Kind.INSTANT)
    ),
    "pylance's index on b forgets the nulls of NOT (b IS TRUE)": _tree(_B, "(NOT (b IS TRUE))", ("b", _B)),
}
"""An expression for each reason; the libraries must still differ on it."""


@pytest.fixture(scope="module")
def subjects(tmp_path_factory: pytest.TempPathFactory) -> tuple[Subject, Subject]:
    """A table, and one with wild values."""
    found = []
    for wild in (False, True):
        uri = str(tmp_path_factory.mktemp("examples") / "t")
        lance.write_dataset(rows(Random(2), 0, 80, wild=wild), uri).create_scalar_index("b", "BTREE")
        found.append(Subject("a table", lance_ops.dataset(uri), lance.dataset(uri), lance))
    return found[0], found[1]


@pytest.mark.parametrize("reason", ALL_REASONS)
def test_each_known_difference_still_exists(subjects: tuple[Subject, Subject], reason: str) -> None:
    form, node = EXAMPLES[reason]
    subject = subjects[reason.startswith("NaN")]
    condition = Node("(b IS NULL)", Kind.BOOLEAN, (Node("b", Kind.BOOLEAN),))
    found = compare(node, subject) if form is Form.FILTER else compare_column(node, subject, condition, [3, 1])
    assert [reason in each.known for each in found] == [True], "\n".join(map(str, found))


def test_a_difference_without_a_proof_is_not_known(subjects: tuple[Subject, Subject]) -> None:
    """Each example, asked of a library whose answers lack a row and have a wrong one, has no reason."""
    for reason, (form, node) in EXAMPLES.items():
        subject = subjects[reason.startswith("NaN")]
        broken = Subject(subject.name, Lossy(subject.ours), subject.theirs, lance)
        if form is Form.FILTER and reason not in _ANY_ANSWER:
            found = compare(node, broken)
            assert found and not any(reason in each.known for each in found), reason


_ANY_ANSWER = {
    "pylance has no FLOOR and CEIL": "has no other spelling in pylance",
    "decimals are divided as doubles": "is our own error",
    "an overflow is an error": "is our own error",
    "a conjunction raises no error for a row that another part leaves out": "selects no row",
    "pylance's index on b forgets the nulls of NOT (b IS TRUE)": "compares pylance with itself",
}
"""Examples whose rows are not compared, and why."""


@dataclass(frozen=True)
class Lossy:
    """A dataset whose answers to filters lack the last row, and have another one in its place."""

    dataset: Any

    def to_table(self, columns: Any = None, **options: Any) -> pa.Table:
        found: pa.Table = self.dataset.to_table(columns, **options)
        if "filter" not in options or columns != ["id"] or "IS TRUE" in options["filter"]:
            return found
        ids = set(found["id"].to_pylist())
        missing = next(each for each in range(1000) if each not in ids)
        return pa.table({"id": pa.array([*sorted(ids)[:-1], missing], pa.int64())})
