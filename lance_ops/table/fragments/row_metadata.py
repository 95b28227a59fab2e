"""Where a fragment's row ids and row versions are stored, and the reference's JSON forms of that.

row ids        {"Inline": [bytes]} | {"External": {path, offset, size}}
row versions   the same, "inline" and "external" in small letters
"""

from __future__ import annotations

from collections.abc import Mapping
from json import dumps, loads
from typing import Any, ClassVar, Self, TypeAlias

from lance_ops.core.errors import InvalidInput
from lance_ops.core.records import dataclass
from lance_ops.pb import table_pb2
from lance_ops.store import check_path
from lance_ops.wire import restore_unknown, unknown_fields

__all__ = ["ExternalFile", "RowDatasetVersionMeta", "RowIdMeta", "RowSequence"]


@dataclass(frozen=True, slots=True)
class ExternalFile:
    """A range of bytes of a file beneath the table's root; raises `UnsafePath` for a path that leaves it."""

    path: str
    offset: int
    size: int
    unknown: bytes = b""

    def __post_init__(self) -> None:
        check_path(self.path)

    @classmethod
    def from_pb(cls, message: table_pb2.ExternalFile) -> ExternalFile:
        """Read the message."""
        return cls(message.path, message.offset, message.size, unknown_fields(message))

    def to_pb(self) -> table_pb2.ExternalFile:
        """Return the message."""
        message = table_pb2.ExternalFile(path=self.path, offset=self.offset, size=self.size)
        restore_unknown(message, self.unknown)
        return message


RowSequence: TypeAlias = bytes | ExternalFile | None
"""A sequence with one value for each physical row (see `row_sequences`): inline, in a file, or absent."""


@dataclass(frozen=True, slots=True)
class _StoredSequence:
    """A sequence with one value for each physical row: its bytes, or the file that holds them."""

    stored: bytes | ExternalFile

    _INLINE: ClassVar[str]
    _EXTERNAL: ClassVar[str]

    def asdict(self) -> dict[str, Any]:
        """Return the reference's JSON values."""
        if isinstance(self.stored, bytes):
            return {self._INLINE: list(self.stored)}
        return {self._EXTERNAL: {"path": self.stored.path, "offset": self.stored.offset, "size": self.stored.size}}

    def json(self) -> str:
        """Return `asdict` as the reference's JSON text."""
        return dumps(self.asdict(), separators=(",", ":"))

    @classmethod
    def from_json(cls, json: str) -> Self:
        """Read the text of `json`, of either library; raise `InvalidInput` for any other text."""
        try:
            return cls.from_values(loads(json))
        except (ValueError, TypeError, RecursionError) as error:
            raise InvalidInput(f"not a {cls.__name__} in JSON: {error}") from error

    @classmethod
    def from_values(cls, values: Mapping[str, Any]) -> Self:
        """Read the values of `asdict`; raise `InvalidInput` for any others."""
        try:
            ((kind, value),) = values.items()
            if kind == cls._INLINE:
                return cls(bytes([*value]))
            if kind == cls._EXTERNAL:
                return cls(ExternalFile(value["path"], value["offset"], value["size"]))
        except (ValueError, TypeError, KeyError, AttributeError) as error:
            raise InvalidInput(f"not the values of a {cls.__name__}: {error!r}") from error
        raise InvalidInput(f"not the values of a {cls.__name__}: {kind!r} is neither {cls._INLINE} nor {cls._EXTERNAL}")


@dataclass(frozen=True, slots=True)
class RowIdMeta(_StoredSequence):
    """The stable row ids of a fragment's rows."""

    _INLINE = "Inline"
    _EXTERNAL = "External"

    @classmethod
    def from_dict(cls, dict: Mapping[str, Any]) -> RowIdMeta:  # noqa: A002 # the reference's name
        """Read the values of `asdict`; raise `InvalidInput` for any others."""
        return cls.from_values(dict)


@dataclass(frozen=True, slots=True)
class RowDatasetVersionMeta(_StoredSequence):
    """The versions that created a fragment's rows, or that last updated them."""

    _INLINE = "inline"
    _EXTERNAL = "external"
