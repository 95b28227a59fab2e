"""Where rows went when fragments were rewritten.

A rewrite reads its old fragments in order, skips deleted rows and writes the survivors into its new fragments, in
order. So the i-th surviving row of the old fragments is the i-th row of the new ones, and the map needs no more than
the fragments' row counts and the deleted offsets.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt

from lance_ops.core.addresses import TOMBSTONE, fragment_of, offset_of
from lance_ops.core.errors import InvalidInput

__all__ = ["AddressMap", "NewFragment", "OldFragment", "RewrittenGroup"]

Addresses = npt.NDArray[np.uint64]


@dataclass(frozen=True)
class OldFragment:
    """A fragment that was rewritten: its physical rows and the offsets that were already deleted, ascending."""

    fragment_id: int
    physical_rows: int
    deleted_offsets: tuple[int, ...] | npt.NDArray[np.uint32] = ()

    @property
    def num_rows(self) -> int:
        """Rows that survived into the new fragments."""
        return self.physical_rows - len(self.deleted_offsets)


@dataclass(frozen=True)
class NewFragment:
    """A fragment that a rewrite made."""

    fragment_id: int
    num_rows: int


@dataclass(frozen=True)
class RewrittenGroup:
    """Old fragments, in the order they were read, and the new ones that hold their surviving rows."""

    old: tuple[OldFragment, ...]
    new: tuple[NewFragment, ...]

    def __post_init__(self) -> None:
        survivors = sum(fragment.num_rows for fragment in self.old)
        written = sum(fragment.num_rows for fragment in self.new)
        if survivors != written:
            raise InvalidInput(
                f"rewrite of fragments {[f.fragment_id for f in self.old]}: {survivors} rows, {written} written"
            )

    @cached_property
    def _new_ends(self) -> Addresses:
        return np.cumsum([fragment.num_rows for fragment in self.new], dtype=np.uint64)

    def address_at(self, ordinals: Addresses) -> Addresses:
        """Return the new address of the i-th surviving rows."""
        slot = np.searchsorted(self._new_ends, ordinals, side="right")
        begins = np.concatenate(([np.uint64(0)], self._new_ends[:-1]))
        ids = np.array([fragment.fragment_id for fragment in self.new], dtype=np.uint64)
        moved: Addresses = (ids[slot] << np.uint64(32)) | (ordinals - begins[slot])
        return moved


@dataclass(frozen=True)
class AddressMap:
    """The groups of one rewrite."""

    groups: tuple[RewrittenGroup, ...]

    @property
    def old_fragment_ids(self) -> set[int]:
        """Fragments that no longer exist."""
        return {fragment.fragment_id for group in self.groups for fragment in group.old}

    def remap(self, addresses: Addresses) -> Addresses:
        """Map row addresses, shape (n,): rows elsewhere keep theirs, rows deleted before the rewrite get `TOMBSTONE`.

        Raises `InvalidInput` for an offset beyond a rewritten fragment's rows.
        """
        result = np.array(addresses, dtype=np.uint64)
        fragments, offsets = fragment_of(result), offset_of(result)
        for group in self.groups:
            base = 0
            for old in group.old:
                rows = np.flatnonzero(fragments == np.uint64(old.fragment_id))
                if len(rows):
                    result[rows] = _moved(group, old, base, offsets[rows])
                base += old.num_rows
        return result

    def remap_offsets(self, fragment_id: int, offsets: Sequence[int] | npt.NDArray[np.uint64]) -> Addresses:
        """Map offsets of one rewritten fragment to addresses."""
        return self.remap(np.asarray(offsets, dtype=np.uint64) | np.uint64(fragment_id << 32))


def _moved(group: RewrittenGroup, old: OldFragment, base: int, offsets: Addresses) -> Addresses:
    if len(offsets) and int(offsets.max()) >= old.physical_rows:
        raise InvalidInput(f"fragment {old.fragment_id} has {old.physical_rows} rows, no offset {int(offsets.max())}")
    deleted = np.asarray(old.deleted_offsets, dtype=np.uint64)
    before = np.searchsorted(deleted, offsets, side="left")
    gone = np.searchsorted(deleted, offsets, side="right") > before
    moved = np.full(len(offsets), TOMBSTONE, dtype=np.uint64)
    kept = ~gone
    moved[kept] = group.address_at(np.uint64(base) + offsets[kept] - before[kept].astype(np.uint64))
    return moved
