"""The source of a merge that tasks read: rows of one version of a Lance dataset, which may be the target's own."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace

import pyarrow as pa

from lance_ops.blobs import scan_to_rewrite, schema_to_write, take_to_rewrite
from lance_ops.changing.merge_insert.by_tasks.merge_parts import Part
from lance_ops.core.arrow import safe_to_take
from lance_ops.core.ndarrays import Uint64Array
from lance_ops.core.predicate import Predicate
from lance_ops.core.records import dataclass
from lance_ops.core.schema import Schema
from lance_ops.indices import RowAddressSet
from lance_ops.reading import ROW_ADDRESS, ScannedRows, ScanRequest, in_task
from lance_ops.snapshot import Snapshot, SnapshotReference
from lance_ops.writing import conform_present_columns

__all__ = ["SourceRows"]


@dataclass(frozen=True)
class SourceRows:
    """Rows of a version that match `predicate`, with these columns; None means all.

    Every method gives rows in the types and the column order of a table of `wanted`, the target's schema, and raises
    `SchemaMismatch` for a value that does not fit.
    """

    version: SnapshotReference
    columns: tuple[str, ...] | None = None
    predicate: Predicate | None = None

    @classmethod
    def of(
        cls, snapshot: Snapshot, columns: Iterable[str] | None = None, predicate: Predicate | None = None
    ) -> SourceRows:
        """Return rows of an open version."""
        return cls(SnapshotReference.of(snapshot), None if columns is None else tuple(columns), predicate)

    @property
    def schema(self) -> Schema:
        """The columns of the source, as its own dataset stores them."""
        stored = self.version.open().schema
        return stored if self.columns is None else stored.project(self.columns)

    def no_rows(self) -> pa.Table:
        """Return a table with the source's columns and without a row."""
        schema = schema_to_write(self.schema)
        return pa.Table.from_arrays([pa.nulls(0, field.type) for field in schema], schema=schema)

    def scan(
        self, names: Iterable[str], wanted: pa.Schema, part: Part | None = None, rows: RowAddressSet | None = None
    ) -> Iterator[ScannedRows]:
        """Yield rows with these columns, in order; with `part` or `rows`, only those that are among them."""
        kept = frozenset(names)
        schema = Schema(tuple(field for field in self.schema.fields if field.name in kept))
        request = ScanRequest(schema, self.predicate, rows=rows, use_scalar_index=False)
        request = request if part is None else part.request(request)
        snapshot = self.version.open()
        for found in scan_to_rewrite(snapshot, in_task(snapshot, request)):
            yield replace(found, table=_fitted(found.table, wanted))

    def take(self, names: Iterable[str], wanted: pa.Schema, addresses: Uint64Array) -> pa.Table:
        """Return the rows at these addresses, in their order, with these columns."""
        kept = frozenset(names)
        schema = Schema(tuple(field for field in self.schema.fields if field.name in kept))
        found = take_to_rewrite(self.version.open(), addresses, ScanRequest(schema, with_row_address=True))
        return _fitted(found.drop_columns([ROW_ADDRESS]), wanted)


def _fitted(table: pa.Table, wanted: pa.Schema) -> pa.Table:
    return safe_to_take(conform_present_columns(table, wanted))
