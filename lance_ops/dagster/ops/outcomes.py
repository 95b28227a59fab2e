"""Record what an executed verb means for other parts of a dataset: its batches, and the check `intact`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import dagster as dg

from lance_ops.dagster.head import intact_evaluation
from lance_ops.dagster.landing import record_planned_batches
from lance_ops.dagster.ops.landed_batches import raw_storage_options
from lance_ops.dagster.ops.verb import Work
from lance_ops.verbs import Executed, IngestFiles, Verb, Verify

__all__ = ["record_outcome"]


def record_outcome(work: Work, verb: Verb, done: Executed, metadata: Mapping[str, Any]) -> Mapping[str, Any]:
    """Record the outcome of a verb, and return the metadata with what was recorded.

    Raises `dg.Failure` with the metadata if the verb was executed with a problem.
    """
    problem, complete = done.problem, dict(metadata)
    if isinstance(verb, Verify) and verb.version is None:
        evaluation = intact_evaluation(work.context.instance, work.config, done.outcome, verb.first_part)
        work.context.log_event(evaluation)  # type: ignore[arg-type]  # it accepts this type; its annotation does not say so
        complete |= evaluation.metadata
        problem = "" if evaluation.passed else str(evaluation.description)
    if isinstance(verb, IngestFiles) and work.config.raw is not None and verb.batches:
        batches = verb.found_batches(raw_storage_options(work.config))
        record_planned_batches(work.context, work.config, batches, done.outcome)
    if problem:
        raise dg.Failure(problem, metadata=complete, allow_retries=False)
    return complete
