"""What Spark calls to write: one writer for a DataFrame, one for each micro-batch of a stream."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

import pyarrow as pa
from pyspark import TaskContext
from pyspark.sql.datasource import DataSourceArrowWriter, DataSourceStreamArrowWriter, WriterCommitMessage
from pyspark.sql.types import StructType

from lance_ops import maintenance
from lance_ops.core.errors import InvalidInput, SchemaMismatch
from lance_ops.core.file_names import file_names_of_job, new_job_token
from lance_ops.core.records import dataclass
from lance_ops.core.schema import Schema
from lance_ops.snapshot import Snapshot
from lance_ops.spark.data_source.hidden_frames import without_frames
from lance_ops.spark.data_source.options import SourceOptions
from lance_ops.spark.data_source.write_plan import WriteMode, WritePlan
from lance_ops.spark.data_source.write_planning import plan_write
from lance_ops.spark.translation import arrow_schema_of, session_time_zone
from lance_ops.table import Fragment

__all__ = ["FragmentsWritten", "LanceStreamWriter", "LanceWriter"]

_QUERY_ID = "sql.streaming.queryId"  # Spark's name of it among a task's properties


@dataclass(frozen=True)
class FragmentsWritten(WriterCommitMessage):
    """What one task wrote, in which schema; in no version until the driver commits it.

    `query` is the id of the streaming query that the task belongs to. Spark tells it only to tasks.
    """

    schema: Schema
    fragments: tuple[Fragment, ...]
    query: str | None = None


_GROWS_BY = "option 'mergeSchema' 'true'"
"""How the user of a DataFrame's writer lets the schema grow."""


class LanceWriter(DataSourceArrowWriter):
    """Writes fragments in tasks and commits them in one version on the driver.

    Spark pickles it for the tasks, and for the commit or the abort. So all of them know the token in the files' names.
    """

    def __init__(self, plan: WritePlan) -> None:
        self._plan = plan
        self._token = new_job_token()

    @classmethod
    def planned(cls, options: SourceOptions, schema: StructType, *, overwrite: bool) -> LanceWriter:
        """Return a writer of one version; raise what `plan_write` raises."""
        mode: WriteMode = "overwrite" if overwrite else "append"
        return cls(plan_write(options, arrow_schema_of(schema), mode, grows_by=_GROWS_BY))

    def write(self, iterator: Iterator[pa.RecordBatch]) -> FragmentsWritten:
        """Write one task's rows."""
        with file_names_of_job(self._token):
            return _write(self._plan, iterator)

    @without_frames()
    def commit(self, messages: Sequence[WriterCommitMessage | None]) -> None:
        """Commit what the tasks report."""
        self._plan.commit(_fragments(messages))

    def abort(self, messages: Sequence[WriterCommitMessage | None]) -> None:
        """Remove what the tasks wrote, whether Spark reports them or not, unless a commit may have named it.

        Another attempt of a task may still be at work. Clean-up removes what it writes after this.
        """
        if _was_no_commit_tried(messages):
            self._plan.discard_job(self._token)


class LanceStreamWriter(DataSourceStreamArrowWriter):
    """Appends each micro-batch once: the version's transaction names the query and the micro-batch.

    After a restart Spark may repeat its last micro-batch, and no earlier one, with the query's id, which is in the
    checkpoint. Spark makes one of these for the tasks of a micro-batch and, in another process, one for its commit or
    its abort. So the abort knows no token of the tasks, and finds the files of the tasks alone that Spark reports.
    """

    def __init__(self, options: SourceOptions, schema: StructType) -> None:
        if options.batch is not None:
            raise InvalidInput("option 'batch' is for the write of a DataFrame: option 'query' names a stream")
        self._query = options.query
        self._options = replace(options, query=None)
        self._schema = arrow_schema_of(schema)
        self._plan = plan_write(self._options, self._schema, grows_by=_GROWS_BY)

    def write(self, iterator: Iterator[pa.RecordBatch]) -> FragmentsWritten:
        """Write one task's rows of a micro-batch."""
        return _write(self._plan, iterator)

    @without_frames(of_stream=True)
    def commit(self, messages: Sequence[WriterCommitMessage | None], batchId: int) -> None:  # noqa: N803 - Spark's name
        """Commit a micro-batch unless it has no rows or is a repeat; a repeat's files are left to clean-up.

        If the micro-batch is refused, its files are deleted, because no commit has named them.
        """
        fragments = _fragments(messages)
        if not fragments:
            return
        try:
            plan = self._planned(messages, batchId)
        except Exception:  # whatever it is, no commit has named the files
            self._plan.discard(fragments)
            raise
        if plan is not None:
            plan.commit(fragments)

    def abort(self, messages: Sequence[WriterCommitMessage | None], batchId: int) -> None:  # noqa: N803 - Spark's name
        """Remove what reported tasks wrote, unless a commit may have named it; clean-up removes the rest."""
        if _was_no_commit_tried(messages):
            self._plan.discard(_fragments(messages))

    def _planned(self, messages: Sequence[WriterCommitMessage | None], number: int) -> WritePlan | None:
        """Return the plan that commits a micro-batch as it was written; None if it is a repeat."""
        query = self._query or next(
            (message.query for message in messages if isinstance(message, FragmentsWritten) and message.query), None
        )
        if query is None:
            raise InvalidInput(
                f"{self._options.path}: Spark gave the stream no id; give it option 'query', a name that stays "
                "the same when the stream restarts"
            )
        plan = plan_write(self._options, self._schema)
        if _is_repeat(plan, query, number):
            return None
        if any(isinstance(message, FragmentsWritten) and message.schema != plan.schema for message in messages):
            raise SchemaMismatch(
                f"{self._options.path}: the table's schema changed during the micro-batch: start again"
            )
        return replace(plan, options=replace(plan.options, batch=f"{query}/{number}"))


def _is_repeat(plan: WritePlan, query: str, number: int) -> bool:
    """Return whether the table has this micro-batch.

    Raises `InvalidInput` if it has a later one, since Spark repeats the last one alone: the checkpoint was lost, or is
    an older copy, and the micro-batch has other rows than the one with its number that is in the table. Raises
    `InvalidInput` also for a name that batches of raw files have.
    """
    if plan.read_version is None:
        return False
    options = plan.options
    snapshot = Snapshot.open(options.path, plan.read_version, options.storage_options)
    last = maintenance.last_numbered_batch(snapshot, query)
    if last is None:
        return False
    if last.token != f"{query}/{last.number}":
        raise InvalidInput(
            f"{options.path}: batch '{query}/{last.number}' was ingested from raw files in version {last.version}: "
            "give the stream option 'query', with a name that no batch begins with"
        )
    if last.number > number:
        raise InvalidInput(
            f"{options.path}: version {last.version} has micro-batch {last.number} of query {query!r}, and Spark "
            f"writes micro-batch {number}: the stream's checkpoint was lost or replaced by an older copy. Start with a "
            "new checkpoint, give option 'query' another name, and begin the stream behind the rows that the table "
            f"has. Or a DataFrame was written with option 'batch' '{query}/{last.number}': then only give option "
            "'query' a name that no batch begins with"
        )
    return last.number == number


def _write(plan: WritePlan, batches: Iterator[pa.RecordBatch]) -> FragmentsWritten:
    context = TaskContext.get()
    query = None if context is None else context.getLocalProperty(_QUERY_ID)
    return FragmentsWritten(plan.schema, tuple(plan.write(batches, session_time_zone())), query)


def _was_no_commit_tried(messages: Sequence[WriterCommitMessage | None]) -> bool:
    """Return whether it is certain that no commit can have named the files of the tasks.

    Spark calls abort after a failed commit, too, and in a process that knows nothing of it; that commit may have landed
    all the same. A message is missing when a task failed, and only then was no commit attempted.
    """
    return any(message is None for message in messages)


def _fragments(messages: Sequence[WriterCommitMessage | None]) -> list[Fragment]:
    return [fragment for message in messages if isinstance(message, FragmentsWritten) for fragment in message.fragments]
