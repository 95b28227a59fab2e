"""`LanceScanner`: a scan under the reference's names."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import pyarrow as pa

from lance_ops.core.schema import Schema
from lance_ops.snapshot.scan import ROW_ADDRESS, ROW_ID, ScanRequest, plan_scan, scan
from lance_ops.snapshot.snapshot import Snapshot

__all__ = ["DEFAULT_BATCH_SIZE", "LanceScanner"]

DEFAULT_BATCH_SIZE = 8192


class LanceScanner:
    """A scan that can be run any number of times; make one with `LanceDataset.scanner`."""

    def __init__(self, snapshot: Snapshot, request: ScanRequest, batch_size: int | None = None) -> None:
        self._snapshot = snapshot
        self._request = request
        self._batch_size = batch_size or DEFAULT_BATCH_SIZE

    @property
    def dataset_schema(self) -> pa.Schema:
        """The table's whole schema."""
        return self._snapshot.schema.to_arrow()

    @property
    def projected_schema(self) -> pa.Schema:
        """The schema of the answer."""
        return _with_row_columns(self._request.schema.to_arrow(), self._request)

    def to_table(self) -> pa.Table:
        """Return the whole answer."""
        tables = list(scan(self._snapshot, self._request))
        return _typed(pa.concat_tables([self._empty(), *tables]), self.projected_schema)

    def to_batches(self) -> Iterator[pa.RecordBatch]:
        """Yield the answer in batches of at most `batch_size` rows, holding only a few blocks at a time."""
        for table in scan(self._snapshot, self._request):
            yield from _typed(table, self.projected_schema).to_batches(max_chunksize=self._batch_size)

    def to_reader(self) -> pa.RecordBatchReader:
        """Return the batches as a reader."""
        return pa.RecordBatchReader.from_batches(self.projected_schema, self.to_batches())

    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object:
        return self.to_reader().__arrow_c_stream__(requested_schema)

    def count_rows(self) -> int:
        """Return how many rows the answer has, reading only the columns of the filter."""
        request = self._request
        unfiltered = request.predicate is None and not request.include_deleted_rows
        if unfiltered and request.fragment_ids is None:
            left = max(self._snapshot.num_rows - request.offset, 0)
            return left if request.limit is None else min(left, request.limit)
        counted = replace(request, schema=Schema(()), with_row_id=False, with_row_address=True)
        return sum(table.num_rows for table in scan(self._snapshot, counted))

    def explain_plan(self, verbose: bool = False) -> str:
        """Describe how the answer will be found, one node a line."""
        plan = plan_scan(self._snapshot, self._request)
        return plan.explain()

    def _empty(self) -> pa.Table:
        return _with_row_columns(self._request.schema.to_arrow_storage(), self._request).empty_table()


def _with_row_columns(schema: pa.Schema, request: ScanRequest) -> pa.Schema:
    if request.with_row_id:
        schema = schema.append(pa.field(ROW_ID, pa.uint64()))
    if request.with_row_address:
        schema = schema.append(pa.field(ROW_ADDRESS, pa.uint64()))
    return schema


def _typed(table: pa.Table, schema: pa.Schema) -> pa.Table:
    """Give storage columns their extension types back."""
    if table.schema.equals(schema, check_metadata=True):
        return table
    columns = [
        pa.chunked_array([field.type.wrap_array(chunk) for chunk in column.chunks], field.type)
        if isinstance(field.type, pa.BaseExtensionType)
        else column
        for field, column in zip(schema, table.columns, strict=True)
    ]
    return pa.Table.from_arrays(columns, schema=schema)
