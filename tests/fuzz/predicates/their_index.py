"""Faults of pylance's own indices: the rows that an index selects are not those that a scan selects."""

from __future__ import annotations

import re

from tests.fuzz.predicates.answers import Answer, Form, ask_theirs
from tests.fuzz.predicates.grammar import Node
from tests.fuzz.predicates.proof import Subject

__all__ = ["NOT_TRUE", "index_reason"]

NOT_TRUE = "pylance's index on b forgets the nulls of NOT (b IS TRUE)"


def index_reason(condition: Node, indexed: Answer, scanned: Answer, subject: Subject) -> tuple[str, ...]:
    """Return why pylance's index and scan differ; empty if that is not known.

    Known is a negated truth test of the indexed column `b`, whose answer by the index lacks just the null rows.
    """
    if not re.fullmatch(r"\(NOT \(\(*b( = true)?\)* IS (TRUE|NOT FALSE)\)\)", condition.sql):
        return ()
    nulls = set(ask_theirs(subject.theirs, Form.FILTER, "b IS NULL", use_scalar_index=False).values)
    wrong = scanned.differing(indexed)
    return (NOT_TRUE,) if wrong <= nulls and not indexed.error and not scanned.error else ()
