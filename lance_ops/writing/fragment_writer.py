"""Write batches as new fragments: data files that no version names yet."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable
from contextlib import suppress
from itertools import cycle
from types import TracebackType
from typing import Self

import pyarrow as pa

from lance_ops.blobs import BlobWriter, schema_to_write
from lance_ops.core.errors import LanceOpsError, SchemaMismatch
from lance_ops.core.file_names import data_file_name
from lance_ops.core.schema import Schema
from lance_ops.core.versions import FileVersion
from lance_ops.file import Dictionaries, FileWriter, page_budget
from lance_ops.store import Store
from lance_ops.table import DataFile, Fragment
from lance_ops.table.manifest import FileLocations, ObjectLocation
from lance_ops.transactions import PendingFiles
from lance_ops.writing.fragment_limits import FragmentLimits
from lance_ops.writing.schema_conformance import conform_to_schema
from lance_ops.writing.write_targets import WriteTargets

__all__ = [
    "FragmentWriter",
    "write_fragments",
    "write_new_table",
]

_FILES_AT_ONCE = 4
"""How many files may be sent to a remote store while the next one is written; each is small enough for one request."""

_UNASSIGNED = 0  # the id of a fragment that no commit has numbered yet


class FragmentWriter:
    """Cuts a stream of batches into fragments, one data file each.

    The files go to `targets` in turn, by default beneath the root. As a context manager it deletes all its files on an
    exception. Dictionaries of a 0.1 table whose values the schema does not have are collected here; the caller joins
    them before the commit (`lance_ops.legacy`). With `durable=False` the commit must sync the files beneath the root.
    """

    def __init__(
        self,
        store: Store,
        schema: Schema,
        version: FileVersion,
        limits: FragmentLimits | None = None,
        *,
        targets: WriteTargets | None = None,
        durable: bool = True,
    ) -> None:
        self._store = store
        self._targets = targets or WriteTargets(FileLocations(store))
        self._base_ids = cycle(self._targets.base_ids)
        self._dictionaries = Dictionaries(schema) if version is FileVersion.V0_1 else None
        self._schema = schema
        self._arrow_schema = schema_to_write(schema)
        self._version = version
        self._durable = durable
        self._limits = limits or FragmentLimits()
        self._finished: list[Fragment] = []
        self._ending: deque[Callable[[], object]] = deque()  # finished files that may not be visible yet
        self._writer: FileWriter | None = None
        self._blobs: BlobWriter | None = None
        self._rows = 0
        self._location = ObjectLocation(store, "")
        self._base_id: int | None = None
        self._file_name = ""

    @property
    def schema(self) -> Schema:
        """The schema, with the dictionary values of a 0.1 table collected so far."""
        return self._schema if self._dictionaries is None else self._dictionaries.filled()

    def write(self, data: pa.RecordBatch | pa.Table) -> None:
        """Add rows; raise `SchemaMismatch` naming the field if they do not fit the schema."""
        table = self._fitted(data)
        at = 0
        while at < table.num_rows:
            if self._writer is None:
                self._open()
            part = table.slice(at, self._limits.max_rows_per_file - self._rows)
            self._append(part)
            at += part.num_rows

    def check(self, data: pa.RecordBatch | pa.Table) -> None:
        """Raise `SchemaMismatch` as `write` does if rows do not fit the schema, and add nothing."""
        self._fitted(data)

    def finish(self) -> list[Fragment]:
        """Close the last file and return the fragments, their ids unassigned, in the order of the rows."""
        self._close()
        self._wait_for_files(0)
        return self._finished

    def finish_pending(self) -> PendingFiles:
        """Close the last file and return the fragments with their files, for a commit of this process."""
        return PendingFiles.of_fragments(self._targets.locations, self.finish(), durable=self._durable)

    def abort(self) -> None:
        """Delete every file written. What cannot be deleted now is left to clean-up."""
        while self._ending:
            with suppress(LanceOpsError):  # the file may exist, and is deleted with the others
                self._ending.popleft()()
        pending = PendingFiles.of_fragments(self._targets.locations, self._finished)
        if self._writer is not None:
            pending += PendingFiles((self._location,))  # the file may exist: the response to its close can be lost
            with suppress(LanceOpsError):
                self._writer.abort()
            self._writer = None
        if self._blobs is not None:
            self._blobs.abort()
            self._blobs = None
        pending.abandon()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if kind is not None:
            self.abort()

    def _fitted(self, data: pa.RecordBatch | pa.Table) -> pa.Table:
        table = conform_to_schema(data, self._arrow_schema)
        if table.num_rows and not self._schema.fields:
            raise SchemaMismatch(f"the data has {table.num_rows} rows and no columns: rows need at least one column")
        return table

    def _open(self) -> None:
        self._file_name, self._base_id = data_file_name(), next(self._base_ids)
        if self._limits.progress is not None:
            major, minor = self._version.data_file
            file = DataFile(self._file_name, (), (), major, minor, base_id=self._base_id)
            self._limits.progress.begin(Fragment(id=_UNASSIGNED, files=(file,)))
        self._location = self._targets.locations.data_file(self._base_id, self._file_name)
        store, path = self._location
        self._writer = FileWriter(
            store,
            path,
            self._schema,
            self._version,
            page_bytes=page_budget(len(self._schema.fields), self._limits.cache_bytes, self._limits.max_page_bytes),
            dictionaries=self._dictionaries,
            durable=self._durable or self._base_id is not None,
        )
        if self._schema.holds_blobs_v2:
            self._blobs = BlobWriter(
                store, self._writer, self._targets.locations, self._limits.external_blobs, self._limits.pack_file_bytes
            )
        self._rows = 0

    def _append(self, table: pa.Table) -> None:
        assert self._writer is not None
        self._writer.write_batch(table if self._blobs is None else self._blobs.describe(table, self._schema))
        self._rows += table.num_rows
        full = self._rows >= self._limits.max_rows_per_file
        if full or self._writer.bytes_written >= self._limits.max_bytes_per_file:
            self._close()

    def _close(self) -> None:
        if self._writer is None:
            return
        if self._blobs is not None:
            self._blobs.finish()  # before the data file that names the sidecars
        written, is_visible = self._writer.begin_finish()
        self._writer = self._blobs = None
        file = DataFile(
            path=self._file_name,
            fields=written.fields,
            column_indices=written.column_indices,
            file_major_version=written.major,
            file_minor_version=written.minor,
            file_size_bytes=written.size_bytes,
            base_id=self._base_id,
        )
        self._finished.append(Fragment(id=_UNASSIGNED, files=(file,), physical_rows=written.num_rows))
        self._ending.append(is_visible)
        self._wait_for_files(_FILES_AT_ONCE if self._limits.progress is None else 0)
        if self._limits.progress is not None:
            self._limits.progress.complete(self._finished[-1])

    def _wait_for_files(self, at_most: int) -> None:
        """Wait until at most this many finished files are not visible yet."""
        while len(self._ending) > at_most:
            self._ending.popleft()()


def write_fragments(
    store: Store,
    batches: Iterable[pa.RecordBatch | pa.Table],
    schema: Schema,
    version: FileVersion,
    limits: FragmentLimits | None = None,
    targets: WriteTargets | None = None,
    *,
    durable: bool = True,
) -> PendingFiles:
    """Write all `batches`; when one fails, all files are deleted. `durable` is as for `FragmentWriter`."""
    with FragmentWriter(store, schema, version, limits, targets=targets, durable=durable) as writer:
        for batch in batches:
            writer.write(batch)
        return writer.finish_pending()


def write_new_table(
    store: Store,
    batches: Iterable[pa.RecordBatch | pa.Table],
    schema: Schema,
    version: FileVersion,
    limits: FragmentLimits | None = None,
    targets: WriteTargets | None = None,
) -> tuple[Schema, PendingFiles]:
    """Write all `batches`, and return the schema of a new table of them; when one fails, all files are deleted.

    The files are not durable yet.
    """
    with FragmentWriter(store, schema, version, limits, targets=targets, durable=False) as writer:
        for batch in batches:
            writer.write(batch)
        pending = writer.finish_pending()
        return writer.schema, pending
