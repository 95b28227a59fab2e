"""A dataset as DataFusion reads it: one partition, so that a query makes one scan with one search of an index."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pyarrow as pa

from lance_ops.api.arrow_dataset import ArrowDataset
from lance_ops.api.scanning import Columns, Filter, LanceScanner, ScanOptions, make_scanner
from lance_ops.core.errors import LanceOpsError
from lance_ops.snapshot import Snapshot, check_rows_are_stored

__all__ = ["QueriedTable"]


class QueriedTable(ArrowDataset):
    """A version of a dataset with the columns that the options of a scan give it.

    Raises what a scan with these options raises, and `ReadTooLarge` as `check_rows_are_stored` does, because a query
    may read all rows before its first answer.
    """

    def __init__(self, snapshot: Snapshot, options: ScanOptions) -> None:
        super().__init__()
        check_rows_are_stored(snapshot, sum(each.physical_rows for each in snapshot.fragments), snapshot.fragments)
        self._snapshot = snapshot
        self._options = options
        self._schema = make_scanner(snapshot, options).projected_schema
        self._scan_error: LanceOpsError | None = None

    @property
    def uri(self) -> str:
        """The dataset's root."""
        return self._snapshot.uri

    @property
    def schema(self) -> pa.Schema:
        """The table's columns, row columns at the end."""
        return self._schema

    def get_fragments(self, filter: Any = None) -> list[QueriedTable]:
        """Return the partitions: the table itself."""
        return [self]

    def scanner(
        self,
        schema: pa.Schema | None = None,
        *,
        columns: Columns = None,
        filter: Filter = None,
        batch_size: int | None = None,
    ) -> _WatchedScan:
        """Return the scan that a query needs. `schema` is ignored: DataFusion passes the table's own."""
        options = replace(self._options, columns=columns, filter=filter, with_row_id=None, with_row_address=None)
        if options.batch_size is None:
            options = replace(options, batch_size=batch_size)
        try:
            return _WatchedScan(make_scanner(self._snapshot, options), self)
        except LanceOpsError as error:
            self.keep_scan_error(error)
            raise

    def keep_scan_error(self, error: LanceOpsError) -> None:
        """Keep the error of a scan for `raise_scan_error`, because DataFusion passes on only its text."""
        self._scan_error = error

    def raise_scan_error(self) -> None:
        """Raise the error that `keep_scan_error` was given, if any."""
        if self._scan_error is not None:
            raise self._scan_error


class _WatchedScan:
    """The part of a scanner that DataFusion calls; errors are kept for the caller."""

    def __init__(self, scanner: LanceScanner, table: QueriedTable) -> None:
        self._scanner = scanner
        self._table = table

    @property
    def projected_schema(self) -> pa.Schema:
        return self._scanner.projected_schema

    def to_batches(self) -> Iterator[pa.RecordBatch]:
        try:
            yield from self._scanner.to_batches()
        except LanceOpsError as error:
            self._table.keep_scan_error(error)
            raise
