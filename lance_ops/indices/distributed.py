"""The contract of an index type whose work can be split among the tasks of a runner.

    train_partial(rows) or copy_partial(segment, entries) -> PartialIndex     in tasks: some rows each
    plan_merge(partials) -> shares                                            on the driver, from summaries alone
    merge_partials(share) -> PartialIndex                                     in tasks: a range of the merged rows each
    assemble(partials) -> files                                               on the driver

A type whose partials are small keeps them in their summaries, plans no shares, and assembles the partials themselves.
A type that sorts writes each partial as a file, and assembles what the shares gave. `scratch` is the store of a
directory that only this work uses; the caller removes it. Each attempt of a task writes a file of its own there, so a
repeated task does no harm.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence

import pyarrow as pa
from pyroaring import BitMap, FrozenBitMap

from lance_ops.core.records import dataclass
from lance_ops.core.schema import Field
from lance_ops.indices.contract import IndexType, LoadedIndex, Q, TrainingBatches
from lance_ops.store import Store
from lance_ops.table import IndexFile
from lance_ops.table.rows import RowAddressMap

__all__ = ["DistributedIndexType", "MergeShare", "PartialIndex", "PartialSlice"]


@dataclass(frozen=True)
class PartialIndex:
    """What one task gives: a small message for the driver.

    `path` names a file in the scratch directory, or is empty. `summary` is what the driver needs to know of its rows.
    `decoded_bytes` is the memory that the rows take together.
    """

    num_rows: int
    summary: pa.RecordBatch
    path: str = ""
    decoded_bytes: int = 0


@dataclass(frozen=True)
class PartialSlice:
    """The rows of a partial's file from `start` up to, but without, `stop`."""

    path: str
    start: int
    stop: int


@dataclass(frozen=True)
class MergeShare:
    """Sorted slices for one task to merge, in the order in which equal rows come.

    The task's rows are the `num_rows` after the first `skip_rows` of the merged slices. `row_bytes` is the average
    memory of a row.
    """

    slices: tuple[PartialSlice, ...]
    skip_rows: int
    num_rows: int
    row_bytes: int


class DistributedIndexType(IndexType[Q]):
    """An index type that can be built, updated and remapped by tasks."""

    @abstractmethod
    def train_partial(self, rows: TrainingBatches, field: Field, scratch: Store) -> PartialIndex:
        """Do a task's part of `train` for the rows of some fragments, with memory that does not grow with them."""

    @abstractmethod
    def num_entries(self, segment: LoadedIndex[Q]) -> int:
        """Return how many entries a segment has; tasks copy ranges of them."""

    @abstractmethod
    def copy_partial(
        self,
        segment: LoadedIndex[Q],
        start: int,
        stop: int,
        scratch: Store,
        *,
        fragments: BitMap | FrozenBitMap | None = None,
        moves: RowAddressMap | None = None,
    ) -> PartialIndex:
        """Do a task's part of `merge`, or with `moves` of `remap`, for the entries from `start` to `stop` of a segment.

        A merge keeps the rows of `fragments`. A remap keeps the rows that the segment covers, with their new addresses.
        """

    def plan_merge(self, partials: Sequence[PartialIndex], rows_per_share: int) -> tuple[MergeShare, ...]:
        """Return what tasks must merge before `assemble`, by about `rows_per_share` rows each; nothing by default."""
        return ()

    def merge_partials(self, share: MergeShare, field: Field, scratch: Store) -> PartialIndex:
        """Merge a share that `plan_merge` planned."""
        raise NotImplementedError(f"{self.name} plans no shares")

    @abstractmethod
    def assemble(
        self, partials: Sequence[PartialIndex], field: Field, scratch: Store, store: Store
    ) -> tuple[IndexFile, ...]:
        """Write the index of the partials: of those that `merge_partials` returned, if there were shares.

        They come in the order of the tasks, and their files may be gone afterwards. A failure leaves no file of the
        index behind. Nothing is synced.
        """
