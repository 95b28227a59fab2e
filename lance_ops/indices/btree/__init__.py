"""The B-tree index type: sorted values, so that a search reads few pages. `layout` describes its files."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from pyroaring import BitMap, FrozenBitMap

from lance_ops.core.errors import InvalidInput, UnsupportedFeature
from lance_ops.core.predicate import Like, Predicate, StartsWith, column_query
from lance_ops.core.records import dataclass
from lance_ops.core.schema import Field
from lance_ops.indices.btree.index import BTreeIndex
from lance_ops.indices.btree.layout import data_rows, write_pages
from lance_ops.indices.btree.query_spans import BTreeQuery
from lance_ops.indices.btree.runs import join_runs, merge_runs, plan_run_merge, write_run
from lance_ops.indices.contract import LoadedIndex, RowKey, TrainingBatches, check_training_batch
from lance_ops.indices.distributed import DistributedIndexType, MergeShare, PartialIndex
from lance_ops.indices.external_sort import DEFAULT_SORT_BYTES, sort_rows
from lance_ops.indices.sort_keys import is_sortable
from lance_ops.store import Store
from lance_ops.table import IndexFile, IndexMetadata
from lance_ops.table.rows import RowAddressMap

__all__ = ["BTree", "BTreeIndex", "BTreeQuery"]

_TASK_SORT_BYTES = 256 << 20


@dataclass(frozen=True)
class BTree(DistributedIndexType[BTreeQuery]):
    """A page holds `page_rows` values. Training sorts in `sort_bytes` of memory and spills the rest to the local disk.

    Tasks sort in at most `_TASK_SORT_BYTES` each, because several run in one process or machine.

    A new index stores row addresses, in every table. In a table with stable row ids, an index of version 0 comes from
    a writer that stored row ids; since version 1 it stores addresses there too.
    """

    name: ClassVar[str] = "BTREE"
    details_url: ClassVar[str] = "/lance.table.BTreeIndexDetails"
    newest_index_version: ClassVar[int] = 1

    page_rows: int = 4096
    sort_bytes: int = DEFAULT_SORT_BYTES

    def index_version(self, *, stable_row_ids: bool) -> int:
        return 1 if stable_row_ids else 0

    def row_key(self, index_version: int, *, stable_row_ids: bool) -> RowKey:
        return RowKey.STABLE_ID if stable_row_ids and index_version == 0 else RowKey.ADDRESS

    def check(self, field: Field) -> None:
        if not is_sortable(field.arrow_type):
            raise UnsupportedFeature(
                f"a {self.name} index on values of type {field.arrow_type}", f"column {field.name!r}"
            )

    def serves(self, conjunct: Predicate) -> BTreeQuery | None:
        wanted = column_query(conjunct)
        if wanted is not None:
            return BTreeQuery(wanted)
        if isinstance(conjunct, Like) and conjunct.prefix:
            wanted = column_query(StartsWith(conjunct.operand, conjunct.prefix))
        return BTreeQuery(wanted, exact=False) if wanted is not None else None

    def train(self, rows: TrainingBatches, field: Field, store: Store) -> tuple[IndexFile, ...]:
        self.check(field)
        checked = (data_rows(*check_training_batch(batch, field.arrow_type, field.name)) for batch in rows)
        with sort_rows(checked, self.sort_bytes) as ordered:
            return write_pages(ordered, field.arrow_type, self.page_rows, store)

    def train_partial(self, rows: TrainingBatches, field: Field, scratch: Store) -> PartialIndex:
        checked = (data_rows(*check_training_batch(batch, field.arrow_type, field.name)) for batch in rows)
        with sort_rows(checked, min(self.sort_bytes, _TASK_SORT_BYTES)) as ordered:
            return write_run(ordered, field.arrow_type, self.page_rows, scratch)

    def num_entries(self, segment: LoadedIndex[BTreeQuery]) -> int:
        return _b_tree(segment).num_rows

    def copy_partial(
        self,
        segment: LoadedIndex[BTreeQuery],
        start: int,
        stop: int,
        scratch: Store,
        *,
        fragments: BitMap | FrozenBitMap | None = None,
        moves: RowAddressMap | None = None,
    ) -> PartialIndex:
        index = _b_tree(segment)
        rows = index.sorted_rows(fragments, start, stop) if moves is None else index.remapped_rows(moves, start, stop)
        return write_run(rows, index.value_type, self.page_rows, scratch)

    def plan_merge(self, partials: Sequence[PartialIndex], rows_per_share: int) -> tuple[MergeShare, ...]:
        return tuple(plan_run_merge(partials, self.page_rows, rows_per_share))

    def merge_partials(self, share: MergeShare, field: Field, scratch: Store) -> PartialIndex:
        return merge_runs(share, field.arrow_type, self.page_rows, scratch)

    def assemble(
        self, partials: Sequence[PartialIndex], field: Field, scratch: Store, store: Store
    ) -> tuple[IndexFile, ...]:
        return join_runs(partials, field.arrow_type, self.page_rows, scratch, store)

    def _load(self, store: Store, metadata: IndexMetadata) -> BTreeIndex:
        return BTreeIndex(store, metadata, self.sort_bytes)


def _b_tree(segment: LoadedIndex[BTreeQuery]) -> BTreeIndex:
    if not isinstance(segment, BTreeIndex):
        raise InvalidInput(f"index {segment.metadata.name!r} is not a B-tree")
    return segment
