"""Compare the answers to a predicate: of a scan and of an index, of our library and of pylance."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from lance_ops.errors import LanceOpsError
from tests.fuzz.predicates.grammar import Node, conditions_in
from tests.fuzz.predicates.known import reason_for
from tests.fuzz.predicates.tables import index_name

__all__ = ["Answer", "Difference", "Subject", "compare"]


@dataclass(frozen=True)
class Answer:
    """The ids that a filter selects, or the error that it raised."""

    ids: tuple[int, ...] = ()
    error: str = ""

    def same_as(self, other: Answer) -> bool:
        """Whether both select the same rows, or both raise; the libraries word their errors differently."""
        return bool(self.error and other.error) or self == other

    def __str__(self) -> str:
        return self.error or f"{len(self.ids)} rows: {list(self.ids)}"


@dataclass(frozen=True)
class Subject:
    """One state of a table, opened by both libraries; `name` says how to make it again, `wild` is as for `rows`."""

    name: str
    ours: Any
    theirs: Any
    wild: bool


@dataclass(frozen=True)
class Difference:
    """Two answers that should be equal; `known` is the reason why the difference is accepted, if it is."""

    what: str
    sql: str
    left: Answer
    right: Answer
    subject: str
    known: str = ""

    def __str__(self) -> str:
        return f"{self.what} ({self.subject})\n  {self.sql}\n  {self.left}\n  {self.right}"


def compare(predicate: Node, subject: Subject) -> Difference | None:
    """Return how the answers to a predicate differ, reduced to its smallest differing condition; None if they agree.

    An error of our library that is not typed escapes.
    """
    if _difference(predicate, subject) is None:
        return None
    found = (_difference(condition, subject) for condition in conditions_in(predicate))
    return next(difference for difference in found if difference is not None)


def _difference(condition: Node, subject: Subject) -> Difference | None:
    sql = condition.sql
    scanned = _ask_ours(subject.ours, sql, use_scalar_index=False)
    indexed = _ask_ours(subject.ours, sql)
    if not indexed.same_as(scanned):
        return Difference("an index and a scan differ", sql, indexed, scanned, subject.name)
    if not scanned.error and condition.served_by:
        plan = subject.ours.scanner(filter=sql).explain_plan()
        for path in sorted(condition.served_by):
            if f"@{index_name(path)}(BTREE)" not in plan:
                return Difference(f"the index on {path} is not used", sql, indexed, Answer(error=plan), subject.name)
    theirs = _ask_theirs(subject.theirs, sql, use_scalar_index=False)
    by_their_index = _ask_theirs(subject.theirs, sql)
    if not by_their_index.same_as(theirs):
        return Difference("pylance's index and scan differ", sql, by_their_index, theirs, subject.name)
    if scanned.same_as(theirs):
        return None
    known = reason_for(condition, scanned.error, theirs.error, wild=subject.wild)
    return Difference("ours and pylance differ", sql, scanned, theirs, subject.name, known)


def _ask_ours(dataset: Any, sql: str, **options: Any) -> Answer:
    try:
        return _answer(dataset.to_table(["id"], filter=sql, **options))
    except LanceOpsError as error:
        return Answer(error=f"{type(error).__name__}: {error}")


def _ask_theirs(dataset: Any, sql: str, **options: Any) -> Answer:
    try:
        return _answer(dataset.to_table(["id"], filter=sql, **options))
    except BaseException as error:  # a panic of the reference is no Exception
        if isinstance(error, KeyboardInterrupt):
            raise
        return Answer(error=f"{type(error).__name__}: {str(error).splitlines()[0]}")


def _answer(rows: pa.Table) -> Answer:
    return Answer(tuple(sorted(rows["id"].to_pylist())))
