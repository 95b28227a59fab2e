"""Read the blocks of small neighbouring fragments together: most of what a small fragment costs is a fixed cost.

Rows that an index found are read together too if they need few bytes, even of large fragments.

Rows are read and tested as those of one block; the caller has them at once, or fragment by fragment. The answer is the
same: what cannot be read together, or fails, is read block by block, so that errors come in their order and name their
file.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import lru_cache
from itertools import pairwise
from typing import NamedTuple, TypeVar

import numpy as np
import pyarrow as pa
import pyarrow.types as pt

from lance_ops.core.errors import LanceOpsError
from lance_ops.core.ndarrays import BoolArray, Uint64Array
from lance_ops.core.schema import Schema
from lance_ops.file import WHOLE_FILE_BYTES, Budget, row_bytes
from lance_ops.reading.joined_fragments import JoinedFragments
from lance_ops.reading.row_columns import SELECTABLE_ROW_COLUMNS
from lance_ops.reading.scan_block import read_live, read_offsets
from lance_ops.reading.scan_plan import BLOCK_BYTES, Block, Blocks, ScanRequest
from lance_ops.reading.scanned_rows import RowOffsets, ScannedRows
from lance_ops.snapshot import Snapshot
from lance_ops.table import Fragment

__all__ = ["JOINED_BYTES", "BlockJoiner", "JoinedRows"]

T = TypeVar("T")

_FEWEST_JOINED, _MAX_JOINED = 16, 64
"""The fewest (about) and the most blocks in a group. Large blocks make smaller groups.

A group has a fixed cost, and most of it is Python's, so smaller groups gain nothing from more threads.
"""

JOINED_BYTES = BLOCK_BYTES
"""The most bytes that are read together: of the decoded values, or of the files if those are larger.

Large files do not count if all values have a fixed width: then it is known how many bytes of a file are read.
"""

_SMALL_BYTES = 1 << 20
"""Larger fragments are read one by one, since a joint read copies their bytes and gains little."""

_CHUNK_BYTES = 8 << 10
"""What a row that an index found counts for in each leaf column, since its chunk is read whole."""

_FIRST_JOINED_VERSION = 2, 1


class _Columns(NamedTuple):
    """Columns that can be read of several fragments at once.

    A row counts for `row_bytes`, and a row that an index found for `chunk_bytes` more.
    """

    schema: Schema
    row_bytes: int
    chunk_bytes: int
    have_fixed_width: bool


class JoinedRows(NamedTuple):
    """Rows of several fragments in the order of the fragments, which are laid end to end.

    `firsts` has the first offset of each fragment, and the end of the last one. `offsets` has that of each row.
    """

    fragments: Sequence[Fragment]
    firsts: Sequence[int]
    offsets: RowOffsets
    table: pa.Table

    def by_fragment(self) -> Iterator[ScannedRows]:
        """Yield the rows of each fragment that has any, with their offsets in it."""
        cuts = self.firsts
        if not isinstance(self.offsets, range):
            cuts = np.searchsorted(self.offsets, np.array(self.firsts, np.uint64)).tolist()
        for fragment, first, (start, stop) in zip(self.fragments, self.firsts, pairwise(cuts), strict=False):
            if start < stop:
                offsets = _shifted(self.offsets[start:stop], first)
                yield ScannedRows(fragment, offsets, self.table.slice(start, stop - start))


class BlockJoiner:
    """Groups the blocks of one scan that are small and neighbours, and reads each group at once."""

    def __init__(self, snapshot: Snapshot, request: ScanRequest) -> None:
        self._snapshot = snapshot
        self._request = request
        self._columns = _columns_to_join(snapshot, request)

    @property
    def joins(self) -> bool:
        """Whether any blocks may be read together."""
        return self._columns is not None

    def group(self, blocks: Blocks, workers: int) -> Iterator[tuple[Block, ...]]:
        """Yield the blocks in groups of neighbours to read together; a large block is a group of its own.

        Each group has about the same number of blocks, so that all `workers` threads end at about the same time.
        """
        group: list[Block] = []
        group_bytes, most = 0, 0
        for block in blocks:
            num_bytes = self._bytes_if_small(block)
            if num_bytes is not None and not most:
                most = _blocks_in_group(len(blocks), num_bytes, workers)
            is_full = num_bytes is None or len(group) == most or group_bytes + num_bytes > JOINED_BYTES
            if group and (is_full or not _are_alike(block, group[0])):
                yield tuple(group)
                group, group_bytes = [], 0
            if num_bytes is None:
                yield (block,)
            else:
                group.append(block)
                group_bytes += num_bytes
        if group:
            yield tuple(group)

    def read(self, blocks: Sequence[Block], finish: Callable[[JoinedRows], T], budget: Budget) -> T | None:
        """Return what `finish` makes of the blocks' matching rows; None if the blocks must be read separately.

        Once it has returned None, the joiner groups no more blocks: the reason likely holds for all fragments.
        """
        columns = self._columns  # another thread may set it to None at any time
        try:
            joined = None if columns is None else self._read(columns.schema, blocks, budget)
            found = None if joined is None else finish(joined)
        except (LanceOpsError, OSError):
            found = None
        if found is None:
            self._columns = None
        return found

    def _bytes_if_small(self, block: Block) -> int | None:
        """Return how many bytes a block counts for in its group; None if it is read alone."""
        fragment, columns = block.fragment, self._columns
        if columns is None or (block.chosen is None and len(block) != fragment.physical_rows):
            return None
        (file, *others) = fragment.files or (None,)
        if file is None or others or not file.file_size_bytes or file.numbers < _FIRST_JOINED_VERSION:
            return None
        num_bytes = fragment.physical_rows * columns.row_bytes
        if not columns.have_fixed_width or file.file_size_bytes <= WHOLE_FILE_BYTES:
            num_bytes = max(num_bytes, file.file_size_bytes)
        if block.chosen is not None:
            num_bytes = min(num_bytes, len(block) * (num_bytes // fragment.physical_rows + columns.chunk_bytes))
        return num_bytes if num_bytes <= _SMALL_BYTES else None

    def _read(self, schema: Schema, blocks: Sequence[Block], budget: Budget) -> JoinedRows | None:
        snapshot, request = self._snapshot, self._request
        fragments = [block.fragment for block in blocks]
        joined = JoinedFragments.open(snapshot, fragments, schema)
        if joined is None:
            return None
        firsts = (0, *joined.ends)
        whole = replace(blocks[0], stop=joined.ends[-1])
        chosen = _chosen(blocks, firsts)
        if chosen is not None:
            return JoinedRows(fragments, firsts, *read_offsets(snapshot, joined, whole, chosen, request.schema, budget))
        live = None if request.include_deleted_rows else _live_mask(snapshot, fragments, firsts)
        return JoinedRows(fragments, firsts, *read_live(snapshot, joined, whole, live, request, budget))


def _blocks_in_group(num_blocks: int, block_bytes: int, workers: int) -> int:
    """Return how many blocks of about this size each group has, so that all workers end at about the same time."""
    fewest = max(-(-num_blocks // _MAX_JOINED), -(-num_blocks * block_bytes // JOINED_BYTES), 1)
    for_all_workers = -(-fewest // workers) * workers
    num_groups = max(min(for_all_workers, round(num_blocks / _FEWEST_JOINED)), fewest)
    return min(-(-num_blocks // num_groups), _MAX_JOINED)


def _columns_to_join(snapshot: Snapshot, request: ScanRequest) -> _Columns | None:
    """Return the requested and the tested columns; None if the scan must read every fragment by itself.

    It must if the predicate tests row columns, if a field is stored in another form than it is returned, and if the
    store does not read in place. A scan with a limit may end after a few rows, and `buffer_bytes` may be too few for
    blocks that are read together.
    """
    is_bounded = request.limit is not None or (request.buffer_bytes is not None and request.buffer_bytes < JOINED_BYTES)
    if is_bounded or not snapshot.store.reads_in_place:
        return None
    if request.predicate is None:
        return _columns_of(request.schema)
    tested = request.predicate.columns()
    if not tested or not {*tested}.isdisjoint(SELECTABLE_ROW_COLUMNS):
        return None
    return _columns_of(Schema(tuple(dict.fromkeys((*request.schema.fields, *snapshot.schema.project(tested).fields)))))


@lru_cache(maxsize=64)
def _columns_of(schema: Schema) -> _Columns | None:
    """Return the columns of a schema; None if there are none, or one is stored in another form than it is returned."""
    fields, parts = schema.fields, list(schema.walk())
    is_plain = not (schema.has_dictionaries or schema.names_extensions or schema.holds_blobs_v2)
    if not fields or not is_plain or any(part.is_blob_v1 for part in parts):
        return None
    return _Columns(
        schema,
        row_bytes=sum(row_bytes(field.arrow_type) for field in fields),
        chunk_bytes=_CHUNK_BYTES * sum(not part.children for part in parts),
        have_fixed_width=all(_has_fixed_width(field.arrow_type) for field in fields),
    )


def _has_fixed_width(arrow_type: pa.DataType) -> bool:
    if pt.is_struct(arrow_type):
        return all(_has_fixed_width(field.type) for field in arrow_type)
    if pt.is_fixed_size_list(arrow_type):
        return _has_fixed_width(arrow_type.value_type)
    return bool(pt.is_primitive(arrow_type) or pt.is_fixed_size_binary(arrow_type))


def _are_alike(block: Block, other: Block) -> bool:
    """Return whether both are ranges or both are chosen rows, and the same predicate must be tested on them."""
    return (block.chosen is None) == (other.chosen is None) and block.predicate is other.predicate


def _chosen(blocks: Sequence[Block], firsts: Sequence[int]) -> Uint64Array | None:
    """Return the chosen rows of all blocks, as offsets in the fragments laid end to end; None if all are chosen."""
    chosen = [
        offsets + np.uint64(first)
        for block, first in zip(blocks, firsts, strict=False)
        if (offsets := block.offsets) is not None
    ]
    return np.concatenate(chosen) if chosen else None


def _live_mask(snapshot: Snapshot, fragments: Sequence[Fragment], firsts: Sequence[int]) -> BoolArray | None:
    """Return a mask of the live rows of whole fragments that are laid end to end; None if all are live."""
    snapshot.read_short_deletion_vectors(fragments)
    deleted = [snapshot.deletion_vector(fragment) for fragment in fragments]
    counts = [len(each) for each in deleted]
    if not any(counts):
        return None
    offsets = np.frombuffer(b"".join([each.to_array() for each in deleted]), np.uint32)
    live = np.ones(firsts[-1], np.bool_)
    live[offsets + np.repeat(firsts[:-1], counts)] = False
    return live


def _shifted(offsets: RowOffsets, distance: int) -> RowOffsets:
    """Return offsets that are lower by `distance`."""
    if isinstance(offsets, range):
        return range(offsets.start - distance, offsets.stop - distance)
    return offsets - np.uint64(distance)
