"""Open small files of one schema together, and read rows of all of them by one decode for each column."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise

import numpy as np
import pyarrow as pa

from lance_ops import kernels
from lance_ops.core.arrow import new_bytes
from lance_ops.core.cached_property import cached_property
from lance_ops.core.errors import CorruptFile, LanceOpsError
from lance_ops.core.ndarrays import Int64Array
from lance_ops.core.records import dataclass
from lance_ops.core.schema import Schema
from lance_ops.core.versions import FileVersion
from lance_ops.file.alike_files.metadata import FileTable, PageTable
from lance_ops.file.alike_files.page_checks import FileParts, PageChecks
from lance_ops.file.container import ALIGNMENT, Page, decode_any, decode_encoding
from lance_ops.file.decoded_table import table_of
from lance_ops.file.leaves import Leaf, leaves_of, leaves_of_field, number_leaves
from lance_ops.file.page_reading import (
    Budget,
    Extent,
    Ranges,
    RowSelection,
    RowSet,
    SourceBytes,
    Steps,
    combine_steps,
    merge_ranges,
    naming_place,
    run_steps,
    split_rows,
)
from lance_ops.file.several_files import PageGroup, add_to_groups
from lance_ops.file.v2_1 import assemble, concat_rows, describe_joinable, open_page, read_joined
from lance_ops.file.v2_1.layouts import JoinedPages, LeafRows, MiniBlockDescription
from lance_ops.store import Store
from lance_ops.wire import shared_schema

__all__ = ["WHOLE_FILE_BYTES", "AlikeFiles"]

WHOLE_FILE_BYTES = 128 << 10
"""Files up to this size are read whole; of larger ones, first the end and then the parts that are needed."""

_TAIL_BYTES = 16 << 10
"""The last bytes of a large file, which hold most files' metadata."""

_ALONE_BYTES = 1 << 20
"""The bytes that opening one file by itself counts for in `kernels.do_without_numba`.

It takes about as long as writing them with numpy.
"""

_PADDING = ALIGNMENT - 1
"""The most bytes between two buffers of a file that belong to neither. They are read too, to read once."""

_ZERO = np.zeros(1, np.int64)


@dataclass(frozen=True, eq=False)
class AlikeFiles:
    """Files with the same schema. `path` names the first one.

    All columns that were asked for have one page in each file. Positions count through all files, laid end to end with
    gaps: file `i` begins at `_starts[i]`. Short files are in memory, `_is_whole`, as they are laid.
    """

    path: str
    version: FileVersion
    schema: Schema
    field_ids: tuple[int, ...]
    _store: Store
    _paths: Sequence[str]
    _starts: Int64Array
    _is_whole: bool
    _files: FileTable
    _pages: dict[int, PageTable]
    _checks: PageChecks | None

    @classmethod
    def open(
        cls, store: Store, paths: Sequence[str], sizes: Sequence[int], schema: Schema, *, verify_pages: bool = False
    ) -> AlikeFiles | None:
        """Read the metadata of files of these sizes, and of `schema`'s columns; its fields are known by their ids.

        Returns None for files that must be opened one by one: they differ, or a check fails, of which the other way
        gives the reason. Returns None also for a few files if they are not worth loading the kernels. Pages of files
        that are not read whole are verified when they are read. Raises as `Store.get` does.
        """
        if kernels.do_without_numba(len(paths) * _ALONE_BYTES):
            return None
        lengths = np.array(sizes, np.int64)
        starts = _starts_of(lengths)
        is_whole = max(sizes) <= WHOLE_FILE_BYTES
        kept = lengths if is_whole else np.minimum(lengths, _TAIL_BYTES)
        places = starts if is_whole else _starts_of(kept)
        data, skipped = new_bytes(int(places[-1] + kept[-1]) + 1), lengths - kept
        parts = zip(skipped.tolist(), (kept + 1).tolist(), places.tolist(), strict=True)
        # A part of one byte more shows that the file ends where it should.
        if store.read_parts(paths, [[part] for part in parts], memoryview(data)) != kept.tolist():  # type: ignore[arg-type]  # a buffer
            return None
        table = FileTable.parse(data, places - skipped, lengths, skipped)
        if table is None or (verify_pages and is_whole and not table.has_verified_pages()):
            return None
        path = store.uri_of(paths[0])
        checks = table.page_checks(skipped, path) if verify_pages and not is_whole else None
        if checks is None and verify_pages and not is_whole:
            return None
        try:
            version, stored = FileVersion.from_numbers(*table.numbers, path), shared_schema(table.description, path)
        except LanceOpsError:
            return None
        if version < FileVersion.V2_1 or stored is None:
            return None
        leaves, field_ids, index_of = number_leaves(stored)
        wanted = leaves_of(schema)
        columns = [index_of[leaf.field.id] for leaf in wanted if leaf.field.id in index_of]
        if len(columns) != len(wanted) or len(leaves) != table.num_columns:
            return None
        pages = table.parse_pages(columns)
        if pages is None or not all(
            _is_complete(table, leaves[column], page, path) for column, page in zip(columns, pages, strict=True)
        ):
            return None
        by_column = dict(zip(columns, pages, strict=True))
        return cls(path, version, stored, field_ids, store, paths, starts, is_whole, table, by_column, checks)

    @property
    def num_rows(self) -> Int64Array:
        """The number of rows of each file."""
        return self._files.num_rows

    @cached_property
    def row_ends(self) -> Int64Array:
        """The number of rows up to the end of each file."""
        return self._files.num_rows.cumsum()

    def read(self, schema: Schema, rows: RowSelection, budget: Budget | None = None) -> pa.Table:
        """Return rows, at least one, of fields that the files were opened for, as one chunk a column.

        Rows count from the first file on, through all files. Without a budget, a read has what the sizes of the files
        allow. Raises `ReadTooLarge` if the rows are larger than one read may produce. A `CorruptFile` may name another
        one of the files.
        """
        budget = Budget(int(self._files.sizes.sum())) if budget is None else budget
        if isinstance(rows, RowSet):
            touched = np.unique(self.row_ends.searchsorted(rows.indices, side="right"))
            if len(touched) < len(self._paths):
                return self._only(touched).read(schema, self._in_only(touched, rows), budget)
        leaves, _, index_of = number_leaves(self.schema)
        parts: list[list[list[Steps[LeafRows]]]] = []
        for wanted in schema.fields:
            columns = [index_of[leaf.field.id] for leaf in leaves_of_field(wanted)]
            place = f"column {wanted.name!r}"
            parts.append([self._steps(leaves[column], self._pages[column], rows, budget, place) for column in columns])
        steps = [step for of_field in parts for of_leaf in of_field for step in of_leaf]
        results = iter(run_steps(combine_steps(steps), self._fetch))
        arrays = []
        for wanted, of_field in zip(schema.fields, parts, strict=True):
            with naming_place(self.path, f"column {wanted.name!r}"):
                arrays.append(
                    [assemble(wanted, [concat_rows([next(results) for _ in of_leaf]) for of_leaf in of_field])]
                )
        return table_of(schema, arrays, rows.count, self.path)

    def _only(self, numbers: Int64Array) -> AlikeFiles:
        """Return some of the files."""
        data, starts, sizes, facts = self._files.data, self._files.starts, self._files.sizes, self._files.facts
        files = FileTable(data, starts[numbers], sizes[numbers], facts[numbers])
        return replace(
            self,
            _paths=[self._paths[number] for number in numbers.tolist()],
            _starts=self._starts[numbers],
            _files=files,
            _pages={column: PageTable(files, pages.facts[numbers]) for column, pages in self._pages.items()},
            _checks=self._checks and self._checks.only(numbers.tolist()),
        )

    def _in_only(self, numbers: Int64Array, rows: RowSet) -> RowSet:
        """Return rows of some of the files, counted from the first of those."""
        counts = self.num_rows[numbers]
        skipped: Int64Array = self.row_ends[numbers] - counts.cumsum()
        file_of = numbers.searchsorted(self.row_ends.searchsorted(rows.indices, side="right"))
        return RowSet(rows.indices - skipped[file_of])

    def _steps(
        self, leaf: Leaf, pages: PageTable, rows: RowSelection, budget: Budget, place: str
    ) -> list[Steps[LeafRows]]:
        """Return the steps that read rows of one leaf: one for each run of pages that are read by one call."""
        encodings = pages.encodings()
        with naming_place(self.path, place):
            known = {each: describe_joinable(*decode_any(each), leaf, self.path, place) for each in set(encodings)}
        joinable = {each: found for each, found in known.items() if found is not None}
        most = max((each.num_buffers for each in joinable.values()), default=0)
        if len(joinable) < len(known) or pages.num_buffers.min() < most:
            return [group.steps(budget, place) for group in self._page_groups(leaf, pages, encodings, rows, place)]
        described = [joinable[each] for each in encodings]
        changes = _changes(described) if len(joinable) > 1 else []
        bounds = [0, *changes, len(described)]
        (words, word_bytes), (chunks, chunk_bytes) = pages.buffer(0), pages.buffer(1)
        words, chunks = words + self._starts, chunks + self._starts
        runs = [
            JoinedPages(
                leaf,
                described[first:last],
                pages.lengths[first:last],
                (words[first:last], chunks[first:last]),
                (word_bytes[first:last], chunk_bytes[first:last]),
            )
            for first, last in pairwise(bounds)
        ]
        row_bounds = [0, *self.row_ends[np.array(bounds[1:]) - 1].tolist()]
        return [
            read_joined(runs[part.page], part.rows, budget, self.path, place) for part in split_rows(rows, row_bounds)
        ]

    def _page_groups(
        self, leaf: Leaf, pages: PageTable, encodings: Sequence[bytes], rows: RowSelection, place: str
    ) -> list[PageGroup]:
        """Return the wanted pages as objects, in groups that are read by one call."""
        groups: list[PageGroup] = []
        lengths, sizes, starts = pages.lengths.tolist(), self._files.sizes.tolist(), self._starts.tolist()
        for part in split_rows(rows, [0, *self.row_ends.tolist()]):
            at = part.page
            page = Page(lengths[at], Extent.of_pairs(pages.extents(at)), 0, *decode_any(encodings[at]))
            layout = open_page(page, leaf, sizes[at], self.path, place)
            add_to_groups(groups, self.path, layout, part.rows, starts[at])
        return groups

    def _fetch(self, ranges: Ranges) -> SourceBytes:
        """Return the bytes of ranges: all bytes of short files, or those that are read now.

        Raises `CorruptFile` for a file that is cut short by now, and for a block that has not its checksum.
        """
        if self._is_whole:
            return SourceBytes(self._files.data, _ZERO, _ZERO)
        is_wanted = ranges.starts < ranges.stops
        if not is_wanted.any():
            return SourceBytes(new_bytes(0), _ZERO, _ZERO)
        starts, stops = merge_ranges(Ranges(ranges.starts[is_wanted], ranges.stops[is_wanted] + _PADDING))
        sizes = stops - _PADDING - starts
        places = sizes.cumsum() - sizes
        data = new_bytes(int(sizes.sum()))
        first_of = starts.searchsorted(self._starts)
        file_of = self._starts.searchsorted(starts, side="right") - 1
        positions = starts - self._starts[file_of]
        if self._checks is not None:
            own = zip(file_of.tolist(), positions.tolist(), (positions + sizes).tolist(), strict=True)
            self._checks.verify(list(own), self._read_parts)
        parts = list(zip(positions.tolist(), sizes.tolist(), places.tolist(), strict=True))
        bounds = [*first_of.tolist(), len(parts)]
        read = [(number, parts[a:b]) for number, (a, b) in enumerate(pairwise(bounds)) if a < b]
        if not self._read_parts(read, memoryview(data)):  # type: ignore[arg-type]  # an array is a buffer
            raise CorruptFile(self.path, "read", "this or another file ended before its pages, or could not be read")
        return SourceBytes(data, starts, places)

    def _read_parts(self, parts: FileParts, out: memoryview) -> bool:
        """Read parts of files; return whether all of them were read whole."""
        found = self._store.read_parts([self._paths[number] for number, _ in parts], [own for _, own in parts], out)
        return found == [size for _, own in parts for _, size, _ in own]


def _starts_of(sizes: Int64Array) -> Int64Array:
    """Return where parts of these sizes begin if they are laid end to end with gaps."""
    ends = (sizes + ALIGNMENT).cumsum()
    starts: Int64Array = ends - sizes - ALIGNMENT
    return starts


def _changes(described: Sequence[MiniBlockDescription]) -> list[int]:
    """Return the pages that are not read by the same call as the page before."""
    keys = {id(each): each.format.read_key for each in described}
    return [at for at, (a, b) in enumerate(pairwise(described), 1) if a is not b and keys[id(a)] != keys[id(b)]]


def _is_complete(files: FileTable, leaf: Leaf, page: PageTable, path: str) -> bool:
    """Return whether a column's pages have all rows of their files, at least one each."""
    try:
        decode_encoding(page.column_encoding, path, f"column of {leaf.field.name!r}")
    except LanceOpsError:
        return False
    each, num_rows, lengths = leaf.elements_per_row, files.num_rows, page.lengths
    return bool((num_rows > 0).all() and (lengths // each == num_rows).all() and (lengths % each == 0).all())
