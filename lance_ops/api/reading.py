"""The part of `LanceDataset` that reads rows."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from lance_ops.api.blob_file import DEFAULT_BLOB_BUFFER_SIZE, BlobFile
from lance_ops.api.fragment import LanceFragment
from lance_ops.api.handle import Handle
from lance_ops.api.projection import Columns, Projection, project
from lance_ops.api.requests import Filter, refuse, scan_request
from lance_ops.api.scanner import LanceScanner
from lance_ops.core.errors import InvalidInput
from lance_ops.snapshot.blobs import BlobPlace, BlobReader
from lance_ops.snapshot.row_columns import ROW_ADDRESS
from lance_ops.snapshot.scan import ScanRequest
from lance_ops.snapshot.take import take_addresses, take_positions, take_row_ids

__all__ = ["Reading", "Rows"]

Rows: TypeAlias = Sequence[int] | pa.Array | np.ndarray | None
"""Rows by number."""


class Reading(Handle):
    """Scans and random access, at the handle's version."""

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
        fragments: Sequence[LanceFragment] | None = None,
        *,
        with_row_id: bool | None = None,
        with_row_address: bool | None = None,
        blob_handling: str | None = None,
        use_scalar_index: bool | None = None,
        include_deleted_rows: bool | None = None,
        order_by: Sequence[Any] | None = None,
    ) -> LanceScanner:
        """Return a scan; nothing is read until it is asked for.

        Rows come in the order of the fragments (of `fragments`, if given) whatever `scan_in_order` says. Raises
        `InvalidInput`, `InvalidFilter`, and `UnsupportedFeature` for `nearest`, `order_by` and `batch_size_bytes`.
        """
        refuse(self.uri, nearest=nearest, order_by=order_by, batch_size_bytes=batch_size_bytes)
        projection = project(
            self._snapshot,
            columns,
            with_row_id=bool(with_row_id),
            with_row_address=bool(with_row_address),
            blob_handling=blob_handling,
        )
        request = scan_request(
            self._snapshot,
            projection,
            filter=filter,
            limit=limit,
            offset=offset,
            include_deleted_rows=include_deleted_rows,
            fragment_ids=None if fragments is None else tuple(fragment.fragment_id for fragment in fragments),
            use_scalar_index=use_scalar_index,
            fragment_readahead=fragment_readahead or batch_readahead,
        )
        return LanceScanner(self._snapshot, request, projection, batch_size)

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
        with_row_id: bool | None = None,
        with_row_address: bool | None = None,
        blob_handling: str | None = None,
        use_scalar_index: bool | None = None,
        include_deleted_rows: bool | None = None,
        order_by: Sequence[Any] | None = None,
    ) -> pa.Table:
        """Return the live rows for which `filter` is true; see `scanner`."""
        return self.scanner(
            columns,
            filter,
            limit,
            offset,
            nearest,
            batch_size,
            batch_size_bytes,
            batch_readahead,
            fragment_readahead,
            scan_in_order,
            with_row_id=with_row_id,
            with_row_address=with_row_address,
            blob_handling=blob_handling,
            use_scalar_index=use_scalar_index,
            include_deleted_rows=include_deleted_rows,
            order_by=order_by,
        ).to_table()

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
        with_row_id: bool | None = None,
        with_row_address: bool | None = None,
        blob_handling: str | None = None,
        use_scalar_index: bool | None = None,
        order_by: Sequence[Any] | None = None,
    ) -> Iterator[pa.RecordBatch]:
        """Yield the live rows for which `filter` is true, holding only a few blocks at a time; see `scanner`."""
        return self.scanner(
            columns,
            filter,
            limit,
            offset,
            nearest,
            batch_size,
            batch_size_bytes,
            batch_readahead,
            fragment_readahead,
            scan_in_order,
            with_row_id=with_row_id,
            with_row_address=with_row_address,
            blob_handling=blob_handling,
            use_scalar_index=use_scalar_index,
            order_by=order_by,
        ).to_batches()

    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object:
        return self.scanner().__arrow_c_stream__(requested_schema)

    def head(self, num_rows: int, columns: Columns = None, filter: Filter = None) -> pa.Table:
        """Return the first rows."""
        return self.to_table(columns, filter, limit=num_rows)

    def count_rows(self, filter: Filter = None) -> int:
        """Return the live rows for which the filter is true; all of them without one, from the manifest alone."""
        return self.scanner(filter=filter).count_rows()

    def take(self, indices: Sequence[int] | pa.Array | np.ndarray, columns: Columns = None) -> pa.Table:
        """Return rows by their position among the live rows, in the order asked for, repeats included."""
        projection, request = self._take_request(columns)
        return projection.apply(take_positions(self._snapshot, np.asarray(indices, dtype=np.int64), request))

    def take_blobs(
        self,
        blob_column: str,
        ids: Rows = None,
        addresses: Rows = None,
        indices: Rows = None,
        *,
        buffer_size: int = DEFAULT_BLOB_BUFFER_SIZE,
    ) -> list[BlobFile | None]:
        """Return blobs as files, None for a null, by exactly one of row ids, addresses and positions among live rows.

        Nothing of a blob is read before it is asked for. Raises `InvalidInput` for a column that holds no blobs.
        """
        _, _, places = self._find_blobs(blob_column, ids, addresses, indices)
        return [None if place is None else BlobFile(place, buffer_size) for place in places]

    def read_blobs(
        self, blob_column: str, ids: Rows = None, addresses: Rows = None, indices: Rows = None
    ) -> list[tuple[int, bytes | None]]:
        """Return the row address and the bytes of blobs; see `take_blobs`."""
        reader, owners, places = self._find_blobs(blob_column, ids, addresses, indices)
        return list(zip(owners.tolist(), reader.fetch(places), strict=True))

    def _find_blobs(
        self, blob_column: str, ids: Rows, addresses: Rows, indices: Rows
    ) -> tuple[BlobReader, npt.NDArray[np.uint64], list[BlobPlace | None]]:
        if sum(given is not None for given in (ids, addresses, indices)) != 1:
            raise InvalidInput("pass exactly one of ids, addresses and indices")
        field = self._snapshot.schema.field(blob_column)
        if not (field.is_blob_v1 or field.is_blob_v2):
            raise InvalidInput(f"column {blob_column!r} holds no blobs")
        projection = project(self._snapshot, [blob_column], with_row_id=False, with_row_address=True)
        request = scan_request(self._snapshot, projection)
        if indices is not None:
            taken = take_positions(self._snapshot, np.asarray(indices, dtype=np.int64), request)
        elif ids is not None:
            taken = take_row_ids(self._snapshot, np.asarray(ids, dtype=np.uint64), request)
        else:
            taken = take_addresses(self._snapshot, np.asarray(addresses, dtype=np.uint64), request)
        found = projection.apply(taken)
        reader, owners = BlobReader(self._snapshot), found.column(ROW_ADDRESS).to_numpy()
        return reader, owners, reader.places(field, found.column(0).combine_chunks(), owners)

    def _take_rows(self, row_ids: Sequence[int] | pa.Array | np.ndarray, columns: Columns = None) -> pa.Table:
        """Return rows by row id, in the order asked for, repeats included; those that are gone are left out."""
        projection, request = self._take_request(columns)
        return projection.apply(take_row_ids(self._snapshot, np.asarray(row_ids, dtype=np.uint64), request))

    def _take_request(self, columns: Columns) -> tuple[Projection, ScanRequest]:
        projection = project(self._snapshot, columns, with_row_id=False, with_row_address=False, flatten=False)
        return projection, scan_request(self._snapshot, projection)
