"""`LanceScanner`: a prepared scan that can be run, explained and analysed, under the reference's names."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import dataclass, replace
from time import perf_counter
from typing import Any

import pyarrow as pa

from lance_ops.api.argument_checks import check_public_methods
from lance_ops.api.scanning.data_frames import LAZY, check_blob_mode, data_frame
from lance_ops.api.scanning.projection import Projection
from lance_ops.core.schema import Schema
from lance_ops.reading import (
    ColumnOrdering,
    ScanRequest,
    describe_order,
    empty_answer,
    plan_scan,
    scan,
    scan_sorted,
    without_limit,
)
from lance_ops.snapshot import Snapshot

__all__ = ["DEFAULT_BATCH_SIZE", "BatchSize", "LanceScanner"]

DEFAULT_BATCH_SIZE = 8192


@dataclass(frozen=True)
class BatchSize:
    """The maximum rows of a batch, and about how many bytes. If `strict`, every batch except the last is full."""

    num_rows: int = DEFAULT_BATCH_SIZE
    num_bytes: int | None = None
    strict: bool = False

    def cut(self, tables: Iterator[pa.Table]) -> Iterator[pa.RecordBatch]:
        """Cut tables into batches. Only strict batches combine rows of several tables."""
        return self._exact(tables) if self.strict else self._at_most(tables)

    def _at_most(self, tables: Iterator[pa.Table]) -> Iterator[pa.RecordBatch]:
        for table in tables:
            num_rows = self.num_rows
            if self.num_bytes is not None:
                num_rows = min(num_rows, max(table.num_rows * self.num_bytes // max(table.nbytes, 1), 1))
            yield from table.to_batches(max_chunksize=num_rows)

    def _exact(self, tables: Iterator[pa.Table]) -> Iterator[pa.RecordBatch]:
        held: list[pa.Table] = []
        num_held = 0
        for table in tables:
            held.append(table)
            num_held += table.num_rows
            if num_held >= self.num_rows:
                whole = pa.concat_tables(held)
                end = num_held - num_held % self.num_rows
                for start in range(0, end, self.num_rows):
                    yield _one_batch(whole.slice(start, self.num_rows))
                held, num_held = [whole.slice(end)], num_held - end
        if num_held:
            yield _one_batch(pa.concat_tables(held))


@check_public_methods
class LanceScanner:
    """A scan that can be run any number of times; `LanceDataset.scanner` makes one."""

    def __init__(
        self,
        snapshot: Snapshot,
        request: ScanRequest,
        projection: Projection,
        batch_size: BatchSize = BatchSize(),
        order_by: tuple[ColumnOrdering, ...] = (),
    ) -> None:
        self._snapshot = snapshot
        self._request = request
        self._projection = projection
        self._batch_size = batch_size
        self._order_by = order_by

    @property
    def dataset_schema(self) -> pa.Schema:
        """The table's whole schema."""
        return self._snapshot.schema.to_arrow()

    @property
    def projected_schema(self) -> pa.Schema:
        """The schema of the result."""
        return self._projection.schema

    def to_table(self) -> pa.Table:
        """Return the whole result."""
        tables = list(self._rows(self._request)) or [empty_answer(self._request)]
        return self._projection.apply(pa.concat_tables(tables))

    def to_batches(self) -> Iterator[pa.RecordBatch]:
        """Yield the result in batches of at most `batch_size` rows, with only a few blocks in memory at a time."""
        parts = (part for table in self._rows(self._request) for part in self._projection.cut(table))
        return self._batch_size.cut(self._projection.apply(part) for part in parts)

    def to_reader(self) -> pa.RecordBatchReader:
        """Return the batches as a reader."""
        return pa.RecordBatchReader.from_batches(self.projected_schema, self.to_batches())

    def to_pandas(self, *, blob_mode: str = LAZY, **kwargs: Any) -> Any:
        """Return the whole result as a data frame; the other arguments are those of `pyarrow.Table.to_pandas`.

        Top-level blobs come as `BlobFile` for `blob_mode` `lazy`, as bytes for `bytes`, and as descriptions of their
        location for `descriptions`. Raises `InvalidInput` for any other mode.
        """
        check_blob_mode(blob_mode)
        addressed = replace(self._request, with_row_address=True)
        tables = list(self._rows(addressed)) or [empty_answer(addressed)]
        return data_frame(pa.concat_tables(tables), self._projection, blob_mode, **kwargs)

    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object:
        return self.to_reader().__arrow_c_stream__(requested_schema)

    def head(self, num_rows: int) -> pa.Table:
        """Return the first rows of the result."""
        limit = num_rows if self._request.limit is None else min(num_rows, self._request.limit)
        request = replace(self._request, limit=limit)
        return LanceScanner(self._snapshot, request, self._projection, self._batch_size, self._order_by).to_table()

    def count_rows(self) -> int:
        """Return the number of rows in the result; only the filter's columns are read."""
        request = self._request
        if request.predicate is None and request.rows is None and not request.include_deleted_rows:
            left = max(self._num_live_rows(request.fragment_ids) - request.offset, 0)
            return left if request.limit is None else min(left, request.limit)
        counted = replace(request, schema=Schema(()), with_row_id=False, version_columns=())
        return sum(table.num_rows for table in scan(self._snapshot, counted))

    def explain_plan(self, verbose: bool = False) -> str:
        """Describe the plan of the scan, one node in each line."""
        if not self._order_by:
            return plan_scan(self._snapshot, self._request).explain()
        plan = plan_scan(self._snapshot, without_limit(self._request)).explain()
        indented = "\n".join(f"  {line}" for line in plan.splitlines())
        return f"{describe_order(self._order_by, self._request)}\n{indented}"

    def analyze_plan(self, count_rows: bool = False) -> str:
        """Run the scan (with `count_rows` only count its rows), and return the plan followed by measured figures."""
        started = perf_counter()
        num_rows = self.count_rows() if count_rows else sum(batch.num_rows for batch in self.to_batches())
        elapsed_ms = 1000 * (perf_counter() - started)
        return f"AnalyzeExec: elapsed={elapsed_ms:.3f}ms, metrics=[output_rows={num_rows}]\n{self.explain_plan()}"

    def _rows(self, request: ScanRequest) -> Iterator[pa.Table]:
        if self._order_by:
            return scan_sorted(self._snapshot, request, self._order_by)
        return scan(self._snapshot, request)

    def _num_live_rows(self, fragment_ids: Collection[int] | None) -> int:
        if fragment_ids is None:
            return self._snapshot.num_rows
        wanted = set(fragment_ids)
        return sum(self._snapshot.num_live_rows(f) for f in self._snapshot.fragments if f.id in wanted)


def _one_batch(table: pa.Table) -> pa.RecordBatch:
    if table.num_columns == 0:
        return table.to_batches()[0]
    columns = [column.combine_chunks() for column in table.columns]
    return pa.RecordBatch.from_arrays(columns, schema=table.schema)
