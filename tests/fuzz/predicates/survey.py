"""Draw tables and predicates, and collect the differences between the answers."""

from __future__ import annotations

import tempfile
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from random import Random

import lance

import lance_ops
from tests.fuzz.predicates.comparison import Difference, Subject, compare
from tests.fuzz.predicates.grammar import Grammar
from tests.fuzz.predicates.tables import history

__all__ = ["Survey", "survey"]

_OF_EACH_STATE = 40


@dataclass
class Survey:
    """What a run found: how many predicates it compared, how many both libraries agreed alike, and the differences.

    `used` counts the predicates for which an index had to be used.
    """

    compared: int = 0
    agreed: int = 0
    used: int = 0
    unknown: list[Difference] = field(default_factory=list)
    known: Counter[str] = field(default_factory=Counter)


def survey(count: int, seed: int, of_each_state: int = _OF_EACH_STATE) -> Survey:
    """Compare `count` predicates; the first table has that seed, each further one the next."""
    found = Survey()
    while found.compared < count:
        with tempfile.TemporaryDirectory() as folder:
            _survey_table(found, str(Path(folder) / "t"), seed, count, of_each_state)
        seed += 1
    return found


def _survey_table(found: Survey, uri: str, seed: int, count: int, of_each_state: int) -> None:
    random = Random(seed)
    grammar = Grammar(random)
    wild = seed % 2 == 0
    for step in history(random, uri, (lance_ops, lance), wild=wild):
        subject = Subject(f"seed {seed}, {step}", lance_ops.dataset(uri), lance.dataset(uri), wild)
        for _ in range(min(of_each_state, count - found.compared)):
            predicate = grammar.predicate()
            difference = compare(predicate, subject)
            found.compared += 1
            found.used += bool(predicate.served_by)
            if difference is None:
                found.agreed += 1
            elif difference.known:
                found.known[difference.known] += 1
            else:
                found.unknown.append(difference)
