"""What an operation touches: all that a judge of two concurrent operations needs to know of either."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from uuid import UUID

from pyroaring import BitMap, FrozenBitMap

from lance_ops.transactions.inserted_keys import InsertedKeys

__all__ = ["EVERY_KEY", "Footprint", "IndexedPart", "Key", "covered_after"]

Key = tuple[str, str]
"""(scope, key) in one of the manifest's maps: scopes are `config`, `table`, `schema` and `field {id}`."""

EVERY_KEY = "*"
"""Stands for all keys of a scope, where a map is replaced whole. No key is spelled so by anybody."""

_NONE: frozenset[int] = frozenset()


@dataclass(frozen=True, slots=True)
class IndexedPart:
    """What a segment of an index was built over; `fragments` is None where its metadata does not say.

    `by_row_id` tells that, in a table of stable row ids, it names rows by these.
    """

    segment: UUID
    fields: frozenset[int]
    fragments: FrozenBitMap | None
    by_row_id: bool = False

    def reaches(self, fragment_ids: frozenset[int]) -> bool:
        """Return whether the index covers one of the fragments."""
        return bool(fragment_ids) and (self.fragments is None or not self.fragments.isdisjoint(BitMap(fragment_ids)))

    def after(self, old: frozenset[int], new: frozenset[int]) -> IndexedPart:
        """Return what it covers once the rows of the old fragments are in the new ones."""
        if self.fragments is None:
            return self
        return replace(self, fragments=covered_after(self.fragments, old, new))


@dataclass(frozen=True)
class Footprint:
    """One operation's.

    Fragments, by id:
      `thins`      lose some rows through a larger deletion vector
      `drops`      leave the table
      `moves`      some of their rows, changed, go to new fragments (update)
      `rewrites`   all of their rows, unchanged, go to new fragments (compaction)
      `writes`     get new values in place, by field
      `may_thin`   got rows from a rewrite, and which of these are to be deleted only the rows can tell
    `restates_fragments` means that the operation spells out every fragment (merge), so that none may come or go.
    """

    thins: frozenset[int] = _NONE
    drops: frozenset[int] = _NONE
    moves: frozenset[int] = _NONE
    rewrites: frozenset[int] = _NONE
    writes: Mapping[int, frozenset[int]] = field(default_factory=dict)
    may_thin: frozenset[int] = _NONE
    adds_rows: bool = False
    new_fields: frozenset[int] = _NONE
    """The fields of which added rows hold values, where these outlast a change of the schema."""
    restates_fragments: bool = False

    schema: bool = False
    forbids_nulls: bool = False
    """Whether rows that fitted the schema before may not fit it afterwards."""

    keeps_row_ids: bool = False
    """Whether rows that are rewritten keep their ids, the table having stable ones."""

    index_names: frozenset[str] = frozenset()
    index_ids: frozenset[UUID] = frozenset()
    """Segments that are replaced or removed."""
    indexed: tuple[IndexedPart, ...] = ()

    keys: frozenset[Key] = frozenset()
    bases: frozenset[str] = frozenset()
    inserted_keys: InsertedKeys | None = None

    replaces_table: bool = False
    """All fragments, indices and the schema, whatever they were."""
    needs_table: bool = True
    """Whether the operation makes no sense on a table that was replaced."""
    is_known: bool = True
    """False for what this library cannot judge."""

    @property
    def fragments(self) -> frozenset[int]:
        """Every fragment that is there before and touched for certain."""
        return self.thins | self.drops | self.moves | self.rewrites | frozenset(self.writes)

    @property
    def deletes(self) -> frozenset[int]:
        """Fragments that lose rows for good, some or all."""
        return (self.thins | self.may_thin | self.drops) - self.rewrites

    def after(self, old: frozenset[int], new: frozenset[int]) -> Footprint:
        """Return what a deletion or a new index touches once the rows of the old fragments are in the new ones."""
        indexed = tuple(part.after(old, new) for part in self.indexed)
        if not self.deletes & old:
            return replace(self, indexed=indexed)
        return replace(
            self,
            indexed=indexed,
            thins=self.thins - old,
            drops=self.drops - old,
            moves=self.moves - old,
            may_thin=self.may_thin - old | new,
        )

    @property
    def metadata_keys(self) -> frozenset[Key]:
        """The keys that live inside of the schema."""
        return frozenset(key for key in self.keys if key[0] not in ("config", "table"))

    def shared_keys(self, other: Footprint) -> frozenset[Key]:
        """Return the keys that both set, a replaced map counting as all of its keys."""
        shared = set(self.keys & other.keys)
        for one, two in ((self.keys, other.keys), (other.keys, self.keys)):
            whole = {scope for scope, key in one if key == EVERY_KEY}
            shared.update(key for key in two if key[0] in whole)
        return frozenset(shared)


def covered_after(covered: FrozenBitMap, old: Iterable[int], new: Iterable[int]) -> FrozenBitMap:
    """Return the fragments that an index covers once the rows of the old ones are in the new ones.

    It covers the new ones if it knew all of the rows in them, and otherwise these have to be scanned.
    """
    left, come = BitMap(old), BitMap(new)
    if covered.isdisjoint(left):
        return covered
    return FrozenBitMap((covered - left) | come if left <= covered else covered - left)
