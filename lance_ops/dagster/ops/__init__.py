"""Ops on a declared dataset: one for each verb of `lance_ops.verbs`, and those that answer, measure and judge.

Each op runs its tasks by the run's runner and records the versions it commits on the head asset. By default the op of a
verb previews and stores its plan; see `verb_ops.py`.
"""

from __future__ import annotations

from lance_ops.dagster.ops.health import health_op, record_verdicts, verdict_op
from lance_ops.dagster.ops.launch_config import Launch, launch, launch_class, launch_plan
from lance_ops.dagster.ops.questions import question_ops
from lance_ops.dagster.ops.table_ops import START, Work, table_op
from lance_ops.dagster.ops.verb_ops import verb_op

__all__ = [
    "START",
    "Launch",
    "Work",
    "health_op",
    "launch",
    "launch_class",
    "launch_plan",
    "question_ops",
    "record_verdicts",
    "table_op",
    "verb_op",
    "verdict_op",
]
