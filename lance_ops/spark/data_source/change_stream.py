"""Read the changes of a table with stable row ids as a stream: what each version inserted, updated and deleted.

    spark.readStream.format("lance").option("readChangeFeed", "true").option("startingVersion", 7).load(uri)

A row of the stream is a change: `_change_type` (`insert`, `update`, `delete`), `_commit_version`, the row's id and
versions, and its values. A deleted row has its id alone. An offset is the first version that is not read yet. One task
compares one version with the version before it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import pyarrow as pa
from pyspark.sql.datasource import DataSourceStreamReader, InputPartition
from pyspark.sql.pandas.types import to_arrow_schema
from pyspark.sql.streaming.datasource import ReadAllAvailable, ReadLimit, ReadMaxFiles, SupportsTriggerAvailableNow
from pyspark.sql.types import StructType

from lance_ops.core.errors import InvalidInput
from lance_ops.core.records import dataclass
from lance_ops.snapshot import Snapshot
from lance_ops.spark.data_source.options import SourceOptions
from lance_ops.spark.data_source.row_changes import change_schema, read_changes
from lance_ops.spark.data_source.stream_reader import open_unread

__all__ = ["LanceChangeReader", "change_stream_schema"]

_COMMIT_VERSION = "_commit_version"
_NOT_OF_CHANGES = (
    *("filter", "columns", "blob_handling", "skip_changes", "max_rows_per_trigger", "max_fragments_per_trigger"),
    *("with_row_id", "with_row_address", "with_fragment_id", "with_version_columns"),
)


def change_stream_schema(snapshot: Snapshot) -> pa.Schema:
    """Return the columns of the stream; raise `InvalidInput` for a table without stable row ids."""
    if not snapshot.manifest.uses_stable_row_ids:
        raise InvalidInput(
            f"{snapshot.uri}: option 'read_change_feed' needs stable row ids, which a table has if it was created with "
            "option 'enable_stable_row_ids'"
        )
    return change_schema(snapshot.schema).insert(1, pa.field(_COMMIT_VERSION, pa.int64()))


@dataclass(frozen=True)
class _Version(InputPartition):
    """The version whose changes one task reads."""

    version: int


class LanceChangeReader(DataSourceStreamReader, SupportsTriggerAvailableNow):
    """Plans micro-batches of whole versions, and reads the changes of each in a task."""

    def __init__(self, options: SourceOptions, schema: StructType) -> None:
        for name in _NOT_OF_CHANGES:
            if getattr(options, name):
                raise InvalidInput(f"option {name!r} does not go with 'read_change_feed'")
        if options.starting_version is None:
            raise InvalidInput("option 'read_change_feed' needs option 'starting_version': 1 reads all changes")
        self._options = options
        self._first = options.starting_version
        self._shape = to_arrow_schema(schema, timezone="UTC")
        self._last: int | None = None  # of a query that reads only what is available now

    def initialOffset(self) -> dict[str, int]:  # noqa: N802 - Spark's name
        """Return the offset before the first change."""
        return {"version": self._first}

    def getDefaultReadLimit(self) -> ReadLimit:  # noqa: N802 - Spark's name
        """Return the limit of a micro-batch that the options ask for; Spark's word for a version is a file."""
        most = self._options.max_versions_per_trigger
        return ReadAllAvailable() if most is None else ReadMaxFiles(most)

    def latestOffset(self, start: dict[str, int], limit: ReadLimit) -> dict[str, int]:  # noqa: N802 - Spark's name
        """Return the offset after the next micro-batch."""
        first = start["version"]
        stop = (self._last or self._newest()) + 1
        if isinstance(limit, ReadMaxFiles):
            stop = min(stop, first + limit.max_files)
        return {"version": max(first, stop)}

    def prepareForTriggerAvailableNow(self) -> None:  # noqa: N802 - Spark's name
        """Read no version that comes later than this call."""
        self._last = self._newest()

    def partitions(self, start: dict[str, int], end: dict[str, int]) -> Sequence[InputPartition]:
        """Return the versions between two offsets, each for a task of its own."""
        return [_Version(version) for version in range(start["version"], end["version"])]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """Yield the changes that a version made."""
        assert isinstance(partition, _Version)
        version = partition.version
        yield from read_changes(
            version - 1, open_unread(self._options, version), self._shape, {_COMMIT_VERSION: version}
        )

    def _newest(self) -> int:
        return open_unread(self._options).version
