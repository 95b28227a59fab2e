"""Ask the landing folder, the table's history and Dagster's instance for the state of every batch."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from functools import partial
from typing import Any

import dagster as dg

from lance_ops.core.cached_property import cached_property
from lance_ops.core.lazy_import import collector_paused
from lance_ops.core.records import dataclass
from lance_ops.dagster.declaration import DatasetConfig, DatasetNames
from lance_ops.dagster.event_log import records_of_pages
from lance_ops.dagster.landing.batch_runs import (
    FailedRuns,
    failed_runs,
    given_up_batches,
    running_batches,
    without_removed_batches,
)
from lance_ops.dagster.landing.batch_state import BatchReport, BatchState, Evidence, judge_batches
from lance_ops.dagster.landing.landing import list_landing
from lance_ops.dagster.landing.landing_entries import LandedBatch
from lance_ops.dagster.opening import OpenNewest, open_to_look
from lance_ops.maintenance import BatchHistory, batch_history, tokens_of
from lance_ops.snapshot import Snapshot

__all__ = [
    "CANCELLED_TOKEN",
    "CHANGED_TOKEN",
    "KEPT_REFUSED",
    "REFUSED",
    "REFUSED_OF_RUN",
    "Refusals",
    "TableToCompare",
    "batch_states",
    "refusals",
    "reported_changes",
    "reported_in_state",
]

REFUSED = "lance/refused"
"""The metadata of an observation that says why a batch was set aside."""

REFUSED_OF_RUN = "lance/refused_batches"
"""The metadata of a run's failure that names the batches which the run set aside, with the reasons."""

CHANGED_TOKEN = "lance/changed_token"
"""The metadata of an observation of a batch that changed after it was ingested and was left alone: its new token."""

KEPT_REFUSED = "lance/kept_refused"
"""The same as `REFUSED`, in an observation without a run: Dagster deletes the observations of a run with the run. It is
another name, because alerts tell of each `REFUSED`."""

CANCELLED_TOKEN = "lance/cancelled_token"
"""The metadata of an observation of a batch whose run was cancelled: the token of the content that is left alone."""

_REPORTED_BY = {BatchState.QUARANTINED: {REFUSED, KEPT_REFUSED}, BatchState.CHANGED: {CHANGED_TOKEN}}
"""The metadata by which an observation reports a batch in a state."""

_PARTITIONS_AT_ONCE = 200
_EVENTS_AT_ONCE = 1000


class TableToCompare:
    """What batches are compared with of a table's newest version, as `open_newest` opens it: each read once at most."""

    def __init__(self, open_newest: OpenNewest) -> None:
        self._open_newest = open_newest

    @cached_property
    def history(self) -> BatchHistory:
        """The batches that the table ever ingested; empty for a dataset that does not exist."""
        return batch_history(self._newest) if self._newest else BatchHistory()

    def has_version_since(self, moment: datetime) -> bool:
        """Return whether a version may have been committed since."""
        made_at = self._newest.manifest.timestamp if self._newest else None
        return self._newest is not None and (made_at is None or made_at >= moment)

    @cached_property
    def _newest(self) -> Snapshot | None:
        return self._open_newest()


def batch_states(
    config: DatasetConfig,
    instance: dg.DagsterInstance | None = None,
    *,
    count_plain: bool = False,
    open_newest: OpenNewest | None = None,
    failing: dg.DagsterRun | None = None,
) -> BatchReport:
    """Return the state of every batch of a dataset, those that need somebody first.

    `count_plain` has batches only counted that are in the table and of which nothing else is to be said. `open_newest`
    opens the table if it is given, and nobody has called it yet. `failing` is the calling run if its ingestion has
    failed for good: it counts as failed. Without an instance, Dagster's part is unknown: a batch that the table lacks
    has then only landed. Raises `ConfigError` for a dataset without a landing folder, and what listing the folder and
    opening the table raise.
    """
    names, raw = DatasetNames(config.name), config.landing()
    now = datetime.now(UTC)
    # A batch moves on from its partition to a run and then into the table, and the sources are read in this order: a
    # run that ends meanwhile has left its batches in one of them. The materializations are read before the table, so
    # that a recorded batch which the table lacks was taken out, and not committed a moment later.
    with collector_paused():  # as in `list_landing`: what is compared is no garbage
        known = instance.get_dynamic_partitions(names.of("batches")) if instance else ()
        recorded = instance.get_materialized_partitions(names.batches) if instance and known else ()
        running = running_batches(instance, names, known, now, failing) if instance and known else ()
        table = TableToCompare(open_newest or partial(open_to_look, config))
        history = table.history
        held, taken_out = history.held, history.taken_out
    landing = list_landing(raw, now)
    with collector_paused():
        if instance is None:
            return judge_batches(raw, landing, Evidence(held), now, count_plain=count_plain)
        tokens = tokens_of(held)
        asked = [
            other
            for batch in landing.wanted(raw, known, lambda: held)
            if (other := batch.batch_to_request(tokens, raw.changed)) is not None
        ]
        refused = refusals(instance, names, asked)
        failed = failed_runs(instance, names, known, now, failing) if asked else {}
        given_up = given_up_batches(instance, names, known, now, failed, failing) if asked else {}
        told = {*refused.reasons, *refused.cancelled, *running, *failed, *given_up}
        untold = (batch for batch in asked if batch.key not in told and not batch.was_taken_out(taken_out, recorded))
        if {batch.key for batch in untold}.intersection(known):  # the newest runs do not tell of them
            failed = failed_runs(instance, names, known, now, failing, all_runs=True)
            given_up = given_up_batches(instance, names, known, now, failed, failing, all_runs=True)
        evidence = Evidence(
            held,
            taken_out=taken_out,
            partitions=dict.fromkeys(known).keys(),
            recorded=recorded,
            requested=running,
            failed=without_removed_batches(failed, recorded, history),
            given_up={key: run.ended for key, run in given_up.items()} | refused.still_cancelled(failed),
            refused=refused.reasons,
            changed_since=refused.changed_since,
        )
        return judge_batches(raw, landing, evidence, now, count_plain=count_plain)


@dataclass(frozen=True)
class Refusals:
    """What the newest observations of batches say of content that is left alone.

    `reasons` are those for which batches were set aside with their present content. Of a batch that `changed_since`,
    other content was set aside, or a run with other content was cancelled. `cancelled` are batches of which a run was
    cancelled with their present content, each with the time at which the sensor saw that.
    """

    reasons: Mapping[str, str]
    changed_since: Collection[str]
    cancelled: Mapping[str, datetime]

    def still_cancelled(self, failed: Mapping[str, FailedRuns]) -> dict[str, datetime]:
        """Return the cancelled batches but for those of which a later run, which somebody started, failed."""
        return {key: seen for key, seen in self.cancelled.items() if key not in failed or failed[key].ended <= seen}


def refusals(instance: dg.DagsterInstance, names: DatasetNames, batches: Sequence[LandedBatch]) -> Refusals:
    """Return which of the batches were set aside or cancelled, as far as their newest observations tell."""
    tokens = {batch.key: batch.token for batch in batches}
    reasons: dict[str, str] = {}
    changed_since: set[str] = set()
    cancelled: dict[str, datetime] = {}
    for key, record in _newest_observed(instance, names, list(tokens)):
        metadata = _metadata_of(record)
        reason, of_cancelled = metadata.get(REFUSED) or metadata.get(KEPT_REFUSED), metadata.get(CANCELLED_TOKEN)
        token = metadata.get("lance/batch_token") if reason is not None else of_cancelled
        if token is None:
            continue
        if token.value != tokens[key]:
            changed_since.add(key)
        elif reason is not None:
            reasons[key] = str(reason.value)
        else:
            cancelled[key] = datetime.fromtimestamp(record.timestamp, UTC)
    return Refusals(reasons, changed_since, cancelled)


def reported_changes(instance: dg.DagsterInstance, names: DatasetNames, batches: Sequence[LandedBatch]) -> set[str]:
    """Return the keys of batches that were reported as changed with their present content, and left alone."""
    tokens = {batch.key: batch.token for batch in batches}
    observed = _newest_observed(instance, names, list(tokens))
    found = ((key, _metadata_of(record).get(CHANGED_TOKEN)) for key, record in observed)
    return {key for key, token in found if token is not None and token.value == tokens[key]}


def reported_in_state(instance: dg.DagsterInstance, names: DatasetNames, states: Mapping[str, BatchState]) -> set[str]:
    """Return those of the batches in these states that their newest observation reports as being in it.

    Observations report that a batch was set aside, or that it changed and was left alone, and no other state.
    """
    observed = _newest_observed(instance, names, list(states))
    return {
        key for key, record in observed if not _REPORTED_BY.get(states[key], set()).isdisjoint(_metadata_of(record))
    }


def _newest_observed(
    instance: dg.DagsterInstance, names: DatasetNames, keys: Sequence[str]
) -> Iterator[tuple[str, dg.EventLogRecord]]:
    """Yield the newest observation of each of these batches that has one."""
    for start in range(0, len(keys), _PARTITIONS_AT_ONCE):
        left = set(keys[start : start + _PARTITIONS_AT_ONCE])
        wanted = dg.AssetRecordsFilter(names.batches, asset_partitions=sorted(left))
        for record in records_of_pages(partial(instance.fetch_observations, wanted, limit=_EVENTS_AT_ONCE)):
            key = record.partition_key
            if key in left:
                left.remove(key)
                yield key, record
            if not left:
                break


def _metadata_of(record: dg.EventLogRecord) -> Mapping[str, dg.MetadataValue[Any]]:
    return record.asset_observation.metadata if record.asset_observation else {}
