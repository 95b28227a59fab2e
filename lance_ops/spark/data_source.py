"""`format("lance")`: read and write Lance tables by Spark's Python Data Source API.

    spark.read.format("lance").option("version", 3).load(uri)
    spark.read.format("lance").schema("x double").load(uri)       # reads that column only: Spark prunes none itself
    df.write.format("lance").mode("append").save(uri)             # or "overwrite"; Spark's default mode is not offered
    spark.readStream.format("lance").load(uri)                    # what is appended; see `stream_reader`
    stream.writeStream.format("lance").option("checkpointLocation", …).start(uri)

Spark finds the format by itself where this library is installed (the module `pyspark_lance_ops`); elsewhere
`spark.dataSource.register(LanceSource)` brings it. The options are those of `options.SourceOptions`.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
from pyspark import TaskContext
from pyspark.sql.datasource import (
    DataSource,
    DataSourceArrowWriter,
    DataSourceReader,
    DataSourceStreamArrowWriter,
    WriterCommitMessage,
)
from pyspark.sql.pandas.types import from_arrow_schema, to_arrow_schema
from pyspark.sql.types import StructType

from lance_ops.core.errors import DatasetNotFound, InvalidInput, SchemaMismatch
from lance_ops.core.schema import Schema
from lance_ops.spark.options import SourceOptions
from lance_ops.spark.stream_reader import LanceStreamReader
from lance_ops.spark.table_reader import LanceReader, PushingReader, visible_schema
from lance_ops.spark.table_writer import WritePlan, plan_write
from lance_ops.table import Fragment

__all__ = ["FragmentsWritten", "LanceSource", "LanceStreamWriter", "LanceWriter"]

_QUERY_ID = "sql.streaming.queryId"  # Spark's name of it among a task's properties
_NOT_OF_STREAMS = ("version", "timestamp", "tag", "rows_needed")
_OF_STREAMS = ("starting_version", "max_rows_per_trigger", "max_fragments_per_trigger")


class LanceSource(DataSource):
    """The format's entry: Spark makes one for each DataFrame or write."""

    @classmethod
    def name(cls) -> str:
        """Return the name users give to `format`."""
        return "lance"

    _read: SourceOptions | None = None  # with the version that `load` settled on

    def schema(self) -> StructType:
        """Return the table's schema in Spark's types."""
        return from_arrow_schema(visible_schema(self._read_options()))

    def reader(self, schema: StructType) -> DataSourceReader:
        """Return a reader of the version that `load` found."""
        options = self._read_options()
        for name in _OF_STREAMS:
            if getattr(options, name) is not None:
                raise InvalidInput(f"option {name!r} is for streams: use readStream")
        return PushingReader(options, schema) if options.push_filters else LanceReader(options, schema)

    def __getstate__(self) -> dict[str, Any]:
        """Settle on a version: Spark pickles the source at `load` and plans every query over the frame from the copy.

        It does so for streams into tables that are not there yet, too.
        """
        with suppress(DatasetNotFound):
            self._read_options()
        return self.__dict__

    def _read_options(self) -> SourceOptions:
        if self._read is None:
            self._read = SourceOptions.parse(self.options).settled()
        return self._read

    def streamReader(self, schema: StructType) -> LanceStreamReader:  # noqa: N802 - Spark's name
        """Return a reader of the rows that are appended."""
        options = SourceOptions.parse(self.options)
        for name in _NOT_OF_STREAMS:
            if getattr(options, name) is not None:
                raise InvalidInput(f"option {name!r} is not for streams: a stream begins at option 'starting_version'")
        return LanceStreamReader(options, schema)

    def writer(self, schema: StructType, overwrite: bool) -> LanceWriter:
        """Return a writer of one version; raise `SchemaMismatch` before any task starts if a column does not fit."""
        options = SourceOptions.parse(self.options)
        return LanceWriter(plan_write(options, _arrow(schema), overwrite=overwrite, batch=options.batch))

    def streamWriter(self, schema: StructType, overwrite: bool) -> LanceStreamWriter:  # noqa: N802 - Spark's name
        """Return a writer of one version for each micro-batch that has rows."""
        options = SourceOptions.parse(self.options)
        if overwrite:
            raise InvalidInput("a stream into format('lance') appends: use output mode 'append'")
        return LanceStreamWriter(options, schema)


@dataclass(frozen=True)
class FragmentsWritten(WriterCommitMessage):
    """What one task wrote, in which schema; in no version until the driver commits it.

    `query` is the id of the streaming query that the task belongs to. Spark tells it only to tasks.
    """

    schema: Schema
    fragments: tuple[Fragment, ...]
    query: str | None = None


class LanceWriter(DataSourceArrowWriter):
    """Writes fragments in tasks and commits them in one version on the driver."""

    def __init__(self, plan: WritePlan) -> None:
        self._plan = plan

    def write(self, iterator: Iterator[pa.RecordBatch]) -> FragmentsWritten:
        """Write one task's rows."""
        return _write(self._plan, iterator)

    def commit(self, messages: Sequence[WriterCommitMessage | None]) -> None:
        """Commit what the tasks report."""
        self._plan.commit(_fragments(messages))

    def abort(self, messages: Sequence[WriterCommitMessage | None]) -> None:
        """Remove what failed tasks' siblings wrote."""
        _abort(self._plan, messages)


class LanceStreamWriter(DataSourceStreamArrowWriter):
    """Appends each micro-batch once: the version's transaction names the query and the micro-batch.

    After a restart Spark may repeat its last micro-batch, with the query's id, which is in the checkpoint.
    Spark makes one of these for the tasks of a micro-batch and, in another process, one for its commit.
    """

    def __init__(self, options: SourceOptions, schema: StructType) -> None:
        self._options = options
        self._schema = _arrow(schema)
        self._plan = plan_write(options, self._schema, overwrite=False)

    def write(self, iterator: Iterator[pa.RecordBatch]) -> FragmentsWritten:
        """Write one task's rows of a micro-batch."""
        return _write(self._plan, iterator)

    def commit(self, messages: Sequence[WriterCommitMessage | None], batchId: int) -> None:  # noqa: N803 - Spark's name
        """Commit a micro-batch unless it has no rows or is a repeat; a repeat's files are left to clean-up."""
        fragments = _fragments(messages)
        if not fragments:
            return
        query = self._options.query or next(
            (message.query for message in messages if isinstance(message, FragmentsWritten) and message.query), None
        )
        if query is None:
            raise InvalidInput(
                f"{self._options.path}: Spark gave the stream no id; give it option 'query', a name that stays "
                "the same when the stream restarts"
            )
        plan = plan_write(self._options, self._schema, overwrite=False, batch=f"{query}/{batchId}")
        if any(isinstance(message, FragmentsWritten) and message.schema != plan.schema for message in messages):
            raise SchemaMismatch(
                f"{self._options.path}: the table's schema changed during the micro-batch: start again"
            )
        plan.commit(fragments)

    def abort(self, messages: Sequence[WriterCommitMessage | None], batchId: int) -> None:  # noqa: N803 - Spark's name
        """Remove what failed tasks' siblings wrote."""
        _abort(self._plan, messages)


def _write(plan: WritePlan, batches: Iterator[pa.RecordBatch]) -> FragmentsWritten:
    context = TaskContext.get()
    query = None if context is None else context.getLocalProperty(_QUERY_ID)
    return FragmentsWritten(plan.schema, tuple(plan.write(batches)), query)


def _abort(plan: WritePlan, messages: Sequence[WriterCommitMessage | None]) -> None:
    """Delete reported files only if no commit can have named them.

    Spark calls abort after a failed commit, too, and in a process that knows nothing of it; that commit may have landed
    all the same. A message is missing when a task failed, and only then was no commit attempted. What stays behind,
    here or because Spark did not report it, clean-up removes.
    """
    if any(message is None for message in messages):
        plan.discard(_fragments(messages))


def _fragments(messages: Sequence[WriterCommitMessage | None]) -> list[Fragment]:
    return [fragment for message in messages if isinstance(message, FragmentsWritten) for fragment in message.fragments]


def _arrow(schema: StructType) -> pa.Schema:
    return to_arrow_schema(schema, timezone="UTC")
