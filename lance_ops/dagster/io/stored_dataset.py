"""Open and write one dataset, on the main branch or on a branch, for the IO manager and the resource."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import field
from typing import Any, Literal, TypeAlias

import pyarrow as pa

from lance_ops import changing, writing
from lance_ops.api import LanceDataset, dataset, reader_of, write_dataset
from lance_ops.core.errors import DatasetAlreadyExists, DatasetNotFound, InvalidInput
from lance_ops.core.optional_packages import import_optional
from lance_ops.core.records import dataclass
from lance_ops.dagster.attempts import Attempt
from lance_ops.dagster.io.partition_rows import PartitionRows
from lance_ops.maintenance.cleanup import clean_up_if_due
from lance_ops.runners import InThreads, ReportProgress
from lance_ops.transactions import REPLACES_PREFIX, TOKEN

__all__ = ["StoredDataset", "WriteMode", "Written", "is_spark", "spark_frames"]

WriteMode: TypeAlias = Literal["overwrite", "append", "upsert"]


@dataclass(frozen=True)
class Written:
    """The version that a write made, and the rows it was given; None if Spark counted them elsewhere.

    `committed_before` is the version of an earlier attempt, if that made this write needless.
    """

    dataset: LanceDataset
    num_rows: int | None
    committed_before: int | None = None


@dataclass(frozen=True)
class StoredDataset:
    """Where a dataset is. Reads of a branch that does not exist yet read the main branch.

    `on_progress` is told how far the tasks of Spark are that write a frame.
    """

    uri: str
    storage_options: Mapping[str, str] = field(default_factory=dict, repr=False)
    branch: str | None = None
    on_progress: ReportProgress | None = field(default=None, repr=False, compare=False)

    def open(self, version: int | None = None, tag: str | None = None) -> LanceDataset:
        """Open the newest version, a version of the branch, or a tagged version; raise `DatasetNotFound`."""
        if tag is not None:
            if version is not None:
                raise InvalidInput(f"{self.uri}: give a version or a tag, not both")
            return dataset(self.uri, tag, storage_options=self.storage_options)
        opened = dataset(self.uri, storage_options=self.storage_options)
        if self.branch is not None and self.branch in opened.branches.list():
            opened = opened.checkout_version((self.branch, None))
        return opened if version is None else opened.checkout_version(version)

    def write(self, data: Any, mode: WriteMode, keys: Sequence[str] = (), *, attempt: Attempt | None = None) -> Written:
        """Overwrite the dataset, append to it, or merge rows by `keys`; create the dataset and the branch if needed.

        A stream is written as it is read. An append does nothing if the table holds the rows of an earlier `attempt`.
        Raises `InvalidInput` for an upsert without keys, and `WrongType` for a value that is no data.
        """
        if mode == "upsert" and not keys:
            raise InvalidInput(f"{self.uri}: an upsert needs the key columns: give keys")
        token = None
        if attempt is not None and mode == "append":
            token, done = attempt.token, self._appended_before(attempt)
            if done is not None:
                return done
        if is_spark(data):
            return Written(spark_frames().write(self, data, mode, keys, token), None)
        rows, properties = _CountedRows(data), {} if token is None else {TOKEN: token}
        if mode == "upsert":
            made = self.open_to_write(rows.schema)
            made.merge_insert(keys).when_matched_update_all().when_not_matched_insert_all().execute(rows.reader)
        elif self.branch is None:
            made = write_dataset(
                rows.reader,
                self.uri,
                mode=mode,
                storage_options=self.storage_options,
                transaction_properties=properties,
            )
        else:
            target = self.open_to_write(rows.schema)
            made = write_dataset(rows.reader, target, mode=mode, transaction_properties=properties)
        return Written(made, rows.num_rows)

    def replace(self, data: Any, partitions: PartitionRows) -> Written:
        """Replace the rows of the partitions in one commit.

        Raises `InvalidInput` for a row that belongs to none of them: the next replacement would not find it.
        """
        if is_spark(data):
            return Written(spark_frames().replace(self, data, partitions), None)
        rows = _CountedRows(data)
        partitions.columns(rows.schema)
        snapshot = self.open_to_write(rows.schema).snapshot
        condition = partitions.condition(snapshot.schema.to_arrow())
        columns = set(partitions.columns(rows.schema).values())
        stored = pa.schema([each for each in snapshot.schema.to_arrow() if each.name in columns])

        def checked() -> Iterator[pa.RecordBatch]:
            for batch in rows.reader:
                found = pa.Table.from_batches([batch]).select(stored.names).cast(stored).filter(condition).num_rows
                if found != batch.num_rows:
                    raise InvalidInput(
                        f"{snapshot.uri}: {batch.num_rows - found} of {batch.num_rows} rows are of other partitions "
                        f"than {', '.join(partitions.keys[:5])} (by {', '.join(stored.names)}): return the rows of "
                        "the run's partitions"
                    )
                yield batch

        pending = writing.write_fragments(
            snapshot.store, checked(), snapshot.schema, writing.choose_file_version(snapshot, None), durable=False
        )
        named = {f"{REPLACES_PREFIX}partition={key}": "" for key in partitions.keys}
        made = changing.replace_matching(snapshot, condition, pending, InThreads(), named)
        clean_up_if_due(snapshot.version, made)
        return Written(LanceDataset.of(made), rows.num_rows)

    def open_to_write(self, schema: pa.Schema) -> LanceDataset:
        """Open the newest version; without one, create the dataset without rows, and the branch of the main branch."""
        try:
            opened = self.open()
        except DatasetNotFound:
            opened = self._begin(schema)
        if self.branch is None or self.branch in opened.branches.list():
            return opened if self.branch is None else opened.checkout_version((self.branch, None))
        try:
            return opened.create_branch(self.branch)
        except InvalidInput:  # another run may have created it
            if self.branch not in opened.branches.list():
                raise
            return self.open()

    def _appended_before(self, attempt: Attempt) -> Written | None:
        """Return the newest version if it holds the rows that an earlier attempt appended; None if it does not."""
        if not attempt.is_repeated:
            return None
        try:
            opened = self.open()
        except DatasetNotFound:
            return None
        version = attempt.committed_version(opened.snapshot)
        return None if version is None else Written(opened, 0, version)

    def _begin(self, schema: pa.Schema) -> LanceDataset:
        try:
            return write_dataset(schema.empty_table(), self.uri, mode="create", storage_options=self.storage_options)
        except DatasetAlreadyExists:  # another run was first
            return dataset(self.uri, storage_options=self.storage_options)


def is_spark(data: object) -> bool:
    """Return whether a value or a type is a data frame of Spark, without importing Spark."""
    kind = data if isinstance(data, type) else type(data)
    return any(each.__module__.startswith("pyspark.sql") and each.__name__ == "DataFrame" for each in kind.__mro__)


def spark_frames() -> Any:
    """Return the module that writes and loads Spark's frames; raise `MissingPackage` without Spark."""
    return import_optional("lance_ops.dagster.io.spark_frames", "a Spark data frame", "spark")


class _CountedRows:
    """A stream of the data's rows that counts them."""

    def __init__(self, data: Any) -> None:
        source = reader_of(data, None)
        self.schema, self.num_rows = source.schema, 0

        def counted() -> Iterator[pa.RecordBatch]:
            for batch in source:
                self.num_rows += batch.num_rows
                yield batch

        self.reader = pa.RecordBatchReader.from_batches(source.schema, counted())
