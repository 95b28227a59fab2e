"""Random predicates have one answer: by an index, by a scan and, apart from known differences, by pylance."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from random import Random
from typing import Any

import pyarrow as pa
import pytest

import lance_ops
from tests.fuzz.predicates.comparison import Subject, compare
from tests.fuzz.predicates.grammar import Grammar, Node
from tests.fuzz.predicates.tables import COLUMNS, INDEXED, Kind, rows

lance = pytest.importorskip("lance", reason="pylance, the reference implementation, is not installed")
pytestmark = pytest.mark.interop


@pytest.mark.parametrize("seed", [1, 2])
def test_random_predicates_have_one_answer(seed: int) -> None:
    from tests.fuzz.predicates.survey import survey

    found = survey(75, seed, of_each_state=15)
    assert not found.unknown, "\n".join(map(str, found.unknown))
    assert found.compared == 75 and found.used > 20 and found.agreed > 55


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

    def to_table(self, columns: list[str], **options: Any) -> pa.Table:
        found: pa.Table = self.dataset.to_table(columns, **options)
        may_use_index = options.get("use_scalar_index", True)
        return found.slice(1) if may_use_index in self.loses and "i8" in options["filter"] else found


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
    found = compare(whole, Subject("a table", broken, lance.dataset(uri), wild=False))
    assert (found.what, found.sql) == (what, small.sql) if found else not what


def test_an_unused_index_is_found(uri: str) -> None:
    predicate = Node("(i8 > 0)", Kind.BOOLEAN, (Node("i8", Kind.INTEGER),), frozenset(["i8"]))
    ours, theirs = lance_ops.dataset(uri), lance.dataset(uri)
    assert compare(predicate, Subject("a table", ours, theirs, wild=False)) is None
    hidden = Node("(i8 + 0 > 0)", Kind.BOOLEAN, (Node("i8", Kind.INTEGER),), frozenset(["i8"]))
    found = compare(hidden, Subject("a table", ours, theirs, wild=False))
    assert found and found.what == "the index on i8 is not used"


def test_an_error_of_one_side_only_is_found(uri: str, tmp_path: Path) -> None:
    empty = lance_ops.write_dataset(rows(Random(1), 0, 1).slice(1).drop_columns(["i16"]), tmp_path / "t")
    predicate = Node("(i16 IS NULL)", Kind.BOOLEAN, (Node("i16", Kind.INTEGER),))
    found = compare(predicate, Subject("a table", empty, lance.dataset(uri), wild=False))
    assert found and "no column 'i16'" in found.left.error
