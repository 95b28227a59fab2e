"""Locate blobs by their descriptors, and fetch their bytes.

A descriptor (`lance_ops.core.blob_types`) is relative to its data file. So rows are read with their addresses. An
address names the fragment. The fragment's file for the field has the inline blobs, and its name gives the folder of
sidecars.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from itertools import pairwise

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from lance_ops.blobs.blob_conversion import field_to_write, walk_blobs, with_blobs_as
from lance_ops.core.addresses import fragment_of, row_addrs
from lance_ops.core.arrow import numbers_of
from lance_ops.core.blob_types import BLOB_VALUES, DESCRIPTOR, BlobKind
from lance_ops.core.errors import CorruptFile, UnsafePath, UnsupportedFeature
from lance_ops.core.file_names import blob_file_name
from lance_ops.core.ndarrays import Int64Array, Uint64Array
from lance_ops.core.records import dataclass
from lance_ops.core.schema import Field, Schema
from lance_ops.file import FileSource, Ranges, verified_sidecar
from lance_ops.reading import ROW_ADDRESS, ScannedRows, ScanRequest, offset_array, scan_rows, take_addresses
from lance_ops.snapshot import Snapshot
from lance_ops.store import is_local, is_well_known
from lance_ops.table import DataFile
from lance_ops.table.manifest import ObjectLocation

__all__ = ["BlobLocation", "BlobReader", "scan_to_rewrite", "split_by_blob_bytes", "take_to_rewrite"]


_BYTES_AT_ONCE = 64 * 1024 * 1024


@dataclass(frozen=True)
class BlobLocation:
    """`size` bytes of an object, from byte `position`."""

    source: FileSource
    position: int
    size: int

    def read(self, start: int, stop: int) -> bytes:
        """Return the blob's bytes from `start` to `stop` (exclusive)."""
        return self.source.read(self.position + start, self.position + stop)


class BlobReader:
    """Locates and reads blobs of one version. The reader keeps the files open."""

    def __init__(self, snapshot: Snapshot) -> None:
        self._snapshot = snapshot
        self._sources: dict[str, FileSource] = {}

    def locate(self, field: Field, described: pa.StructArray, addresses: Uint64Array) -> list[BlobLocation | None]:
        """Return the location of each described blob of a field, None for a null; `addresses` are those of the rows.

        Raises `CorruptFile` for a location outside its file.
        """
        files = {owner: self._file_of(owner, field) for owner in np.unique(fragment_of(addresses)).tolist()}
        owners = [files[owner] for owner in fragment_of(addresses).tolist()]
        locate = self._described if described.type == DESCRIPTOR else self._in_data_file
        rows = zip(owners, described.to_pylist(), strict=True)
        return [None if file is None else locate(file, row) for file, row in rows]

    def fetch(self, locations: Sequence[BlobLocation | None]) -> list[bytes | None]:
        """Return the bytes at each location; neighbours in a file are read together."""
        by_source: dict[str, list[BlobLocation]] = {}
        for blob in locations:
            if blob is not None:
                by_source.setdefault(blob.source.name, []).append(blob)
        fetched = {
            name: blobs[0].source.fetch(Ranges.of(*((blob.position, blob.position + blob.size) for blob in blobs)))
            for name, blobs in by_source.items()
        }
        return [
            None if blob is None else fetched[blob.source.name].view(blob.position, blob.position + blob.size).tobytes()
            for blob in locations
        ]

    def with_bytes(self, column: pa.ChunkedArray, field: Field, addresses: Uint64Array) -> pa.ChunkedArray:
        """Return a column as it was read, with each `lance.blob.v2` at any depth replaced by large_binary."""

        def fetched(described: pa.StructArray, below: Field, owners: Uint64Array) -> pa.Array:
            return pa.array(self.fetch(self.locate(below, described, owners)), pa.large_binary())

        return self._converted(column, field, addresses, pa.large_binary(), fetched)

    def with_values(self, column: pa.ChunkedArray, field: Field, addresses: Uint64Array) -> pa.ChunkedArray:
        """Return a column as it was read, with each `lance.blob.v2` at any depth as a writer takes it: bytes or URI."""

        def fetched(described: pa.StructArray, below: Field, owners: Uint64Array) -> pa.Array:
            rows = described.to_pylist()
            external = [row if row is not None and row["kind"] == BlobKind.EXTERNAL else None for row in rows]
            locations = self.locate(below, described, owners)
            data = self.fetch([None if row else blob for row, blob in zip(external, locations, strict=True)])
            ranges = [row if row and row["size"] else {} for row in external]
            children = [
                pa.array(data, pa.large_binary()),
                pa.array([row and row["blob_uri"] for row in external], pa.string()),
                pa.array([part.get("position") for part in ranges], pa.uint64()),
                pa.array([part.get("size") for part in ranges], pa.uint64()),
            ]
            return pa.StructArray.from_arrays(children, fields=list(BLOB_VALUES), mask=described.is_null())

        return self._converted(column, field, addresses, BLOB_VALUES, fetched)

    def _converted(
        self,
        column: pa.ChunkedArray,
        field: Field,
        addresses: Uint64Array,
        arrow_type: pa.DataType,
        convert: Callable[[pa.StructArray, Field, Uint64Array], pa.Array],
    ) -> pa.ChunkedArray:
        if not field.holds_blobs_v2:
            return column
        chunks, at = [], 0
        for chunk in column.chunks:
            chunks.append(walk_blobs(chunk, field, addresses[at : at + len(chunk)], convert))
            at += len(chunk)
        return pa.chunked_array(chunks, with_blobs_as(field, arrow_type).type)

    def _described(self, file: DataFile, row: dict[str, int] | None) -> BlobLocation | None:
        if row is None:
            return None
        kind, position, size = row["kind"], row["position"], row["size"]
        if kind == BlobKind.EXTERNAL:
            return self._external(str(row["blob_uri"]), position, size)
        locations = self._snapshot.file_locations
        if kind == BlobKind.INLINE:
            source = self._in_file(file)
        elif kind in (BlobKind.PACKED, BlobKind.DEDICATED):
            source = self._in_sidecar(locations.data_file(file.base_id, blob_file_name(file.path, row["blob_id"])))
        else:
            named = "managed blobs, " if kind == BlobKind.MANAGED else "blobs "
            raise UnsupportedFeature(f"{named}of kind {kind},", f"{self._snapshot.uri}: {file.path}")
        return _checked(source, position, size)

    def _in_data_file(self, file: DataFile, row: dict[str, int] | None) -> BlobLocation | None:
        """Return the location for a position and size; files of 2.0 encode null as (1, 0)."""
        if row is None or (row["position"] and not row["size"]):
            return None
        return _checked(self._in_file(file), row["position"], row["size"])

    def _external(self, uri: str, position: int, size: int) -> BlobLocation:
        folder = uri.rpartition("/")[0]
        # A data file is not trusted. It must not make this process call any server, nor, for a remote dataset, read
        # local files.
        if not is_well_known(folder) or (is_local(folder) and not is_local(self._snapshot.uri)):
            raise UnsafePath(f"{self._snapshot.uri}: a blob refers to {uri!r}, which is not an allowed location")
        source = self._open(self._snapshot.file_locations.outside(uri))
        return _checked(source, position, size or source.size_bytes - position)

    def _in_file(self, file: DataFile) -> FileSource:
        """Return a data file as a source of its own blobs, which verifies them if the snapshot's reads verify."""
        location = self._snapshot.file_locations.data_file(file.base_id, file.path)
        if self._snapshot.verifies_reads and location.uri not in self._sources:
            self._sources[location.uri] = self._snapshot.open_data_file(file).source
        return self._open(location, file.file_size_bytes)

    def _in_sidecar(self, location: ObjectLocation) -> FileSource:
        """Return a sidecar as a source of its blobs, which verifies them if the snapshot's reads verify."""
        if self._snapshot.verifies_reads and location.uri not in self._sources:
            self._sources[location.uri] = verified_sidecar(location.store, location.path)
        return self._open(location)

    def _open(self, location: ObjectLocation, size_bytes: int | None = None) -> FileSource:
        name = location.uri
        source = self._sources.get(name)
        if source is None:
            source = self._sources[name] = FileSource(location.store, location.path, size_bytes or None)
        return source

    def _file_of(self, fragment_id: int, field: Field) -> DataFile | None:
        """Return the data file that holds the field's descriptions; None if all are null because none does."""
        fragment = self._snapshot.fragments_by_id[fragment_id]
        return next((file for file in fragment.files if field.id in file.fields), None)


def scan_to_rewrite(snapshot: Snapshot, request: ScanRequest) -> Iterator[ScannedRows]:
    """Yield scanned rows as `FragmentWriter` takes them: with the bytes of blobs, a bounded amount at a time."""
    if not request.schema.holds_blobs_v2:
        yield from scan_rows(snapshot, request)
        return
    reader = BlobReader(snapshot)
    for rows in scan_rows(snapshot, request):
        at = 0
        for part in split_by_blob_bytes(rows.table, request.schema):
            cut = rows.slice(at, len(part))
            at += len(part)
            addresses = row_addrs(cut.fragment.id, offset_array(cut.offsets))
            yield replace(cut, table=_rewritable(part, addresses, reader, request.schema))


def take_to_rewrite(snapshot: Snapshot, addresses: Uint64Array, request: ScanRequest) -> pa.Table:
    """Return live rows by address as `FragmentWriter` takes them; the request must include row addresses."""
    table = take_addresses(snapshot, addresses, request)
    if not request.schema.holds_blobs_v2:
        return table
    return _rewritable(table, numbers_of(table.column(ROW_ADDRESS)), BlobReader(snapshot), request.schema)


def _rewritable(table: pa.Table, addresses: Uint64Array, reader: BlobReader, schema: Schema) -> pa.Table:
    for position, field in enumerate(schema.fields):
        if field.holds_blobs_v2:
            column = reader.with_values(table.column(position), field, addresses)
            table = table.set_column(position, field_to_write(field), column)
    return table


def split_by_blob_bytes(table: pa.Table, schema: Schema) -> Iterator[pa.Table]:
    """Cut a table into runs of rows with about `_BYTES_AT_ONCE` bytes of blobs each."""
    sizes = np.zeros(table.num_rows, np.float64)
    for field in schema.fields:
        if field.holds_blobs_v2:
            at = 0
            for chunk in table.column(field.name).chunks:
                _add_sizes(chunk, field, np.arange(at, at + len(chunk)), sizes)
                at += len(chunk)
    groups = (np.cumsum(sizes) // _BYTES_AT_ONCE).astype(np.int64)
    cuts = [0, *(np.flatnonzero(np.diff(groups)) + 1).tolist(), table.num_rows]
    for start, stop in pairwise(cuts):
        if stop > start:
            yield table.slice(start, stop - start)


def _add_sizes(array: pa.Array, field: Field, rows: Int64Array, sizes: npt.NDArray[np.float64]) -> None:
    def add(described: pa.StructArray, _: Field, owners: Uint64Array) -> pa.Array:
        np.add.at(sizes, owners.astype(np.int64), described.field(2).to_numpy(zero_copy_only=False))
        return described

    walk_blobs(array, field, rows.astype(np.uint64), add)


def _checked(source: FileSource, position: int, size: int) -> BlobLocation:
    if position < 0 or size < 0 or position + size > source.size_bytes:
        reason = f"{size} bytes at {position} in a file of {source.size_bytes}"
        raise CorruptFile(source.name, "blob", reason)
    return BlobLocation(source, position, size)
