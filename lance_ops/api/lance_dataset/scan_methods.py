"""The methods of `LanceDataset` that scan the handle's version."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any
from uuid import UUID

import pyarrow as pa

from lance_ops import reading
from lance_ops.api import sql as queries
from lance_ops.api.fragments import LanceFragment
from lance_ops.api.lance_dataset.scanner_builder import ScannerBuilder
from lance_ops.api.scanning import LAZY, Columns, Filter, LanceScanner, OrderBy, ScanOptions, arguments_of, make_scanner
from lance_ops.api.version_handle import Handle
from lance_ops.core.errors import InvalidInput
from lance_ops.maintenance import health
from lance_ops.runners import Runner

__all__ = ["Scanning"]


class Scanning(Handle):
    """Scans, as one table, in batches, or as a data frame."""

    def scanner(
        self,
        columns: Columns = None,
        filter: Filter = None,
        limit: int | None = None,
        offset: int | None = None,
        nearest: Mapping[str, Any] | None = None,
        batch_size: int | None = None,
        batch_size_bytes: int | None = None,
        batch_readahead: int | None = None,
        fragment_readahead: int | None = None,
        scan_in_order: bool | None = None,
        fragments: Iterable[LanceFragment] | None = None,
        index_segments: Iterable[str | UUID] | None = None,
        full_text_query: str | Mapping[str, Any] | None = None,
        *,
        prefilter: bool | None = None,
        with_row_id: bool | None = None,
        with_row_address: bool | None = None,
        use_stats: bool | None = None,
        fast_search: bool | None = None,
        io_buffer_size: int | None = None,
        late_materialization: bool | Sequence[str] | None = None,
        blob_handling: str | None = None,
        use_scalar_index: bool | None = None,
        include_deleted_rows: bool | None = None,
        scan_stats_callback: Callable[[Any], None] | None = None,
        strict_batch_size: bool | None = None,
        order_by: OrderBy = None,
        disable_scoring_autoprojection: bool | None = None,
        row_addr_allowlist: bytes | None = None,
        row_addr_blocklist: bytes | None = None,
    ) -> LanceScanner:
        """Return a scan. Nothing is read before the caller asks for rows.

        Rows come in the order of the fragments (of `fragments`, if given), or in that of `order_by`. Options left as
        None take their value from the handle's `default_scan_options`. `make_scanner` says what the options do and
        raise.
        """
        return self._scanner(arguments_of(locals()))

    def to_table(
        self,
        columns: Columns = None,
        filter: Filter = None,
        limit: int | None = None,
        offset: int | None = None,
        nearest: Mapping[str, Any] | None = None,
        batch_size: int | None = None,
        batch_size_bytes: int | None = None,
        batch_readahead: int | None = None,
        fragment_readahead: int | None = None,
        scan_in_order: bool | None = None,
        *,
        prefilter: bool | None = None,
        with_row_id: bool | None = None,
        with_row_address: bool | None = None,
        use_stats: bool | None = None,
        fast_search: bool | None = None,
        full_text_query: str | Mapping[str, Any] | None = None,
        io_buffer_size: int | None = None,
        late_materialization: bool | Sequence[str] | None = None,
        blob_handling: str | None = None,
        use_scalar_index: bool | None = None,
        include_deleted_rows: bool | None = None,
        order_by: OrderBy = None,
        disable_scoring_autoprojection: bool | None = None,
    ) -> pa.Table:
        """Return the live rows for which `filter` is true; see `scanner`."""
        return self._scanner(arguments_of(locals())).to_table()

    def to_batches(
        self,
        columns: Columns = None,
        filter: Filter = None,
        limit: int | None = None,
        offset: int | None = None,
        nearest: Mapping[str, Any] | None = None,
        batch_size: int | None = None,
        batch_size_bytes: int | None = None,
        batch_readahead: int | None = None,
        fragment_readahead: int | None = None,
        scan_in_order: bool | None = None,
        *,
        prefilter: bool | None = None,
        with_row_id: bool | None = None,
        with_row_address: bool | None = None,
        use_stats: bool | None = None,
        full_text_query: str | Mapping[str, Any] | None = None,
        io_buffer_size: int | None = None,
        late_materialization: bool | Sequence[str] | None = None,
        blob_handling: str | None = None,
        use_scalar_index: bool | None = None,
        strict_batch_size: bool | None = None,
        order_by: OrderBy = None,
        disable_scoring_autoprojection: bool | None = None,
        **kwargs: Any,
    ) -> Iterator[pa.RecordBatch]:
        """Yield the live rows for which `filter` is true, with only a few blocks in memory at a time; see `scanner`."""
        return self.scanner(**arguments_of(locals())).to_batches()

    def to_pandas(
        self,
        columns: Columns = None,
        filter: Filter = None,
        limit: int | None = None,
        offset: int | None = None,
        nearest: Mapping[str, Any] | None = None,
        batch_size: int | None = None,
        batch_readahead: int | None = None,
        fragment_readahead: int | None = None,
        scan_in_order: bool | None = None,
        *,
        prefilter: bool | None = None,
        with_row_id: bool | None = None,
        with_row_address: bool | None = None,
        use_stats: bool | None = None,
        fast_search: bool | None = None,
        full_text_query: str | Mapping[str, Any] | None = None,
        io_buffer_size: int | None = None,
        late_materialization: bool | Sequence[str] | None = None,
        blob_mode: str = LAZY,
        use_scalar_index: bool | None = None,
        include_deleted_rows: bool | None = None,
        order_by: OrderBy = None,
        disable_scoring_autoprojection: bool | None = None,
        **kwargs: Any,
    ) -> Any:
        """Return the live rows as a data frame; see `LanceScanner.to_pandas`."""
        arguments = arguments_of(locals(), apart_from=("blob_mode", "kwargs"))
        return self.scanner(**arguments).to_pandas(blob_mode=blob_mode, **kwargs)

    def head(self, num_rows: int, **kwargs: Any) -> pa.Table:
        """Return the first rows; the options are those of `scanner`."""
        return self.scanner(limit=num_rows, **kwargs).to_table()

    def slice(self, start: int, end: int, columns: Columns = None) -> pa.Table:
        """Return the live rows from position `start` to before `end`."""
        if not 0 <= start <= end:
            raise InvalidInput(f"a slice needs 0 <= start <= end, not {start} and {end}")
        return self.scanner(columns, offset=start, limit=end - start).to_table()

    def count_rows(self, filter: Filter = None, *, runner: Runner | None = None, **kwargs: Any) -> int:
        """Return the number of live rows for which the filter is true; without a filter the manifest alone says it.

        The handle's `default_scan_options` do not apply. With a runner the rows are counted by its tasks; then no other
        option is taken.
        """
        if runner is not None:
            if kwargs:
                raise InvalidInput(f"count_rows by tasks takes a filter alone: leave out {', '.join(sorted(kwargs))}")
            predicate = None if filter is None else reading.bind_filter(self._snapshot, filter)
            return health.count_rows(self._snapshot, predicate, runner)
        return Scanning(self._snapshot).scanner(filter=filter, **kwargs).count_rows()

    def sql(self, sql: str) -> queries.SqlQueryBuilder:
        """Return a builder of a query over this version, which the query calls `dataset`. Needs the extra `sql`.

        `dataset.sql("SELECT id FROM dataset WHERE id > 30").build().to_batch_records()` runs it.
        """
        return queries.SqlQueryBuilder(self._snapshot, sql)

    def _scanner(self, arguments: dict[str, Any]) -> LanceScanner:
        """Return the scan for arguments of `scanner`, which are checked."""
        chosen = arguments.pop("fragments", None)
        fragment_ids = None if chosen is None else tuple(each.fragment_id for each in chosen)
        options = ScanOptions(**arguments, fragment_ids=fragment_ids)
        if self._default_scan_options:
            options = options.over(ScannerBuilder(self).apply_defaults(self._default_scan_options).options)
        return make_scanner(self._snapshot, options)

    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object:
        return self.scanner().__arrow_c_stream__(requested_schema)
