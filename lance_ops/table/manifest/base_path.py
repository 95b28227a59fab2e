"""A base path: a directory outside the table's root that holds files of the table, as clones have."""

from __future__ import annotations

from lance_ops.core.errors import UnsafePath
from lance_ops.core.records import dataclass
from lance_ops.pb import table_pb2
from lance_ops.wire import restore_unknown, unknown_fields

__all__ = ["BasePath"]


@dataclass(frozen=True, slots=True)
class BasePath:
    """`path` is absolute. It is a dataset's root, or, if `is_dataset_root` is false, the files' directory."""

    id: int
    path: str
    name: str | None = None
    is_dataset_root: bool = False
    unknown: bytes = b""

    @classmethod
    def from_pb(cls, message: table_pb2.BasePath) -> BasePath:
        """Read the message; raise `UnsafePath` for a path that climbs (`..`) or holds a NUL."""
        if "\0" in message.path or ".." in message.path.replace("\\", "/").split("/"):
            raise UnsafePath(f"base path {message.id}: {message.path!r} must not climb with '..' nor hold a NUL")
        return cls(
            id=message.id,
            path=message.path,
            name=message.name if message.HasField("name") else None,
            is_dataset_root=message.is_dataset_root,
            unknown=unknown_fields(message),
        )

    def to_pb(self) -> table_pb2.BasePath:
        """Return the message."""
        message = table_pb2.BasePath(id=self.id, path=self.path, name=self.name, is_dataset_root=self.is_dataset_root)
        restore_unknown(message, self.unknown)
        return message
