"""A fragment of a manifest and its data files."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import KW_ONLY, replace
from typing import Any, TypeVar

from lance_ops.core.errors import CorruptFile
from lance_ops.core.file_names import DATA_DIR, DELETIONS_DIR
from lance_ops.core.records import dataclass
from lance_ops.pb import table_pb2
from lance_ops.pb.manifest_parts_pb2 import FragmentFileNames
from lance_ops.store import check_path
from lance_ops.table.fragments.deletion_file import DeletionFile
from lance_ops.table.fragments.fragment_json import fragment_from_json, fragment_to_json
from lance_ops.table.fragments.row_metadata import ExternalFile, RowDatasetVersionMeta, RowIdMeta, RowSequence
from lance_ops.wire import restore_unknown, unknown_fields

__all__ = ["TOMBSTONED_FIELD", "DataFile", "Fragment", "with_deletion_file", "with_tombstones"]

TOMBSTONED_FIELD = -2
"""The id in `DataFile.fields` that replaces a field whose values are now in another file."""

_MAX_ROWS = 1 << 32

M = TypeVar("M", RowIdMeta, RowDatasetVersionMeta)


@dataclass(frozen=True, slots=True)
class DataFile:
    """One file of a fragment and the fields it holds.

    `column_indices` holds the file's column for each field; it is empty for 0.1 files. A `file_size_bytes` of 0 means
    unknown. With a `base_id` the path is beneath that base path, not beneath the table's root. Raises `UnsafePath` for
    a path that leaves its directory.
    """

    path: str
    fields: tuple[int, ...]
    column_indices: tuple[int, ...] = ()
    file_major_version: int = 0
    file_minor_version: int = 0
    file_size_bytes: int = 0
    base_id: int | None = None
    _: KW_ONLY
    unknown: bytes = b""

    def __post_init__(self) -> None:
        check_path(self.path)
        # A caller may pass lists, and None for an unknown size, as to the reference.
        object.__setattr__(self, "fields", tuple(self.fields))
        object.__setattr__(self, "column_indices", tuple(self.column_indices or ()))
        object.__setattr__(self, "file_size_bytes", self.file_size_bytes or 0)

    @property
    def live_fields(self) -> tuple[int, ...]:
        """The fields whose values are read from this file."""
        return tuple(field_id for field_id in self.fields if field_id != TOMBSTONED_FIELD)

    @property
    def place(self) -> tuple[int | None, str]:
        """The file's base id and path, which tell it from every other file of the table."""
        return self.base_id, self.path

    @property
    def numbers(self) -> tuple[int, int]:
        """The file's version as (major, minor)."""
        return self.file_major_version, self.file_minor_version

    @classmethod
    def from_pb(cls, message: table_pb2.DataFile) -> DataFile:
        """Read the message."""
        return cls(
            path=message.path,
            fields=tuple(message.fields),
            column_indices=tuple(message.column_indices),
            file_major_version=message.file_major_version,
            file_minor_version=message.file_minor_version,
            file_size_bytes=message.file_size_bytes,
            base_id=message.base_id if message.HasField("base_id") else None,
            unknown=unknown_fields(message),
        )

    def to_pb(self) -> table_pb2.DataFile:
        """Return the message."""
        message = table_pb2.DataFile(
            path=self.path,
            fields=self.fields,
            column_indices=self.column_indices,
            file_major_version=self.file_major_version,
            file_minor_version=self.file_minor_version,
            file_size_bytes=self.file_size_bytes,
            base_id=self.base_id,
        )
        restore_unknown(message, self.unknown)
        return message


@dataclass(frozen=True, slots=True)
class Fragment:
    """Rows that are stored together. `physical_rows` includes deleted rows; it is 0 if an old writer did not state it.

    A fragment has id 0 until a commit numbers it. The order of the fields is the reference's.
    """

    id: int
    files: tuple[DataFile, ...]
    physical_rows: int = 0
    deletion_file: DeletionFile | None = None
    row_id_meta: RowIdMeta | None = None
    created_at_version_meta: RowDatasetVersionMeta | None = None
    last_updated_at_version_meta: RowDatasetVersionMeta | None = None
    overlays: tuple[bytes, ...] = ()
    _: KW_ONLY
    unknown: bytes = b""

    def __post_init__(self) -> None:
        object.__setattr__(self, "files", tuple(self.files))  # a caller may pass a list, as to the reference

    @property
    def row_ids(self) -> RowSequence:
        """The sequence of the rows' stable ids, as it is stored."""
        return None if self.row_id_meta is None else self.row_id_meta.stored

    @property
    def created_at_versions(self) -> RowSequence:
        """The sequence of the versions that created the rows, as it is stored."""
        return None if self.created_at_version_meta is None else self.created_at_version_meta.stored

    @property
    def last_updated_at_versions(self) -> RowSequence:
        """The sequence of the versions that last updated the rows, as it is stored."""
        return None if self.last_updated_at_version_meta is None else self.last_updated_at_version_meta.stored

    def with_sequences(
        self,
        *,
        row_ids: RowSequence = None,
        created_at_versions: RowSequence = None,
        last_updated_at_versions: RowSequence = None,
    ) -> Fragment:
        """Return the fragment with other row ids or row versions, each as bytes or a file; None keeps its own."""
        kept = self.row_id_meta, self.created_at_version_meta, self.last_updated_at_version_meta
        return replace(
            self,
            row_id_meta=kept[0] if row_ids is None else RowIdMeta(row_ids),
            created_at_version_meta=(
                kept[1] if created_at_versions is None else RowDatasetVersionMeta(created_at_versions)
            ),
            last_updated_at_version_meta=(
                kept[2] if last_updated_at_versions is None else RowDatasetVersionMeta(last_updated_at_versions)
            ),
        )

    @property
    def num_deletions(self) -> int:
        """The number of deleted rows, as far as the manifest states it."""
        return self.deletion_file.num_deleted_rows if self.deletion_file else 0

    @property
    def num_rows(self) -> int:
        """The number of rows that are not deleted, as far as the manifest states it."""
        return self.physical_rows - self.num_deletions

    def data_paths(self) -> Iterator[str]:
        """Yield the paths of the data files that lie beneath the table's root."""
        return (f"{DATA_DIR}/{file.path}" for file in self.files if file.base_id is None)

    @property
    def deletion_path(self) -> str | None:
        """The path of the deletion file; None if there is none or if it is under a base path."""
        file = self.deletion_file
        return f"{DELETIONS_DIR}/{file.name(self.id)}" if file is not None and file.base_id is None else None

    def sequence_paths(self) -> Iterator[str]:
        """Yield the paths of the files that hold row ids or versions of its rows."""
        sequences = (self.row_ids, self.last_updated_at_versions, self.created_at_versions)
        return (sequence.path for sequence in sequences if isinstance(sequence, ExternalFile))

    def to_json(self) -> dict[str, Any]:
        """Return the fragment in the reference's JSON form; see `fragment_json`."""
        return fragment_to_json(self.to_pb())

    @classmethod
    def from_json(cls, json_data: str) -> Fragment:
        """Read a fragment from its JSON text; raise `InvalidInput` for any other text."""
        return cls.from_pb(fragment_from_json(json_data), "fragment in JSON")

    @classmethod
    def from_pb(cls, message: table_pb2.DataFragment, path: str) -> Fragment:
        """Read the message; `path` names the manifest in errors.

        Raises `CorruptFile` for more rows than row addresses can number.
        """
        check_row_count(message, path)
        has_deletions = message.HasField("deletion_file")
        return cls(
            id=message.id,
            files=tuple(DataFile.from_pb(file) for file in message.files),
            deletion_file=DeletionFile.from_pb(message.deletion_file, path) if has_deletions else None,
            physical_rows=message.physical_rows,
            row_id_meta=_stored(RowIdMeta, message, "row_id_sequence"),
            last_updated_at_version_meta=_stored(RowDatasetVersionMeta, message, "last_updated_at_version_sequence"),
            created_at_version_meta=_stored(RowDatasetVersionMeta, message, "created_at_version_sequence"),
            overlays=tuple(overlay.SerializeToString() for overlay in message.overlays),
            unknown=unknown_fields(message),
        )

    def to_pb(self) -> table_pb2.DataFragment:
        """Return the message."""
        message = table_pb2.DataFragment(
            id=self.id,
            files=[file.to_pb() for file in self.files],
            deletion_file=self.deletion_file.to_pb() if self.deletion_file else None,
            physical_rows=self.physical_rows,
            overlays=[table_pb2.DataOverlayFile.FromString(overlay) for overlay in self.overlays],
        )
        _set_sequence(message, "row_ids", self.row_ids)
        _set_sequence(message, "last_updated_at_versions", self.last_updated_at_versions)
        _set_sequence(message, "created_at_versions", self.created_at_versions)
        restore_unknown(message, self.unknown)
        return message


def with_deletion_file(fragment: Fragment, deletion_file: DeletionFile | None) -> Fragment:
    """Return the fragment with another deletion file, or none; for many fragments, `replace` takes far longer."""
    return Fragment(
        fragment.id,
        fragment.files,
        fragment.physical_rows,
        deletion_file,
        fragment.row_id_meta,
        fragment.created_at_version_meta,
        fragment.last_updated_at_version_meta,
        fragment.overlays,
        unknown=fragment.unknown,
    )


def with_tombstones(file: DataFile, field_ids: Collection[int]) -> DataFile:
    """Return the file without these fields, whose values are in another file now."""
    return replace(file, fields=tuple(TOMBSTONED_FIELD if field in field_ids else field for field in file.fields))


def check_row_count(message: table_pb2.DataFragment | FragmentFileNames, path: str) -> None:
    """Raise `CorruptFile` if a fragment states more rows than row addresses can number."""
    if message.physical_rows > _MAX_ROWS:
        raise CorruptFile(path, f"fragment {message.id}", f"{message.physical_rows} rows, of {_MAX_ROWS} at most")


def _stored(kind: type[M], message: table_pb2.DataFragment, oneof: str) -> M | None:
    which = message.WhichOneof(oneof)
    if which is None:
        return None
    value = getattr(message, which)
    return kind(value if isinstance(value, bytes) else ExternalFile.from_pb(value))


def _set_sequence(message: table_pb2.DataFragment, name: str, value: RowSequence) -> None:
    if isinstance(value, ExternalFile):
        getattr(message, f"external_{name}").CopyFrom(value.to_pb())
    elif value is not None:
        setattr(message, f"inline_{name}", value)
