"""The manifest of one version of a table, as a value; `manifest_bytes` describes its file."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import field
from datetime import datetime

from lance_ops.core.errors import CorruptFile
from lance_ops.core.records import dataclass
from lance_ops.core.schema import Schema
from lance_ops.core.versions import FileVersion
from lance_ops.pb import table_pb2
from lance_ops.table.fragments import Fragment, FragmentList
from lance_ops.table.index_metadata import IndexMetadata
from lance_ops.table.index_sections import IndexSection
from lance_ops.table.manifest.base_path import BasePath
from lance_ops.table.manifest.feature_flag import FeatureFlag
from lance_ops.table.manifest.version_summary import (
    VersionSummary,
    check_has_no_fragment_tree,
    time_of,
    timestamp_ns_of,
)
from lance_ops.wire import encoded_schema, restore_unknown, unknown_fields

__all__ = ["WRITER", "DataFormat", "Manifest", "WriterVersion"]

_STABLE_ROW_IDS = FeatureFlag.STABLE_ROW_IDS.value
_MAX_FRAGMENT_ID = (1 << 32) - 1
_NANOS = 1_000_000_000


@dataclass(frozen=True, slots=True)
class DataFormat:
    """The format and version of new data files, as the manifest spells them."""

    version: str
    file_format: str = "lance"
    unknown: bytes = b""


@dataclass(frozen=True, slots=True)
class WriterVersion:
    """The library that wrote the manifest."""

    library: str
    version: str
    prerelease: str | None = None
    build_metadata: str | None = None


WRITER = WriterVersion("lance_ops", "0.1.0")
"""Every manifest states it: the reference migrates a table without one as a very old table."""


@dataclass(frozen=True)
class Manifest:
    """One version of a table: its schema, fragments, indices, configuration and base paths.

    `max_fragment_id` is the highest id ever given out, None before the first fragment. `unknown` and
    `unknown_of_indices` hold wire fields of a newer writer, which are written back unchanged.
    """

    version: int
    schema: Schema
    fragments: FragmentList = field(default_factory=FragmentList)
    indices: tuple[IndexMetadata, ...] = ()
    data_format: DataFormat = DataFormat(FileVersion.V2_2.value)
    timestamp_ns: int | None = None
    tag: str = ""
    reader_feature_flags: int = 0
    writer_feature_flags: int = 0
    max_fragment_id: int | None = None
    transaction_file: str = ""
    writer_version: WriterVersion | None = None
    next_row_id: int = 0
    config: Mapping[str, str] = field(default_factory=dict)
    table_metadata: Mapping[str, str] = field(default_factory=dict)
    base_paths: tuple[BasePath, ...] = ()
    branch: str | None = None
    unknown: bytes = b""
    unknown_of_indices: bytes = b""

    @property
    def timestamp(self) -> datetime | None:
        """When the version was made, in UTC, to the microsecond; None if the writer did not say."""
        return time_of(self.timestamp_ns)

    @property
    def summary(self) -> VersionSummary:
        """What a list of versions tells of this one."""
        return VersionSummary(self.version, self.timestamp, len(self.fragments), self.fragments.totals())

    @property
    def uses_stable_row_ids(self) -> bool:
        """Whether rows keep their ids when they move."""
        return bool(self.reader_feature_flags & _STABLE_ROW_IDS)

    @property
    def num_rows(self) -> int:
        """The number of rows that are not deleted, as far as the manifest states it."""
        return self.fragments.num_rows

    def fragment(self, fragment_id: int) -> Fragment | None:
        """Return the fragment of that id. Linear: for many lookups build a dictionary."""
        return next((fragment for fragment in self.fragments if fragment.id == fragment_id), None)

    @property
    def max_field_id(self) -> int:
        """The highest field id in use, in the schema or in a data file that still holds a dropped field."""
        files = (file for fragment in self.fragments for file in fragment.files)
        return max(self.schema.max_field_id, max((field_id for file in files for field_id in file.fields), default=-1))

    @property
    def next_fragment_id(self) -> int:
        """The first id that was never given out."""
        return 0 if self.max_fragment_id is None else self.max_fragment_id + 1

    @classmethod
    def from_pb(
        cls,
        message: table_pb2.Manifest,
        schema: Schema,
        fragments: FragmentList,
        indices: IndexSection,
        path: str,
    ) -> Manifest:
        """Build the manifest from its parts; `path` names it in errors. `message` states no schema and no fragments.

        Raises `CorruptFile`, `UnsafePath`, and `UnsupportedFeature` for a fragment tree.
        """
        check_has_no_fragment_tree(message, path)
        writer = message.writer_version
        return cls(
            version=message.version,
            schema=schema,
            fragments=fragments,
            indices=indices.segments,
            data_format=_data_format(message, fragments, path),
            timestamp_ns=timestamp_ns_of(message, path),
            tag=message.tag,
            reader_feature_flags=message.reader_feature_flags,
            writer_feature_flags=message.writer_feature_flags,
            max_fragment_id=_max_fragment_id(message, fragments, indices.segments, path),
            transaction_file=message.transaction_file,
            writer_version=(
                WriterVersion(
                    writer.library,
                    writer.version,
                    writer.prerelease if writer.HasField("prerelease") else None,
                    writer.build_metadata if writer.HasField("build_metadata") else None,
                )
                if message.HasField("writer_version")
                else None
            ),
            next_row_id=message.next_row_id,
            config=dict(message.config),
            table_metadata=dict(message.table_metadata),
            base_paths=tuple(BasePath.from_pb(base) for base in message.base_paths),
            branch=message.branch if message.HasField("branch") else None,
            unknown=unknown_fields(message),
            unknown_of_indices=indices.unknown,
        )

    def to_pb(self) -> table_pb2.Manifest:
        """Return the message without the fragments, the indices and the positions of the sections."""
        message = table_pb2.Manifest(
            version=self.version,
            tag=self.tag,
            reader_feature_flags=self.reader_feature_flags,
            writer_feature_flags=self.writer_feature_flags,
            max_fragment_id=self.max_fragment_id,
            transaction_file=self.transaction_file,
            writer_version=_writer_to_pb(self.writer_version),
            next_row_id=self.next_row_id,
            data_format={"file_format": self.data_format.file_format, "version": self.data_format.version},
            config=self.config,
            table_metadata=self.table_metadata,
            base_paths=[base.to_pb() for base in self.base_paths],
            branch=self.branch,
        )
        message.MergeFromString(encoded_schema(self.schema))
        if self.timestamp_ns is not None:
            message.timestamp.seconds, message.timestamp.nanos = divmod(self.timestamp_ns, _NANOS)
        restore_unknown(message.data_format, self.data_format.unknown)
        restore_unknown(message, self.unknown)
        return message


def _max_fragment_id(
    message: table_pb2.Manifest, fragments: FragmentList, indices: Sequence[IndexMetadata], path: str
) -> int | None:
    """Return the highest id ever given to a fragment; if the manifest does not state it, the highest that it names.

    A fragment above the stated id, or covered by an index above it, is corrupt: the next commit would give its id to
    another fragment, which that index would hide. Fragments are stored in the order of their ids, so only the last one
    is decoded.
    """
    covered = [(index.fragment_bitmap.max(), f"index {index.name!r}") for index in indices if index.fragment_bitmap]
    if message.HasField("max_fragment_id"):
        stated: int = message.max_fragment_id
        found, user = max([*covered, (fragments.last_id or 0, "the fragments")])
        if found > stated:
            raise CorruptFile(path, "max_fragment_id", f"it is {stated}, but {user} reach up to {found}")
        return stated
    highest = max((*fragments.ids, *(fragment_id for fragment_id, _ in covered)), default=None)
    if highest is not None and highest > _MAX_FRAGMENT_ID:
        raise CorruptFile(path, "fragments", f"a fragment with the id {highest}, of more than 32 bits")
    return highest


def _writer_to_pb(writer: WriterVersion | None) -> table_pb2.Manifest.WriterVersion | None:
    if writer is None:
        return None
    return table_pb2.Manifest.WriterVersion(
        library=writer.library,
        version=writer.version,
        prerelease=writer.prerelease,
        build_metadata=writer.build_metadata,
    )


def _data_format(message: table_pb2.Manifest, fragments: Sequence[Fragment], path: str) -> DataFormat:
    """Return the stated format. Old writers stated none: their tables have the version of their files.

    Release 0.16 stated 0.1 for some tables whose files are all 2.0. Such a table has the version of its files too: with
    0.1 files beside them, the reference would refuse every change.
    """
    if message.HasField("data_format"):
        stated = message.data_format
        wrong = stated.version == FileVersion.V0_1.value and _all_files_are_v2_0(fragments)
        version = FileVersion.V2_0.value if wrong else stated.version
        return DataFormat(version, stated.file_format, unknown_fields(stated))
    numbers = next((file.numbers for fragment in fragments for file in fragment.files), None)
    if numbers is not None:
        return DataFormat(FileVersion.from_numbers(*numbers, where=path).value)
    v2 = message.writer_feature_flags & FeatureFlag.V2_FORMAT
    return DataFormat((FileVersion.V2_2 if v2 else FileVersion.V0_1).value)


def _all_files_are_v2_0(fragments: Sequence[Fragment]) -> bool:
    """Return whether there are files, and all of version 2.0. The first file of an honest 0.1 table decides."""
    spellings = (FileVersion.V2_0.footer, FileVersion.V2_0.data_file)
    found = False
    for file in (file for fragment in fragments for file in fragment.files):
        if file.numbers not in spellings:
            return False
        found = True
    return found
