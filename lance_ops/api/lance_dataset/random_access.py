"""The methods of `LanceDataset` that take single rows and blobs."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import replace
from typing import Any, TypeAlias

import numpy as np
import pyarrow as pa

from lance_ops import blobs, reading
from lance_ops.api.argument_checks import row_numbers
from lance_ops.api.lance_dataset.scan_methods import Scanning
from lance_ops.api.scanning import DEFAULT_BLOB_BUFFER_SIZE, BlobFile, Columns, Projection, project, scan_request
from lance_ops.core.arrow import numbers_of
from lance_ops.core.errors import InvalidInput
from lance_ops.core.ndarrays import Uint64Array
from lance_ops.reading import ROW_ADDRESS

__all__ = ["Reading", "Rows"]

Rows: TypeAlias = Sequence[int] | pa.Array | np.ndarray | None
"""Row ids, row addresses, or positions among the live rows."""

_SELECTORS = ("ids", "addresses", "indices")
_U64_MAX = (1 << 64) - 1


class Reading(Scanning):
    """Random access to rows and blobs of the handle's version, besides scans."""

    def take(self, indices: Sequence[int] | pa.Array | np.ndarray, columns: Columns = None) -> pa.Table:
        """Return rows by their position among the live rows, in the order asked for, repeats included."""
        projection, request = self._take_request(columns)
        return projection.apply(
            reading.take_positions(self._snapshot, row_numbers(indices, "indices", np.int64), request)
        )

    def sample(self, num_rows: int, columns: Columns = None, randomize_order: bool = True, **kwargs: Any) -> pa.Table:
        """Return `num_rows` different rows chosen by Python's `random`, in random order or in the table's.

        The other arguments are those of `take`. Raises `InvalidInput` for more rows than there are.
        """
        num_live = self.count_rows()
        if not 0 <= num_rows <= num_live:
            raise InvalidInput(f"a sample of {num_rows} rows cannot be drawn from {num_live}")
        positions = random.sample(range(num_live), num_rows)
        return self.take(positions if randomize_order else sorted(positions), columns, **kwargs)

    def take_blobs(
        self,
        blob_column: str,
        ids: Rows = None,
        addresses: Rows = None,
        indices: Rows = None,
        *,
        buffer_size: int = DEFAULT_BLOB_BUFFER_SIZE,
    ) -> list[BlobFile | None]:
        """Return blobs as files, and None for null blobs. Give exactly one of row ids, addresses and positions.

        No byte of a blob is read before the caller reads the file. Raises `InvalidInput` for a column without blobs,
        and for a row that does not exist.
        """
        _, _, places = self._find_blobs(blob_column, ids, addresses, indices)
        return [None if place is None else BlobFile(place, buffer_size) for place in places]

    def read_blobs(
        self,
        blob_column: str,
        ids: Rows = None,
        addresses: Rows = None,
        indices: Rows = None,
        *,
        io_buffer_size: int | None = None,
        preserve_order: bool | None = None,
    ) -> list[tuple[int, bytes | None]]:
        """Return the row address and the bytes of blobs, in the order asked for; see `take_blobs`.

        `io_buffer_size` and `preserve_order` tune the reference and are accepted without effect.
        """
        reader, owners, places = self._find_blobs(blob_column, ids, addresses, indices)
        return list(zip(owners.tolist(), reader.fetch(places), strict=True))

    def read_blob_ranges(
        self,
        blob_column: str,
        requests: Sequence[tuple[int, int, int]],
        *,
        selector: str,
        io_buffer_size: int | None = None,
        preserve_order: bool | None = None,
    ) -> list[tuple[int, int, bytes | None]]:
        """Return parts of blobs. A request is (row, offset, length); its result is (request number, row address,
        bytes).

        `selector` says how requests name rows: "ids", "addresses" or "indices" (positions among live rows). Requests
        may name a row several times. A null blob gives None. Neighbouring parts are read together. Raises
        `InvalidInput` for a part beyond the end of its blob. The other two arguments are those of `read_blobs`.
        """
        if selector not in _SELECTORS:
            raise InvalidInput(f"selector {selector!r} is none of {', '.join(_SELECTORS)}")
        if io_buffer_size is not None and io_buffer_size <= 0:
            raise InvalidInput(f"io_buffer_size must be positive, not {io_buffer_size}")
        for number, (row, offset, length) in enumerate(requests):
            if min(row, offset, length) < 0 or offset + length > _U64_MAX:
                raise InvalidInput(f"request {number}: {length} bytes at {offset} of row {row}")
        chosen: dict[str, Rows] = dict.fromkeys(_SELECTORS) | {selector: [row for row, _, _ in requests]}
        reader, owners, places = self._find_blobs(blob_column, **chosen)
        parts = [
            None if place is None else _part(number, place, offset, length)
            for number, (place, (_, offset, length)) in enumerate(zip(places, requests, strict=True))
        ]
        return list(zip(range(len(parts)), owners.tolist(), reader.fetch(parts), strict=True))

    def _find_blobs(
        self, blob_column: str, ids: Rows, addresses: Rows, indices: Rows
    ) -> tuple[blobs.BlobReader, Uint64Array, list[blobs.BlobLocation | None]]:
        if sum(given is not None for given in (ids, addresses, indices)) != 1:
            raise InvalidInput("pass exactly one of ids, addresses and indices")
        field = self._snapshot.schema.field(blob_column)
        if not (field.is_blob_v1 or field.is_blob_v2):
            raise InvalidInput(f"column {blob_column!r} holds no blobs")
        projection = project(self._snapshot, [blob_column], with_row_id=False, with_row_address=True)
        request = scan_request(self._snapshot, projection)
        if indices is not None:
            taken = reading.take_positions(self._snapshot, row_numbers(indices, "indices", np.int64), request)
        elif ids is not None:
            taken = reading.take_row_ids(self._snapshot, row_numbers(ids, "ids", np.uint64), request, require_all=True)
        else:
            taken = reading.take_addresses(self._snapshot, row_numbers(addresses, "addresses", np.uint64), request)
        found = projection.apply(taken)
        reader, owners = blobs.BlobReader(self._snapshot), numbers_of(found.column(ROW_ADDRESS))
        return reader, owners, reader.locate(field, found.column(0).combine_chunks(), owners)

    def _take_rows(self, row_ids: Sequence[int] | pa.Array | np.ndarray, columns: Columns = None) -> pa.Table:
        """Return rows by row id, in the requested order and with repeats; missing rows are left out."""
        projection, request = self._take_request(columns)
        return projection.apply(
            reading.take_row_ids(self._snapshot, row_numbers(row_ids, "row_ids", np.uint64), request)
        )

    def _take_request(self, columns: Columns) -> tuple[Projection, reading.ScanRequest]:
        projection = project(self._snapshot, columns, with_row_id=False, with_row_address=False, flatten=False)
        return projection.with_known_positions(), scan_request(self._snapshot, projection)


def _part(number: int, blob: blobs.BlobLocation, offset: int, length: int) -> blobs.BlobLocation:
    if offset + length > blob.size:
        raise InvalidInput(f"request {number}: {length} bytes at {offset} of a blob of {blob.size}")
    return replace(blob, position=blob.position + offset, size=length)
