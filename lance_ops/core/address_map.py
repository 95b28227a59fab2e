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

from lance_ops.core.addresses import TOMBSTONE, fragment_of, offset_of, row_addrs
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
        if not self._old:
            return np.array(addresses, dtype=np.uint64)
        order = np.argsort(addresses)  # searches for sorted needles are several times faster than what sorting costs
        ascending = np.asarray(addresses, dtype=np.uint64)[order]
        fragments = fragment_of(ascending)
        slots = np.searchsorted(self._ids, fragments)
        rewritten = np.flatnonzero(self._ids.take(slots, mode="clip") == fragments)
        ascending[rewritten] = self._moved(ascending[rewritten], slots[rewritten])
        result = np.empty_like(ascending)
        result[order] = ascending
        return result

    def remap_offsets(self, fragment_id: int, offsets: Sequence[int] | npt.NDArray[np.uint64]) -> Addresses:
        """Map offsets of one rewritten fragment to addresses."""
        return self.remap(np.asarray(offsets, dtype=np.uint64) | np.uint64(fragment_id << 32))

    def _moved(self, addresses: Addresses, slots: npt.NDArray[np.intp]) -> Addresses:
        """Map addresses of rows that were rewritten; `slots` are their fragments' places in `_old`."""
        offsets = offset_of(addresses)
        beyond = np.flatnonzero(offsets >= self._physical_rows[slots])
        if len(beyond):
            old, offset = self._old[int(slots[beyond[0]])], int(offsets[beyond[0]])
            raise InvalidInput(f"fragment {old.fragment_id} has {old.physical_rows} rows, no offset {offset}")
        deleted_before = np.searchsorted(self._deleted, addresses)
        gone = self._deleted[deleted_before] == addresses
        ordinals = self._ordinals[slots] + offsets - (deleted_before - self._deleted_begins[slots]).astype(np.uint64)
        moved = ordinals + self._shifts[np.searchsorted(self._new_ends, ordinals, side="right")]
        moved[gone] = TOMBSTONE
        return moved

    @cached_property
    def _old(self) -> list[OldFragment]:
        """All old fragments by ascending id: the order of their addresses."""
        return sorted((old for group in self.groups for old in group.old), key=lambda old: old.fragment_id)

    @cached_property
    def _ids(self) -> Addresses:
        return np.array([old.fragment_id for old in self._old], dtype=np.uint64)

    @cached_property
    def _physical_rows(self) -> Addresses:
        return np.array([old.physical_rows for old in self._old], dtype=np.uint64)

    @cached_property
    def _deleted(self) -> Addresses:
        """Addresses of all deleted rows, ascending, and an end that no row has."""
        parts = [row_addrs(old.fragment_id, old.deleted_offsets) for old in self._old]
        return np.concatenate([*parts, np.array([TOMBSTONE], dtype=np.uint64)])

    @cached_property
    def _deleted_begins(self) -> npt.NDArray[np.int64]:
        """For each old fragment, how many rows were deleted in those of lower id."""
        counts = [len(old.deleted_offsets) for old in self._old]
        return np.cumsum([0, *counts[:-1]], dtype=np.int64)

    @cached_property
    def _ordinals(self) -> Addresses:
        """For each old fragment, how many rows survived of those read before it, in this group and the ones before."""
        read = [old for group in self.groups for old in group.old]
        begins = np.cumsum([0, *(old.num_rows for old in read)], dtype=np.uint64)
        by_id = {old.fragment_id: begin for old, begin in zip(read, begins, strict=False)}
        return np.array([by_id[old.fragment_id] for old in self._old], dtype=np.uint64)

    @cached_property
    def _new_ends(self) -> Addresses:
        """For each new fragment, how many rows it and those written before it hold."""
        return np.cumsum([new.num_rows for group in self.groups for new in group.new], dtype=np.uint64)

    @cached_property
    def _shifts(self) -> Addresses:
        """For each new fragment, what makes an ordinal an address (modulo 2^64); one more for rows that are gone."""
        ids = [new.fragment_id for group in self.groups for new in group.new]
        begins = np.concatenate((np.zeros(1, np.uint64), self._new_ends))
        return np.array([*(number << 32 for number in ids), 0], dtype=np.uint64) - begins
