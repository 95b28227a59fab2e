"""Where the bytes of blobs are, and the bytes.

A descriptor (`lance_ops.core.blob_types`) means something only beside the data file it stands in: rows are read with
their addresses, which name the fragment, whose file for the field holds inline blobs and gives the sidecars their
folder.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from lance_ops.blobs.blob_columns import field_to_write, walk_blobs, with_blobs_as
from lance_ops.core.addresses import fragment_of, row_addrs
from lance_ops.core.blob_types import BLOB_VALUES, DESCRIPTOR, BlobKind
from lance_ops.core.errors import CorruptFile, UnsafePath, UnsupportedFeature
from lance_ops.core.file_names import blob_file_name
from lance_ops.core.ndarrays import Int64Array, Uint64Array
from lance_ops.core.schema import Field, Schema
from lance_ops.file import FileSource, Ranges
from lance_ops.reading import ROW_ADDRESS, ScannedRows, ScanRequest, offset_array, scan_rows, take_addresses
from lance_ops.snapshot import Snapshot
from lance_ops.store import is_local, is_well_known
from lance_ops.table import DataFile
from lance_ops.table.manifest import ObjectLocation

__all__ = ["BlobLocation", "BlobReader", "scan_to_rewrite", "split_by_blob_bytes", "take_to_rewrite"]


_BYTES_AT_ONCE = 64 * 1024 * 1024


@dataclass(frozen=True)
class BlobLocation:
    """`size` bytes of an object, from `position` on."""

    source: FileSource
    position: int
    size: int

    def read(self, start: int, stop: int) -> bytes:
        """Return the blob's bytes from `start` to `stop` (exclusive)."""
        return self.source.read(self.position + start, self.position + stop)


class BlobReader:
    """Finds and reads blobs of one version; files stay open as long as the reader is kept."""

    def __init__(self, snapshot: Snapshot) -> None:
        self._snapshot = snapshot
        self._sources: dict[str, FileSource] = {}

    def places(self, field: Field, described: pa.StructArray, addresses: Uint64Array) -> list[BlobLocation | None]:
        """Return where each described blob of a field is, None for a null; one row address for each.

        Raises `CorruptFile` for a place outside of its file.
        """
        files = {owner: self._file_of(owner, field) for owner in np.unique(fragment_of(addresses)).tolist()}
        owners = [files[owner] for owner in fragment_of(addresses).tolist()]
        if described.type != DESCRIPTOR:
            return [self._in_data_file(file, row) for file, row in zip(owners, described.to_pylist(), strict=True)]
        return [self._described(file, row) for file, row in zip(owners, described.to_pylist(), strict=True)]

    def fetch(self, places: Sequence[BlobLocation | None]) -> list[bytes | None]:
        """Return the bytes of each place; neighbours in a file are read together."""
        by_source: dict[str, list[BlobLocation]] = {}
        for place in places:
            if place is not None:
                by_source.setdefault(place.source.name, []).append(place)
        fetched = {
            name: there[0].source.fetch(Ranges.of(*((p.position, p.position + p.size) for p in there)))
            for name, there in by_source.items()
        }
        return [
            None
            if place is None
            else fetched[place.source.name].view(place.position, place.position + place.size).tobytes()
            for place in places
        ]

    def with_bytes(self, column: pa.ChunkedArray, field: Field, addresses: Uint64Array) -> pa.ChunkedArray:
        """Return a column that was read with `lance.blob.v2`, at any depth, as large_binary."""

        def fetched(described: pa.StructArray, below: Field, owners: Uint64Array) -> pa.Array:
            return pa.array(self.fetch(self.places(below, described, owners)), pa.large_binary())

        return self._converted(column, field, addresses, pa.large_binary(), fetched)

    def with_values(self, column: pa.ChunkedArray, field: Field, addresses: Uint64Array) -> pa.ChunkedArray:
        """Return a column that was read with `lance.blob.v2`, at any depth, as what is written: bytes or a URI."""

        def fetched(described: pa.StructArray, below: Field, owners: Uint64Array) -> pa.Array:
            rows = described.to_pylist()
            outside = [row if row is not None and row["kind"] == BlobKind.EXTERNAL else None for row in rows]
            places = self.places(below, described, owners)
            data = self.fetch([None if row else place for row, place in zip(outside, places, strict=True)])
            parts = [row if row and row["size"] else {} for row in outside]
            children = [
                pa.array(data, pa.large_binary()),
                pa.array([row and row["blob_uri"] for row in outside], pa.string()),
                pa.array([part.get("position") for part in parts], pa.uint64()),
                pa.array([part.get("size") for part in parts], pa.uint64()),
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
            source = self._open(locations.data_file(file.base_id, file.path), file.file_size_bytes)
        elif kind in (BlobKind.PACKED, BlobKind.DEDICATED):
            source = self._open(locations.data_file(file.base_id, blob_file_name(file.path, row["blob_id"])))
        else:
            named = "managed blobs, " if kind == BlobKind.MANAGED else "blobs "
            raise UnsupportedFeature(f"{named}of kind {kind},", f"{self._snapshot.uri}: {file.path}")
        return _checked(source, position, size)

    def _in_data_file(self, file: DataFile, row: dict[str, int] | None) -> BlobLocation | None:
        """Read a position and size; (1, 0) is how files of 2.0 say null."""
        if row is None or (row["position"] and not row["size"]):
            return None
        place = self._snapshot.file_locations.data_file(file.base_id, file.path)
        source = self._open(place, file.file_size_bytes)
        return _checked(source, row["position"], row["size"])

    def _external(self, uri: str, position: int, size: int) -> BlobLocation:
        folder = uri.rpartition("/")[0]
        # A data file was written by others, and must not make this process talk to any server, or show its own files.
        if not is_well_known(folder) or (is_local(folder) and not is_local(self._snapshot.uri)):
            raise UnsafePath(f"{self._snapshot.uri}: a blob is said to be at {uri!r}, where none is looked for")
        source = self._open(self._snapshot.file_locations.outside(uri))
        return _checked(source, position, size or source.size_bytes - position)

    def _open(self, place: ObjectLocation, size_bytes: int | None = None) -> FileSource:
        name = place.uri
        source = self._sources.get(name)
        if source is None:
            source = self._sources[name] = FileSource(place.store, place.path, size_bytes or None)
        return source

    def _file_of(self, fragment_id: int, field: Field) -> DataFile:
        fragment = self._snapshot.fragments_by_id[fragment_id]
        file = next((file for file in fragment.files if field.id in file.fields), None)
        if file is None:  # the field is in no file, so all its values are null and none has a place
            return fragment.files[0]
        return file


def scan_to_rewrite(snapshot: Snapshot, request: ScanRequest) -> Iterator[ScannedRows]:
    """Yield a scan's answer as `FragmentWriter` takes it: blobs with their bytes, a bounded number at a time."""
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
    """Return live rows by address as `FragmentWriter` takes them; the request asks for their addresses."""
    table = take_addresses(snapshot, addresses, request)
    if not request.schema.holds_blobs_v2:
        return table
    return _rewritable(table, table.column(ROW_ADDRESS).to_numpy(), BlobReader(snapshot), request.schema)


def _rewritable(table: pa.Table, addresses: Uint64Array, reader: BlobReader, schema: Schema) -> pa.Table:
    for position, field in enumerate(schema.fields):
        if field.holds_blobs_v2:
            column = reader.with_values(table.column(position), field, addresses)
            table = table.set_column(position, field_to_write(field), column)
    return table


def split_by_blob_bytes(table: pa.Table, schema: Schema) -> Iterator[pa.Table]:
    """Cut a table into runs of rows with about `_BYTES_AT_ONCE` of blobs each."""
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
