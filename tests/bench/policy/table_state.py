"""The state of a simulated table, and the opened version that the policy prices: a manifest without files."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, replace
from functools import cache
from uuid import UUID

import pyarrow as pa
from pyroaring import FrozenBitMap

from lance_ops import write_dataset
from lance_ops.snapshot import Snapshot
from lance_ops.table import DataFile, DeletionFile, DeletionFileType, Fragment, FragmentList, IndexMetadata
from lance_ops.table.index_metadata import IndexDetails, IndexFile

__all__ = ["INDEX", "ROW_BYTES", "Stored", "TableState"]

ROW_BYTES = 100
"""The stored bytes of a row."""

INDEX = "id_idx"
_INDEX_ROW_BYTES = 12
_UUID = UUID(int=1)


@dataclass(frozen=True)
class Stored:
    """A fragment: its live and deleted rows, and whether the index covers it."""

    live: int
    deleted: int = 0
    is_indexed: bool = False

    @property
    def size_bytes(self) -> int:
        """The bytes of all stored rows; deleted ones take their place until a rewrite."""
        return (self.live + self.deleted) * ROW_BYTES


@dataclass(frozen=True)
class TableState:
    """The fragments in their order; a fragment's place is its id. Equal states cost the same from there on."""

    fragments: tuple[Stored, ...] = ()
    has_index: bool = False

    def appended(self, live: int) -> TableState:
        """Return the table with one more fragment."""
        return replace(self, fragments=(*self.fragments, Stored(live)))

    def deleted(self, share: float) -> TableState:
        """Return the table without a share of the rows of each fragment."""
        return replace(self, fragments=tuple(_without(each, share) for each in self.fragments))

    def rewritten(self, groups: Collection[Collection[int]], target_rows: int) -> TableState:
        """Return the table after a compaction of groups of neighbouring fragments; the index moves with the rows."""
        first = {min(group): sorted(group) for group in groups}
        gone = {place for group in groups for place in group}
        made: list[Stored] = []
        for place, each in enumerate(self.fragments):
            if place in first:
                group = [self.fragments[member] for member in first[place]]
                made += _packed(sum(one.live for one in group), target_rows, all(one.is_indexed for one in group))
            elif place not in gone:
                made.append(each)
        return replace(self, fragments=tuple(made))

    def reindexed(self) -> TableState:
        """Return the table with an index that covers every row."""
        return TableState(tuple(replace(each, is_indexed=True) for each in self.fragments), has_index=True)

    @property
    def size_bytes(self) -> int:
        """The stored bytes."""
        return sum(each.size_bytes for each in self.fragments)

    @property
    def index_bytes(self) -> int:
        """The bytes of the index."""
        return sum(each.live for each in self.fragments if each.is_indexed) * _INDEX_ROW_BYTES if self.has_index else 0

    def snapshot(self) -> Snapshot:
        """Return the table as an opened version. It has a manifest and no files: the policy reads none."""
        template = _template()
        fragments = [_fragment(place, each) for place, each in enumerate(self.fragments)]
        covered = [place for place, each in enumerate(self.fragments) if each.is_indexed]
        index = IndexMetadata(
            _UUID,
            INDEX,
            (0,),
            1,
            FrozenBitMap(covered),
            details=_index_details(),
            files=(IndexFile("page_data.lance", self.index_bytes),),
        )
        manifest = replace(
            template.manifest,
            fragments=FragmentList(fragments),
            indices=(index,) if self.has_index else (),
            max_fragment_id=len(fragments),
        )
        return template.with_manifest(manifest)


def _without(each: Stored, share: float) -> Stored:
    lost = round(each.live * share)
    return replace(each, live=each.live - lost, deleted=each.deleted + lost)


def _packed(live: int, target_rows: int, is_indexed: bool) -> list[Stored]:
    full, rest = divmod(live, target_rows)
    return [Stored(rows, 0, is_indexed) for rows in [target_rows] * full + [rest] * bool(rest)]


def _fragment(place: int, each: Stored) -> Fragment:
    file = DataFile(f"{place}.lance", (0,), (0,), 2, 2, each.size_bytes)
    deletions = DeletionFile(1, place, DeletionFileType.ARROW_ARRAY, each.deleted) if each.deleted else None
    return Fragment(place, (file,), each.live + each.deleted, deletions)


@cache
def _template() -> Snapshot:
    """Return a table in memory whose one fragment every state replaces."""
    return write_dataset(pa.table({"id": [0]}), "memory://policy/table").snapshot


@cache
def _index_details() -> IndexDetails | None:
    made = write_dataset(pa.table({"id": [0]}), "memory://policy/indexed")
    made.create_scalar_index("id", "BTREE", INDEX)
    return made.snapshot.manifest.indices[0].details
