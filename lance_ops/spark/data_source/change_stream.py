"""Read the changes of a table with stable row ids as a stream: what each version inserted, updated and deleted.

    spark.readStream.format("lance").option("read_change_feed", "true").option("starting_version", 7).load(uri)

A row of the stream is a change: `_change_type` (`insert`, `update`, `delete`), `_commit_version`, the row's id and
versions, and its values. A deleted row has its id alone. An offset is the first version that is not read yet, and the
moment of the version before it, if that is read. One task compares one version with the version before it. So the
stream also opens the version before the first one that it has not read, and clean-up must keep that version, too.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

import pyarrow as pa
from pyspark.sql.datasource import DataSourceStreamReader, InputPartition
from pyspark.sql.pandas.types import to_arrow_schema
from pyspark.sql.streaming.datasource import ReadAllAvailable, ReadLimit, ReadMaxFiles, SupportsTriggerAvailableNow
from pyspark.sql.types import StructType

from lance_ops import reading
from lance_ops.core.errors import InvalidInput, VersionNotFound
from lance_ops.core.records import dataclass
from lance_ops.core.schema import CaseRule, spelled_as
from lance_ops.snapshot import Snapshot
from lance_ops.spark.data_source.hidden_frames import without_frames
from lance_ops.spark.data_source.loaded_columns import START_AGAIN, LoadedColumns, open_loaded
from lance_ops.spark.data_source.options import SourceOptions
from lance_ops.spark.data_source.stream_reader import (
    check_is_same_table,
    check_made_at,
    moment_of_offset,
    open_unread,
)
from lance_ops.spark.data_source.version_changes import change_schema, read_changes
from lance_ops.spark.translation import fit

__all__ = ["LanceChangeReader", "change_stream_schema"]

_COMMIT_VERSION = "_commit_version"
_NOT_OF_CHANGES = (
    *("filter", "columns", "blob_handling", "skip_changes", "max_rows_per_trigger", "max_fragments_per_trigger"),
    *("with_row_id", "with_row_address", "with_fragment_id", "with_version_columns", "num_partitions", "push_filters"),
)


def change_stream_schema(snapshot: Snapshot) -> pa.Schema:
    """Return the columns of the stream.

    Raises `InvalidInput` for a table without stable row ids or with a column of changes.
    """
    if not snapshot.manifest.uses_stable_row_ids:
        raise InvalidInput(
            f"{snapshot.uri}: a stream of changes needs stable row ids, which a table has if it was created with "
            "option 'enable_stable_row_ids'"
        )
    return change_schema(snapshot, [_COMMIT_VERSION])


@dataclass(frozen=True)
class _Version(InputPartition):
    """The version whose changes one task reads."""

    version: int


class LanceChangeReader(DataSourceStreamReader, SupportsTriggerAvailableNow):
    """Plans micro-batches of whole versions, and reads the changes of each in a task."""

    def __init__(self, options: SourceOptions, schema: StructType, loaded: SourceOptions | None = None) -> None:
        """`loaded` are the options of the version that `load` saw: the stream's names are those of its columns."""
        asked = options.spelling("read_change_feed")
        if options.starting_version is None:
            raise InvalidInput(
                f"option {asked!r} needs option 'starting_version': 1 reads all changes of a table that keeps all of "
                "its versions"
            )
        for name in _NOT_OF_CHANGES:
            if getattr(options, name):
                raise InvalidInput(f"option {options.spelling(name)!r} does not go with {asked!r}")
        self._options = options.with_full_uri()
        self._first = options.starting_version
        snapshot = open_loaded(self._options, loaded)
        self._wanted = to_arrow_schema(schema, timezone="UTC")
        self._stored = _as_stored(self._wanted, snapshot, options.case_rule)
        needed = tuple(field for field in snapshot.schema.fields if field.name in self._stored.names)
        self._columns = LoadedColumns(snapshot.version, replace(snapshot.schema, fields=needed))
        self._last: int | None = None  # of a query that reads only what is available now

    @without_frames(of_stream=True)
    def initialOffset(self) -> dict[str, int]:  # noqa: N802 - Spark's name
        """Return the offset before the first change.

        Raises `VersionNotFound` if the table, a branch or a clone does not have the versions to begin there. A stream
        may begin after the newest version.
        """
        newest = open_unread(self._options).version
        for version in (self._first - 1, self._first):
            if 0 < version <= newest:
                self._check_start(version)
        return {"version": self._first}

    def getDefaultReadLimit(self) -> ReadLimit:  # noqa: N802 - Spark's name
        """Return the limit of a micro-batch that the options ask for; Spark's word for a version is a file."""
        most = self._options.max_versions_per_trigger
        return ReadAllAvailable() if most is None else ReadMaxFiles(most)

    @without_frames(of_stream=True)
    def latestOffset(self, start: dict[str, int], limit: ReadLimit) -> dict[str, int]:  # noqa: N802 - Spark's name
        """Return the offset after the next micro-batch."""
        first = start["version"]
        newest = open_unread(self._options)
        check_is_same_table(self._options, first - 1, start.get("made_at_ns"), newest)
        stop = (self._last or newest.version) + 1
        if isinstance(limit, ReadMaxFiles):
            stop = min(stop, first + limit.max_files)
        if stop <= first:
            return start
        last = newest if newest.version == stop - 1 else open_unread(self._options, stop - 1)
        return {"version": stop} | moment_of_offset(last.manifest.timestamp_ns)

    @without_frames(of_stream=True)
    def prepareForTriggerAvailableNow(self) -> None:  # noqa: N802 - Spark's name
        """Read no version that comes later than this call."""
        self._last = open_unread(self._options).version

    @without_frames(of_stream=True)
    def partitions(self, start: dict[str, int], end: dict[str, int]) -> Sequence[InputPartition]:
        """Return the versions between two offsets, each for a task of its own."""
        if end["version"] > start["version"]:
            last = open_unread(self._options, end["version"] - 1)
            check_made_at(self._options, last.version, end.get("made_at_ns"), last.manifest.timestamp_ns)
        return [_Version(version) for version in range(start["version"], end["version"])]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """Yield the changes that a version made."""
        assert isinstance(partition, _Version)
        version = partition.version
        end = open_unread(self._options, version)
        change_stream_schema(end)  # refuses a version with a column of changes
        try:
            end = self._in_columns(end)
            for batch in read_changes(version - 1, end, self._stored, {_COMMIT_VERSION: version}):
                yield fit(batch, self._wanted, self._options.case_rule)
        except VersionNotFound as error:
            raise VersionNotFound(
                f"{error}: the stream compares version {version} with the version before it; {START_AGAIN}"
            ) from error

    def _in_columns(self, end: Snapshot) -> Snapshot:
        """Return a version in the columns of the stream; as it is if its changes show the values of no column."""
        try:
            return self._columns.of(end)
        except InvalidInput:
            changes = reading.changes_between(end.version - 1, end)
            if changes.inserted or changes.updated:
                raise
            return end

    def _check_start(self, version: int) -> None:
        try:
            replace(self._options, version=version).open()
        except VersionNotFound as error:
            raise VersionNotFound(
                f"{error}: option {self._options.spelling('starting_version')!r} is {self._first}, and a stream of "
                "changes compares a version with the version before it: begin after the oldest version that is kept"
            ) from error


def _as_stored(wanted: pa.Schema, snapshot: Snapshot, case_rule: CaseRule) -> pa.Schema:
    """Return the columns that a stream gives in the table's spelling; raise `InvalidInput` for one that is not there.

    Spark gives the schema that the user stated. A column that a version does not have would be null.
    """
    changes = change_stream_schema(snapshot)
    stored = spelled_as(wanted, changes, case_rule)
    unknown = [name for name in stored.names if name not in changes.names]
    if unknown:
        raise InvalidInput(
            f"{snapshot.uri}: the schema of the stream has a column {unknown[0]!r}, and its changes do not: they have "
            f"{', '.join(changes.names)}"
        )
    return stored
