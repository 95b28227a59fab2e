"""Read the rows that are appended to a table as a stream: each version's new fragments, once, in the order of versions.

    spark.readStream.format("lance").load(uri)                                   all rows of now, then what is appended
    spark.readStream.format("lance").option("starting_version", 7).load(uri)     what version 7 and later ones append

An offset says how far the stream has come: the first `fragments` of those that `version` added are read, and all that
earlier versions added. A version that is read to its end is not needed again, so that clean-up may remove it. The
version `whole` (0 if there is none) counts as having added all of its fragments. `made_at_ns` is the moment at which
the last version that is read, in part or to its end, was committed: a table that was made again has that number of
another moment.

All offsets of a stream have the same `whole`, but for the one before its first micro-batch. Spark does not keep that
offset: it asks for it when it plans the micro-batch, and again when it reads it, which may be after a restart.

A column that a later version added is null in the rows of a version before it (`loaded_columns`).

Versions that only rearrange rows (compactions, indices, configuration, new or dropped columns) add none, and neither do
deletions and updates of no row. A merge that only inserts appends. A version that deletes or changes rows stops the
stream, unless option `skip_changes` says to pass over it, with the rows that it inserts.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import lru_cache

import pyarrow as pa
from pyspark.sql.datasource import DataSourceStreamReader, InputPartition
from pyspark.sql.streaming.datasource import (
    ReadAllAvailable,
    ReadLimit,
    ReadMaxFiles,
    ReadMaxRows,
    SupportsTriggerAvailableNow,
)
from pyspark.sql.types import StructType

from lance_ops.core.errors import InvalidInput, UnsupportedFeature, VersionNotFound
from lance_ops.core.records import dataclass
from lance_ops.core.redaction import public_uri
from lance_ops.snapshot import Snapshot
from lance_ops.spark.data_source.hidden_frames import without_frames
from lance_ops.spark.data_source.loaded_columns import START_AGAIN, LoadedColumns, open_loaded
from lance_ops.spark.data_source.options import SourceOptions
from lance_ops.spark.data_source.table_reader import LanceReader
from lance_ops.spark.partitioning import FragmentGroup
from lance_ops.table import Fragment
from lance_ops.transactions import (
    Append,
    Clone,
    CreateIndex,
    Delete,
    Merge,
    Operation,
    Overwrite,
    Project,
    ReserveFragments,
    Rewrite,
    Update,
    UpdateBases,
    UpdateConfig,
    read_version,
)

__all__ = [
    "LanceStreamReader",
    "check_is_same_table",
    "check_made_at",
    "moment_of_offset",
    "open_unread",
]

_ADDS_NO_ROWS = (CreateIndex, Merge, Project, ReserveFragments, Rewrite, UpdateBases, UpdateConfig)
_KNOWN_VERSIONS = 64


@dataclass(frozen=True)
class _Offset:
    whole: int
    version: int
    fragments: int
    made_at_ns: int | None = None
    """None before the first version is read, and in an offset of a release that did not store it."""

    @classmethod
    def of(cls, stored: dict[str, int]) -> _Offset:
        return cls(stored["whole"], stored["version"], stored["fragments"], stored.get("made_at_ns"))

    @classmethod
    def before(cls, whole: int) -> _Offset:
        """Return the offset of a stream that begins with all rows of a version."""
        return cls(whole, whole, 0)

    def stored(self) -> dict[str, int]:
        numbers = {"whole": self.whole, "version": self.version, "fragments": self.fragments}
        return numbers | moment_of_offset(self.made_at_ns)

    @property
    def last_read(self) -> int:
        """The last version that is read in part or to its end."""
        return self.version if self.fragments else self.version - 1


@dataclass(frozen=True)
class _Added:
    """What a version added, and when it was committed."""

    fragments: Sequence[Fragment]
    made_at_ns: int | None


@dataclass(frozen=True)
class _VersionGroup(InputPartition):
    """Fragments of one version that one task reads."""

    version: int
    group: FragmentGroup


class LanceStreamReader(DataSourceStreamReader, SupportsTriggerAvailableNow):
    """Plans micro-batches on the driver and reads their fragments in tasks."""

    def __init__(self, options: SourceOptions, schema: StructType, loaded: SourceOptions | None = None) -> None:
        """`loaded` are the options of the version that `load` saw: the stream's names are those of its columns."""
        self._options = options.with_full_uri()
        self._schema = schema
        snapshot = open_loaded(self._options, loaded)
        needed = LanceReader(self._options, schema, snapshot=snapshot).columns_read()
        self._columns = LoadedColumns(snapshot.version, needed)
        self._last: int | None = None  # of a query that reads only what is available now
        self._added = lru_cache(_KNOWN_VERSIONS)(self._find_added)

    @without_frames(of_stream=True)
    def initialOffset(self) -> dict[str, int]:  # noqa: N802 - Spark's name
        """Return the offset before the first row."""
        first = self._options.starting_version
        if first is not None:
            return _Offset(0, first, 0).stored()
        return _Offset.before(self._last or open_unread(self._options).version).stored()

    def getDefaultReadLimit(self) -> ReadLimit:  # noqa: N802 - Spark's name
        """Return the limit of a micro-batch that the options ask for."""
        if self._options.max_rows_per_trigger is not None:
            return ReadMaxRows(self._options.max_rows_per_trigger)
        if self._options.max_fragments_per_trigger is not None:
            return ReadMaxFiles(self._options.max_fragments_per_trigger)
        return ReadAllAvailable()

    @without_frames(of_stream=True)
    def latestOffset(self, start: dict[str, int], limit: ReadLimit) -> dict[str, int]:  # noqa: N802 - Spark's name
        """Return the offset after the next micro-batch: as much as the limit allows, and at least one fragment."""
        offset, newest = _Offset.of(start), open_unread(self._options)
        check_is_same_table(self._options, offset.last_read, offset.made_at_ns, newest)
        rows, count = 0, 0
        while offset.version <= (self._last or newest.version):
            added = self._added(offset.version, offset.whole)
            for fragment in added.fragments[offset.fragments :]:
                rows, count = rows + fragment.physical_rows, count + 1
                if count > 1 and not _allows(limit, rows, count):
                    return offset.stored()
                offset = replace(offset, fragments=offset.fragments + 1, made_at_ns=added.made_at_ns)
            offset = replace(offset, version=offset.version + 1, fragments=0, made_at_ns=added.made_at_ns)
        return offset.stored()

    @without_frames(of_stream=True)
    def prepareForTriggerAvailableNow(self) -> None:  # noqa: N802 - Spark's name
        """Read no version that comes later than this call."""
        self._last = open_unread(self._options).version

    @without_frames(of_stream=True)
    def partitions(self, start: dict[str, int], end: dict[str, int]) -> Sequence[InputPartition]:
        """Share the fragments between two offsets among tasks."""
        first, last = _Offset.of(start), _Offset.of(end)
        if last.whole and first.whole != last.whole:
            first = _Offset.before(last.whole)  # the one that the end was planned from; see the module
        found: list[InputPartition] = []
        for version in range(first.version, last.version + (last.fragments > 0)):
            skipped = first.fragments if version == first.version else 0
            stop = last.fragments if version == last.version else None
            added = self._added(version, last.whole)
            if version == last.last_read:
                check_made_at(self._options, version, last.made_at_ns, added.made_at_ns)
            fragments = added.fragments[skipped:stop]
            if fragments:
                reader = self._reader(version, tuple(fragment.id for fragment in fragments))
                found += (_VersionGroup(version, group) for group in reader.partitions())
        return found

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """Yield the rows of some fragments."""
        assert isinstance(partition, _VersionGroup)
        return self._reader(partition.version).read(partition.group)

    def __getstate__(self) -> dict[str, object]:
        return {name: value for name, value in self.__dict__.items() if name != "_added"}

    def _reader(self, version: int, fragment_ids: tuple[int, ...] | None = None) -> LanceReader:
        options = replace(self._options, version=version)
        return LanceReader(options, self._schema, fragment_ids, self._columns.of(options.open()))

    def _find_added(self, version: int, whole: int) -> _Added:
        snapshot = open_unread(self._options, version)
        fragments = snapshot.fragments if version == whole else self._added_to(snapshot)
        return _Added(fragments, snapshot.manifest.timestamp_ns)

    def _added_to(self, snapshot: Snapshot) -> Sequence[Fragment]:
        """Return the fragments whose rows a version added; raise `InvalidInput` for one that did more."""
        version = snapshot.version
        transaction = read_version(snapshot.store, snapshot.committer, version).transaction
        if transaction is None:
            raise UnsupportedFeature("a stream over a version whose transaction was not kept", snapshot.manifest_uri)
        operation = transaction.operation
        is_first = isinstance(operation, Clone) or (version == 1 and isinstance(operation, Overwrite))
        if is_first:  # of a table, a branch or a clone
            return snapshot.fragments
        num_appended = _count_appended(operation)
        if num_appended is not None:
            return snapshot.fragments[len(snapshot.fragments) - num_appended :]
        if self._options.skip_changes:
            return ()
        raise InvalidInput(
            f"{snapshot.uri}: version {version} ({type(operation).__name__}) did not only append rows, and a stream "
            "has only appended ones: set option 'skip_changes' to 'true' to pass over such versions, and so also the "
            "rows that they insert; or start again with a new checkpoint; or read changes by option 'read_change_feed'"
        )


def open_unread(options: SourceOptions, version: int | None = None) -> Snapshot:
    """Open a version that a stream has not read, or the newest; raise `VersionNotFound` with what to do."""
    try:
        return replace(options, version=version).open()
    except VersionNotFound as error:
        raise VersionNotFound(
            f"{error}: the stream has not read version {version} yet, and clean-up removed it; {START_AGAIN}"
        ) from error


def moment_of_offset(made_at_ns: int | None) -> dict[str, int]:
    """Return what an offset says of the moment at which the last version that it has read was committed."""
    return {} if made_at_ns is None else {"made_at_ns": made_at_ns}


def check_is_same_table(options: SourceOptions, last_read: int, made_at_ns: int | None, newest: Snapshot) -> None:
    """Raise `InvalidInput` unless the table has the version that a stream has read last, committed at `made_at_ns`.

    A stream that has read nothing may begin at a version that is still to come. A version that clean-up removed passes.
    """
    if last_read > newest.version and last_read + 1 != options.starting_version:
        raise InvalidInput(
            f"{public_uri(options.path)}: the stream has read version {last_read}, and the newest is {newest.version}. "
            "The table was made again or replaced by an older copy: start again with a new checkpoint"
        )
    if made_at_ns is None:
        return
    try:
        found = newest if newest.version == last_read else replace(options, version=last_read).open()
    except VersionNotFound:
        return
    check_made_at(options, last_read, made_at_ns, found.manifest.timestamp_ns)


def check_made_at(options: SourceOptions, version: int, made_at_ns: int | None, found_ns: int | None) -> None:
    """Raise `InvalidInput` unless a version that a stream has read was committed at the same moment as the one found.

    A stream's offset, or a manifest, without a moment allows any.
    """
    if None not in (made_at_ns, found_ns) and made_at_ns != found_ns:
        raise InvalidInput(
            f"{public_uri(options.path)}: version {version} is not the one that the stream has read. The table was "
            "made again or replaced by another one: start again with a new checkpoint"
        )


def _count_appended(operation: Operation) -> int | None:
    """Return how many fragments an operation appends; None if it may delete or change rows, too.

    A merge that only inserts is an `Update` that touches no fragment of before.
    """
    if isinstance(operation, Append):
        return len(operation.fragments)
    if isinstance(operation, _ADDS_NO_ROWS):
        return 0
    footprint = operation.footprint()
    if not isinstance(operation, (Delete, Update)) or footprint.fragments or not footprint.is_known:
        return None
    return len(operation.new_fragments) if isinstance(operation, Update) else 0


def _allows(limit: ReadLimit, rows: int, count: int) -> bool:
    if isinstance(limit, ReadMaxRows):
        return rows <= limit.max_rows
    return not isinstance(limit, ReadMaxFiles) or count <= limit.max_files
