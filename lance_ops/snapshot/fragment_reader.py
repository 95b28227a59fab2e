"""Read physical rows of one fragment, whichever of its data files hold the columns.

A fragment may keep its columns in several files (a column added later has a file of its own). A field that no file
holds is null in every row: that is how a column is added without writing anything. The manifest maps fields to the
columns of a file, because the file itself may have other field ids. The reader returns deleted rows too.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import reduce
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as pt

from lance_ops import legacy
from lance_ops.core.errors import CorruptFile, UnsupportedFeature
from lance_ops.core.ndarrays import Uint64Array
from lance_ops.core.records import dataclass
from lance_ops.core.schema import Field, Schema
from lance_ops.core.versions import FileVersion
from lance_ops.file import Budget, FileReader, row_bytes
from lance_ops.snapshot.caches import OpenFiles
from lance_ops.snapshot.stored_columns import check_types, live_columns, stored_ids_by_table_id
from lance_ops.store import View
from lance_ops.table import DataFile, Fragment
from lance_ops.table.manifest import FileLocations

if TYPE_CHECKING:
    from lance_ops.core.predicate import Predicate

__all__ = ["FragmentReader"]

ReadFile = Callable[[FileReader, Schema], pa.Table]


_Part = tuple[Schema, pa.Table]
"""What one data file holds of a projection."""


@dataclass(frozen=True)
class _Source:
    """One data file and the part of the projection that it holds."""

    file: DataFile
    schema: Schema


class FragmentReader:
    """Reads ranges or scattered offsets of one fragment's physical rows.

    `files` opens each file when it is first needed and shares it with other readers. Large reads are decoded in
    `threads` threads. A reader that `verifies` compares every block that it reads with its checksum, once. `scanned`
    are the ids of fields of which the caller will read most rows, perhaps in several reads.
    """

    def __init__(
        self,
        locations: FileLocations,
        fragment: Fragment,
        files: OpenFiles,
        threads: int = 1,
        *,
        verifies: bool = False,
        scanned: frozenset[int] = frozenset(),
    ) -> None:
        self._locations = locations
        self._fragment = fragment
        self._files = files
        self._threads = threads
        self._stored_ids: dict[str, Mapping[int, int]] = {}
        self._verifies = verifies
        self._scanned = scanned
        self._verifying: dict[str, FileReader] = {}

    @property
    def fragment(self) -> Fragment:
        """The fragment that is read."""
        return self._fragment

    def read(
        self, schema: Schema, start: int = 0, stop: int | None = None, *, budget: Budget | None = None
    ) -> pa.Table:
        """Return physical rows `start` to `stop` (exclusive) of the fields of `schema`.

        All files share `budget`; without one, each has what its size allows.
        """
        end = self._fragment.physical_rows if stop is None else min(stop, self._fragment.physical_rows)

        def read(reader: FileReader, part: Schema) -> pa.Table:
            return reader.read(part, start, end, threads=self._threads, budget=budget)

        of_most_rows = 2 * (end - start) >= self._fragment.physical_rows
        return self._read(schema, max(end - start, 0), read, budget, of_most_rows=of_most_rows)

    def take(self, schema: Schema, offsets: Uint64Array, *, budget: Budget | None = None) -> pa.Table:
        """Return the rows at physical `offsets`, in the order of `offsets`; `budget` is as in `read`."""
        return self._read(schema, len(offsets), lambda reader, part: reader.take(part, offsets, budget=budget), budget)

    def load(self, schema: Schema) -> None:
        """Load the metadata of `schema`'s fields from files that are read in place, before their rows are read."""
        for source in self._sources(schema):
            if self._is_in_place(source.file):
                reader = self._open_checked(source.file)
                reader.load(self._as_stored(source, reader))

    def whole_file(self, schema: Schema) -> tuple[FileReader, View] | None:
        """Return the data file that holds all fields of `schema` under the same field ids, with its bytes in place.

        Returns None if there is none. A file that is not read in place is not opened.
        """
        sources = self._sources(schema)
        if len(sources) != 1 or sources[0].schema.fields != schema.fields or not self._is_in_place(sources[0].file):
            return None
        (source,) = sources
        store, path = self._locations.data_file(source.file.base_id, source.file.path)
        view = store.view(path)
        reader = self._open_checked(source.file, view)
        return (reader, reader.view(view)) if self._as_stored(source, reader) is source.schema else None

    @property
    def has_statistics(self) -> bool:
        """Whether a data file may have statistics that `rows_that_may_match` uses."""
        return any(_has_statistics(file) for file in self._fragment.files)

    def rows_that_may_match(
        self, predicate: Predicate, fields: Mapping[str, Field], start: int, stop: int
    ) -> list[tuple[int, int]]:
        """Return the runs of physical rows in `[start, stop)` that the statistics in data files do not exclude.

        Only 0.1 files have statistics. `fields` are the fields of the predicate's columns.
        """
        runs = [(start, stop)]
        for file in self._fragment.files:
            if not _has_statistics(file):
                continue
            reader = self._open(file)
            ids = self._ids_in(file, reader)
            in_file = {name: _renumbered(field, ids) for name, field in fields.items() if field.id in file.fields}
            runs = [part for run in runs for part in legacy.rows_that_may_match(reader, in_file, predicate, *run)]
        return runs

    def batch_offsets(self) -> tuple[int, ...]:
        """Return the row offsets where the batches of the fragment's 0.1 files begin and end; all its files agree."""
        return self._open(self._fragment.files[0]).batch_offsets()

    def encoded_bytes(self, schema: Schema) -> int:
        """Return roughly how many bytes the fields of `schema` take in the files; an upper bound if some are blobs."""
        return sum(
            source.file.file_size_bytes
            if any(field.is_blob_v1 for field in source.schema.walk())
            else (reader := self._open(source.file)).encoded_bytes(self._as_stored(source, reader))
            for source in self._sources(schema)
        )

    def field_sizes(self) -> Mapping[int, int]:
        """Return how many bytes each field's pages take, by field id; 0.1 files do not record it and are left out."""
        sizes: Counter[int] = Counter()
        for file in self._fragment.files:
            reader = self._open(file)
            for field_id, column in live_columns(file, reader) if file.column_indices else ():
                sizes[field_id] += reader.column(column).size_bytes
        return sizes

    def check(self, schema: Schema) -> None:
        """Open every data file; raise `CorruptFile` for one whose rows or columns are not the manifest's.

        `schema` is the table's.
        """
        for file in self._fragment.files:
            self._open_checked(file)
        for source in self._sources(schema):
            self._as_stored(source, self._open(source.file))

    def count_rows(self) -> int:
        """Return the number of physical rows in the first data file, whatever the manifest says; 0 without a file."""
        return self._open(self._fragment.files[0]).num_rows if self._fragment.files else 0

    def _read(
        self, schema: Schema, num_rows: int, read: ReadFile, budget: Budget | None, *, of_most_rows: bool = False
    ) -> pa.Table:
        parts, sources = [], self._sources(schema)
        for source in sources:
            reader = self._open_checked(source.file, of_most_rows=of_most_rows)
            wanted = self._as_stored(source, reader)
            table = read(reader, wanted)
            if len(sources) == 1 and wanted is schema and not schema.names_extensions:
                return table
            parts.append((source.schema, table))
        of_nulls = Budget(0) if budget is None else budget
        columns = _assemble(schema.fields, parts, num_rows, of_nulls)
        return pa.Table.from_arrays(columns, schema=schema.to_arrow_storage())

    def _open_checked(self, file: DataFile, view: View | None = None, *, of_most_rows: bool = False) -> FileReader:
        """Open a data file, for most of its rows or for some; raise `CorruptFile` if it has not the fragment's rows."""
        reader = self._open(file, view, whole=of_most_rows and self._scans_most_of(file))
        if reader.num_rows != self._fragment.physical_rows:
            reason = f"{reader.num_rows} rows where fragment {self._fragment.id} has {self._fragment.physical_rows}"
            raise CorruptFile(reader.path, "row count", reason)
        return reader

    def _scans_most_of(self, file: DataFile) -> bool:
        return 2 * len(self._scanned.intersection(file.fields)) >= len(file.fields)

    def _is_in_place(self, file: DataFile) -> bool:
        return self._locations.data_directory(file.base_id).store.reads_in_place

    def _sources(self, schema: Schema) -> list[_Source]:
        sources = []
        for file in self._fragment.files:
            field_ids = set(file.fields)
            fields = schema.fields
            if not field_ids.issuperset(schema.ids):
                fields = tuple(part for field in fields if (part := _part_in(field, field_ids)) is not None)
            if fields:
                sources.append(_Source(file, schema if fields == schema.fields else Schema(fields)))
        return sources

    def _as_stored(self, source: _Source, reader: FileReader) -> Schema:
        """Return the source's part of the projection with the field ids that the file itself uses.

        Raises `CorruptFile` if the file and the manifest contradict each other.
        """
        ids = self._ids_in(source.file, reader)
        wanted = Schema(tuple(_renumbered(field, ids) for field in source.schema.fields)) if ids else source.schema
        check_types(reader, wanted)
        return wanted

    def _ids_in(self, file: DataFile, reader: FileReader) -> Mapping[int, int]:
        if file.path not in self._stored_ids:
            self._stored_ids[file.path] = stored_ids_by_table_id(file, reader)
        return self._stored_ids[file.path]

    def _open(self, file: DataFile, view: View | None = None, *, whole: bool = False) -> FileReader:
        if file.path in self._verifying:
            return self._verifying[file.path]
        location = self._locations.data_file(file.base_id, file.path)
        reader = self._files.open(location, file.file_size_bytes, view, whole=whole)
        if self._verifies:
            reader = self._verifying[file.path] = reader.verifying()
        return reader


def _has_statistics(file: DataFile) -> bool:
    return FileVersion.from_numbers(*file.numbers, where=file.path) is FileVersion.V0_1


def _part_in(field: Field, field_ids: set[int]) -> Field | None:
    """Return the part of a field that a file with these field ids holds; None if it holds nothing of it.

    2.0 files list parents and leaves, later versions list only leaves. A packed struct is listed without its children.
    """
    if not field.children:
        return field if field.id in field_ids else None
    children = tuple(part for child in field.children if (part := _part_in(child, field_ids)) is not None)
    if children:
        return field if children == field.children else replace(field, children=children)
    return field if field.id in field_ids else None


def _renumbered(field: Field, ids: Mapping[int, int]) -> Field:
    children = tuple(_renumbered(child, ids) for child in field.children)
    return replace(field, id=ids.get(field.id, field.id), children=children)


def _assemble(fields: tuple[Field, ...], parts: list[_Part], num_rows: int, budget: Budget) -> list[pa.ChunkedArray]:
    """Return whole columns, each assembled from the files that hold parts of it; null if none does.

    Nulls are counted against the budget, because no file's bytes stand for them.
    """
    held: dict[int, list[tuple[Field, pa.ChunkedArray]]] = {}
    for schema, table in parts:
        for part, column in zip(schema.fields, table.columns, strict=True):
            held.setdefault(part.id, []).append((part, column))
    return [_assemble_one(field, held.get(field.id, []), num_rows, budget) for field in fields]


def _assemble_one(
    field: Field, held: list[tuple[Field, pa.ChunkedArray]], num_rows: int, budget: Budget
) -> pa.ChunkedArray:
    """Return a whole column from the parts of its field that are held.

    As in the reference, a struct is null where it is null in every file that holds a part of it.
    """
    for part, column in held:
        if part is field or part == field:
            return column
    if not held:
        budget.spend(num_rows * row_bytes(field.arrow_type))
        return pa.chunked_array([pa.nulls(num_rows, field.arrow_type)])
    if not pt.is_struct(field.arrow_type):
        raise UnsupportedFeature("a list or map whose children are in several files", f"column {field.name!r}")
    structs = [(part, column.combine_chunks()) for part, column in held]
    below = [(Schema(part.children), pa.Table.from_struct_array(struct)) for part, struct in structs]
    children = [child.combine_chunks() for child in _assemble(field.children, below, num_rows, budget)]
    is_null = reduce(pc.and_, (struct.is_null() for _, struct in structs))
    return pa.chunked_array([pa.StructArray.from_arrays(children, fields=list(field.arrow_type), mask=is_null)])
