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
from lance_ops.core.schema import SchemaMode
from lance_ops.dagster.declaration import DatasetConfig, DatasetNames
from lance_ops.dagster.event_log import records_of_pages
from lance_ops.dagster.landing.batch_runs import failed_runs, given_up_batches, running_batches, without_removed_batches
from lance_ops.dagster.landing.batch_state import BatchReport, BatchState, Evidence, judge_batches
from lance_ops.dagster.landing.landing import list_landing
from lance_ops.dagster.landing.landing_entries import LandedBatch
from lance_ops.dagster.opening import OpenNewest, open_to_look
from lance_ops.maintenance import BatchHistory, batch_history, time_of_ingestion, tokens_of
from lance_ops.snapshot import Snapshot

__all__ = [
    "CHANGED_TOKEN",
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

_REPORTED_BY = {BatchState.QUARANTINED: REFUSED, BatchState.CHANGED: CHANGED_TOKEN}
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

    @cached_property
    def held_at(self) -> datetime | None:
        """When the last of the batches in the table came into it."""
        return time_of_ingestion(self._newest, self.history.held) if self._newest else None

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
        held, taken_out = table.history.held, table.history.taken_out
        held_at = table.held_at if raw.schema_mode is SchemaMode.OVERWRITE else None
    landing = list_landing(raw, now)
    with collector_paused():
        if instance is None:
            return judge_batches(raw, landing, Evidence(held, held_at=held_at), now, count_plain=count_plain)
        tokens = tokens_of(held)
        asked = [
            other
            for batch in landing.wanted(raw, known, held, held_at)
            if (other := batch.batch_to_request(tokens, raw.changed)) is not None
        ]
        refused = refusals(instance, names, asked)
        failed = failed_runs(instance, names, known, now, failing) if asked else {}
        given_up = given_up_batches(instance, names, known, now, failed, failing) if asked else {}
        told = {*refused.reasons, *running, *failed, *given_up, *recorded, *taken_out} if asked else set()
        if {batch.key for batch in asked}.intersection(known) - told:  # the newest runs do not tell of them
            failed = failed_runs(instance, names, known, now, failing, all_runs=True)
            given_up = given_up_batches(instance, names, known, now, failed, failing, all_runs=True)
        evidence = Evidence(
            held,
            held_at=held_at,
            taken_out=taken_out,
            partitions=dict.fromkeys(known).keys(),
            recorded=recorded,
            requested=running,
            failed=without_removed_batches(failed, recorded, held),
            given_up=given_up,
            refused=refused.reasons,
            mended=refused.mended,
        )
        return judge_batches(raw, landing, evidence, now, count_plain=count_plain)


@dataclass(frozen=True)
class Refusals:
    """The reasons for which batches were set aside with their present content, and those that were mended since.

    Of a mended batch, the newest observation says that other content was set aside.
    """

    reasons: Mapping[str, str]
    mended: Collection[str]


def refusals(instance: dg.DagsterInstance, names: DatasetNames, batches: Sequence[LandedBatch]) -> Refusals:
    """Return which of the batches were set aside, as far as their newest observations tell."""
    tokens = {batch.key: batch.token for batch in batches}
    reasons: dict[str, str] = {}
    mended: set[str] = set()
    for key, metadata in _newest_observed(instance, names, list(tokens)):
        reason, token = (metadata.get(name) for name in (REFUSED, "lance/batch_token"))
        if reason is None or token is None:
            continue
        if token.value == tokens[key]:
            reasons[key] = str(reason.value)
        else:
            mended.add(key)
    return Refusals(reasons, mended)


def reported_changes(instance: dg.DagsterInstance, names: DatasetNames, batches: Sequence[LandedBatch]) -> set[str]:
    """Return the keys of batches that were reported as changed with their present content, and left alone."""
    tokens = {batch.key: batch.token for batch in batches}
    observed = _newest_observed(instance, names, list(tokens))
    found = ((key, metadata.get(CHANGED_TOKEN)) for key, metadata in observed)
    return {key for key, token in found if token is not None and token.value == tokens[key]}


def reported_in_state(instance: dg.DagsterInstance, names: DatasetNames, states: Mapping[str, BatchState]) -> set[str]:
    """Return those of the batches in these states that their newest observation reports as being in it.

    Observations report that a batch was set aside, or that it changed and was left alone, and no other state.
    """
    observed = _newest_observed(instance, names, list(states))
    return {key for key, metadata in observed if _REPORTED_BY.get(states[key]) in metadata}


def _newest_observed(
    instance: dg.DagsterInstance, names: DatasetNames, keys: Sequence[str]
) -> Iterator[tuple[str, Mapping[str, dg.MetadataValue[Any]]]]:
    """Yield the metadata of the newest observation of each of these batches that has one."""
    for start in range(0, len(keys), _PARTITIONS_AT_ONCE):
        left = set(keys[start : start + _PARTITIONS_AT_ONCE])
        wanted = dg.AssetRecordsFilter(names.batches, asset_partitions=sorted(left))
        for record in records_of_pages(partial(instance.fetch_observations, wanted, limit=_EVENTS_AT_ONCE)):
            key = record.partition_key
            if key in left:
                left.remove(key)
                yield key, record.asset_observation.metadata if record.asset_observation else {}
            if not left:
                break
