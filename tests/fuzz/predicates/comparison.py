"""Compare the answers to an expression: of a scan, of an index and of a take, of our library and of pylance."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from tests.fuzz.predicates.answers import Answer, Form, ask_ours, ask_theirs, take_ours
from tests.fuzz.predicates.column_types import TYPE_REASONS, type_reason
from tests.fuzz.predicates.grammar import Node
from tests.fuzz.predicates.known import REASONS, reasons_for
from tests.fuzz.predicates.proof import Case, Subject
from tests.fuzz.predicates.tables import index_name
from tests.fuzz.predicates.their_index import NOT_TRUE, index_reason

__all__ = ["ALL_REASONS", "Difference", "compare", "compare_column"]

ALL_REASONS = (*REASONS, *TYPE_REASONS, NOT_TRUE)
"""Every reason for which a difference is accepted."""


@dataclass(frozen=True)
class Difference:
    """Two answers that should be equal; `known` are the reasons why the difference is accepted, if it is."""

    what: str
    sql: str
    left: Answer
    right: Answer
    subject: str
    known: tuple[str, ...] = ()

    def __str__(self) -> str:
        return f"{self.what} ({self.subject})\n  {self.sql}\n  {self.left}\n  {self.right}"


def compare(predicate: Node, subject: Subject) -> list[Difference]:
    """Return how the answers to a predicate differ, as its smallest differing conditions; empty if they agree.

    A condition is left out if a condition inside it differs. An error of our library that is not typed escapes.
    """
    whole = _filter_difference(predicate, subject)
    return [] if whole is None else list(_smallest(predicate, subject))


def _smallest(predicate: Node, subject: Subject) -> Iterator[Difference]:
    inner = [difference for part in predicate.parts for difference in _smallest(part, subject)]
    if inner:
        yield from inner
    elif predicate.is_condition:
        difference = _filter_difference(predicate, subject)
        if difference is not None:
            yield difference


def _filter_difference(condition: Node, subject: Subject) -> Difference | None:
    sql = condition.sql
    scanned = ask_ours(subject.ours, Form.FILTER, sql, use_scalar_index=False)
    indexed = ask_ours(subject.ours, Form.FILTER, sql)
    if not indexed.same_as(scanned):
        return Difference("an index and a scan differ", sql, indexed, scanned, subject.name)
    if not scanned.error and condition.served_by:
        plan = subject.ours.scanner(filter=sql).explain_plan()
        for path in sorted(condition.served_by):
            if f"@{index_name(path)}(BTREE)" not in plan:
                return Difference(f"the index on {path} is not used", sql, indexed, Answer(error=plan), subject.name)
    theirs = ask_theirs(subject.theirs, Form.FILTER, sql, use_scalar_index=False)
    difference = _explained(condition, Form.FILTER, subject, scanned, theirs)
    if difference is not None:
        return difference
    by_their_index = ask_theirs(subject.theirs, Form.FILTER, sql)
    if by_their_index.same_as(theirs):
        return None
    known = index_reason(condition, by_their_index, theirs, subject)
    return Difference("pylance's index and scan differ", sql, by_their_index, theirs, subject.name, known)


def compare_column(value: Node, subject: Subject, condition: Node, positions: list[int]) -> list[Difference]:
    """Return how the values of a computed column differ, as its smallest differing parts; empty if they agree.

    A take of the rows at some positions, and the rows of a condition by an index, must have the values of a scan.
    """
    whole = _column_difference(value, subject) or _readers_difference(value, subject, condition, positions)
    if whole is None:
        return []
    found = [difference for part in value.parts for difference in compare_column(part, subject, condition, positions)]
    return found or [whole]


def _column_difference(value: Node, subject: Subject) -> Difference | None:
    ours = ask_ours(subject.ours, Form.COLUMN, value.sql)
    theirs = ask_theirs(subject.theirs, Form.COLUMN, value.sql)
    return _explained(value, Form.COLUMN, subject, ours, theirs)


def _readers_difference(value: Node, subject: Subject, condition: Node, positions: list[int]) -> Difference | None:
    sql = value.sql
    scanned = ask_ours(subject.ours, Form.COLUMN, sql)
    taken = take_ours(subject.ours, sql, positions)
    ids = subject.ours.take(positions, columns=["id"])["id"].to_pylist()
    if not scanned.error and not taken.same_as(scanned.among(set(ids))):
        return Difference("a take and a scan differ", sql, taken, scanned, subject.name)
    indexed = ask_ours(subject.ours, Form.COLUMN, sql, filter=condition.sql)
    filtered = ask_ours(subject.ours, Form.COLUMN, sql, filter=condition.sql, use_scalar_index=False)
    if not indexed.same_as(filtered):
        what = f"an index and a scan differ where {condition.sql}"
        return Difference(what, sql, indexed, filtered, subject.name)
    if (
        not scanned.error
        and not filtered.error
        and filtered.differing(scanned.among(set(filtered.values)), exactly=True)
    ):
        return Difference(f"a filter changes values where {condition.sql}", sql, filtered, scanned, subject.name)
    return None


def _explained(node: Node, form: Form, subject: Subject, ours: Answer, theirs: Answer) -> Difference | None:
    if ours.same_as(theirs):
        return None
    case = Case(node, form, subject, node.sql, ours, theirs, subject.ids)
    known = type_reason(node, ours, theirs) if case.agrees else tuple(reasons_for(case))
    return Difference("ours and pylance differ", node.sql, ours, theirs, subject.name, known)
