"""`LanceScanner`: a prepared scan that can be run, explained and analysed, under the reference's names."""

from __future__ import annotations

import os
from collections.abc import Callable, Collection, Iterator
from dataclasses import replace
from itertools import groupby
from time import perf_counter
from typing import Any, TypeVar

import pyarrow as pa
import pyarrow.types as pt

from lance_ops import reading
from lance_ops.api.argument_checks import check_public_methods
from lance_ops.api.scanning.data_frames import LAZY, check_blob_mode, data_frame
from lance_ops.api.scanning.projection import Projection
from lance_ops.api.scanning.scan_statistics import ScanStatistics, annotate_plan, report_statistics
from lance_ops.api.schemas import shown_schema
from lance_ops.core.errors import InvalidInput, LanceOpsError
from lance_ops.core.predicate import Predicate
from lance_ops.core.records import dataclass
from lance_ops.core.schema import ColumnOrdering, Schema
from lance_ops.reading import ScanTrace, traced
from lance_ops.snapshot import Snapshot, limit_held_bytes

__all__ = ["BatchSize", "LanceScanner", "default_batch_size"]

T = TypeVar("T")

_DEFAULT_BATCH_SIZE = 8192
_BATCH_SIZE_VARIABLE = "LANCE_DEFAULT_BATCH_SIZE"

_MOST_BYTES = (1 << 31) - 1
"""The most bytes of a batch of several tables: those that an array with 32-bit offsets can hold."""


def default_batch_size() -> int:
    """Return the maximum rows of a batch if the caller sets none: the environment's, or 8192.

    Raises `InvalidInput` if the variable is not a positive number.
    """
    text = os.environ.get(_BATCH_SIZE_VARIABLE) or str(_DEFAULT_BATCH_SIZE)
    if not (text.isdecimal() and int(text)):
        raise InvalidInput(f"the environment variable {_BATCH_SIZE_VARIABLE} must be a positive number, not {text!r}")
    return int(text)


@dataclass(frozen=True)
class BatchSize:
    """The maximum rows of a batch, and about how many bytes.

    A batch holds rows of one fragment, as in the reference, and only the fragment's last batch may be shorter. If
    `across_fragments`, only the last batch of all may be shorter: if the caller asks for strict batches, and if there
    is a filter, because few matches in each of many fragments would make many small batches. Tables are not joined
    beyond 2 GiB, because an array of text can hold no more; such a batch may be shorter, too.
    """

    num_rows: int
    num_bytes: int | None = None
    across_fragments: bool = False

    def cut(self, parts: Iterator[tuple[int, pa.Table]]) -> Iterator[pa.RecordBatch]:
        """Cut tables, each with the id of its fragment, into batches."""
        bytes_of = _ByteCounter()
        for _, group in groupby(parts, lambda part: None if self.across_fragments else part[0]):
            tables = (table for _, table in group)
            if self.num_bytes is None:
                yield from self._full(tables, bytes_of)
            else:
                yield from self._of_bytes(tables, self.num_bytes)

    def _of_bytes(self, tables: Iterator[pa.Table], num_bytes: int) -> Iterator[pa.RecordBatch]:
        for table in tables:
            num_rows = max(table.num_rows * num_bytes // max(table.nbytes, 1), 1)
            yield from table.to_batches(max_chunksize=min(num_rows, self.num_rows))

    def _full(self, tables: Iterator[pa.Table], bytes_of: _ByteCounter) -> Iterator[pa.RecordBatch]:
        held: list[pa.Table] = []
        num_held, held_bytes = 0, 0
        try:
            for table in tables:
                table_bytes = bytes_of(table)
                if num_held and held_bytes + table_bytes > _MOST_BYTES:
                    yield _one_batch(pa.concat_tables(held))
                    held, num_held, held_bytes = [], 0, 0
                held.append(table)
                num_held += table.num_rows
                held_bytes += table_bytes
                if num_held >= self.num_rows:
                    whole = pa.concat_tables(held)
                    end = num_held - num_held % self.num_rows
                    for start in range(0, end, self.num_rows):
                        yield _one_batch(whole.slice(start, self.num_rows))
                    held, num_held = [whole.slice(end)], num_held - end
                    held_bytes = bytes_of(held[0])
        except LanceOpsError:
            if num_held:  # the rows that were read before the damage come before the error
                yield _one_batch(pa.concat_tables(held))
            raise
        if num_held:
            yield _one_batch(pa.concat_tables(held))


class _ByteCounter:
    """Counts the bytes of a scan's tables. It counts one more bit for each value, which says whether the value is null.

    The type of a primitive column tells its bytes, because asking each array of a wide table takes long.
    """

    def __init__(self) -> None:
        self._primitive_bits: int | None = None
        self._others: list[int] = []

    def __call__(self, table: pa.Table) -> int:
        """Return the bytes of a table; all tables have the columns of the first one."""
        if self._primitive_bits is None:
            types = table.schema.types
            self._primitive_bits = sum(int(each.bit_width) + 1 for each in types if pt.is_primitive(each))
            self._others = [at for at, each in enumerate(types) if not pt.is_primitive(each)]
        others = int(table.select(self._others).nbytes) if self._others else 0
        return -(-int(table.num_rows) * self._primitive_bits // 8) + others


@check_public_methods
class LanceScanner:
    """A scan that can be run any number of times; `LanceDataset.scanner` makes one."""

    def __init__(
        self,
        snapshot: Snapshot,
        request: reading.ScanRequest,
        projection: Projection,
        batch_size: BatchSize | None = None,
        order_by: tuple[ColumnOrdering, ...] = (),
        stats_callback: Callable[[ScanStatistics], object] | None = None,
    ) -> None:
        self._snapshot = snapshot
        self._request = request
        self._projection = projection
        self._batch_size = batch_size or BatchSize(default_batch_size())
        self._order_by = order_by
        self._stats_callback = stats_callback

    @property
    def dataset_schema(self) -> pa.Schema:
        """The table's whole schema."""
        return shown_schema(self._snapshot.schema)

    @property
    def projected_schema(self) -> pa.Schema:
        """The schema of the result."""
        return self._projection.schema

    def to_table(self) -> pa.Table:
        """Return the whole result.

        Raises `ReadTooLarge` if it is too large for the files that it was read from: see `snapshot/expansion.py`.
        """
        tables = list(self._watched(self._held(self._request))) or [reading.empty_answer(self._request)]
        return self._projection.apply(pa.concat_tables(tables))

    def to_batches(self) -> Iterator[pa.RecordBatch]:
        """Yield the result in batches of at most `batch_size` rows, with only a few blocks in memory at a time."""
        found = reading.scan_fragments(self._snapshot, self._request)
        if self._order_by:
            found = ((0, table) for table in self._rows(self._request))
        found = self._watched(found)
        if not self._projection.outputs:  # tables without columns cannot be cut
            batches = self._batch_size.cut(found)
            return (batch.select([]) for batch in batches)
        parts = ((fragment_id, part) for fragment_id, table in found for part in self._projection.cut(table))
        return self._batch_size.cut((fragment_id, self._projection.apply(part)) for fragment_id, part in parts)

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
        tables = list(self._watched(self._held(addressed))) or [reading.empty_answer(addressed)]
        return data_frame(pa.concat_tables(tables), self._projection, blob_mode, **kwargs)

    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object:
        return self.to_reader().__arrow_c_stream__(requested_schema)

    def head(self, num_rows: int) -> pa.Table:
        """Return the first rows of the result."""
        limit = num_rows if self._request.limit is None else min(num_rows, self._request.limit)
        request = replace(self._request, limit=limit)
        arguments = (self._projection, self._batch_size, self._order_by, self._stats_callback)
        return LanceScanner(self._snapshot, request, *arguments).to_table()

    def count_rows(self) -> int:
        """Return the number of rows in the result; only the filter's columns are read."""
        request = self._request
        if request.predicate is None and request.rows is None and not request.include_deleted_rows:
            left = max(self._num_live_rows(request.fragment_ids) - request.offset, 0)
            return left if request.limit is None else min(left, request.limit)
        return sum(table.num_rows for table in reading.scan_whole(self._snapshot, self._counted_request()))

    def explain_plan(self, verbose: bool = False) -> str:
        """Describe the plan of the scan, one node in each line."""
        if not self._order_by:
            return reading.plan_scan(self._snapshot, self._request).explain()
        plan = reading.plan_scan(self._snapshot, reading.without_limit(self._request)).explain()
        indented = "\n".join(f"  {line}" for line in plan.splitlines())
        return f"{reading.describe_order(self._order_by, self._request)}\n{indented}"

    def analyze_plan(self, count_rows: bool = False) -> str:
        """Run the scan (with `count_rows` only count its rows), and return the plan with the figures of each step.

        A step's figures are its rows, bytes, I/O operations and time. The time of a step contains that of the steps
        below it, except for the search of an index, which comes first.
        """
        trace, started = ScanTrace(), perf_counter()
        tables = reading.scan(self._snapshot, self._counted_request()) if count_rows else self._rows(self._request)
        num_rows = sum(table.num_rows for table in traced(tables, trace))
        elapsed = f"elapsed={1000 * (perf_counter() - started):.3f}ms"
        plan = self.explain_plan().replace("SortExec:", f"SortExec: {elapsed},")
        return f"AnalyzeExec: {elapsed}, metrics=[output_rows={num_rows}]\n{annotate_plan(plan, trace)}"

    def _stored_rows(self) -> tuple[Snapshot, list[str], Predicate | None] | None:
        """Return the version, columns and filter of the result; None if it is more than stored columns of rows."""
        request = self._request
        plain = reading.ScanRequest(request.schema, request.predicate)
        is_plain = all(
            getattr(request, name) == getattr(plain, name)
            for name in ("limit", "offset", "row_columns", "include_deleted_rows", "fragment_ids", "rows", "row_ranges")
        )
        if not is_plain or self._order_by or request.indexed_only or not self._projection.returns_stored_columns:
            return None
        return self._snapshot, [output.field.name for output in self._projection.outputs], request.predicate

    def _watched(self, found: Iterator[T]) -> Iterator[T]:
        return found if self._stats_callback is None else report_statistics(found, self._stats_callback)

    def _counted_request(self) -> reading.ScanRequest:
        """Return a request for the same rows without their columns."""
        return replace(self._request, schema=Schema(()), with_row_id=False, version_columns=(), with_row_offset=False)

    def _rows(self, request: reading.ScanRequest) -> Iterator[pa.Table]:
        if self._order_by:
            return reading.scan_sorted(self._snapshot, request, self._order_by)
        return reading.scan(self._snapshot, request)

    def _held(self, request: reading.ScanRequest) -> Iterator[pa.Table]:
        """Yield the answer for a caller that holds all of it; raises `ReadTooLarge` as `limit_held_bytes` does."""
        ids = request.fragment_ids
        fragments = (each for each in self._snapshot.fragments if ids is None or each.id in ids)
        tables = self._rows(request) if self._order_by else reading.scan_whole(self._snapshot, request)
        return limit_held_bytes(self._snapshot, tables, fragments)

    def _num_live_rows(self, fragment_ids: Collection[int] | None) -> int:
        if fragment_ids is None:
            return self._snapshot.num_rows
        wanted = set(fragment_ids)
        return sum(self._snapshot.num_live_rows(f) for f in self._snapshot.fragments if f.id in wanted)


def _one_batch(table: pa.Table) -> pa.RecordBatch:
    columns = [column.chunk(0) if column.num_chunks == 1 else column.combine_chunks() for column in table.columns]
    return pa.RecordBatch.from_arrays(columns, schema=table.schema)
