"""Check where the blobs of one data file are: in the file, in its sidecars, or elsewhere.

A descriptor names a sidecar by a number, so the descriptors alone say which sidecars a version needs, and how long each
must be. Descriptors of deleted rows count too: the file keeps them. Columns of one file may share a sidecar, so
sidecars are checked when the descriptors of all columns are known.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from lance_ops.blobs import walk_blobs
from lance_ops.core.blob_types import BlobKind
from lance_ops.core.file_names import blob_file_name
from lance_ops.core.ndarrays import Uint64Array
from lance_ops.core.schema import Field
from lance_ops.maintenance.verification.checks.checksum_checks import agrees_with_checksums
from lance_ops.maintenance.verification.findings import CheckedFile, DamageKind, FindingCollector
from lance_ops.snapshot import Snapshot
from lance_ops.table import DataFile

__all__ = ["BlobEnds", "SidecarEnds"]

_IN_SIDECARS = (BlobKind.PACKED, BlobKind.DEDICATED)


class BlobEnds:
    """Where the last blob of a column ends in its data file and in each sidecar, collected from descriptors."""

    def __init__(self, snapshot: Snapshot, file: DataFile, field: Field, sidecars: SidecarEnds) -> None:
        self._snapshot = snapshot
        self._file = file
        self._field = field
        self._end_in_file = 0
        self._sidecars = sidecars
        self._elsewhere: dict[int, int] = {}

    def add(self, column: pa.ChunkedArray) -> None:
        """Collect the ends of some rows' blobs; do nothing for a column without blobs."""
        for chunk in column.chunks:
            if self._field.is_blob_v1:
                self._add_positions(chunk)
            elif self._field.holds_blobs_v2:
                walk_blobs(chunk, self._field, np.zeros(len(chunk), np.uint64), self._add_described)

    def check(self, found: FindingCollector) -> None:
        """Record blobs that end beyond the data file, and count blobs whose bytes are not part of the table."""
        with found.errors_as(DamageKind.BLOB):
            location = self._snapshot.file_locations.data_file(self._file.base_id, self._file.path)
            if self._end_in_file and self._end_in_file > (size := location.store.size(location.path)):
                detail = f"a blob ends at byte {self._end_in_file} of a file of {size}"
                found.damaged(DamageKind.BLOB, detail, location.uri, column=self._field.name)
        for kind, count in sorted(self._elsewhere.items()):
            known = {each.value: each.name.lower() for each in BlobKind}
            detail = f"{count} blobs are {known.get(kind, f'of kind {kind}')}: their bytes are not part of the table"
            found.unverified(DamageKind.BLOB, detail, column=self._field.name)

    def _add_positions(self, described: pa.StructArray) -> None:
        ends = _ends_of(described, 0)
        self._end_in_file = max(self._end_in_file, int(ends.max(initial=0)))

    def _add_described(self, described: pa.StructArray, _: Field, __: Uint64Array) -> pa.Array:
        rows = described.filter(described.is_valid())
        kinds, blob_ids, ends = _numbers(rows.field(0)), _numbers(rows.field(3)), _ends_of(rows, 1)
        self._end_in_file = max(self._end_in_file, int(ends[kinds == BlobKind.INLINE].max(initial=0)))
        in_sidecar = np.isin(kinds, _IN_SIDECARS)
        for blob_id in np.unique(blob_ids[in_sidecar]).tolist():
            end = int(ends[in_sidecar & (blob_ids == blob_id)].max(initial=0))
            self._sidecars.add(blob_id, end, self._field.name)
        for kind in np.unique(kinds[~in_sidecar & (kinds != BlobKind.INLINE)]).tolist():
            self._elsewhere[kind] = self._elsewhere.get(kind, 0) + int((kinds == kind).sum())
        return described


class SidecarEnds:
    """Where the last blob ends in each sidecar of one data file."""

    def __init__(self, snapshot: Snapshot, file: DataFile) -> None:
        self._snapshot = snapshot
        self._file = file
        self._ends: dict[int, int] = {}
        self._columns: dict[int, str] = {}

    def add(self, blob_id: int, end: int, column: str) -> None:
        """Note that a blob of `column` in the sidecar `blob_id` ends at byte `end`."""
        self._ends[blob_id] = max(self._ends.get(blob_id, 0), end)
        self._columns.setdefault(blob_id, column)

    def check(self, found: FindingCollector, *, compare: bool, is_complete: bool) -> None:
        """Record sidecars that are missing or too short; with `compare`, also bytes that do not have their checksum.

        `is_complete` says that the descriptors of all columns of the file were added. Then the bytes after the last
        blob are checksums, intact or damaged.
        """
        for blob_id, end in sorted(self._ends.items()):
            location = self._snapshot.file_locations.data_file(
                self._file.base_id, blob_file_name(self._file.path, blob_id)
            )
            column = self._columns[blob_id]
            with found.errors_as(DamageKind.BLOB, location.uri, column=column):
                size = location.store.size(location.path)
                if size < end:
                    found.files.append(CheckedFile(location.uri, size))
                    detail = f"{size} bytes, but its blobs end at byte {end}"
                    found.damaged(DamageKind.FILE_SIZE, detail, location.uri, column=column)
                elif not compare:
                    found.files.append(CheckedFile(location.uri, size))
                else:
                    agrees = agrees_with_checksums(location, found)
                    if agrees and is_complete and size > end and not found.files[-1].has_checksums:
                        detail = f"its blobs end at byte {end} of {size}, and the bytes after them are no checksums"
                        found.unverified(DamageKind.BLOB, detail, location.uri, column=column)


def _ends_of(described: pa.StructArray, first: int) -> Uint64Array:
    """Return where each blob ends, 0 for a null or empty one. Child `first` is the position, the next one the size."""
    rows = described.filter(described.is_valid())
    positions, sizes = _numbers(rows.field(first)), _numbers(rows.field(first + 1))
    ends: Uint64Array = np.where(sizes > 0, positions + sizes, np.uint64(0))
    return ends


def _numbers(values: pa.Array) -> Uint64Array:
    numbers: Uint64Array = values.fill_null(0).to_numpy(zero_copy_only=False).astype(np.uint64)
    return numbers
