"""Write the blobs of a data file, inline or into sidecars, and make a descriptor for each blob.

    {stem}.lance         the data file, with inline blobs between its pages
    {stem}/{id}.blob     a sidecar: many small blobs end to end, or one large blob, then checksums; ids count from 1

One packed sidecar is open at a time, for all columns of the data file.
"""

from __future__ import annotations

from contextlib import suppress
from dataclasses import replace

import numpy as np
import pyarrow as pa

from lance_ops.blobs.blob_conversion import walk_blobs
from lance_ops.blobs.external_blobs import ExternalBlobs
from lance_ops.core.blob_types import DESCRIPTOR, BlobKind, BlobThresholds
from lance_ops.core.errors import InvalidInput, LanceOpsError
from lance_ops.core.file_names import blob_file_name
from lance_ops.core.ndarrays import Uint64Array
from lance_ops.core.records import dataclass
from lance_ops.core.schema import Field, Schema
from lance_ops.file import FileWriter, SidecarWriter
from lance_ops.store import Store
from lance_ops.table.manifest import FileLocations
from lance_ops.transactions import PendingFiles

__all__ = ["BlobWriter"]

_Descriptor = tuple[int, int, int, int, str]

_NULL: _Descriptor = (0, 0, 0, 0, "")
"""The descriptor of a null."""


@dataclass(frozen=True)
class _Blob:
    """One value to write."""

    data: pa.LargeBinaryScalar
    uri: pa.StringScalar
    position: pa.UInt64Scalar
    size: pa.UInt64Scalar


class BlobWriter:
    """Writes the blobs of one data file; `abort` deletes their sidecars."""

    def __init__(
        self,
        store: Store,
        file: FileWriter,
        locations: FileLocations,
        external: ExternalBlobs,
        pack_file_bytes: int | None = None,
    ) -> None:
        self._store = store
        self._locations = locations
        self._file = file
        self._external = external
        self._pack_file_bytes = pack_file_bytes
        self._num_sidecars = 0
        self._pack: SidecarWriter | None = None
        self._thresholds: dict[int, BlobThresholds] = {}

    def describe(self, table: pa.Table, schema: Schema) -> pa.Table:
        """Write the blobs of a table of `schema_to_write`, and return the table with descriptors instead of blobs.

        Raises `InvalidInput` for a blob that has both bytes and a URI, or neither.
        """
        columns = []
        for column, field in zip(table.columns, schema.fields, strict=True):
            if field.holds_blobs_v2:
                no_owners = np.zeros(len(column), np.uint64)
                chunks = [walk_blobs(part, field, no_owners[: len(part)], self._write) for part in column.chunks]
                column = pa.chunked_array(chunks, field.arrow_type)
            columns.append(column)
        return pa.Table.from_arrays(columns, schema=schema.to_arrow_storage())

    def finish(self) -> None:
        """Make every sidecar visible."""
        if self._pack is not None:
            self._pack.close()
            self._pack = None

    def abort(self) -> None:
        """Delete the sidecars. What cannot be deleted now is left to clean-up."""
        if self._pack is not None:
            with suppress(LanceOpsError):
                self._pack.abort()
            self._pack = None
        PendingFiles.at(self._store, map(self._path, range(1, self._num_sidecars + 1))).abandon()

    def _write(self, values: pa.StructArray, field: Field, _: Uint64Array) -> pa.Array:
        thresholds = self._thresholds.get(field.id)
        if thresholds is None:
            thresholds = BlobThresholds.from_metadata(field.metadata)
            if self._pack_file_bytes is not None:
                thresholds = replace(thresholds, pack_file_size=self._pack_file_bytes)
        self._thresholds[field.id] = thresholds
        absent = values.is_null()
        children = [values.field(index) for index in range(4)]
        rows = zip(absent.to_pylist(), zip(*children, strict=True), strict=True)
        described = [_NULL if is_null else self._put(_Blob(*parts), field, thresholds) for is_null, parts in rows]
        columns = zip(*described, strict=True) if described else [[]] * DESCRIPTOR.num_fields
        arrays = [pa.array(list(column), child.type) for column, child in zip(columns, DESCRIPTOR, strict=True)]
        return pa.StructArray.from_arrays(arrays, fields=list(DESCRIPTOR), mask=absent)

    def _put(self, blob: _Blob, field: Field, thresholds: BlobThresholds) -> _Descriptor:
        data, uri = blob.data, blob.uri.as_py()
        if data.is_valid == bool(uri):
            raise InvalidInput(f"column {field.name!r}: a blob has either data or a uri; without both it is a null")
        position, size = blob.position.as_py(), blob.size.as_py()
        if (position is None) != (size is None) or (size is not None and (data.is_valid or not size)):
            raise InvalidInput(f"column {field.name!r}: position and size of a blob, not 0, go together, with a uri")
        if uri and self._external is ExternalBlobs.REFUSE:
            raise InvalidInput(
                f"column {field.name!r}: {uri} is outside of the dataset; pass its bytes, or "
                "allow_external_blob_outside_bases=True"
            )
        if uri and self._external is ExternalBlobs.REFERENCE:
            return BlobKind.EXTERNAL, position or 0, size or 0, 0, uri
        payload = self._fetched(uri, position, size, field) if uri else data.as_buffer()
        if payload.size > thresholds.dedicated_size:
            blob_id = self._new_id()
            with self._sidecar(blob_id) as sink:
                sink.write(payload)
            return BlobKind.DEDICATED, 0, payload.size, blob_id, ""
        if payload.size > thresholds.inline_size:
            return self._put_packed(payload, thresholds)
        if not payload.size:
            return _NULL
        return BlobKind.INLINE, self._file.write_buffer(payload).position, payload.size, 0, ""

    def _fetched(self, uri: str, position: int | None, size: int | None, field: Field) -> pa.Buffer:
        """Return the bytes of another object: all, or `size` bytes from `position`."""
        external = self._locations.outside(uri)
        size_bytes = external.store.size(external.path)
        start = position or 0
        stop = size_bytes if size is None else start + size
        if stop > size_bytes:
            raise InvalidInput(f"column {field.name!r}: a blob ends at byte {stop} of {uri}, which has {size_bytes}")
        return external.store.get_range(external.path, start, stop)

    def _put_packed(self, payload: pa.Buffer, thresholds: BlobThresholds) -> _Descriptor:
        if self._pack is not None and self._pack.tell() + payload.size > thresholds.pack_file_size:
            self.finish()
        if self._pack is None:
            self._pack_id = self._new_id()
            self._pack = self._sidecar(self._pack_id)
        position = self._pack.tell()
        self._pack.write(payload)
        return BlobKind.PACKED, position, payload.size, self._pack_id, ""

    def _sidecar(self, blob_id: int) -> SidecarWriter:
        return SidecarWriter(self._store.open_writer(self._path(blob_id)))

    def _new_id(self) -> int:
        self._num_sidecars += 1
        return self._num_sidecars

    def _path(self, blob_id: int) -> str:
        return blob_file_name(self._file.path, blob_id)
