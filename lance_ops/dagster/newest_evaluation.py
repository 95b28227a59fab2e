"""Find the newest result of a check in Dagster's log."""

from __future__ import annotations

import dagster as dg

from lance_ops.core.records import dataclass

__all__ = ["RecordedEvaluation", "newest_evaluation"]

_RECORDS_AT_ONCE = 20


@dataclass(frozen=True)
class RecordedEvaluation:
    """A check's evaluation, its record's id in the event log, and the id of its run ('' if no run reported it)."""

    evaluation: dg.AssetCheckEvaluation
    record_id: int
    run_id: str


def newest_evaluation(instance: dg.DagsterInstance, check: dg.AssetCheckKey) -> RecordedEvaluation | None:
    """Return the newest result of a check; None if it has none.

    A run that failed before it came to the check leaves no result, only a record that it planned one.
    """
    cursor: int | None = None
    while records := instance.event_log_storage.get_asset_check_execution_history(check, _RECORDS_AT_ONCE, cursor):
        for record in records:
            evaluation = record.event.asset_check_evaluation if record.event is not None else None
            if evaluation is not None:
                return RecordedEvaluation(evaluation, record.id, record.run_id)
        cursor = records[-1].id
    return None
