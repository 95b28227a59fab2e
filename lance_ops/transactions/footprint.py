"""What an operation touches: all that a judge of two concurrent operations needs to know of either."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from uuid import UUID

from pyroaring import BitMap, FrozenBitMap

from lance_ops.transactions.inserted_keys import InsertedKeys

__all__ = ["EVERY_KEY", "Footprint", "IndexedPart", "Key"]

Key = tuple[str, str]
"""(scope, key) in one of the manifest's maps: scopes are `config`, `table`, `schema` and `field {id}`."""

EVERY_KEY = "*"
"""Stands for all keys of a scope, where a map is replaced whole. No key is spelled so by anybody."""

_NONE: frozenset[int] = frozenset()


@dataclass(frozen=True, slots=True)
class IndexedPart:
    """What a segment of an index was built over; `fragments` is None where its metadata does not say."""

    segment: UUID
    fields: frozenset[int]
    fragments: FrozenBitMap | None

    def reaches(self, fragment_ids: frozenset[int]) -> bool:
        """Return whether the index covers one of the fragments."""
        return bool(fragment_ids) and (self.fragments is None or not self.fragments.isdisjoint(BitMap(fragment_ids)))


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
        """Return what a deletion touches once the rows of the old fragments are in the new ones."""
        if not self.deletes & old:
            return self
        return replace(
            self,
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
