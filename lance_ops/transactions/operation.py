"""The contract of an operation: its wire message, its footprint, and how it changes a manifest."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import field
from typing import Any, ClassVar, Self

from google.protobuf.message import Message

from lance_ops.core.records import dataclass
from lance_ops.table import Manifest
from lance_ops.transactions.footprint import Footprint

__all__ = ["ApplyContext", "Operation"]


@dataclass(frozen=True)
class ApplyContext:
    """What an operation may need besides the manifest that it is applied to.

    `manifests` holds the versions that `Operation.needed_versions` lists. The other two matter to a new table, and to
    an overwrite or a rewrite that changes the file version; the wire message has no fields for them.
    """

    manifests: Mapping[int, Manifest] = field(default_factory=dict)
    data_storage_version: str | None = None
    stable_row_ids: bool = False


class Operation(ABC):
    """One change of a table, as data."""

    wire_name: ClassVar[str]
    """The operation's field in the wire message `Transaction`."""

    creates_table: ClassVar[bool] = False
    """Whether the operation can make version 1 of a new table."""

    @property
    def name(self) -> str:
        """The specification's name of the operation."""
        return type(self).__name__

    @property
    def needed_versions(self) -> tuple[int, ...]:
        """Versions whose manifests `apply` needs in its context."""
        return ()

    @classmethod
    @abstractmethod
    def from_pb(cls, message: Any, path: str) -> Self:
        """Read the wire message; `path` names the transaction in errors."""

    @abstractmethod
    def to_pb(self) -> Message:
        """Return the wire message."""

    @abstractmethod
    def footprint(self) -> Footprint:
        """Return what the operation touches."""

    @abstractmethod
    def apply(self, manifest: Manifest, context: ApplyContext) -> Manifest:
        """Return the content of the next version; if there is no table yet, `manifest` has version 0 and no fields.

        `next_manifest` sets version, flags, timestamp and so on. Raises `IncompatibleTransaction` if the manifest lacks
        what the operation changes, `InvalidInput` if the operation contradicts itself.
        """
