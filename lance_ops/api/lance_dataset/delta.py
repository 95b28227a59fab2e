"""`DatasetDelta`: the rows inserted, updated and deleted between two versions, under the reference's names."""

from __future__ import annotations

import pyarrow as pa

from lance_ops import indices, reading
from lance_ops import transactions as made
from lance_ops.api import transactions as public
from lance_ops.api.scanning import LanceScanner, project, scan_request
from lance_ops.core.cached_property import cached_property
from lance_ops.core.errors import VersionNotFound
from lance_ops.snapshot import Snapshot

__all__ = ["DatasetDelta"]


class DatasetDelta:
    """The differences between a version and a later one; make one with `LanceDataset.delta`.

    Inserted and updated rows have their values of the later version, followed by `_rowid` and the two version columns.
    Compactions between the two versions make no difference.
    """

    def __init__(self, snapshot: Snapshot, begin_version: int) -> None:
        self._snapshot = snapshot
        self._begin_version = begin_version

    def list_transactions(self) -> list[public.Transaction | None]:
        """Return the transactions after the earlier version, oldest first, with None for each that was not kept."""
        versions = range(self._begin_version + 1, self._snapshot.version + 1)
        store, committer = self._snapshot.store, self._snapshot.committer
        return [public.as_read(made.read_version(store, committer, version).transaction) for version in versions]

    def get_inserted_rows(self) -> pa.RecordBatchReader:
        """Return the rows that only the later version has."""
        return self._read(self._changes.inserted)

    def get_updated_rows(self) -> pa.RecordBatchReader:
        """Return the rows that both versions have and that were changed in between."""
        return self._read(self._changes.updated)

    def get_deleted_row_ids(self) -> pa.RecordBatchReader:
        """Return the ascending row ids of the rows that only the earlier version has.

        Raises `VersionNotFound` if clean-up has removed the earlier version, since only its manifest lists the rows.
        """
        row_ids = self._changes.deleted
        if row_ids is None:
            raise VersionNotFound(
                f"{self._snapshot.uri} has no version {self._begin_version} any more: which of its rows were deleted "
                "since cannot be told"
            )
        table = pa.Table.from_arrays([pa.array(row_ids)], schema=pa.schema([reading.row_field(reading.ROW_ID)]))
        return table.to_reader()

    @cached_property
    def _changes(self) -> reading.Changes:
        return reading.changes_between(self._begin_version, self._snapshot)

    def _read(self, rows: indices.RowAddressSet) -> pa.RecordBatchReader:
        projection = project(self._snapshot, None, with_row_id=True, with_row_address=False, with_row_versions=True)
        request = scan_request(self._snapshot, projection, rows=rows)
        return LanceScanner(self._snapshot, request, projection).to_reader()
