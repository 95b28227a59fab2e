"""Read rows of several files together: pages with the same encoding are decoded by one call, whatever their file.

Each call has a fixed cost, which is most of the cost of reading few rows of many files. The files are treated as laid
end to end: a byte's position is its position in its own file plus the sizes of the files before. This needs files
that are mapped or in memory.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import field
from itertools import chain, pairwise

import numpy as np
import pyarrow as pa
import pyarrow.types as pt

from lance_ops.core.arrow import new_bytes
from lance_ops.core.records import dataclass
from lance_ops.core.schema import Schema
from lance_ops.core.versions import FileVersion
from lance_ops.file.copied_columns import stores_field_alike
from lance_ops.file.decoded_table import table_of
from lance_ops.file.leaves import leaves_of_field
from lance_ops.file.open_file import LeafPage
from lance_ops.file.page_reading import (
    Budget,
    Ranges,
    RowSelection,
    SourceBytes,
    Steps,
    combine_steps,
    merge_ranges,
    naming_place,
    run_steps,
)
from lance_ops.file.reader import FileReader
from lance_ops.file.v2_1 import assemble, concat_rows, read_pages
from lance_ops.file.v2_1.layouts import LeafRows
from lance_ops.store import View

__all__ = ["FileRows", "PageGroup", "add_to_groups", "can_read_together", "read_files_together"]


@dataclass(frozen=True, eq=False)
class FileRows:
    """Rows to read of one file: at least one. `view` has the file's bytes if the caller has read them already."""

    reader: FileReader
    rows: RowSelection
    view: View | None = None


def can_read_together(readers: Sequence[FileReader], schema: Schema) -> bool:
    """Return whether `read_files_together` takes these files and this schema.

    It takes files in place, of 2.1 or later, that have rows and store all fields as `schema` has them; no dictionaries.
    """
    if any(pt.is_dictionary(part.arrow_type) for part in schema.walk()):
        return False
    if not all(reader.num_rows and reader.is_in_place and reader.version >= FileVersion.V2_1 for reader in readers):
        return False
    by_schema = {id(reader.schema): reader for reader in readers}.values()  # files of one table often share a schema
    return all(stores_field_alike(reader, wanted) for reader in by_schema for wanted in schema.fields)


def read_files_together(files: Sequence[FileRows], schema: Schema, budget: Budget | None = None) -> pa.Table:
    """Return the rows of all files, in order, as one chunk a column; `can_read_together` must hold.

    Without a budget, a read has what the sizes of the files allow. Raises `ReadTooLarge` if one read may not produce so
    much. A `CorruptFile` may name another one of the files.
    """
    return _FilesEndToEnd(files, budget).read(schema)


@dataclass(frozen=True, eq=False)
class PageGroup:
    """Pages of one leaf with equal read keys: each with its wanted rows and where its file begins."""

    path: str
    read_key: Hashable | None
    pages: list[LeafPage] = field(default_factory=list)
    rows: list[RowSelection] = field(default_factory=list)
    file_starts: list[int] = field(default_factory=list)

    def steps(self, budget: Budget, place: str) -> Steps[LeafRows]:
        """Return the steps that read the rows, by positions in the files laid end to end."""
        return read_pages(self.pages, self.rows, budget, self.path, place, self.file_starts)


def add_to_groups(groups: list[PageGroup], path: str, page: LeafPage, rows: RowSelection, file_start: int) -> None:
    """Add the next page of a leaf, whose file begins at `file_start`, to the last group or to a new one."""
    key = page.read_key
    if key is None or not groups or groups[-1].read_key != key:
        groups.append(PageGroup(path, key))
    groups[-1].pages.append(page)
    groups[-1].rows.append(rows)
    groups[-1].file_starts.append(file_start)


class _FilesEndToEnd:
    """Files laid end to end, with a gap of one byte, so that no range of one file touches a range of the next."""

    def __init__(self, files: Sequence[FileRows], budget: Budget | None) -> None:
        self._files = files
        sizes = [file.reader.size_bytes for file in files]
        self._file_starts = np.cumsum([0, *(size + 1 for size in sizes[:-1])])
        self._budget = Budget(sum(sizes)) if budget is None else budget
        self._views = [file.view for file in files]

    def read(self, schema: Schema) -> pa.Table:
        path = self._files[0].reader.path
        groups = self._group_pages(schema)
        steps = [
            group.steps(self._budget, f"column {wanted.name!r}")
            for wanted, leaves in zip(schema.fields, groups, strict=True)
            for leaf in leaves
            for group in leaf
        ]
        results = iter(run_steps(combine_steps(steps), self._fetch))
        arrays = []
        for wanted, leaves in zip(schema.fields, groups, strict=True):
            with naming_place(path, f"column {wanted.name!r}"):
                arrays.append([assemble(wanted, [concat_rows([next(results) for _ in leaf]) for leaf in leaves])])
        return table_of(schema, arrays, sum(file.rows.count for file in self._files), path)

    def _group_pages(self, schema: Schema) -> list[list[list[PageGroup]]]:
        """Return, for each leaf of each field, the pages of all files in groups that are read by one call."""
        found: list[list[list[PageGroup]]] = [[[] for _ in leaves_of_field(wanted)] for wanted in schema.fields]
        for file, file_start in zip(self._files, self._file_starts.tolist(), strict=True):
            leaves = chain.from_iterable(file.reader.pages(schema.fields, file.rows))
            for groups, pages in zip(chain.from_iterable(found), leaves, strict=True):
                for page, rows in pages:
                    add_to_groups(groups, file.reader.path, page, rows, file_start)
        return found

    def _fetch(self, ranges: Ranges) -> SourceBytes:
        """Return copies of the bytes at positions in the files laid end to end."""
        starts, stops = merge_ranges(ranges)
        bounds = [*starts.searchsorted(self._file_starts).tolist(), len(starts)]
        sizes = stops - starts
        places = sizes.cumsum() - sizes
        data = new_bytes(int(sizes.sum()))
        for number, (first, last) in enumerate(pairwise(bounds)):
            if first == last:
                continue
            file_start, view = self._file_starts[number], self._view(number)
            own_starts, own_stops = starts[first:last] - file_start, stops[first:last] - file_start
            self._files[number].reader.copy_in_place(view, Ranges(own_starts, own_stops), data, places[first:last])
        return SourceBytes(data, starts, places)

    def _view(self, number: int) -> View:
        view = self._views[number]
        if view is None:
            view = self._views[number] = self._files[number].reader.view()
        return view
