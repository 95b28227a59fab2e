"""Reading several files as one: rows of each, one file after the other.

What a page costs before its first value is decoded is the same for one row as for all, so pages of one kind are decoded
by one call whichever files they lie in. The files are laid end to end, in thought: a byte is as far into all of them as
it is into its own, and the files before it are long. For that their bytes must be in place.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass, field
from itertools import chain, pairwise

import numpy as np
import pyarrow as pa
import pyarrow.types as pt

from lance_ops.core.schema import Schema
from lance_ops.core.versions import FileVersion
from lance_ops.file.budget import Budget
from lance_ops.file.copied_columns import holds_alike
from lance_ops.file.decoding_errors import reporting
from lance_ops.file.leaves import leaves_of_field
from lance_ops.file.reader import FileReader, table_of
from lance_ops.file.rows import Rows
from lance_ops.file.source import Ranges, SourceBytes, Steps, drive, join, merged
from lance_ops.file.v2_1 import assemble, concat_rows, read_pages
from lance_ops.file.v2_1.layouts import LeafRows, PageLayout
from lance_ops.store import View

__all__ = ["JoinedFile", "can_be_joined", "read_joined"]


@dataclass(frozen=True, eq=False)
class JoinedFile:
    """Some rows, at least one, of a file that `can_be_joined`."""

    reader: FileReader
    rows: Rows


def can_be_joined(readers: Sequence[FileReader], schema: Schema) -> bool:
    """Return whether files have rows, are in place, of 2.1 or later, and have all fields as they are given here."""
    if any(pt.is_dictionary(part.arrow_type) for part in schema.walk()):
        return False
    if not all(reader.num_rows and reader.is_in_place and reader.version >= FileVersion.V2_1 for reader in readers):
        return False
    different = {id(reader.schema): reader for reader in readers}.values()  # files of one table mostly share one
    return all(holds_alike(reader, wanted) for reader in different for wanted in schema.fields)


def read_joined(files: Sequence[JoinedFile], schema: Schema) -> pa.Table:
    """Return the rows of all these files, in order, a single chunk a column.

    Raises `ReadTooLarge` where that is more than one read may make. A `CorruptFile` may name another of the files.
    """
    return _Joined(files).read(schema)


@dataclass(frozen=True, eq=False)
class _Run:
    """Pages that are read as one, being alike, and for each where its file begins."""

    path: str
    alike: Hashable | None
    layouts: list[PageLayout] = field(default_factory=list)
    rows: list[Rows] = field(default_factory=list)
    begins: list[int] = field(default_factory=list)

    def steps(self, budget: Budget, place: str) -> Steps[LeafRows]:
        """Return the steps that read them, by positions in all files."""
        return read_pages(self.layouts, self.rows, budget, self.path, place, self.begins)


class _Joined:
    """Files end to end, with a byte between them, so that no range of one touches the next."""

    def __init__(self, files: Sequence[JoinedFile]) -> None:
        self._files = files
        sizes = [file.reader.size_bytes for file in files]
        self._begins = np.cumsum([0, *(size + 1 for size in sizes[:-1])])
        self._budget = Budget(sum(sizes))
        self._views: dict[int, View] = {}

    def read(self, schema: Schema) -> pa.Table:
        path = self._files[0].reader.path
        runs = self._runs(schema)
        steps = [
            run.steps(self._budget, f"column {wanted.name!r}")
            for wanted, leaves in zip(schema.fields, runs, strict=True)
            for leaf in leaves
            for run in leaf
        ]
        results = iter(drive(join(steps), self._fetch))
        arrays = []
        for wanted, leaves in zip(schema.fields, runs, strict=True):
            with reporting(path, f"column {wanted.name!r}"):
                arrays.append([assemble(wanted, [concat_rows([next(results) for _ in leaf]) for leaf in leaves])])
        return table_of(schema, arrays, sum(file.rows.count for file in self._files), path)

    def _runs(self, schema: Schema) -> list[list[list[_Run]]]:
        """Return, for each leaf of each field, the pages of all files that are read as one."""
        found: list[list[list[_Run]]] = [[[] for _ in leaves_of_field(wanted)] for wanted in schema.fields]
        for file, begin in zip(self._files, self._begins.tolist(), strict=True):
            columns = chain.from_iterable(file.reader.pages(schema.fields, file.rows))
            for runs, pages in zip(chain.from_iterable(found), columns, strict=True):
                for layout, rows in pages:
                    alike = layout.alike
                    if alike is None or not runs or runs[-1].alike != alike:
                        runs.append(_Run(file.reader.path, alike))
                    runs[-1].layouts.append(layout)
                    runs[-1].rows.append(rows)
                    runs[-1].begins.append(begin)
        return found

    def _fetch(self, ranges: Ranges) -> SourceBytes:
        """Return bytes by their positions in all files, copied together."""
        starts, stops = merged(ranges)
        bounds = [*starts.searchsorted(self._begins).tolist(), len(starts)]
        pieces = []
        for number, (first, last) in enumerate(pairwise(bounds)):
            if first == last:
                continue
            begin, view = self._begins[number], self._view(number)
            own_starts, own_stops = starts[first:last] - begin, stops[first:last] - begin
            view.will_need(own_starts, own_stops)
            data = np.frombuffer(view.buffer, np.uint8)
            pieces += [data[start:stop] for start, stop in zip(own_starts.tolist(), own_stops.tolist(), strict=True)]
        sizes = stops - starts
        data = pieces[0] if len(pieces) == 1 else np.concatenate(pieces)
        return SourceBytes(data, starts, np.cumsum(sizes) - sizes)

    def _view(self, number: int) -> View:
        view = self._views.get(number)
        if view is None:
            view = self._views[number] = self._files[number].reader.view()
        return view
