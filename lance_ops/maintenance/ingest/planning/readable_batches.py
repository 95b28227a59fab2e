"""Plan an ingestion of the batches that can be planned, and set the others aside."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TypeVar

from lance_ops.core.errors import RawFileNotAsListed, RawFileRefused
from lance_ops.maintenance.ingest.planning.ingest_options import BadBatches
from lance_ops.maintenance.ingest.planning.ingest_plan import BatchesChanged, IngestPlan
from lance_ops.maintenance.ingest.raw_files import IngestBatch, RawFile
from lance_ops.maintenance.ingest.raw_schemas import FileDisagrees, FoundSchemas

__all__ = ["batches_not_as_listed", "plan_readable"]

T = TypeVar("T")


def plan_readable(
    batches: Sequence[IngestBatch],
    bad: BadBatches,
    plan: Callable[..., IngestPlan],
    schemas: FoundSchemas | None = None,
    refused: Mapping[str, str] | None = None,
) -> tuple[IngestPlan | None, dict[str, str]]:
    """Plan the batches that are not `refused`; return the plan, and all refused batches with the reasons.

    Those whose schema cannot be read, or contradicts others, are set aside if the options say so. The plan is None if
    no batch is left. However many are set aside, the schema of each file is read once, and those in `schemas` are not.
    """
    refused = dict(refused or {})
    schemas = schemas or FoundSchemas()
    while True:
        left = [batch for batch in batches if batch.key not in refused]
        if refused and not left:
            return None, refused
        try:
            return plan(left, schemas=schemas), refused
        except (RawFileRefused, FileDisagrees, BatchesChanged) as error:
            found = _reasons(left, error, schemas)
            if bad is BadBatches.REFUSE or not found:
                raise
            refused |= found


def batches_not_as_listed(batches: Sequence[IngestBatch], schemas: FoundSchemas) -> set[str]:
    """Return the keys of the batches that were refused because a file was gone or changed when its schema was read."""
    refusals = _first_faults(batches, schemas.refused)
    return {key for key, refusal in refusals.items() if isinstance(refusal, RawFileNotAsListed)}


def _reasons(
    batches: Sequence[IngestBatch], error: RawFileRefused | FileDisagrees | BatchesChanged, schemas: FoundSchemas
) -> dict[str, str]:
    """Return the batches that an error of planning is about, each with the reason."""
    if isinstance(error, BatchesChanged):
        return error.reasons
    if isinstance(error, FileDisagrees):
        return _first_faults(batches, {each.file: str(each) for each in (error, *error.others)})
    return {key: str(refusal) for key, refusal in _first_faults(batches, schemas.refused).items()}


def _first_faults(batches: Sequence[IngestBatch], faults: Mapping[RawFile, T]) -> dict[str, T]:
    """Return by key the fault of each batch's first file that has one; batches without such a file are left out."""
    found = ((batch.key, next((file for file in batch.files if file in faults), None)) for batch in batches)
    return {key: faults[file] for key, file in found if file is not None}
