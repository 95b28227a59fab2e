"""Evaluate the checks of a run that fails, because Dagster does not run their steps after a failed one.

`valid`, the checks of health, of batches, of freshness and of the landing folder get their results. A check that cannot
look, and any other that the run planned, gets a warning that says why. The check of batches takes the run for a failed
one, so that it names the run's batches that the table lacks, unless Dagster may retry the run.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from collections.abc import Set as AbstractSet
from contextlib import contextmanager

import dagster as dg

from lance_ops.dagster.declaration import DatasetConfig, DatasetNames
from lance_ops.dagster.evaluations import CheckEvaluator, log_evaluation, not_looked_warning
from lance_ops.dagster.head import head_evaluators
from lance_ops.dagster.landing.batch_runs import may_be_retried
from lance_ops.dagster.landing.landing_check import LANDING_CHECK, evaluate_landing
from lance_ops.dagster.landing.settled_check import SETTLED_CHECK, evaluate_settled
from lance_ops.dagster.opening import opening_once

__all__ = ["evaluating_checks_of_failure", "report_checks"]


@contextmanager
def evaluating_checks_of_failure(context: dg.AssetExecutionContext, config: DatasetConfig) -> Iterator[None]:
    """Evaluate the checks that the run planned if the block fails for good; the error goes on."""
    try:
        yield
    except dg.RetryRequested as retry:
        if context.retry_number >= retry.max_retries:
            report_checks(context, config)
        raise
    except Exception:
        report_checks(context, config)
        raise


def report_checks(
    context: dg.OpExecutionContext | dg.AssetExecutionContext,
    config: DatasetConfig,
    ingested: AbstractSet[str] = frozenset(),
    refused: Mapping[str, str] | None = None,
) -> None:
    """Evaluate the check of batches if the run sets some aside, and every check of the head that the run planned.

    `ingested` are the run's batches that are in the table, and `refused` those that it sets aside.
    """
    instance, names = context.instance, DatasetNames(config.name)
    planned = _planned_checks(instance, context.run.run_id, names.head)
    wanted = planned | {SETTLED_CHECK} if refused else planned
    if not wanted:
        return
    open_newest = opening_once(config)
    failing = None if may_be_retried(instance, context.run) else context.run
    of_head = head_evaluators(instance, config, ingested, open_newest)  # reads the recorded batches before the table
    evaluators = [
        CheckEvaluator((SETTLED_CHECK,), lambda: [evaluate_settled(config, instance, refused, open_newest, failing)]),
        CheckEvaluator((LANDING_CHECK,), lambda: [evaluate_landing(config, instance)]),
        *of_head,
    ]
    for evaluator in evaluators:
        if not wanted.isdisjoint(evaluator.names):
            for found in evaluator.evaluate_or_warn(names.head):
                if found.check_name in wanted:
                    log_evaluation(context, found)
    for name in sorted(wanted.difference(*(each.names for each in evaluators))):
        why = f"the run failed before this check; run the job {names.of('checks')}"
        log_evaluation(context, not_looked_warning(names.head, name, why))


def _planned_checks(instance: dg.DagsterInstance, run_id: str, head: dg.AssetKey) -> set[str]:
    """Return the names of the head's checks that a run planned; it may have planned those of other assets, too."""
    records = instance.all_logs(run_id, of_type=dg.DagsterEventType.ASSET_CHECK_EVALUATION_PLANNED)
    events = (record.dagster_event for record in records)
    planned = [event.asset_check_planned_data for event in events if event is not None]
    return {each.check_name for each in planned if each.asset_key == head}
