"""Plan an ingestion of the batches that can be planned, and set the others aside."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from itertools import islice

from lance_ops.core.errors import RawFileRefused
from lance_ops.core.redaction import redact
from lance_ops.maintenance.ingest.planning.ingest_options import BadBatches
from lance_ops.maintenance.ingest.planning.ingest_plan import BatchChanged, IngestPlan
from lance_ops.maintenance.ingest.raw_files import IngestBatch, RawFile
from lance_ops.maintenance.ingest.raw_names import shown_uri
from lance_ops.maintenance.ingest.raw_schemas import FileDisagrees, FoundSchemas

__all__ = ["plan_readable"]


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
            found = _batches_with(left, schemas.refused) or _batch_named(left, error)
            if bad is BadBatches.REFUSE or not found:
                raise
            refused |= found
        except BatchChanged as error:
            if bad is BadBatches.REFUSE:
                raise
            refused[error.key] = str(error)


def _batches_with(batches: Sequence[IngestBatch], files: Mapping[RawFile, RawFileRefused]) -> dict[str, str]:
    """Return the batches that have one of these files, each with the reason of its first one."""
    found: dict[str, str] = {}
    for batch in batches:
        reasons = [str(files[file]) for file in batch.files if file in files]
        if reasons:
            found[batch.key] = reasons[0]
    return found


def _batch_named(batches: Sequence[IngestBatch], error: RawFileRefused | FileDisagrees) -> dict[str, str]:
    """Return the batch whose file an error names, with the error's text."""
    keys = (each.key for each in batches for file in each.files if redact(shown_uri(file.uri)) == error.path)
    return {key: str(error) for key in islice(keys, 1)}
