"""A pair of answers that differ, and what proves that a known difference is the cause."""

from __future__ import annotations

import re
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import pyarrow as pa

from tests.fuzz.predicates.answers import Answer, Form, ask_ours, ask_theirs, without_signs
from tests.fuzz.predicates.grammar import Node
from tests.fuzz.predicates.tables import Kind

__all__ = ["Case", "Subject"]


@dataclass(frozen=True)
class Subject:
    """One state of a table, opened by both libraries; `name` says how to make it again."""

    name: str
    ours: Any
    theirs: Any
    library: Any
    """pylance itself, to write a copy of the table."""

    @cached_property
    def ids(self) -> frozenset[int]:
        """The ids of all rows."""
        return frozenset(self.ours.to_table(["id"])["id"].to_pylist())

    @contextmanager
    def without_signs(self) -> Iterator[Any]:
        """Open a copy, in pylance, whose zeros and NaNs have no sign."""
        with tempfile.TemporaryDirectory() as folder:
            yield self.library.write_dataset(without_signs(self.ours.to_table()), f"{folder}/t")


@dataclass(frozen=True)
class Case:
    """Two answers that differ. `sql` is the spelling that pylance was asked; only the rows `ids` count."""

    node: Node
    form: Form
    subject: Subject
    sql: str
    ours: Answer
    theirs: Answer
    ids: frozenset[int]

    @property
    def differing(self) -> set[int]:
        """The ids of the rows with different values."""
        return self.ours.differing(self.theirs)

    @property
    def agrees(self) -> bool:
        """Whether the values are equal, those of other types too."""
        return not self.ours.error and not self.theirs.error and not self.differing

    def respelled(self, sql: str) -> Case:
        """Return the case with pylance's answer to another spelling."""
        return replace(self, sql=sql, theirs=ask_theirs(self.subject.theirs, self.form, sql).among(set(self.ids)))

    def limited(self, sql: str, ids: frozenset[int]) -> Case:
        """Return the case with another spelling, for some of the rows."""
        return replace(self, ours=self.ours.among(set(ids)), ids=ids).respelled(sql)

    def agrees_as(self, sql: str) -> bool:
        """Whether pylance gives our answer to another spelling, which must be another one."""
        return sql != self.sql and self.respelled(sql).agrees

    def agrees_without_signs(self, sql: str) -> bool:
        """Whether pylance gives our answer if no zero and no NaN has a sign."""
        with self.subject.without_signs() as copy:
            theirs = ask_theirs(copy, self.form, sql).among(set(self.ids))
        return replace(self, theirs=theirs).agrees

    def nodes(self, kind: Kind, pattern: str = "") -> list[Node]:
        """Return the parts of a kind whose text begins with a pattern, each once."""
        found = (part for part in self.node.walk() if part.kind is kind and re.match(pattern, part.sql))
        return list({part.sql: part for part in found}.values())

    def where(self, condition: str) -> set[int]:
        """Return the ids of the rows for which our library finds a condition true."""
        answer = ask_ours(self.subject.ours, Form.FILTER, condition, use_scalar_index=False)
        return set(answer.values) & self.ids

    def differs_only_where(self, conditions: list[str]) -> bool:
        """Whether each row that differs fulfils one of the conditions."""
        return self.differing <= {each for condition in conditions for each in self.where(condition)}

    def their_type(self, part: Node) -> pa.DataType | None:
        """Return the type in which pylance computes a part; None if it refuses it."""
        return ask_theirs(self.subject.theirs, Form.COLUMN, part.sql).type

    def parts_refused(self, ask: Callable[[str], Answer]) -> list[Node]:
        """Return the parts of a conjunction that raise when they stand alone."""
        return [part for part in self.node.parts if ask(part.sql).error]
