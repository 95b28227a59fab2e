"""Build the asset `<dataset>/batches`: a partition is a batch of raw files, and a run commits its partitions once."""

# No postponed annotations in this module: Dagster compares the annotation of `context` with its own class.

import warnings
from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import dagster as dg

from lance_ops.core.errors import InvalidInput
from lance_ops.core.schema import SchemaMode
from lance_ops.dagster.declaration import DatasetConfig, DatasetNames
from lance_ops.dagster.failures import retrying
from lance_ops.dagster.head import report_versions
from lance_ops.dagster.landing.batch_report import CHANGED_TOKEN, KEPT_REFUSED, REFUSED, REFUSED_OF_RUN
from lance_ops.dagster.landing.failed_run_checks import evaluating_checks_of_failure, report_checks
from lance_ops.dagster.landing.landing import list_landing
from lance_ops.dagster.landing.landing_entries import LandedBatch, Landing
from lance_ops.dagster.landing.settled_check import named_with_reasons
from lance_ops.dagster.markdown import named
from lance_ops.dagster.opening import open_for_run
from lance_ops.dagster.runners import LanceRunner, runner_key
from lance_ops.maintenance import IngestedBatch, ingested_batches
from lance_ops.maintenance.ingest import IngestBatch, IngestResult, ingest
from lance_ops.runners import Runner
from lance_ops.snapshot import Snapshot

__all__ = ["batches_asset", "record_planned_batches"]

_ROW_COUNT = "dagster/partition_row_count"
_NOTHING_DONE = IngestResult(None, 0, 0, (), ())
_SHOWN = 20
_EVENTS_PER_PARTITION = 4
"""How many events to search for a row count. Each replay repeats the count, so the newest event usually has it."""
_PARTITIONS_AT_ONCE = 1000
"""Of how many partitions one query searches the events: Dagster refuses to read more than 10,000 events at once."""


def batches_asset(config: DatasetConfig) -> dg.AssetsDefinition:
    """Return the asset that ingests batches of a dataset's landing folder."""
    names = DatasetNames(config.name)
    config.landing()  # refuse a declaration without a landing folder now, not in the first run

    def batches(context: dg.AssetExecutionContext) -> dg.MaterializeResult[None]:
        started = datetime.now(UTC)
        runner: LanceRunner = getattr(context.resources, runner_key(config))
        with evaluating_checks_of_failure(context, config), retrying():
            wanted = _wanted(context, names)
            landing = list_landing(config.landing(), started)
            before = open_for_run(config)
            landed, recorded_only, lost = _requested(config, landing, before, wanted, context.instance)
            lacking = _lacking_files(config, landing, before, landed)
            to_ingest = [batch for batch in landed if batch.key not in lacking]
            result = _ingest(config, to_ingest, runner.logging_to(context.log)) if to_ingest else _NOTHING_DONE
            result = replace(result, skipped=(*result.skipped, *recorded_only))
            newest = open_for_run(config)
            if newest is not None:
                report_versions(context, config, newest, before.version if before else 0, started)
        rows = _recorded_rows(context.instance, names.batches, tuple(recorded_only))
        metadata = {key: told | ({_ROW_COUNT: rows[key]} if key in rows else {}) for key, told in recorded_only.items()}
        for key in [key for key, told in recorded_only.items() if CHANGED_TOKEN in told]:
            context.log.warning("batch %s changed after it was ingested: what the table holds of it is recorded", key)
        metadata |= _metadata_by_batch(context.instance, names, [batch.to_ingest() for batch in to_ingest], result)
        if result.refused or lost or lacking:
            raise _record_quarantined(context, config, metadata, result, lost, lacking)
        with names.partitions.answering_with(wanted):
            for key, of_batch in metadata.items():
                context.add_asset_metadata(of_batch, names.batches, key)
        return dg.MaterializeResult(asset_key=names.batches, metadata=_run_metadata(result))

    with warnings.catch_warnings():
        # This asset needs backfills of many partitions in one run; Dagster marks the parameter as beta.
        warnings.simplefilter("ignore", dg.BetaWarning)
        return dg.asset(
            key=names.batches,
            description=f"Batches of raw files ingested into {config.name}, each exactly once.",
            partitions_def=names.partitions,
            backfill_policy=dg.BackfillPolicy.single_run(),
            kinds=config.asset_kinds,
            owners=list(config.owners) or None,
            group_name=config.group_name,
            tags=config.tags,
            pool=names.pool,
            required_resource_keys={runner_key(config)},
        )(batches)


def _wanted(context: dg.AssetExecutionContext, names: DatasetNames) -> Sequence[str]:
    """Return the batches that the run is for; raise `InvalidInput` if it names none."""
    if not (context.has_partition_key or context.has_partition_key_range):
        raise InvalidInput(
            f"the run names no batch: launch it for a partition of {names.batches.to_user_string()} "
            f"(`dg launch --job {names.of('ingest')} --partition KEY`), or turn on the sensor "
            f"{names.of('raw_files')}, which asks for all batches that have landed"
        )
    keys: Sequence[str] = context.partition_keys
    return keys


def record_planned_batches(
    context: dg.OpExecutionContext, config: DatasetConfig, batches: Sequence[IngestBatch], result: IngestResult
) -> None:
    """Record the batches that a plan ingested as their partitions; raise `dg.Failure` if some were set aside."""
    names = DatasetNames(config.name)
    context.instance.add_dynamic_partitions(names.of("batches"), [batch.key for batch in batches])
    metadata = _metadata_by_batch(context.instance, names, batches, result)
    if result.refused:
        raise _record_quarantined(context, config, metadata, result)
    _record_ingested(context, names, metadata, result)


def _metadata_by_batch(
    instance: dg.DagsterInstance, names: DatasetNames, batches: Sequence[IngestBatch], result: IngestResult
) -> dict[str, dict[str, Any]]:
    rows = _recorded_rows(instance, names.batches, result.skipped) | dict(result.rows_by_batch)
    return {
        batch.key: _batch_metadata(batch, rows.get(batch.key), is_replay=batch.key in result.skipped)
        for batch in batches
    }


def _record_ingested(
    context: dg.OpExecutionContext | dg.AssetExecutionContext,
    names: DatasetNames,
    metadata: Mapping[str, dict[str, Any]],
    result: IngestResult,
) -> None:
    for key, of_batch in metadata.items():
        context.log_event(
            dg.AssetMaterialization(names.batches, partition=key, metadata=_run_metadata(result) | of_batch)
        )


def _record_quarantined(
    context: dg.OpExecutionContext | dg.AssetExecutionContext,
    config: DatasetConfig,
    metadata: Mapping[str, dict[str, Any]],
    result: IngestResult,
    lost: Sequence[str] = (),
    lacking: Mapping[str, str] | None = None,
) -> dg.Failure:
    """Record the batches that are in the table and those that were set aside; return the failure that names the latter.

    It also names the `lost` batches, whose files are gone, and the `lacking` ones with the reasons: they wait, and are
    asked for again when nothing of them is set aside. A batch that was not as it was listed is not recorded as set
    aside, because it may come back with the same content. The run fails, so that its partitions show which batches are
    missing. If a run succeeds, Dagster records all of its partitions.
    """
    lacking = lacking or {}
    names = DatasetNames(config.name)
    passing = {key: result.refused[key] for key in result.not_as_listed}
    refused = {key: reason for key, reason in result.refused.items() if key not in passing}
    ingested = {key: of_batch for key, of_batch in metadata.items() if key not in result.refused}
    _record_ingested(context, names, ingested, result)
    for key, reason in refused.items():
        known = {name: value for name, value in metadata[key].items() if name != "lance/replayed"}
        context.log_event(
            dg.AssetObservation(names.batches, partition=key, description=reason, metadata={**known, REFUSED: reason})
        )
    # One alert tells of neighbouring observations of one run, so these, which have no run, stand behind those above.
    for key, reason in refused.items():
        kept = {"lance/batch_token": metadata[key]["lance/batch_token"], KEPT_REFUSED: reason}
        context.instance.report_runless_asset_event(
            dg.AssetObservation(names.batches, partition=key, description=reason, metadata=kept)
        )
    report_checks(context, config, ingested.keys(), refused)
    num_wanted = len(metadata) + len(lost) + len(lacking)
    told = [f"{_no_such_files(config, lost, num_wanted)}."] if lost else []
    if lacking:
        told.append(
            f"{len(lacking)} of {num_wanted} batches are not complete and wait; the sensor asks for each again when "
            f"nothing of it is set aside:\n{named_with_reasons(lacking)}"
        )
    if passing:
        told.append(
            f"{len(passing)} of {num_wanted} batches were not as they were listed; the sensor asks for each again as "
            f"it is then:\n{named_with_reasons(passing)}"
        )
    if refused:
        told.append(
            f"{len(refused)} of {num_wanted} batches are set aside. Mend or remove these files; a mended one is "
            "asked for again. After a change of the declaration or of the table, ask for "
            f"each with dg launch --job {names.of('ingest')} --partition KEY:\n{named_with_reasons(refused)}"
        )
    if ingested:
        told.append("All other batches are in the table.")
    # Alerts of batches that were set aside tell of these alone, so a run that misses others is told as a failed one.
    of_run = {} if lost or lacking or passing else {REFUSED_OF_RUN: dg.MetadataValue.json(refused)}
    return dg.Failure("\n".join(told), metadata=of_run, allow_retries=False)


def _no_such_files(config: DatasetConfig, lost: Sequence[str], num_wanted: int) -> str:
    return (
        f"{len(lost)} of {num_wanted} batches have no such files in {config.landing().location().public_uri}: "
        f"{named(lost, _SHOWN)}; put the files back as they were, or delete these partitions"
    )


def _requested(
    config: DatasetConfig,
    landing: Landing,
    table: Snapshot | None,
    keys: Sequence[str],
    instance: dg.DagsterInstance,
) -> tuple[tuple[LandedBatch, ...], dict[str, dict[str, Any]], list[str]]:
    """Return the batches to ingest of the requested partitions, in their order, and metadata of those only to record.

    The third value is the batches that have neither files nor rows in the table. Raises `dg.Failure` if all are so, or
    if the newest batch is to be the whole table.

    `table` was opened after `landing` was listed, so that it has the batches whose files are moved away once they are
    ingested.

    The first run of these partitions may have died after its commit, and its repetition must record them all: also a
    batch whose files are gone, and one that has changed.
    """
    found, missing = landing.find(keys)
    held = ingested_batches(table) if table is not None else {}
    lost = [key for key in missing if key not in held]
    # An older batch must not become the whole table because the newest one is lost.
    if lost and (len(lost) == len(keys) or config.landing().schema_mode is SchemaMode.OVERWRITE):
        raise dg.Failure(_no_such_files(config, lost, len(keys)), allow_retries=False)
    changed = _changed_and_kept(config, found, held, instance)
    recorded_only = {
        key: {"lance/batch_token": held[key].token, "lance/replayed": True}
        for key in (*missing, *changed)
        if key in held
    }
    for key in changed:
        recorded_only[key][CHANGED_TOKEN] = found[key].token
    return tuple(found[key] for key in keys if key in found and key not in changed), recorded_only, lost


def _lacking_files(
    config: DatasetConfig, landing: Landing, table: Snapshot | None, landed: Sequence[LandedBatch]
) -> dict[str, str]:
    """Return the batches that lack a file which is set aside, each with the reason; not those that the table has so.

    Raises `dg.Failure` if the declaration has no batch ingested beside a bad one, or if the batches of a run become the
    whole table: older ones must not replace it because the newest one is not complete.
    """
    held = ingested_batches(table) if table is not None and landing.lacking else {}
    lacking = {
        batch.key: reason
        for batch in landed
        if (reason := landing.why_lacking(batch.key))
        and (batch.key not in held or held[batch.key].token != batch.token)
    }
    raw = config.landing()
    if lacking and (raw.bad == "refuse" or raw.schema_mode is SchemaMode.OVERWRITE):
        raise dg.Failure(f"no batch is ingested:\n{named_with_reasons(lacking)}", allow_retries=False)
    return lacking


def _changed_and_kept(
    config: DatasetConfig,
    found: Mapping[str, LandedBatch],
    held: Mapping[str, IngestedBatch],
    instance: dg.DagsterInstance,
) -> list[str]:
    """Return the keys of batches that changed after they were ingested, and whose rows stay as they are.

    With `append`, the new content has a partition of its own. With `refuse`, a batch that has no materialization yet
    is recorded as the table holds it; one that has was launched by a person, and the run refuses it.
    """
    raw = config.landing()
    if raw.changed == "replace" or raw.schema_mode is SchemaMode.OVERWRITE:
        return []
    changed = [key for key, batch in found.items() if key in held and batch.token != held[key].token]
    if changed and raw.changed == "refuse":
        materialized = instance.get_materialized_partitions(DatasetNames(config.name).batches)
        changed = [key for key in changed if key not in materialized]
    return changed


def _ingest(config: DatasetConfig, landed: Sequence[LandedBatch], runner: Runner) -> IngestResult:
    location, raw_location = config.table(), config.landing().location()
    return ingest(
        location.uri,
        [batch.to_ingest() for batch in landed],
        storage_options=location.storage_options,
        raw_storage_options=raw_location.storage_options,
        options=config.ingest_options(),
        runner=runner,
    )


def _recorded_rows(instance: dg.DagsterInstance, batches: dg.AssetKey, keys: Sequence[str]) -> dict[str, int]:
    """Return the row counts in earlier materializations of these partitions; a replay counts no rows itself."""
    rows: dict[str, int] = {}
    for start in range(0, len(keys), _PARTITIONS_AT_ONCE):
        some = list(keys[start : start + _PARTITIONS_AT_ONCE])
        wanted = dg.AssetRecordsFilter(asset_key=batches, asset_partitions=some)
        for record in instance.fetch_materializations(wanted, limit=_EVENTS_PER_PARTITION * len(some)).records:
            event = record.asset_materialization
            counted = event.metadata.get(_ROW_COUNT) if event else None
            if isinstance(counted, dg.IntMetadataValue) and counted.value is not None and record.partition_key:
                rows.setdefault(record.partition_key, counted.value)
    return rows


def _batch_metadata(batch: IngestBatch, num_rows: int | None, *, is_replay: bool) -> dict[str, Any]:
    metadata: dict[str, Any] = {
        "lance/batch_token": batch.token,
        "lance/raw_files": len(batch.files),
        "lance/raw_bytes": sum(file.size_bytes for file in batch.files),
        "lance/replayed": is_replay,
    }
    if num_rows is not None:
        metadata[_ROW_COUNT] = num_rows
    return metadata


def _run_metadata(result: IngestResult) -> dict[str, Any]:
    metadata: dict[str, Any] = {
        "lance/ingested_batches": len(result.ingested),
        "lance/skipped_batches": len(result.skipped),
        "lance/ingested_rows": result.num_rows,
    }
    if result.merged is not None:
        metadata["lance/inserted_rows"] = result.merged.inserted
        metadata["lance/updated_rows"] = result.merged.updated
        metadata["lance/deleted_rows"] = result.merged.deleted
    if result.version is not None:
        metadata["lance/version"] = result.version
    return metadata
