"""Plan an ingestion of the batches that can be planned, and set the others aside."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from itertools import islice

from lance_ops.core.errors import RawFileNotAsListed, RawFileRefused
from lance_ops.core.redaction import redact
from lance_ops.maintenance.ingest.planning.ingest_options import BadBatches
from lance_ops.maintenance.ingest.planning.ingest_plan import BatchChanged, IngestPlan
from lance_ops.maintenance.ingest.raw_files import IngestBatch
from lance_ops.maintenance.ingest.raw_names import shown_uri
from lance_ops.maintenance.ingest.raw_schemas import FileDisagrees, FoundSchemas

__all__ = ["batches_not_as_listed", "plan_readable"]


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
        except (RawFileRefused, FileDisagrees) as error:
            first = _first_refusals(left, schemas)
            found = {key: str(refusal) for key, refusal in first.items()} or _batch_named(left, error)
            if bad is BadBatches.REFUSE or not found:
                raise
            refused |= found
        except BatchChanged as error:
            if bad is BadBatches.REFUSE:
                raise
            refused[error.key] = str(error)


def batches_not_as_listed(batches: Sequence[IngestBatch], schemas: FoundSchemas) -> set[str]:
    """Return the keys of the batches that were refused because a file was gone or changed when its schema was read."""
    refusals = _first_refusals(batches, schemas)
    return {key for key, refusal in refusals.items() if isinstance(refusal, RawFileNotAsListed)}


def _first_refusals(batches: Sequence[IngestBatch], schemas: FoundSchemas) -> dict[str, RawFileRefused]:
    """Return the batches with a file whose schema could not be read, each with the refusal of its first such file."""
    refused = schemas.refused
    found = ((batch.key, next((refused[each] for each in batch.files if each in refused), None)) for batch in batches)
    return {key: refusal for key, refusal in found if refusal is not None}


def _batch_named(batches: Sequence[IngestBatch], error: RawFileRefused | FileDisagrees) -> dict[str, str]:
    """Return the batch whose file an error names, with the error's text."""
    keys = (each.key for each in batches for file in each.files if redact(shown_uri(file.uri)) == error.path)
    return {key: str(error) for key in islice(keys, 1)}
