"""Map the row addresses of rewritten fragments to the rows' new addresses.

A rewrite reads its old fragments in order, skips deleted rows, and writes the surviving rows into its new fragments in
order. So the i-th surviving row of the old fragments is the i-th row of the new ones. The map needs only the fragments'
row counts and the deleted offsets.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import fields, replace
from functools import partial

import numpy as np
import numpy.typing as npt
from pyroaring import BitMap, FrozenBitMap

from lance_ops import kernels
from lance_ops.core.addresses import fragment_of, offset_of
from lance_ops.core.cached_property import cached_property
from lance_ops.core.errors import InvalidInput
from lance_ops.core.ndarrays import Int64Array, Uint32Array, Uint64Array
from lance_ops.core.records import dataclass
from lance_ops.kernels import read_only
from lance_ops.table.rows.key_code_table import KeyCodeTable
from lance_ops.table.rows.roaring import bitmap_of, offsets_in

__all__ = ["NewFragment", "OldFragment", "RewrittenGroup", "RowAddressMap"]


@dataclass(frozen=True)
class OldFragment:
    """A fragment that was rewritten: its physical rows, and the offsets deleted before the rewrite, ascending."""

    fragment_id: int
    physical_rows: int
    deleted_offsets: tuple[int, ...] | Uint32Array = ()

    @property
    def num_rows(self) -> int:
        """The number of rows that the rewrite kept."""
        return self.physical_rows - len(self.deleted_offsets)

    def __reduce__(self) -> tuple[object, tuple[int, int, bytes]]:
        """Pickle the offsets as a bitmap: at most one bit for each row."""
        deleted = bitmap_of(np.asarray(self.deleted_offsets, np.int64))
        deleted.run_optimize()
        return _unpickled, (self.fragment_id, self.physical_rows, deleted.serialize())


@dataclass(frozen=True)
class NewFragment:
    """A fragment that a rewrite wrote."""

    fragment_id: int
    num_rows: int


@dataclass(frozen=True)
class RewrittenGroup:
    """Old fragments in the order of the rewrite, and the new fragments with their surviving rows."""

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
class RowAddressMap:
    """Maps addresses through the groups of one rewrite.

    If `fragments` is given, only rows of these fragments are mapped; all other rows count as deleted.
    """

    groups: tuple[RewrittenGroup, ...]
    fragments: FrozenBitMap | None = None

    @property
    def old_fragment_ids(self) -> set[int]:
        """The fragments that the rewrite replaced."""
        return {fragment.fragment_id for fragment in self._old}

    @property
    def keeps_order(self) -> bool:
        """Whether the surviving rows of each group keep their order, so that neighbours stay neighbours."""
        return True

    @cached_property
    def loses_rows(self) -> bool:
        """Whether a mapped fragment had deleted rows before the rewrite."""
        return any(len(fragment.deleted_offsets) for fragment in self._old if self._counts(fragment))

    def within(self, fragments: FrozenBitMap | None) -> RowAddressMap:
        """Return the map that counts rows of all other fragments as deleted; return this map for None."""
        return self if fragments is None else replace(self, fragments=fragments)

    def remap(self, addresses: Uint64Array) -> Uint64Array:
        """Map row addresses, shape (n,).

        Rows of fragments that were not rewritten keep their addresses; deleted rows get `TOMBSTONE_ROW`. Raises
        `InvalidInput` for an offset beyond a rewritten fragment's rows, and for a fragment in two groups.
        """
        moved: Uint64Array = np.empty(len(addresses), np.uint64)
        beyond = self._move(read_only(addresses), remapped=moved)
        if beyond >= 0:
            fragment_id, offset = (int(part(addresses[beyond])) for part in (fragment_of, offset_of))
            raise InvalidInput(f"fragment {fragment_id} has no row at offset {offset}")
        return moved

    def __getstate__(self) -> dict[str, object]:
        """Pickle what the map is made of, and not what was computed from it."""
        return {each.name: getattr(self, each.name) for each in fields(self)}

    @property
    def _old(self) -> Iterator[OldFragment]:
        return (fragment for group in self.groups for fragment in group.old)

    def _counts(self, fragment: OldFragment) -> bool:
        return self.fragments is None or fragment.fragment_id in self.fragments

    @cached_property
    def _move(self) -> Callable[..., int]:
        """The kernel `remap_rows` with this map's arrays bound to it."""
        every, new = list(self._old), [fragment for group in self.groups for fragment in group.new]
        if len(self.old_fragment_ids) < len(every):
            raise InvalidInput("a fragment is in two groups of a rewrite")
        counted = np.array([self._counts(fragment) for fragment in every], np.bool_)
        begins = _running_total([fragment.num_rows for fragment in every])[:-1][counted]
        ends = _running_total([fragment.num_rows for fragment in new])
        old = [fragment for fragment in every if self._counts(fragment)]
        deleted = [_deleted_bits(np.asarray(fragment.deleted_offsets, np.int64)) for fragment in old]
        staying = BitMap() if self.fragments is None else self.fragments - BitMap(self.old_fragment_ids)
        moving = np.array([fragment.fragment_id for fragment in old], np.uint64)
        shift, slots, ids = KeyCodeTable(np.append(moving, offsets_in(staying).astype(np.uint64))).table
        num_rows = np.array([fragment.physical_rows for fragment in old], np.int64)
        first_new, new_ends = np.searchsorted(ends[1:], begins, side="right"), ends[1:]
        shifts = np.array([fragment.fragment_id << 32 for fragment in new], np.uint64) - ends[:-1].view(np.uint64)
        num_bits = [len(bits) for bits, _ in deleted]
        # trailing fragments without rows get the index after the last new fragment
        is_straight = (np.array(num_bits) == 0) & (begins + num_rows <= np.append(new_ends, 0)[first_new])
        straight_shifts = (
            np.append(shifts, np.uint64(0))[first_new] + begins.view(np.uint64) - (moving << np.uint64(32))
        )
        return partial(
            kernels.remap_rows,
            shift=shift,
            slots=slots,
            ids=ids,
            num_rows=read_only(num_rows),
            begins=read_only(begins),
            first_words=read_only(_running_total(num_bits)),
            words=read_only(np.concatenate([np.empty(0, np.uint64), *(bits for bits, _ in deleted)])),
            gone_before=read_only(
                _running_total(np.concatenate([np.empty(0, np.int64), *(counts for _, counts in deleted)]))
            ),
            first_new=read_only(first_new),
            new_ends=read_only(new_ends),
            shifts=read_only(shifts),
            is_straight=read_only(is_straight),
            straight_shifts=read_only(straight_shifts),
            keep_unknown=self.fragments is None,
        )


def _unpickled(fragment_id: int, physical_rows: int, deleted: bytes) -> OldFragment:
    return OldFragment(fragment_id, physical_rows, offsets_in(BitMap.deserialize(deleted)))


def _running_total(counts: npt.ArrayLike) -> Int64Array:
    return np.concatenate((np.zeros(1, np.int64), np.cumsum(counts, dtype=np.int64)))


def _deleted_bits(offsets: Int64Array) -> tuple[Uint64Array, Int64Array]:
    """Return a bit for each row up to the last deleted one, 64 to a word, and the number of bits set in each word."""
    if not len(offsets):
        return np.empty(0, np.uint64), np.empty(0, np.int64)
    places = offsets >> 6
    starts = np.flatnonzero(np.diff(places, prepend=-1))
    words, counts = np.zeros(places[-1] + 1, np.uint64), np.zeros(places[-1] + 1, np.int64)
    words[places[starts]] = np.bitwise_or.reduceat(np.uint64(1) << (offsets & 63).astype(np.uint64), starts)
    counts[places[starts]] = np.diff(starts, append=len(offsets))
    return words, counts
