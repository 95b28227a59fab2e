"""Build the sensor that watches a landing folder and requests runs that ingest its batches.

One new batch becomes a run of its partition. A backlog becomes one run over a range of partitions, with one commit.
`tick.py` decides which batches a tick requests.
"""

from __future__ import annotations

from collections.abc import Container, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime

import dagster as dg

from lance_ops.core.lazy_import import collector_paused
from lance_ops.core.schema import SchemaMode
from lance_ops.dagster.declaration import DatasetConfig, DatasetNames, RawFiles
from lance_ops.dagster.landing.batch_report import CHANGED_TOKEN, TableToCompare, refusals, reported_changes
from lance_ops.dagster.landing.batch_runs import (
    RANGE_END_TAG,
    RANGE_START_TAG,
    FailedRuns,
    failed_runs,
    given_up_batches,
    running_batches,
    without_removed_batches,
)
from lance_ops.dagster.landing.landing import list_landing, shortened
from lance_ops.dagster.landing.landing_check import advice_on_slow_listing
from lance_ops.dagster.landing.landing_entries import LandedBatch, Landing, original_key
from lance_ops.dagster.landing.tick import (
    Cursor,
    NeighbouringBatches,
    Tick,
    Watermark,
    batches_to_ask_again,
    batches_to_compare,
    plan_tick,
)
from lance_ops.dagster.opening import opening_once
from lance_ops.dagster.tick_failures import skip_tick_if_damaged
from lance_ops.maintenance import IngestedBatch, tokens_of
from lance_ops.maintenance.ingest import printable

__all__ = ["build_raw_sensor"]


def build_raw_sensor(config: DatasetConfig, interval_seconds: int = 60) -> dg.SensorDefinition:
    """Return the sensor of a dataset's landing folder; it targets the dataset's ingest job."""
    names = DatasetNames(config.name)
    raw = config.landing()

    @dg.sensor(
        name=names.of("raw_files"),
        job_name=names.of("ingest"),
        minimum_interval_seconds=interval_seconds,
        default_status=dg.DefaultSensorStatus.RUNNING,
        description=f"Asks for the batches that land for {config.name}.",
    )
    @skip_tick_if_damaged(config)
    def raw_files(context: dg.SensorEvaluationContext) -> dg.SensorResult:
        now = datetime.now(UTC)
        cursor = Cursor.decode(context.cursor)
        landing = list_landing(raw, now)
        for sentence in shortened([file.sentence for file in landing.set_aside]):
            context.log.warning("%s", sentence)
        if slow := advice_on_slow_listing(landing.seconds):
            context.log.warning("%s", slow)
        with collector_paused():  # as while the batches are made: what is compared is no garbage
            tick = _decide(context.instance, config, landing, cursor, now)
        for batch in tick.changed:
            context.log.warning(_changed_sentence(batch))
        return dg.SensorResult(
            run_requests=[_run_request(run) for run in tick.runs],
            skip_reason=None if tick.runs else dg.SkipReason(_why_nothing(landing, tick)),
            dynamic_partitions_requests=[names.partitions.build_add_request(list(tick.new_keys))]
            if tick.new_keys
            else [],
            asset_events=_observations(names, tick.changed),
            cursor=Cursor(tick.watermark, now if cursor.is_comparison_due(now) else cursor.compared_at).encode(),
        )

    return raw_files


def _decide(
    instance: dg.DagsterInstance, config: DatasetConfig, landing: Landing, cursor: Cursor, now: datetime
) -> Tick:
    """Return what the tick requests; of the batches that changed and are left alone, those not yet reported."""
    names, raw = DatasetNames(config.name), config.landing()
    known = instance.get_dynamic_partitions(names.of("batches"))
    compares_all = cursor.is_comparison_due(now)
    # A batch moves on from a run under way to a failed one, or into the table. The sources are read in this order, so
    # that a batch which is in none of them has no run.
    running = running_batches(instance, names, known, now) if compares_all and known else set()
    failed = found = failed_runs(instance, names, known, now, only_last_day=not compares_all)
    table = TableToCompare(opening_once(config))
    again: dict[str, str] = {}
    rewritten: dict[str, int] = {}
    ready = landing.ready[-1:] if raw.schema_mode is SchemaMode.OVERWRITE else landing.ready
    compared = batches_to_compare(ready, known, None if compares_all else cursor.watermark, _originals(failed))
    if raw.schema_mode is SchemaMode.OVERWRITE:
        ready = _whole_table(landing, raw, known, cursor.watermark, table, is_compared=bool(compared))
        compared = tuple(batch for batch in compared if batch in ready)
    if compared:
        held = table.history.held
        absent = [batch for batch in compared if batch.key not in held] if compares_all else []
        recorded = instance.get_materialized_partitions(names.batches) if absent else set()
        failed = without_removed_batches(failed, recorded, held)
        told = {*recorded, *running, *table.history.taken_out}
        absent = [batch for batch in absent if batch.key not in told]
        retried = _originals(failed)
        asked = _asked_for([batch for batch in compared if batch.key in retried or batch.key in held], held, raw)
        asked += [(batch, batch) for batch in absent if batch.key not in retried]
        if asked and not compares_all:
            running, found = running_batches(instance, names, known, now), failed_runs(instance, names, known, now)
        refused = refusals(instance, names, [batch for _, batch in asked])
        left_alone = {*running, *refused.reasons, *_given_up(instance, names, known, asked, found, now)}
        without_run = {batch.key for batch in absent} - left_alone - failed.keys()
        if without_run:  # the newest runs do not tell of them
            older = failed_runs(instance, names, known, now, all_runs=True)
            given_up = given_up_batches(instance, names, known, now, older, all_runs=True)
            failed |= {key: older[key] for key in without_run & older.keys()}
            left_alone |= without_run & given_up.keys()
            without_run -= {*older, *given_up}
        again, rewritten = batches_to_ask_again(compared, held, failed, left_alone, raw.changed)
        again |= dict.fromkeys(without_run, f"no run at {now:%Y-%m-%dT%H}")
    tick = plan_tick(
        ready,
        known,
        cursor.watermark,
        tokens_of(table.history.held) if compared else {},
        max_files=raw.max_files_per_tick,
        changed=raw.changed,
        failed=again,
        rewritten=rewritten,
        taken_out=_taken_out_unchanged(ready, known, again, table, is_read=bool(compared)),
    )
    reported = reported_changes(instance, names, tick.changed)
    return replace(tick, changed=tuple(batch for batch in tick.changed if batch.key not in reported))


def _whole_table(
    landing: Landing,
    raw: RawFiles,
    known: Sequence[str],
    watermark: Watermark | None,
    table: TableToCompare,
    *,
    is_compared: bool,
) -> tuple[LandedBatch, ...]:
    """Return the batch that is to be the whole table, if it is ready, as `Landing.wanted` does.

    The watermark tells a newer batch from an older one that the sensor has passed over. The table's history is read
    only if the newest batch `is_compared` with it, or if neither the watermark nor Dagster's partitions tell.
    """
    if not landing.ready:
        return ()
    newest = landing.ready[-1]
    is_newer = watermark is not None and newest.order > (watermark.modified, watermark.key)
    if watermark is not None and not is_newer and newest.key not in known:
        return ()
    waits = bool(landing.waiting) and landing.waiting[-1].order > newest.order
    if watermark is not None and not waits and not is_compared:
        return (newest,)
    return landing.wanted(raw, known, table.history.held, None if is_newer else table.held_at)


def _taken_out_unchanged(
    ready: Sequence[LandedBatch],
    known: Sequence[str],
    again: Container[str],
    table: TableToCompare,
    *,
    is_read: bool,
) -> set[str]:
    """Return the keys of batches that were taken out of the table, and that have the content which they had then.

    Only a person asks for them, unless a run of theirs failed since, so that they are in `again`. If the history is not
    read yet (`is_read`), it is read only for batches that are not `known` and may have been in the table: somebody
    deleted their partitions, or Dagster's storage was lost.
    """
    if not is_read:
        keys = set(known)
        unknown = [batch.modified for batch in ready if batch.key not in keys]
        if not unknown or not table.has_version_since(min(unknown)):
            return set()
    taken_out = table.history.taken_out
    found = (batch for batch in ready if batch.key in taken_out and batch.key not in again)
    return {batch.key for batch in found if batch.token == taken_out[batch.key]}


def _originals(failed: Mapping[str, FailedRuns]) -> set[str]:
    """Return the keys of batches whose runs failed a few times, also those that changed batches had before."""
    keys = {key for key, runs in failed.items() if not runs.are_many}
    return keys | {original_key(key) for key in keys}


def _asked_for(
    landed: Sequence[LandedBatch], held: Mapping[str, IngestedBatch], raw: RawFiles
) -> list[tuple[LandedBatch, LandedBatch]]:
    """Pair each landed batch that a run would be asked for with the batch that the run would ingest."""
    tokens = tokens_of(held)
    pairs = ((batch, batch.batch_to_request(tokens, raw.changed)) for batch in landed)
    return [(batch, asked) for batch, asked in pairs if asked is not None]


def _given_up(
    instance: dg.DagsterInstance,
    names: DatasetNames,
    known: Sequence[str],
    asked: Sequence[tuple[LandedBatch, LandedBatch]],
    failed: Container[str],
    now: datetime,
) -> set[str]:
    """Return the keys of batches that only a person asks for with this content; `asked` is as `_asked_for` returns."""
    if not asked:
        return set()
    ended = given_up_batches(instance, names, known, now, failed)
    return {batch.key for landed, batch in asked if batch.key in ended and landed.was_there(ended[batch.key])}


def _run_request(run: NeighbouringBatches) -> dg.RunRequest:
    if len(run.keys) == 1:
        return dg.RunRequest(run_key=run.run_key, partition_key=run.keys[0])
    return dg.RunRequest(run_key=run.run_key, tags={RANGE_START_TAG: run.keys[0], RANGE_END_TAG: run.keys[-1]})


def _observations(names: DatasetNames, changed: Sequence[LandedBatch]) -> list[dg.AssetObservation]:
    return [
        dg.AssetObservation(
            names.batches,
            partition=batch.key,
            description=_changed_sentence(batch),
            metadata={CHANGED_TOKEN: batch.token, "lance/raw_files": len(batch.files)},
        )
        for batch in changed
    ]


def _changed_sentence(batch: LandedBatch) -> str:
    return (
        f"{printable(batch.files[0].path)}: batch {batch.key} changed after it was ingested and is left alone; delete "
        "its rows and land it under another name, put the files back, or set raw.changed to append or replace"
    )


def _why_nothing(landing: Landing, tick: Tick) -> str:
    parts = [f"{len(landing.ready)} batches are in the landing folder, none is new"]
    if settling := len(landing.waiting) - len(landing.lacking):
        parts.append(f"{settling} are still settling")
    if landing.lacking:
        parts.append(f"{len(landing.lacking)} lack a file that is set aside")
    if landing.empty:
        parts.append(f"{len(landing.empty)} files of 0 bytes are left out")
    if landing.set_aside:
        parts.append(f"{len(landing.set_aside)} files are set aside, see the log")
    if tick.changed:
        parts.append(f"{len(tick.changed)} changed after they were ingested and are left alone")
    parts += landing.outside.sentences
    return "; ".join(parts)
