"""Record what an executed verb means for other parts of a dataset: its batches, and the check `intact`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import dagster as dg

from lance_ops.dagster.evaluations import log_evaluation
from lance_ops.dagster.head import intact_evaluation
from lance_ops.dagster.landing import record_planned_batches
from lance_ops.dagster.ops.table_ops import Work
from lance_ops.verbs import Executed, IngestedFiles, IngestFiles, Verb, Verify

__all__ = ["record_outcome"]


def record_outcome(work: Work, verb: Verb, done: Executed, metadata: Mapping[str, Any]) -> Mapping[str, Any]:
    """Record the outcome of a verb, and return the metadata with what was recorded.

    Raises `dg.Failure` if batches were set aside, which names them, or with the metadata for another problem.
    """
    problem, complete = done.problem, dict(metadata)
    if isinstance(verb, Verify) and verb.version is None:
        evaluation = intact_evaluation(work.context.instance, work.config, done.outcome, verb.first_part)
        log_evaluation(work.context, evaluation)
        complete |= evaluation.metadata
        problem = "" if done.outcome.ok else str(evaluation.description)
    if isinstance(verb, IngestFiles) and work.config.raw is not None and verb.batches:
        # The files may have been moved or overwritten since they were read, so they are not looked at again.
        ingested: IngestedFiles = done.outcome
        record_planned_batches(work.context, work.config, ingested.batches, ingested.result)
    if problem:
        raise dg.Failure(problem, metadata=complete, allow_retries=False)
    return complete
