"""Say which assets a run materializes."""

from __future__ import annotations

from collections.abc import Collection
from functools import partial

import dagster as dg

from lance_ops.dagster.event_log import records_of_pages

__all__ = ["materializes_any"]

_EVENTS_AT_ONCE = 1000
_MOST_RUNS_KEPT = 10_000
_planned_by_run: dict[str, frozenset[dg.AssetKey]] = {}
"""What runs planned, by run id. The sensors of all datasets of a code location look at the same runs."""


def materializes_any(instance: dg.DagsterInstance, run: dg.DagsterRun, assets: Collection[dg.AssetKey]) -> bool:
    """Return whether a run was started to materialize any of these assets.

    If a schedule, a sensor or the command line started a job of assets, its run has no selection, or an empty one. For
    such a run the log is read, once: Dagster recorded there what the run planned to materialize.
    """
    selected = run.asset_selection or _planned(instance, run)
    return not selected.isdisjoint(assets)


def _planned(instance: dg.DagsterInstance, run: dg.DagsterRun) -> frozenset[dg.AssetKey]:
    known = _planned_by_run.get(run.run_id)
    if known is not None:
        return known
    of_type = dg.DagsterEventType.ASSET_MATERIALIZATION_PLANNED
    fetch = partial(instance.get_records_for_run, run.run_id, of_type=of_type, limit=_EVENTS_AT_ONCE)
    planned = frozenset(record.asset_key for record in records_of_pages(fetch) if record.asset_key is not None)
    if planned or run.is_finished:  # Dagster stores a run a moment before what the run plans
        if len(_planned_by_run) >= _MOST_RUNS_KEPT:
            _planned_by_run.clear()
        _planned_by_run[run.run_id] = planned
    return planned
