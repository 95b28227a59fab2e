"""`LanceScanner`: a scan under the reference's names."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import replace

import pyarrow as pa

from lance_ops.api.projection import Projection
from lance_ops.core.schema import Schema
from lance_ops.snapshot.scan import ScanRequest, empty_answer, plan_scan, scan
from lance_ops.snapshot.snapshot import Snapshot

__all__ = ["DEFAULT_BATCH_SIZE", "LanceScanner"]

DEFAULT_BATCH_SIZE = 8192


class LanceScanner:
    """A scan that can be run any number of times; make one with `LanceDataset.scanner`."""

    def __init__(
        self, snapshot: Snapshot, request: ScanRequest, projection: Projection, batch_size: int | None = None
    ) -> None:
        self._snapshot = snapshot
        self._request = request
        self._projection = projection
        self._batch_size = batch_size or DEFAULT_BATCH_SIZE

    @property
    def dataset_schema(self) -> pa.Schema:
        """The table's whole schema."""
        return self._snapshot.schema.to_arrow()

    @property
    def projected_schema(self) -> pa.Schema:
        """The schema of the answer."""
        return self._projection.schema

    def to_table(self) -> pa.Table:
        """Return the whole answer."""
        tables = list(scan(self._snapshot, self._request)) or [empty_answer(self._request)]
        return self._projection.apply(pa.concat_tables(tables))

    def to_batches(self) -> Iterator[pa.RecordBatch]:
        """Yield the answer in batches of at most `batch_size` rows, holding only a few blocks at a time."""
        for table in scan(self._snapshot, self._request):
            for part in self._projection.cut(table):
                yield from self._projection.apply(part).to_batches(max_chunksize=self._batch_size)

    def to_reader(self) -> pa.RecordBatchReader:
        """Return the batches as a reader."""
        return pa.RecordBatchReader.from_batches(self.projected_schema, self.to_batches())

    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object:
        return self.to_reader().__arrow_c_stream__(requested_schema)

    def count_rows(self) -> int:
        """Return how many rows the answer has, reading only the columns of the filter."""
        request = self._request
        if request.predicate is None and request.rows is None and not request.include_deleted_rows:
            left = max(self._num_live_rows(request.fragment_ids) - request.offset, 0)
            return left if request.limit is None else min(left, request.limit)
        counted = replace(request, schema=Schema(()), with_row_id=False, version_columns=())
        return sum(table.num_rows for table in scan(self._snapshot, counted))

    def explain_plan(self, verbose: bool = False) -> str:
        """Describe how the answer will be found, one node a line."""
        return plan_scan(self._snapshot, self._request).explain()

    def _num_live_rows(self, fragment_ids: Collection[int] | None) -> int:
        if fragment_ids is None:
            return self._snapshot.num_rows
        wanted = set(fragment_ids)
        return sum(self._snapshot.num_live_rows(f) for f in self._snapshot.fragments if f.id in wanted)
