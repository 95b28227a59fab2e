"""The base class of all parts of `LanceDataset`: a handle on one version, which moves to versions that it commits."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Self

from lance_ops.api.argument_checks import check_public_methods
from lance_ops.maintenance import cleanup
from lance_ops.snapshot import Snapshot
from lance_ops.store import IOStats

__all__ = ["Handle"]


class Handle:
    """A handle on one version of a dataset.

    `default_scan_options` apply to its scans unless a scan sets them; their keys are `ScannerBuilder`'s method names.
    """

    def __init__(self, snapshot: Snapshot, default_scan_options: Mapping[str, Any] | None = None) -> None:
        super().__init__()
        self._snapshot = snapshot
        self._default_scan_options = default_scan_options

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        check_public_methods(cls)

    @classmethod
    def of(cls, snapshot: Snapshot, default_scan_options: Mapping[str, Any] | None = None) -> Self:
        """Return a handle on an opened version."""
        handle = cls.__new__(cls)
        Handle.__init__(handle, snapshot, default_scan_options)
        return handle

    @property
    def snapshot(self) -> Snapshot:
        """The opened version of this handle, for the verbs of `lance_ops.maintenance`."""
        return self._snapshot

    @property
    def uri(self) -> str:
        """The dataset's root."""
        return self._snapshot.uri

    def io_stats_snapshot(self) -> IOStats:
        """Return what this handle has read and written since the last `io_stats_incremental`.

        Handles made from this one, such as those of `checkout_version`, count here too.
        """
        return self._snapshot.store.counters.stats()

    def io_stats_incremental(self) -> IOStats:
        """Return what was read and written since the last call, and begin to count anew."""
        return self._snapshot.store.counters.take()

    @property
    def has_stable_row_ids(self) -> bool:
        """Whether rows keep their ids when they move."""
        return self._snapshot.manifest.uses_stable_row_ids

    def _move(self, snapshot: Snapshot) -> None:
        self._snapshot = snapshot

    def _committed(self, snapshot: Snapshot) -> None:
        """Move to a version that this handle committed, and run automatic clean-up if the table's configuration asks
        for it.

        The handle moves first: the version exists, also if the caller interrupts the clean-up.
        """
        before = self._snapshot.version
        self._move(snapshot)
        if snapshot.has_auto_cleanup:
            cleanup.clean_up_if_due(before, snapshot)
