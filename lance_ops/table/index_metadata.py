"""The index metadata in a manifest: one `IndexMetadata` for each segment; segments of one index share a name."""

from __future__ import annotations

from collections.abc import Iterable
from uuid import UUID

from pyroaring import BitMap, FrozenBitMap

from lance_ops.core.errors import CorruptFile
from lance_ops.core.file_names import INDICES_DIR
from lance_ops.core.records import dataclass
from lance_ops.pb import table_pb2
from lance_ops.store import check_path
from lance_ops.table.rows import decode_bitmap
from lance_ops.wire import restore_unknown, unknown_fields

__all__ = ["FRAGMENT_REUSE_INDEX", "MEM_WAL_INDEX", "IndexDetails", "IndexFile", "IndexMetadata"]

FRAGMENT_REUSE_INDEX = "__lance_frag_reuse"
MEM_WAL_INDEX = "__lance_mem_wal"


@dataclass(frozen=True, slots=True)
class IndexDetails:
    """A packed message whose type identifies the kind of index."""

    type_url: str
    value: bytes = b""

    @property
    def type_name(self) -> str:
        """The message's bare name (`BTreeIndexDetails`); its package is ignored because it changed over time."""
        return self.type_url.rpartition("/")[2].rpartition(".")[2]


@dataclass(frozen=True, slots=True)
class IndexFile:
    """A file of the segment; raises `UnsafePath` for a path that leaves the segment's directory."""

    path: str
    size_bytes: int
    unknown: bytes = b""

    def __post_init__(self) -> None:
        check_path(self.path)

    @classmethod
    def from_pb(cls, message: table_pb2.IndexFile) -> IndexFile:
        """Read the message."""
        return cls(message.path, message.size_bytes, unknown_fields(message))

    def to_pb(self) -> table_pb2.IndexFile:
        """Return the message."""
        message = table_pb2.IndexFile(path=self.path, size_bytes=self.size_bytes)
        restore_unknown(message, self.unknown)
        return message


@dataclass(frozen=True, slots=True)
class IndexMetadata:
    """The metadata of one segment. `fragment_bitmap` is None if an old writer did not state it.

    The bitmap holds the fragments that the segment covers; the table may no longer have some of them.
    """

    uuid: UUID
    name: str
    fields: tuple[int, ...]
    dataset_version: int
    fragment_bitmap: FrozenBitMap | None = None
    details: IndexDetails | None = None
    index_version: int | None = None
    created_at_ms: int | None = None
    base_id: int | None = None
    files: tuple[IndexFile, ...] = ()
    covering_fields: tuple[int, ...] = ()
    unknown: bytes = b""

    @property
    def directory(self) -> str:
        """The directory of the segment's files, beneath the table's root."""
        return f"{INDICES_DIR}/{self.uuid}"

    def paths(self) -> list[str]:
        """Return the paths beneath the table's root of the segment's files that the manifest names."""
        return [f"{self.directory}/{file.path}" for file in self.files]

    @property
    def is_system(self) -> bool:
        """Whether this is one of the format's own indices, which index no column."""
        return self.name in (FRAGMENT_REUSE_INDEX, MEM_WAL_INDEX)

    def covers(self, fragment_ids: Iterable[int]) -> BitMap:
        """Return the fragments among `fragment_ids` that the segment covers; none if it does not state its bitmap."""
        return BitMap(fragment_ids) & self.fragment_bitmap if self.fragment_bitmap is not None else BitMap()

    @classmethod
    def from_pb(cls, message: table_pb2.IndexMetadata, path: str) -> IndexMetadata:
        """Build from the message; raise `CorruptFile` naming the manifest for a malformed UUID or bitmap."""
        place = f"index {message.name!r}"
        raw = message.uuid.uuid
        if len(raw) != 16:
            raise CorruptFile(path, place, f"a UUID of {len(raw)} bytes")
        details = message.index_details
        return cls(
            uuid=UUID(bytes=raw),
            name=message.name,
            fields=tuple(message.fields),
            dataset_version=message.dataset_version,
            fragment_bitmap=(
                FrozenBitMap(decode_bitmap(message.fragment_bitmap, path, place)) if message.fragment_bitmap else None
            ),
            details=(IndexDetails(details.type_url, details.value) if message.HasField("index_details") else None),
            index_version=message.index_version if message.HasField("index_version") else None,
            created_at_ms=message.created_at if message.HasField("created_at") else None,
            base_id=message.base_id if message.HasField("base_id") else None,
            files=tuple(map(IndexFile.from_pb, message.files)),
            covering_fields=tuple(message.covering_fields),
            unknown=unknown_fields(message),
        )

    def to_pb(self) -> table_pb2.IndexMetadata:
        """Return the message."""
        message = table_pb2.IndexMetadata(
            uuid=table_pb2.UUID(uuid=self.uuid.bytes),
            name=self.name,
            fields=self.fields,
            dataset_version=self.dataset_version,
            fragment_bitmap=self.fragment_bitmap.serialize() if self.fragment_bitmap is not None else b"",
            index_version=self.index_version,
            created_at=self.created_at_ms,
            base_id=self.base_id,
            files=[file.to_pb() for file in self.files],
            covering_fields=self.covering_fields,
        )
        if self.details is not None:
            message.index_details.type_url = self.details.type_url
            message.index_details.value = self.details.value
        restore_unknown(message, self.unknown)
        return message
