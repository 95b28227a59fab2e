"""Build the check that names the batches which were asked for and are not in the table.

A run that sets batches aside reports the check itself, because the steps after a failed one do not run. Later runs of
the check find what is settled since: a mended batch is in the table, and files that were removed are nobody's.
"""

# No postponed annotations in this module: Dagster compares the annotation of `context` with its own class.

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime

import dagster as dg

from lance_ops.dagster.declaration import DatasetConfig, DatasetNames
from lance_ops.dagster.landing.landing import LandedBatch, list_landing
from lance_ops.dagster.opening import open_if_exists
from lance_ops.maintenance import ingested_batches

__all__ = ["REFUSED", "build_settled_check", "named_with_reasons", "refusals", "settled_evaluation"]

REFUSED = "lance/refused"
"""The metadata of an observation that says why a batch was set aside."""

_NAME = "batches_settled"
_SHOWN = 20
_NO_REASON = "its run failed or has not ended"


def build_settled_check(config: DatasetConfig) -> dg.AssetChecksDefinition:
    """Return the check `batches_settled` of a dataset with a landing folder."""
    names = DatasetNames(config.name)
    raw = config.landing()

    def batches_settled(context: dg.AssetCheckExecutionContext) -> dg.AssetCheckResult:
        snapshot = open_if_exists(config)
        held = ingested_batches(snapshot) if snapshot else {}
        known = {*context.instance.get_dynamic_partitions(names.of("batches"))}
        ready = list_landing(raw, datetime.now(UTC)).ready
        missing = [batch for batch in ready if batch.key in known and batch.key not in held]
        unsettled = {batch.key: _NO_REASON for batch in missing} | refusals(context.instance, names, missing[:_SHOWN])
        return dg.AssetCheckResult(
            passed=not unsettled,
            description=_sentence(unsettled),
            metadata={"lance/unsettled_batches": dg.MetadataValue.json(unsettled)},
        )

    return dg.asset_check(
        asset=names.head,
        name=_NAME,
        description="Every batch that was asked for and is in the landing folder is in the table.",
        additional_deps=[names.batches],
    )(batches_settled)


def settled_evaluation(names: DatasetNames, refused: Mapping[str, str]) -> dg.AssetCheckEvaluation:
    """Return the check's evaluation after a run that set batches aside."""
    return dg.AssetCheckEvaluation(
        asset_key=names.head,
        check_name=_NAME,
        passed=False,
        severity=dg.AssetCheckSeverity.ERROR,
        description=_sentence(refused),
        metadata={"lance/unsettled_batches": dg.MetadataValue.json(dict(refused))},
    )


def refusals(instance: dg.DagsterInstance, names: DatasetNames, batches: Sequence[LandedBatch]) -> dict[str, str]:
    """Return the reasons for which batches with their present content were set aside."""
    found: dict[str, str] = {}
    for batch in batches:
        newest = dg.AssetRecordsFilter(names.batches, asset_partitions=[batch.key])
        for record in instance.fetch_observations(newest, limit=1).records:
            metadata = record.asset_observation.metadata if record.asset_observation else {}
            token, reason = (metadata.get(name) for name in ("lance/batch_token", REFUSED))
            if reason is not None and token is not None and token.value == batch.token:
                found[batch.key] = str(reason.value)
    return found


def named_with_reasons(batches: Mapping[str, str]) -> str:
    """Return a line for each of the first batches: its key, and why it is not in the table."""
    return "\n".join(f"{key}: {reason}" for key, reason in list(batches.items())[:_SHOWN])


def _sentence(unsettled: Mapping[str, str]) -> str:
    if not unsettled:
        return "all are in the table"
    return f"{len(unsettled)} batches are not in the table\n{named_with_reasons(unsettled)}"
