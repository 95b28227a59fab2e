"""Write the raw files of a plan's tasks as fragments. A task can run in any process, and a runner runs all of them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import field, replace
from functools import partial

import pyarrow as pa

from lance_ops.blobs import schema_to_write
from lance_ops.committers import open_root
from lance_ops.core.errors import InvalidInput, RawFileNotAsListed, RawFileRefused, SchemaMismatch
from lance_ops.core.records import dataclass
from lance_ops.maintenance.ingest.planning import FilePart, IngestPlan, IngestTask
from lance_ops.maintenance.ingest.raw_files import RawReader
from lance_ops.maintenance.ingest.raw_names import shown_uri
from lance_ops.maintenance.ingest.running.value_checks import ValueChecks
from lance_ops.runners import Runner
from lance_ops.store import Store
from lance_ops.table import Fragment
from lance_ops.table.manifest import FileLocations
from lance_ops.transactions import PendingFiles, remove_files_of_job
from lance_ops.writing import FragmentWriter

__all__ = ["WrittenFiles", "execute", "pending_files", "run_tasks", "store_of_rows"]


@dataclass(frozen=True)
class WrittenFiles:
    """The fragments that a task wrote, not yet in any version, and the number of rows of each batch in them.

    `refused` has the batches whose files are in no fragment, each with the reason. `not_as_listed` are those of them
    of which a file is gone or changed.
    """

    fragments: tuple[Fragment, ...]
    rows_by_batch: Mapping[str, int]
    refused: Mapping[str, str] = field(default_factory=dict)
    not_as_listed: frozenset[str] = frozenset()


def run_tasks(plan: IngestPlan, runner: Runner) -> tuple[list[WrittenFiles], dict[str, str], set[str]]:
    """Return the written files of all tasks, the refused batches, and those of them that are not as listed.

    A batch is not as listed if a file of it changed, or went away, after the listing. No written file holds a row of a
    refused batch. A batch may have files in several tasks: those that wrote files of a refused batch run again without
    it.
    """
    store = store_of_rows(plan)
    tasks, outcomes = list(plan.tasks), [WrittenFiles((), {})] * len(plan.tasks)
    refused: dict[str, str] = {}
    not_as_listed: set[str] = set()
    todo = list(range(len(tasks)))
    while todo:
        chosen = [tasks[number] for number in todo]
        job = replace(plan.job_of(chosen), remove_files=partial(remove_files_of_job, store))
        try:
            done = runner.map(execute, chosen, job, partial(discard, store))
        except BaseException:
            for outcome in outcomes:
                discard(store, outcome)
            raise
        for number, outcome in zip(todo, done, strict=True):
            outcomes[number], tasks[number] = outcome, tasks[number].without(outcome.refused)
            refused.update(outcome.refused)
            not_as_listed |= outcome.not_as_listed
        tainted = [number for number, task in enumerate(tasks) if not refused.keys().isdisjoint(task.batch_keys)]
        for number in tainted:
            discard(store, outcomes[number])
            outcomes[number], tasks[number] = WrittenFiles((), {}), tasks[number].without(refused)
        todo = [number for number in tainted if tasks[number].parts]
    return outcomes, refused, not_as_listed


def execute(task: IngestTask) -> WrittenFiles:
    """Write the task's raw files, in order, as fragments, without those of bad batches if these are set aside.

    Where a batch is bad, no file is read more than twice: once to find all bad batches, and once to be written. A blob
    without bytes and URI is found only when it is written, so each batch with one costs another reading of the others.
    """
    refused: dict[str, str] = {}
    not_as_listed: frozenset[str] = frozenset()
    while (written := _write_files(task.without(refused))).refused:
        refused |= written.refused
        not_as_listed |= written.not_as_listed
    return replace(written, refused=refused, not_as_listed=not_as_listed)


def _write_files(task: IngestTask) -> WrittenFiles:
    """Write the files; if batches are bad and set aside, write nothing, and return all that are bad."""
    store = open_root(task.uri, task.storage_options).store
    rows_by_batch: Counter[str] = Counter()
    refused: dict[str, str] = {}
    not_as_listed: set[str] = set()
    with (
        RawReader(task.raw_storage_options, task.reading) as reader,
        FragmentWriter(store, task.schema, task.file_version, task.limits) as writer,
    ):
        for part in task.parts:
            if part.key in refused:
                continue
            try:
                num_rows = _write_part(writer.check if refused else writer.write, part, reader, task)
                rows_by_batch[part.key] += num_rows
            except (RawFileRefused, SchemaMismatch) as error:
                if not task.sets_aside:
                    raise
                if not refused:
                    writer.abort()
                refused[part.key] = str(error)
                if isinstance(error, RawFileNotAsListed):
                    not_as_listed.add(part.key)
        if refused:
            return WrittenFiles((), {}, refused, frozenset(not_as_listed))
        return WrittenFiles(tuple(writer.finish()), rows_by_batch)


def _write_part(put: Callable[[pa.RecordBatch], None], part: FilePart, reader: RawReader, task: IngestTask) -> int:
    """Put the rows of a file's part into the writer, or have it check them; return their number."""
    groups = "" if part.groups is None else f" (row groups {part.groups.start + 1} to {part.groups.stop})"
    checks = ValueChecks(schema_to_write(task.schema), task.required)
    for batch in task.fitting.rows(part.file, reader, part.groups):
        try:
            checks.check(batch)
            if task.batch_column is not None:
                batch = batch.append_column(task.batch_column, pa.repeat(part.key, batch.num_rows))
            put(batch)
        except InvalidInput as error:  # a `SchemaMismatch`, or a value that is no JSON or no blob
            raise SchemaMismatch(f"raw file {shown_uri(part.file.uri)}{groups}: {error}") from error
    return checks.num_rows


def discard(store: Store, outcome: WrittenFiles) -> None:
    """Delete the files that a task wrote."""
    pending_files(store, outcome.fragments).abandon()


def store_of_rows(plan: IngestPlan) -> Store:
    """Return the store in which the plan's tasks write rows."""
    return open_root(plan.destination.uri, plan.destination.storage_options).store


def pending_files(store: Store, fragments: Iterable[Fragment]) -> PendingFiles:
    """Return the files of fragments that tasks wrote: `execute` makes them durable."""
    return PendingFiles.of_fragments(FileLocations(store), fragments)
