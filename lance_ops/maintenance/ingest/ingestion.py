"""Append raw files, each batch exactly once.

    plan_ingest(uri, batches, …) -> IngestPlan      which batches are new, the schema, tasks of raw files
    execute(task) -> WrittenFiles                   any process: raw files in, fragments out
    commit_ingest(plan, outcomes) -> IngestResult   one Append (an Overwrite creates or replaces the table)

All batches of a call become one version. Its transaction records each batch's token, and a batch whose token is in the
table's history is not ingested again. If the table lacks columns, a version before it adds them. A batch whose files
changed can replace its rows: then the version is an Update, which deletes the rows that hold the batch's key. By key,
the tasks write the rows of the new batches to a stage, and a merge of the stage is the version (room `by_key`).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import replace
from functools import partial

from lance_ops.core.errors import DatasetAlreadyExists, RetryableConflict, VersionNotFound
from lance_ops.core.schema import Schema
from lance_ops.maintenance.ingest.planning import (
    IngestOptions,
    IngestPlan,
    batches_not_as_listed,
    plan_ingest,
    plan_readable,
)
from lance_ops.maintenance.ingest.raw_files import IngestBatch
from lance_ops.maintenance.ingest.raw_rows import plain_schema
from lance_ops.maintenance.ingest.raw_schemas import FoundSchemas
from lance_ops.maintenance.ingest.running import (
    IngestResult,
    WrittenFiles,
    commit_ingest,
    pending_files,
    run_tasks,
    store_of_rows,
)
from lance_ops.refs import pinned_if_at_risk
from lance_ops.runners import InThreads, Runner
from lance_ops.writing import CONFLICT_RETRIES

__all__ = ["ingest"]


def ingest(
    uri: str,
    batches: Sequence[IngestBatch],
    *,
    storage_options: Mapping[str, str] | None = None,
    raw_storage_options: Mapping[str, str] | None = None,
    options: IngestOptions | None = None,
    runner: Runner | None = None,
    version: int | None = None,
) -> IngestResult:
    """Append or merge the batches that are not in the table yet, as one version.

    With `version` the ingestion is planned on that version, as by `plan_ingest`, and never again: a conflict with a
    newer version raises `RetryableConflict` or `DatasetAlreadyExists`. Raises `InvalidInput` for a batch that was
    ingested with other content, `RawFileRefused` for a raw file that is not read, and `SchemaMismatch` naming the file
    and field that do not fit. With `SET_ASIDE`, none of the three raises: `refused` names the batch.

    After an error other than `CommitStateUnknown` the table has no new row. Versions that come before that of the rows
    may stay: the empty one of a new table, if the merge of `UPSERT` or `HISTORY` fails, and the one that adds or widens
    columns for schema mode `add`. The next call uses them.
    """
    runner = runner or InThreads()
    schemas = FoundSchemas()

    def plan_others(refused: Mapping[str, str], version: int | None) -> tuple[IngestPlan | None, dict[str, str]]:
        plan = partial(
            plan_ingest,
            uri,
            storage_options=storage_options,
            raw_storage_options=raw_storage_options,
            options=options,
            runner=runner,
            version=version,
        )
        return plan_readable(batches, (options or IngestOptions()).bad_batches, plan, schemas, refused)

    retries = CONFLICT_RETRIES if version is None else 0
    refused: dict[str, str] = {}
    not_as_listed: set[str] = set()

    def with_refused(result: IngestResult) -> IngestResult:
        passing = not_as_listed | batches_not_as_listed(batches, schemas)
        return replace(result, refused=refused, not_as_listed=tuple(key for key in refused if key in passing))

    while True:
        plan, refused = plan_others(refused, version)
        if plan is None:
            return with_refused(IngestResult(None, 0, 0, (), ()))
        try:
            with nullcontext() if plan.snapshot is None else pinned_if_at_risk(plan.snapshot, plan.snapshot):
                outcomes, found, passing = run_tasks(plan, runner)
                refused |= found
                not_as_listed |= passing
                if found and _abandon_if_schema_differs(plan, outcomes, partial(plan_others, refused)):
                    continue
                result = commit_ingest(plan.without(found), outcomes, runner)
            return with_refused(result)
        except (RetryableConflict, DatasetAlreadyExists, VersionNotFound):
            # Another run ingested a batch, created the table, or removed the planned version.
            if not retries:
                raise
            retries, refused, not_as_listed = retries - 1, {}, set()
        finally:
            if plan.stage is not None:
                store_of_rows(plan).clear_or_leave()


def _abandon_if_schema_differs(
    plan: IngestPlan, outcomes: Sequence[WrittenFiles], plan_others: Callable[[int], tuple[IngestPlan | None, object]]
) -> bool:
    """If the table gets other columns without the refused batches, delete what the tasks wrote, and return True.

    `plan_others` plans the other batches on a version; 0 is that of a table that does not exist.
    """
    if not plan.takes_schema_of_files:
        return False
    written = pending_files(store_of_rows(plan), (fragment for outcome in outcomes for fragment in outcome.fragments))
    with written.abandoned_on_failure():
        others, _ = plan_others(plan.snapshot.version if plan.snapshot else 0)
    if others is None or _columns_of(others.schema) == _columns_of(plan.schema):
        return False
    written.abandon()
    return True


def _columns_of(schema: Schema) -> list[tuple[str, str]]:
    """Return names and types of columns; their order, and the case of names, are no reason to write rows again."""
    return sorted((field.name.lower(), str(field.type)) for field in plain_schema(schema))
