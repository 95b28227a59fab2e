"""`SqlQueryBuilder` and `SqlQuery`: a query over one version of a dataset.

DataFusion executes the query, as in the reference, so that both understand the same SQL. It asks the dataset for the
columns that the query names and pushes filters down, which may use indices.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import field, replace
from typing import TYPE_CHECKING, Any, Literal, Self

import pyarrow as pa

from lance_ops.api.scanning import ScanOptions
from lance_ops.api.sql.queried_table import QueriedTable
from lance_ops.core.errors import InvalidInput
from lance_ops.core.optional_packages import import_optional
from lance_ops.core.records import dataclass
from lance_ops.snapshot import Snapshot

if TYPE_CHECKING:
    from datafusion import DataFrame

__all__ = ["SqlQuery", "SqlQueryBuilder"]

BlobHandling = Literal["all_binary", "blobs_descriptions", "all_descriptions"]


@dataclass(frozen=True)
class _Query:
    snapshot: Snapshot
    text: str
    table_name: str = "dataset"
    scan: ScanOptions = field(default_factory=ScanOptions)


class SqlQueryBuilder:
    """Collects the options of a query; `LanceDataset.sql` makes one."""

    def __init__(self, snapshot: Snapshot, sql: str) -> None:
        self._query = _Query(snapshot, sql)

    def table_name(self, table_name: str) -> Self:
        """Set the name by which the query refers to the dataset; it is `dataset` by default."""
        self._query = replace(self._query, table_name=table_name)
        return self

    def with_row_id(self, with_row_id: bool = True) -> Self:
        """Give the table a column `_rowid` of row ids."""
        return self._with(with_row_id=with_row_id)

    def with_row_addr(self, with_row_addr: bool = True) -> Self:
        """Give the table a column `_rowaddr` of row addresses."""
        return self._with(with_row_address=with_row_addr)

    def blob_handling(self, blob_handling: BlobHandling) -> Self:
        """Choose how blobs are returned: as bytes, or as descriptions of their location."""
        return self._with(blob_handling=blob_handling)

    def batch_size(self, batch_size: int) -> Self:
        """Set the maximum number of rows in a batch."""
        return self._with(batch_size=batch_size)

    def batch_size_bytes(self, batch_size_bytes: int) -> Self:
        """Set the approximate maximum of bytes in a batch that is read from the dataset."""
        return self._with(batch_size_bytes=batch_size_bytes)

    def build(self) -> SqlQuery:
        """Return the query. Nothing is parsed or read before it is run."""
        return SqlQuery(self._query)

    def _with(self, **changes: Any) -> Self:
        self._query = replace(self._query, scan=replace(self._query.scan, **changes))
        return self


class SqlQuery:
    """A query that can be run any number of times; `SqlQueryBuilder.build` makes one.

    Running it raises `InvalidInput` for a query that DataFusion refuses or cannot compute, `MissingPackage` without
    DataFusion, and whatever a scan raises. Statements that would change data or settings are refused.
    """

    def __init__(self, query: _Query) -> None:
        self._query = query

    def to_batch_records(self) -> list[pa.RecordBatch]:
        """Return the whole result."""
        return [batch for batch in self._run()[1] if batch.num_rows]

    def to_stream_reader(self) -> pa.RecordBatchReader:
        """Return the result as a stream, which is computed while it is read."""
        return pa.RecordBatchReader.from_batches(*self._run())

    def explain_plan(self) -> str:
        """Return DataFusion's logical and physical plan of the query."""
        query = replace(self._query, text=f"EXPLAIN {self._query.text}")
        rows = [row for batch in SqlQuery(query).to_batch_records() for row in batch.to_pylist()]
        return "\n".join(f"{row['plan_type']}\n{row['plan']}" for row in rows)

    def _run(self) -> tuple[pa.Schema, Iterator[pa.RecordBatch]]:
        table = QueriedTable(self._query.snapshot, self._query.scan)
        frame = self._frame(table)
        return frame.schema(), _batches(frame, table)

    def _frame(self, table: QueriedTable) -> DataFrame:
        """Plan the query."""
        query = self._query
        datafusion = import_optional("datafusion", "LanceDataset.sql", "sql")
        config = datafusion.SessionConfig()
        if query.scan.batch_size is not None:
            config = config.with_batch_size(query.scan.batch_size)
        only_reads = datafusion.SQLOptions().with_allow_ddl(False).with_allow_dml(False).with_allow_statements(False)
        try:
            context = datafusion.SessionContext(config)
            context.register_dataset(_as_identifier(query.table_name), table)
            frame: DataFrame = context.sql_with_options(query.text, only_reads)
        except Exception as error:  # DataFusion raises bare exceptions
            table.raise_scan_error()
            raise InvalidInput(f"{query.snapshot.uri}: the query {query.text!r} cannot be planned: {error}") from error
        return frame


def _batches(frame: DataFrame, table: QueriedTable) -> Iterator[pa.RecordBatch]:
    try:
        for batch in frame.execute_stream():
            yield batch.to_pyarrow()
    except Exception as error:  # as above
        table.raise_scan_error()
        raise InvalidInput(f"{table.uri}: the query cannot be computed: {error}") from error


def _as_identifier(name: str) -> str:
    """Return the name as DataFusion takes it: SQL ignores the case of a plain name, any other name is quoted."""
    if not name:
        raise InvalidInput("the name of a queried table is empty")
    if name.isidentifier():
        return name
    return '"' + name.replace('"', '""') + '"'
