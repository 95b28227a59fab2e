"""The contract of an operation: how it stands on the wire, what it touches, and what it makes of a manifest."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar, Self

from google.protobuf.message import Message

from lance_ops.table import Manifest
from lance_ops.transactions.footprint import Footprint

__all__ = ["ApplyContext", "Operation"]


@dataclass(frozen=True)
class ApplyContext:
    """What an operation may need besides the manifest it is applied to.

    `manifests` has the versions that `Operation.needed_versions` asked for. The other two are for a new table, and for
    an overwrite that changes the file version; the wire has no place for them.
    """

    manifests: Mapping[int, Manifest] = field(default_factory=dict)
    data_storage_version: str | None = None
    stable_row_ids: bool = False


class Operation(ABC):
    """One change of a table, as data."""

    wire_name: ClassVar[str]
    """The operation's field in the wire's `Transaction`."""

    creates_table: ClassVar[bool] = False
    """Whether it can make version 1, of no table before."""

    @property
    def name(self) -> str:
        """The specification's word for this operation."""
        return type(self).__name__

    @property
    def needed_versions(self) -> tuple[int, ...]:
        """Versions whose manifests `apply` wants to find in its context."""
        return ()

    @classmethod
    @abstractmethod
    def from_pb(cls, message: Any, path: str) -> Self:
        """Read the wire's message; `path` names the transaction in errors."""

    @abstractmethod
    def to_pb(self) -> Message:
        """Return the wire's message."""

    @abstractmethod
    def footprint(self) -> Footprint:
        """Say what the operation touches."""

    @abstractmethod
    def apply(self, manifest: Manifest, context: ApplyContext) -> Manifest:
        """Return the content of the next version; `manifest` has version 0 and no fields where there is no table yet.

        Version, flags, timestamp and the like are set by `next_manifest`. Raises `IncompatibleTransaction` when the
        manifest lacks what the operation is about, `InvalidInput` when the operation contradicts itself.
        """
