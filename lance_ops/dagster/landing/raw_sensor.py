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
from lance_ops.core.records import dataclass
from lance_ops.core.schema import SchemaMode
from lance_ops.dagster.declaration import DatasetConfig, DatasetNames, RawFiles
from lance_ops.dagster.landing.batch_report import (
    CANCELLED_TOKEN,
    CHANGED_TOKEN,
    TableToCompare,
    refusals,
    reported_changes,
)
from lance_ops.dagster.landing.batch_runs import (
    RANGE_END_TAG,
    RANGE_START_TAG,
    FailedRuns,
    UnsuccessfulRun,
    failed_runs,
    given_up_batches,
    running_batches,
    without_removed_batches,
)
from lance_ops.dagster.landing.landing import list_landing
from lance_ops.dagster.landing.landing_check import LANDING_CHECK, sentences_not_yet_recorded
from lance_ops.dagster.landing.landing_entries import LandedBatch, Landing, original_key
from lance_ops.dagster.landing.tick import (
    Cursor,
    NeighbouringBatches,
    Tick,
    batches_to_ask_again,
    batches_to_compare,
    batches_to_decide,
    plan_tick,
)
from lance_ops.dagster.opening import opening_once
from lance_ops.dagster.tick_failures import skip_tick_if_damaged
from lance_ops.maintenance import BatchHistory, tokens_of
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
        for sentence in sentences_not_yet_recorded(names, context.instance, landing):
            context.log.warning("%s", sentence)
        with collector_paused():  # as while the batches are made: what is compared is no garbage
            tick, cancelled = _decide(context.instance, config, landing, cursor, now)
        for batch in tick.changed:
            context.log.warning(_changed_sentence(batch))
        has_compared = cursor.is_comparison_due(now) and not tick.leaves_older
        return dg.SensorResult(
            run_requests=[_run_request(run) for run in tick.runs],
            skip_reason=None if tick.runs else dg.SkipReason(_why_nothing(landing, tick)),
            dynamic_partitions_requests=[names.partitions.build_add_request(list(tick.new_keys))]
            if tick.new_keys
            else [],
            asset_events=[
                *_observations_of_changes(names, tick.changed),
                *_observations_of_cancelled(names, cancelled),
            ],
            cursor=Cursor(tick.watermark, now if has_compared else cursor.compared_at).encode(),
        )

    return raw_files


def _decide(
    instance: dg.DagsterInstance, config: DatasetConfig, landing: Landing, cursor: Cursor, now: datetime
) -> tuple[Tick, Sequence[LandedBatch]]:
    """Return what the tick requests, and the batches whose runs were cancelled and that no observation tells of yet.

    Of the batches that changed and are left alone, the tick has those that are not yet reported.
    """
    names, raw = DatasetNames(config.name), config.landing()
    known = instance.get_dynamic_partitions(names.of("batches"))
    compares_all = cursor.is_comparison_due(now)
    # A batch moves on from a run under way to a failed one, or into the table. The sources are read in this order, so
    # that a batch which is in none of them has no run.
    running = running_batches(instance, names, known, now) if compares_all and known else set()
    failed = failed_runs(instance, names, known, now, only_last_day=not compares_all)
    table = TableToCompare(opening_once(config))
    is_whole_table = raw.schema_mode is SchemaMode.OVERWRITE
    ready = landing.ready[-1:] if is_whole_table else landing.ready
    ready = batches_to_decide(ready, known, None if compares_all else cursor.watermark, _originals(failed))
    if ready and is_whole_table:
        last_seen_place = cursor.watermark.place if cursor.watermark else None
        ready = landing.wanted(raw, known, lambda: table.history.held, last_seen_place)
    compared = batches_to_compare(ready, known, None)
    history = table.history if compared or _may_be_in_table(ready, known, table) else BatchHistory()
    found = _Findings({}, {}, (), ())
    if compared:
        comparison = _HistoryComparison(instance, names, raw, known, now, history)
        found = comparison.compare(compared, failed, running if compares_all else None)
    tick = plan_tick(
        ready,
        known,
        cursor.watermark,
        tokens_of(history.held),
        max_files=raw.max_files_per_tick,
        changed=raw.changed,
        failed=found.again,
        rewritten=found.rewritten,
        taken_out=history.taken_out,
        left_alone=found.left_alone,
    )
    reported = reported_changes(instance, names, tick.changed)
    return replace(tick, changed=tuple(batch for batch in tick.changed if batch.key not in reported)), found.cancelled


def _may_be_in_table(ready: Sequence[LandedBatch], known: Sequence[str], table: TableToCompare) -> bool:
    """Return whether a batch that is not `known` may be in the table, or may have been.

    Then somebody deleted its partition, or Dagster's storage was lost.
    """
    keys = set(known)
    unknown = [batch.modified for batch in ready if batch.key not in keys]
    return bool(unknown) and table.has_version_since(min(unknown))


@dataclass(frozen=True)
class _Findings:
    """What `_HistoryComparison` finds: `again` and `rewritten` are as `batches_to_ask_again` returns them.

    The batches that are `left_alone` are not asked for with their present content, or not yet: they were set aside or
    cancelled, or their runs failed. `cancelled` are those of which a run was cancelled, and no observation tells of it.
    """

    again: Mapping[str, str]
    rewritten: Mapping[str, int]
    left_alone: Container[str]
    cancelled: Sequence[LandedBatch]


@dataclass(frozen=True)
class _Candidates:
    """The batches that a run would be asked for, as the run would ingest them, and what the newest runs tell.

    `untold` are those of the batches that the table lacks, and that are neither running nor retried nor taken out.
    `running` are the keys of batches whose runs are under way. `failed` are what `without_removed_batches` leaves of
    the failed runs that the comparison was given, and `ever_failed` the failed runs of all days.
    """

    batches: Sequence[LandedBatch]
    untold: Sequence[LandedBatch]
    running: set[str]
    failed: dict[str, FailedRuns]
    ever_failed: Mapping[str, FailedRuns]

    def given_up(self, ended: Mapping[str, UnsuccessfulRun]) -> dict[str, LandedBatch]:
        """Return the candidates that have not changed since their runs of `given_up_batches` ended."""
        return {
            batch.key: batch for batch in self.batches if batch.key in ended and batch.was_there(ended[batch.key].ended)
        }

    def paused(self, now: datetime) -> set[str]:
        """Return the keys of candidates that failed many times, or a moment ago, and have not changed since."""
        return {
            batch.key
            for batch in self.batches
            if (runs := self.failed.get(batch.key))
            and (runs.are_many or now < runs.asked_again_at)
            and batch.was_there(runs.ended)
        }


@dataclass(frozen=True)
class _HistoryComparison:
    """Compares known batches with the table's history, with their runs, and with observations.

    `known` are Dagster's partitions in its order.
    """

    instance: dg.DagsterInstance
    names: DatasetNames
    raw: RawFiles
    known: Sequence[str]
    now: datetime
    history: BatchHistory

    def compare(
        self, compared: Sequence[LandedBatch], failed: Mapping[str, FailedRuns], running: set[str] | None
    ) -> _Findings:
        """Compare all known batches, or some of them: then `running` is None, and `failed` are those of the last day.

        The other runs are read only if a run would be asked for.
        """
        instance, names, known, now = self.instance, self.names, self.known, self.now
        candidates = self._candidates(compared, failed, running)
        asked, ever_failed = candidates.batches, candidates.ever_failed
        refused = refusals(instance, names, asked)
        ended = given_up_batches(instance, names, known, now, ever_failed) if asked else {}
        given_up = candidates.given_up(ended)
        left_alone = {*refused.reasons, *refused.still_cancelled(ever_failed), *given_up, *candidates.paused(now)}
        explained = candidates.running | left_alone | candidates.failed.keys()
        without_run = {batch.key: batch for batch in candidates.untold if batch.key not in explained}
        failures = candidates.failed
        if without_run:  # the newest runs do not tell of them
            older = failed_runs(instance, names, known, now, all_runs=True)
            ended |= given_up_batches(instance, names, known, now, older, all_runs=True)
            given_up |= {
                key: batch
                for key, batch in without_run.items()
                if key in ended and (key not in refused.changed_since or batch.was_there(ended[key].ended))
            }
            failures = failures | {key: older[key] for key in without_run.keys() & older.keys()}
        not_now = candidates.running | left_alone | given_up.keys()
        again, rewritten = batches_to_ask_again(compared, self.history.held, failures, not_now, self.raw.changed)
        again |= dict.fromkeys(without_run.keys() - failures.keys() - given_up.keys(), f"no run at {now:%Y-%m-%dT%H}")
        # Files that changed after the run ended may hold new content. Nothing is recorded of it, and a batch above the
        # watermark is asked for.
        unchanged = {key: batch for key, batch in given_up.items() if batch.was_there(ended[key].ended)}
        observed = {*refused.reasons, *refused.cancelled}
        cancelled = [batch for key, batch in unchanged.items() if ended[key].was_cancelled and key not in observed]
        return _Findings(again, rewritten, left_alone | unchanged.keys(), cancelled)

    def _candidates(
        self, compared: Sequence[LandedBatch], failed: Mapping[str, FailedRuns], running: set[str] | None
    ) -> _Candidates:
        """Return the batches that a run would be asked for if none was refused, given up or paused."""
        instance, names, held = self.instance, self.names, self.history.held
        absent = [batch for batch in compared if batch.key not in held] if running is not None else []
        recorded = instance.get_materialized_partitions(names.batches) if absent else set()
        still_failed = without_removed_batches(failed, recorded, self.history)
        retried = _originals(still_failed)
        batches = self._to_request([batch for batch in compared if batch.key in retried or batch.key in held])
        if running is None:
            running = running_batches(instance, names, self.known, self.now) if batches else set()
            failed = failed_runs(instance, names, self.known, self.now) if batches else {}
        told = retried | running
        untold = [
            batch
            for batch in absent
            if batch.key not in told and not batch.was_taken_out(self.history.taken_out, recorded)
        ]
        return _Candidates([*batches, *untold], untold, running, still_failed, failed)

    def _to_request(self, landed: Sequence[LandedBatch]) -> list[LandedBatch]:
        """Return the batches that runs would ingest of those that landed."""
        tokens = tokens_of(self.history.held)
        found = (batch.batch_to_request(tokens, self.raw.changed) for batch in landed)
        return [batch for batch in found if batch is not None]


def _originals(failed: Mapping[str, FailedRuns]) -> set[str]:
    """Return the keys of batches whose runs failed a few times, also those that changed batches had before."""
    keys = {key for key, runs in failed.items() if not runs.are_many}
    return keys | {original_key(key) for key in keys}


def _run_request(run: NeighbouringBatches) -> dg.RunRequest:
    if len(run.keys) == 1:
        return dg.RunRequest(run_key=run.run_key, partition_key=run.keys[0])
    return dg.RunRequest(run_key=run.run_key, tags={RANGE_START_TAG: run.keys[0], RANGE_END_TAG: run.keys[-1]})


def _observations_of_changes(names: DatasetNames, changed: Sequence[LandedBatch]) -> list[dg.AssetObservation]:
    return [
        dg.AssetObservation(
            names.batches,
            partition=batch.key,
            description=_changed_sentence(batch),
            metadata={CHANGED_TOKEN: batch.token, "lance/raw_files": len(batch.files)},
        )
        for batch in changed
    ]


def _observations_of_cancelled(names: DatasetNames, cancelled: Sequence[LandedBatch]) -> list[dg.AssetObservation]:
    """Record that batches are left alone, because Dagster forgets a cancellation when the run is deleted."""
    return [
        dg.AssetObservation(
            names.batches,
            partition=batch.key,
            description="a run of it was cancelled: only a person asks for it until its files change",
            metadata={CANCELLED_TOKEN: batch.token},
        )
        for batch in cancelled
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
        parts.append(f"{len(landing.set_aside)} files are set aside, see the check {LANDING_CHECK}")
    if tick.changed:
        parts.append(f"{len(tick.changed)} changed after they were ingested and are left alone")
    parts += landing.outside.sentences
    return "; ".join(parts)
