"""Read Dagster's event log page by page: it refuses to read more than 10,000 events at once."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Protocol

import dagster as dg

from lance_ops.core.records import dataclass

__all__ = ["RecordedEvaluation", "newest_evaluation", "newest_evaluations", "records_of_pages"]

_RECORDS_AT_ONCE = 20
"""How many records are read first. Each further page is twice as long as the one before."""


class _Page(Protocol):
    """A page of events, as the methods of an instance return it."""

    @property
    def records(self) -> Sequence[dg.EventLogRecord]: ...

    @property
    def cursor(self) -> str: ...

    @property
    def has_more(self) -> bool: ...


@dataclass(frozen=True)
class RecordedEvaluation:
    """A check's evaluation, its record's id in the event log, and the id of its run ('' if no run reported it)."""

    evaluation: dg.AssetCheckEvaluation
    record_id: int
    run_id: str


def records_of_pages(fetch: Callable[..., _Page]) -> Iterator[dg.EventLogRecord]:
    """Yield the records of all pages. `fetch` reads the page that follows a `cursor`, the first page if it is None.

    A page is read when the caller asks for its first record.
    """
    cursor: str | None = None
    while True:
        page = fetch(cursor=cursor)
        yield from page.records
        if not page.has_more:
            return
        cursor = page.cursor


def newest_evaluation(instance: dg.DagsterInstance, check: dg.AssetCheckKey) -> RecordedEvaluation | None:
    """Return the newest result of a check; None if it has none."""
    return next(newest_evaluations(instance, check), None)


def newest_evaluations(
    instance: dg.DagsterInstance, check: dg.AssetCheckKey, at_least: int | None = None
) -> Iterator[RecordedEvaluation]:
    """Yield the results of a check, the newest first; the log is read as far as the caller asks for them.

    A run that failed before it came to the check leaves no result, only a record that it planned one. Once
    `at_least` records of both kinds are read, older ones are not.
    """
    cursor: int | None = None
    num_read, at_once = 0, _RECORDS_AT_ONCE
    while at_least is None or num_read < at_least:
        records = instance.event_log_storage.get_asset_check_execution_history(check, at_once, cursor)
        if not records:
            return
        for record in records:
            evaluation = record.event.asset_check_evaluation if record.event is not None else None
            if evaluation is not None:
                yield RecordedEvaluation(evaluation, record.id, record.run_id)
        cursor, num_read, at_once = records[-1].id, num_read + len(records), 2 * at_once
