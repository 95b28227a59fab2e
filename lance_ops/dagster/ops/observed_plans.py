"""Keep plans and durations of verbs as observations of the head, where they outlive the process and people see them."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Any

import dagster as dg

from lance_ops.core.errors import InvalidInput
from lance_ops.dagster.declaration import DatasetConfig, DatasetNames
from lance_ops.dagster.event_log import records_of_pages
from lance_ops.verbs import StoredPlan

__all__ = ["log_done", "log_plan", "past_seconds", "plan_of_run"]

_PLAN = "lance/stored_plan"
_VERB = "lance/verb"
_SECONDS = "lance/seconds"
_PAGE = 100
_MOST_PAST = 5
_MARGIN_SECONDS = 60.0
"""An event may be stored a little after the moment that it names."""


def log_plan(
    context: dg.OpExecutionContext, config: DatasetConfig, plan: StoredPlan, metadata: Mapping[str, Any]
) -> None:
    """Log a plan as an observation of the head, with its preview."""
    stored = {**metadata, _PLAN: dg.MetadataValue.json(plan.to_dict()), _VERB: plan.verb.name}
    _log(context, config, f"plan of {plan.verb.name}: {plan.summary}", stored)


def log_done(
    context: dg.OpExecutionContext, config: DatasetConfig, verb: str, seconds: float, metadata: Mapping[str, Any]
) -> None:
    """Log that a verb was executed, and how long it took."""
    _log(context, config, verb, {**metadata, _VERB: verb, _SECONDS: round(seconds, 3)})


def plan_of_run(context: dg.OpExecutionContext, config: DatasetConfig, verb: str, run_id: str) -> StoredPlan:
    """Return the plan that a run logged for a verb on this dataset; raise `InvalidInput` if there is none."""
    record = context.instance.get_run_record_by_id(run_id)
    if record is None:
        raise InvalidInput(f"execute: there is no run {run_id!r}: give the id of a run that previewed {verb}")
    head = DatasetNames(config.name).head
    begun = record.start_time or record.create_timestamp.timestamp()
    bounds = dg.AssetRecordsFilter(
        asset_key=head,
        after_timestamp=begun - _MARGIN_SECONDS,
        before_timestamp=None if record.end_time is None else record.end_time + _MARGIN_SECONDS,
    )
    read = partial(context.instance.fetch_observations, bounds, limit=_PAGE)
    for event in records_of_pages(read):
        observed = event.asset_observation
        if event.run_id != run_id or observed is None or _value(observed, _VERB) != verb:
            continue
        plan = _value(observed, _PLAN)
        if plan is not None:
            return StoredPlan.from_dict(plan)
    raise InvalidInput(f"execute: run {run_id} has no plan of {verb} for {config.name}: give the id of a preview's run")


def past_seconds(instance: dg.DagsterInstance, config: DatasetConfig, verb: str) -> list[float]:
    """Return how long the newest executions of a verb took, the newest first."""
    found = instance.fetch_observations(DatasetNames(config.name).head, limit=_PAGE)
    seconds = [
        float(_value(observed, _SECONDS))
        for record in found.records
        if (observed := record.asset_observation) is not None
        and _value(observed, _VERB) == verb
        and _value(observed, _SECONDS) is not None
    ]
    return seconds[:_MOST_PAST]


def _log(context: dg.OpExecutionContext, config: DatasetConfig, what: str, metadata: Mapping[str, Any]) -> None:
    head = DatasetNames(config.name).head
    context.log_event(dg.AssetObservation(head, description=what, metadata=dict(metadata)))


def _value(observed: dg.AssetObservation, name: str) -> Any:
    value = observed.metadata.get(name)
    return None if value is None else value.value
