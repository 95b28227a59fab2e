"""Record the evaluation of an asset check as an event of the run that made it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import dagster as dg

__all__ = ["log_evaluation"]


def log_evaluation(context: dg.OpExecutionContext, evaluation: dg.AssetCheckEvaluation) -> None:
    """Log an evaluation, so that it links to the run.

    `log_event` handles evaluations, but its annotation does not list them.
    """
    log: Callable[[Any], None] = context.log_event
    log(evaluation)
