"""What an operation touches: everything that `judge` needs to know about each of two concurrent operations."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import field, replace
from uuid import UUID

from pyroaring import BitMap, FrozenBitMap

from lance_ops.core.records import dataclass
from lance_ops.transactions.inserted_keys import InsertedKeys

__all__ = ["EVERY_KEY", "Footprint", "IndexedSegment", "Key", "remapped_coverage"]

Key = tuple[str, str]
"""(scope, key) in one of the manifest's maps: scopes are `config`, `table`, `schema` and `field {id}`."""

EVERY_KEY = "*"
"""Stands for all keys of a scope, when a map is replaced whole. No map uses it as a key."""

_NONE: frozenset[int] = frozenset()


@dataclass(frozen=True, slots=True)
class IndexedSegment:
    """A new segment of an index; `fragments` is None if its metadata does not say what it covers.

    `by_row_id` means that its entries name rows by stable row id, not by address.
    """

    uuid: UUID
    fields: frozenset[int]
    fragments: FrozenBitMap | None
    by_row_id: bool = False

    def covers_any(self, fragment_ids: frozenset[int]) -> bool:
        """Return whether the segment covers, or may cover, one of the fragments."""
        return bool(fragment_ids) and (self.fragments is None or not self.fragments.isdisjoint(BitMap(fragment_ids)))

    def remapped(self, old: frozenset[int], new: frozenset[int]) -> IndexedSegment:
        """Return the segment after a rewrite of the `old` fragments into the `new` ones."""
        if self.fragments is None:
            return self
        return replace(self, fragments=remapped_coverage(self.fragments, old, new))


@dataclass(frozen=True)
class Footprint:
    """What one operation touches.

    Fragments, by id:
      `deletes_rows`      lose some rows through a larger deletion vector
      `drops`             leave the table
      `moves_rows`        some of their rows get new values and go to new fragments (update)
      `rewrites`          all of their rows, unchanged, go to new fragments (compaction)
      `writes_values`     get new values in place, by field
      `restates_files`    get a list of all of their files, the unchanged ones too
      `may_delete_rows`   got rows from a rewrite; the operation deletes some of these rows, but in which fragments is
                          not known before the rows are remapped
    `restates_fragments` means that the operation lists every fragment (merge), so that none may be added or removed.
    """

    deletes_rows: frozenset[int] = _NONE
    drops: frozenset[int] = _NONE
    moves_rows: frozenset[int] = _NONE
    rewrites: frozenset[int] = _NONE
    writes_values: Mapping[int, frozenset[int]] = field(default_factory=dict)
    restates_files: frozenset[int] = _NONE
    may_delete_rows: frozenset[int] = _NONE
    adds_rows: bool = False
    new_fields: frozenset[int] = _NONE
    """The fields that added rows have values for, if the rows stay valid after a change of the schema."""
    restates_fragments: bool = False

    schema: bool = False
    """Whether the operation changes the schema."""
    forbids_nulls: bool = False
    """Whether rows that are valid in the schema before may be invalid in the schema after."""

    keeps_row_ids: bool = False
    """Whether rewritten rows keep their stable row ids."""

    index_names: frozenset[str] = frozenset()
    index_ids: frozenset[UUID] = frozenset()
    """Segments that are replaced or removed."""
    new_segments: tuple[IndexedSegment, ...] = ()

    keys: frozenset[Key] = frozenset()
    bases: frozenset[str] = frozenset()
    inserted_keys: InsertedKeys | None = None

    replaces_table: bool = False
    """Whether the operation replaces all fragments, all indices and the schema."""
    reads_rows: bool = False
    """Whether the new rows were computed from those of the table."""
    needs_table: bool = True
    """Whether the operation makes no sense after another one replaced the table."""
    is_known: bool = True
    """False if this library cannot judge the operation."""

    @property
    def fragments(self) -> frozenset[int]:
        """Every fragment that existed before and is touched for certain."""
        return self.deletes_rows | self.drops | self.moves_rows | self.rewrites | frozenset(self.writes_values)

    @property
    def changes_rows(self) -> bool:
        """Whether a query of the table may have another answer after the operation."""
        has_new = self.adds_rows or bool(self.moves_rows or self.writes_values)
        has_new_shape = self.replaces_table or self.restates_fragments or self.schema or bool(self.metadata_keys)
        return has_new or has_new_shape or bool(self.loses_rows)

    @property
    def loses_rows(self) -> frozenset[int]:
        """Fragments that lose some or all rows, other than to a rewrite."""
        return (self.deletes_rows | self.may_delete_rows | self.drops) - self.rewrites

    def remapped(self, old: frozenset[int], new: frozenset[int]) -> Footprint:
        """Return what a deletion or a new index touches after a rewrite of the `old` fragments into the `new` ones."""
        new_segments = tuple(segment.remapped(old, new) for segment in self.new_segments)
        if not self.loses_rows & old:
            return replace(self, new_segments=new_segments)
        return replace(
            self,
            new_segments=new_segments,
            deletes_rows=self.deletes_rows - old,
            drops=self.drops - old,
            moves_rows=self.moves_rows - old,
            may_delete_rows=self.may_delete_rows - old | new,
        )

    @property
    def metadata_keys(self) -> frozenset[Key]:
        """The keys of maps inside the schema."""
        return frozenset(key for key in self.keys if key[0] not in ("config", "table"))

    def shared_keys(self, other: Footprint) -> frozenset[Key]:
        """Return the keys that both set; an operation that replaces a map sets all of its keys."""
        shared = set(self.keys & other.keys)
        for one, two in ((self.keys, other.keys), (other.keys, self.keys)):
            whole = {scope for scope, key in one if key == EVERY_KEY}
            shared.update(key for key in two if key[0] in whole)
        return frozenset(shared)


def remapped_coverage(covered: FrozenBitMap, old: Iterable[int], new: Iterable[int]) -> FrozenBitMap:
    """Return the fragments that an index covers after a rewrite of the `old` fragments into the `new` ones.

    It covers the new ones only if it covered all old ones. Otherwise it lacks some of their rows, and they are scanned.
    """
    removed, added = BitMap(old), BitMap(new)
    if covered.isdisjoint(removed):
        return covered
    return FrozenBitMap((covered - removed) | added if removed <= covered else covered - removed)
