"""The methods of `LanceFragment` that prepare changes: they write new files and commit nothing.

Each returns the changed fragment, for an operation of `LanceOperation` that the caller commits by
`LanceDataset.commit`.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from os import PathLike, fspath
from typing import Any, Literal, overload

import pyarrow as pa
from pyroaring import BitMap

from lance_ops import reading, writing
from lance_ops.api.argument_checks import check_public_methods
from lance_ops.api.arrow_input import reader_of
from lance_ops.api.file_options import storage_version
from lance_ops.api.schemas import LanceSchema
from lance_ops.api.udf import BatchUDF, source_of
from lance_ops.api.version_handle import Handle
from lance_ops.api.write_destination import check_mode
from lance_ops.changing import columns as column_changes
from lance_ops.committers import open_root
from lance_ops.core.errors import InvalidInput, SchemaMismatch
from lance_ops.core.schema import Schema, with_new_fields
from lance_ops.core.versions import FileVersion
from lance_ops.snapshot import Session, Snapshot
from lance_ops.table import Fragment
from lance_ops.table.rows import encode_bitmap

__all__ = ["FragmentChanges"]

Patched = tuple[Fragment, list[int]]


@check_public_methods
class FragmentChanges:
    """Verbs on the rows and columns of one fragment of one version."""

    def __init__(self, snapshot: Snapshot, fragment: Fragment) -> None:
        self._snapshot = snapshot
        self._fragment = fragment

    @staticmethod
    def create(
        dataset_uri: str | PathLike[str],
        data: Any,
        fragment_id: int | None = None,
        schema: pa.Schema | None = None,
        max_rows_per_group: int | None = 1024,
        progress: writing.FragmentWriteProgress | None = None,
        mode: str = "append",
        *,
        data_storage_version: str | None = None,
        use_legacy_format: bool | None = None,
        storage_options: Mapping[str, str] | None = None,
        session: Session | None = None,
    ) -> Fragment:
        """Write data as one fragment, for an existing dataset or one to be created; return it and commit nothing.

        Mode `append` uses the schema of the dataset; `create` and `overwrite` use that of the data. `session` has no
        effect: what is written is not read again. Raises `SchemaMismatch` for data without rows, or naming the
        field that does not fit.
        """
        check_mode(mode)
        uri = fspath(dataset_uri)
        reader = reader_of(data, schema)
        existing = Snapshot.open_if_exists(uri, storage_options)
        store = open_root(uri, storage_options).store if existing is None else existing.store
        asked = storage_version(data_storage_version, use_legacy_format)
        if existing is not None and mode == "append":
            target, version = existing.schema, writing.choose_file_version(existing, asked)
        else:
            version = FileVersion.parse(asked or (existing.file_version.value if existing else "stable"))
            target = writing.table_schema(reader.schema, version)
        if progress is not None and fragment_id:
            progress = writing.NumberedProgress(progress, fragment_id)
        limits = writing.FragmentLimits(sys.maxsize, sys.maxsize, progress=progress)
        written = writing.write_fragments(store, reader, target, version, limits)
        if not written.fragments:
            raise SchemaMismatch("a fragment has at least one row, and the data has none")
        (fragment,) = written.fragments
        return Fragment(fragment_id or fragment.id, fragment.files, physical_rows=fragment.physical_rows)

    @staticmethod
    def create_from_file(filename: str, dataset: Handle, fragment_id: int) -> Fragment:
        """Return a fragment of one data file in the dataset's folder that no version names.

        `filename` is beneath the directory of data files. Raises `UnsafePath` for one that leaves it, `ObjectNotFound`,
        and `SchemaMismatch` naming a column that the file or the table lacks.
        """
        return writing.describe_fragment(dataset.snapshot, filename, fragment_id)

    def delete(self, predicate: reading.UserFilter) -> Fragment | None:
        """Write a deletion file that also hides the rows for which the predicate is true; return None if no row is
        left.
        """
        request = reading.ScanRequest(
            Schema(()), reading.bind_filter(self._snapshot, predicate), fragment_ids=(self._fragment.id,)
        )
        found = BitMap()
        for rows in reading.scan_rows(self._snapshot.verifying(), request):
            found.update(rows.bitmap())
        return self.delete_rows(found)

    def delete_rows(self, offsets: Iterable[int]) -> Fragment | None:
        """Write a deletion file that also hides the rows at these physical offsets; return None if no row is left."""
        gone = BitMap(offsets)
        if gone and gone.max() >= self._fragment.physical_rows:
            raise InvalidInput(f"fragment {self._fragment.id} has no row {gone.max()}")
        if not gone:
            return self._fragment
        deletions = writing.write_deletion_files(self._snapshot, {self._fragment.id: gone})
        deletions.pending.make_durable(self._snapshot.store)
        return deletions.updated_fragments[0] if deletions.updated_fragments else None

    def merge_columns(
        self,
        value_func: Mapping[str, str] | BatchUDF | Callable[[pa.RecordBatch], Any] | Any,
        columns: Sequence[str] | None = None,
        batch_size: int | None = None,
        reader_schema: pa.Schema | None = None,
    ) -> tuple[Fragment, LanceSchema]:
        """Write new columns, as `LanceDataset.add_columns` takes them; return the fragment and the schema with them.

        `columns` are what a function reads; row columns such as `_rowid` may be among them.
        """
        if isinstance(value_func, Mapping):
            added, computed = column_changes.bind_computed(self._snapshot, value_func)
            return self._with_columns(added, computed, batch_size)
        if callable(value_func):
            udf = value_func if isinstance(value_func, BatchUDF) else BatchUDF(value_func)
            if udf.cache is not None:
                raise InvalidInput("a checkpoint is for LanceDataset.add_columns: keep your own for each fragment")
            reads = tuple(self._snapshot.schema.names if columns is None else columns)
            source = source_of(udf, reads, self._snapshot.schema)
            return self._with_columns(udf.output_schema or self._first_result(source), source, batch_size)
        reader = reader_of(value_func, reader_schema)
        schema, new = with_new_fields(self._snapshot.schema, reader.schema, self._snapshot.manifest.max_field_id + 1)
        files = self._durable(column_changes.write_streamed_columns(self._snapshot, new, reader, [self._fragment]))
        return self._changed(column_changes.fragments_with_column_files(self._snapshot, schema, files)), LanceSchema(
            schema
        )

    def merge(
        self, data_obj: Any, left_on: str, right_on: str | None = None, schema: pa.Schema | None = None
    ) -> tuple[Fragment, LanceSchema]:
        """Write the columns of `data_obj`, joined by key, for this fragment's rows; return it and the schema."""
        table = reader_of(data_obj, schema).read_all()
        return self._with_columns(*column_changes.bind_joined(self._snapshot, table, left_on, right_on or left_on))

    @overload
    def update_columns(
        self,
        data_obj: Any,
        left_on: str = "_rowid",
        right_on: str | None = None,
        schema: pa.Schema | None = None,
        *,
        with_offsets: Literal[False] = False,
    ) -> Patched: ...

    @overload
    def update_columns(
        self,
        data_obj: Any,
        left_on: str = "_rowid",
        right_on: str | None = None,
        schema: pa.Schema | None = None,
        *,
        with_offsets: Literal[True],
    ) -> tuple[Fragment, list[int], bytes]: ...

    def update_columns(
        self,
        data_obj: Any,
        left_on: str = "_rowid",
        right_on: str | None = None,
        schema: pa.Schema | None = None,
        *,
        with_offsets: bool = False,
    ) -> Patched | tuple[Fragment, list[int], bytes]:
        """Write columns again with values of `data_obj`, joined by key; rows without a match keep their values.

        Returns the fragment and the ids of the fields written. With `with_offsets`, also returns the physical offsets
        of the rows with new values, as a portable Roaring bitmap.
        """
        table = reader_of(data_obj, schema).read_all()
        patch = column_changes.bind_replaced_values(self._snapshot, table, left_on, right_on or left_on)
        files = self._durable(
            file
            for task in column_changes.plan_value_replacement(self._snapshot, patch, (self._fragment.id,))
            for file in column_changes.write_columns(task)
        )
        (fragment,), fields = column_changes.fragments_with_replaced_values(self._snapshot, patch, files)
        if not with_offsets:
            return fragment, list(fields)
        return (
            fragment,
            list(fields),
            encode_bitmap(column_changes.offsets_of_replaced_values(self._snapshot, patch, fragment.id)),
        )

    def _with_columns(
        self, added: pa.Schema, source: column_changes.ColumnSource, batch_size: int | None = None
    ) -> tuple[Fragment, LanceSchema]:
        schema, new = with_new_fields(self._snapshot.schema, added, self._snapshot.manifest.max_field_id + 1)
        tasks = column_changes.plan_backfill(self._snapshot, new, source, batch_size, fragment_ids=(self._fragment.id,))
        files = self._durable(file for task in tasks for file in column_changes.write_columns(task))
        return self._changed(column_changes.fragments_with_column_files(self._snapshot, schema, files)), LanceSchema(
            schema
        )

    def _durable(self, files: Iterable[column_changes.ColumnFile]) -> list[column_changes.ColumnFile]:
        """Make files durable: who commits them later does not know that they may not be."""
        written = list(files)
        column_changes.pending_columns(self._snapshot, written).make_durable(self._snapshot.store)
        return written

    def _changed(self, fragments: Iterable[Fragment]) -> Fragment:
        return next(fragment for fragment in fragments if fragment.id == self._fragment.id)

    def _first_result(self, source: column_changes.ColumnSource) -> pa.Schema:
        request = replace(column_changes.backfill_request(self._snapshot, source.reads, self._fragment.id), limit=1)
        (rows,) = reading.scan(self._snapshot, request)
        return source.compute(rows, self._snapshot.schema, "the first row").schema
