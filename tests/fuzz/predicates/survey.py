"""Draw tables and expressions, and collect the differences between the answers."""

from __future__ import annotations

import tempfile
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from random import Random

import lance

import lance_ops
from tests.fuzz.predicates.comparison import Difference, compare, compare_column
from tests.fuzz.predicates.grammar import Grammar
from tests.fuzz.predicates.proof import Subject
from tests.fuzz.predicates.tables import history

__all__ = ["Survey", "survey"]

_OF_EACH_STATE = 40
_COLUMNS_EVERY = 2


@dataclass
class Survey:
    """What a run found: how many expressions it compared, how many both libraries agreed on, and the differences.

    `used` counts the predicates for which an index had to be used, `columns` the expressions of computed columns.
    """

    compared: int = 0
    columns: int = 0
    agreed: int = 0
    used: int = 0
    unknown: list[Difference] = field(default_factory=list)
    known: Counter[str] = field(default_factory=Counter)

    def add(self, differences: list[Difference]) -> None:
        """Count what one expression showed."""
        self.compared += 1
        self.agreed += not differences
        for difference in differences:
            self.known.update(difference.known)
            if not difference.known:
                self.unknown.append(difference)


def survey(count: int, seed: int, of_each_state: int = _OF_EACH_STATE) -> Survey:
    """Compare `count` expressions; the first table has that seed, each further one the next.

    Each second expression is a computed column, the others are filters.
    """
    found = Survey()
    while found.compared < count:
        with tempfile.TemporaryDirectory() as folder:
            _survey_table(found, str(Path(folder) / "t"), seed, count, of_each_state)
        seed += 1
    return found


def _survey_table(found: Survey, uri: str, seed: int, count: int, of_each_state: int) -> None:
    random = Random(seed)
    grammar = Grammar(random)
    for step in history(random, uri, (lance_ops, lance), wild=seed % 2 == 0):
        subject = Subject(f"seed {seed}, {step}", lance_ops.dataset(uri), lance.dataset(uri), lance)
        positions = random.sample(range(len(subject.ids)), len(subject.ids) // 2)
        for number in range(min(of_each_state, count - found.compared)):
            if number % _COLUMNS_EVERY:
                found.columns += 1
                found.add(compare_column(grammar.column(), subject, grammar.served(), positions))
            else:
                predicate = grammar.predicate()
                found.used += bool(predicate.served_by)
                found.add(compare(predicate, subject))
