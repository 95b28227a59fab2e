"""The URI and version that a plan's task carries, to open its snapshot where it runs."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field

from lance_ops.core.records import dataclass
from lance_ops.snapshot.snapshot import Snapshot

__all__ = ["SnapshotReference"]


@dataclass(frozen=True)
class SnapshotReference:
    """A version to open where the task runs. The open snapshot serves tasks of this process and is not pickled.

    A task that held the snapshot itself would open it during unpickling, where no code handles the errors.
    """

    uri: str
    version: int
    storage_options: Mapping[str, str] = field(default_factory=dict, repr=False)
    opened: Snapshot | None = field(default=None, repr=False, compare=False)

    @classmethod
    def of(cls, snapshot: Snapshot) -> SnapshotReference:
        """Return the reference of an open snapshot."""
        return cls(snapshot.uri, snapshot.version, dict(snapshot.storage_options), snapshot)

    def open(self) -> Snapshot:
        """Return the snapshot, whose reads verify checksums; raise as `Snapshot.open` does.

        Tasks change the table by what they read, so a wrong byte would spread.
        """
        opened = self.opened or Snapshot.open(self.uri, self.version, self.storage_options)
        return opened.verifying()

    def __reduce__(self) -> tuple[object, tuple[str, int, Mapping[str, str]]]:
        return SnapshotReference, (self.uri, self.version, self.storage_options)
