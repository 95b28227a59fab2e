from itertools import pairwise
from random import Random

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyroaring import FrozenBitMap

from lance_ops.core.addresses import TOMBSTONE_ROW, fragment_of, row_addr, row_addrs
from lance_ops.errors import InvalidInput
from lance_ops.table.rows.row_address_map import NewFragment, OldFragment, RewrittenGroup, RowAddressMap


def test_the_nth_surviving_row_becomes_the_nth_new_row() -> None:
    moves = RowAddressMap(
        (RewrittenGroup((OldFragment(0, 4, (1,)), OldFragment(3, 3, (0, 2))), (NewFragment(9, 3), NewFragment(10, 1))),)
    )
    old = np.concatenate((row_addrs(0, range(4)), row_addrs(3, range(3)), row_addrs(5, [7])))
    assert moves.remap(old).tolist() == [
        row_addr(9, 0),
        TOMBSTONE_ROW,
        row_addr(9, 1),
        row_addr(9, 2),
        TOMBSTONE_ROW,
        row_addr(10, 0),
        TOMBSTONE_ROW,
        row_addr(5, 7),
    ]


@given(st.lists(st.lists(st.booleans(), max_size=20), min_size=1, max_size=5), st.integers(1, 7))
def test_survivors_map_onto_all_new_rows_in_order(fragments: list[list[bool]], rows_per_new: int) -> None:
    old = tuple(
        OldFragment(i, len(kept), tuple(offset for offset, keep in enumerate(kept) if not keep))
        for i, kept in enumerate(fragments)
    )
    total = sum(fragment.num_rows for fragment in old)
    new = tuple(
        NewFragment(100 + i, min(rows_per_new, total - i * rows_per_new)) for i in range(-(-total // rows_per_new))
    )
    addresses = np.concatenate([row_addrs(i, range(len(kept))) for i, kept in enumerate(fragments)])
    moved = RowAddressMap((RewrittenGroup(old, new),)).remap(addresses)
    kept_flags = [keep for kept in fragments for keep in kept]
    assert [int(a) for a in moved[np.array(kept_flags, dtype=bool)]] == [
        row_addr(fragment.fragment_id, offset) for fragment in new for offset in range(fragment.num_rows)
    ]
    assert all(int(a) == TOMBSTONE_ROW for a in moved[~np.array(kept_flags, dtype=bool)])


@st.composite
def rewritten_groups(draw: st.DrawFn) -> tuple[RewrittenGroup, ...]:
    """Fragments in any order of their ids, each group written into fragments of any sizes, empty ones too."""
    ids = iter(draw(st.permutations(range(12))))
    groups = []
    for number in range(draw(st.integers(0, 4))):
        old = tuple(
            OldFragment(next(ids), size, tuple(sorted(draw(st.sets(st.integers(0, size - 1))))) if size else ())
            for size in draw(st.lists(st.integers(0, 6), max_size=3))
        )
        cuts = sorted(draw(st.lists(st.integers(0, sum(fragment.num_rows for fragment in old)), max_size=2)))
        ends = [0, *cuts, sum(fragment.num_rows for fragment in old)]
        new = (NewFragment(100 * number + i, stop - start) for i, (start, stop) in enumerate(pairwise(ends)))
        groups.append(RewrittenGroup(old, tuple(new)))
    return tuple(groups)


@given(rewritten_groups(), st.randoms(use_true_random=False))
def test_remapping_all_groups_equals_remapping_each_group(groups: tuple[RewrittenGroup, ...], random: Random) -> None:
    expected = {row_addr(fragment, 3): row_addr(fragment, 3) for fragment in range(12, 15)}
    for group in groups:
        targets = iter(row_addr(new.fragment_id, offset) for new in group.new for offset in range(new.num_rows))
        for old in group.old:
            for offset in range(old.physical_rows):
                gone = offset in old.deleted_offsets
                expected[row_addr(old.fragment_id, offset)] = TOMBSTONE_ROW if gone else next(targets)
    asked = random.choices(list(expected), k=40)
    assert RowAddressMap(groups).remap(np.array(asked, np.uint64)).tolist() == [expected[address] for address in asked]


@given(rewritten_groups(), st.sets(st.integers(0, 15)))
def test_within_counts_rows_of_other_fragments_as_deleted(
    groups: tuple[RewrittenGroup, ...], counted: set[int]
) -> None:
    every = RowAddressMap(groups)
    moves = every.within(FrozenBitMap(counted))
    sizes = dict.fromkeys(range(16), 3) | {old.fragment_id: old.physical_rows for group in groups for old in group.old}
    addresses = np.concatenate([row_addrs(number, np.arange(size)) for number, size in sizes.items()])
    known = np.isin(fragment_of(addresses), list(counted))
    assert moves.remap(addresses).tolist() == np.where(known, every.remap(addresses), np.uint64(TOMBSTONE_ROW)).tolist()
    lost = (old for group in groups for old in group.old if old.fragment_id in counted and len(old.deleted_offsets))
    assert moves.loses_rows == any(True for _ in lost)
    assert every.within(None) is every


def test_a_rewrite_that_lost_rows_is_refused() -> None:
    with pytest.raises(InvalidInput, match="3 rows, 2 written"):
        RewrittenGroup((OldFragment(0, 3),), (NewFragment(1, 2),))


def test_an_offset_beyond_the_fragment_is_refused() -> None:
    with pytest.raises(InvalidInput, match="fragment 0 has no row .* offset 3"):
        RowAddressMap((RewrittenGroup((OldFragment(0, 3),), (NewFragment(1, 3),)),)).remap(row_addrs(0, [3]))


def test_a_fragment_that_was_rewritten_twice_is_refused() -> None:
    group = RewrittenGroup((OldFragment(0, 1),), (NewFragment(1, 1),))
    with pytest.raises(InvalidInput, match="two groups"):
        RowAddressMap((group, group)).remap(row_addrs(0, [0]))


def test_deleted_offsets_beyond_the_fragment_do_not_map_outside_the_new_fragments() -> None:
    moves = RowAddressMap((RewrittenGroup((OldFragment(0, 3, (70,)),), (NewFragment(1, 2),)),))
    assert moves.remap(row_addrs(0, [0, 1])).tolist() == row_addrs(1, [0, 1]).tolist()
    with pytest.raises(InvalidInput, match="fragment 0 has no row .* offset 2"):
        moves.remap(row_addrs(0, [2]))


@pytest.mark.parametrize("seed", range(3))
def test_deleted_rows_are_counted_across_many_words(seed: int) -> None:
    rng = np.random.default_rng(seed)
    deleted = [np.flatnonzero(rng.random(1000) < share) for share in (0.5, 0, 0.99, 0.01)]
    old = tuple(OldFragment(9 - i, 1000, offsets.astype(np.uint32)) for i, offsets in enumerate(deleted))
    kept = [np.setdiff1d(np.arange(1000), offsets) for offsets in deleted]
    total = sum(map(len, kept))
    new = NewFragment(20, total // 3), NewFragment(21, 0), NewFragment(22, total - total // 3)
    moves = RowAddressMap((RewrittenGroup(old, new),))
    survivors = np.concatenate([row_addrs(9 - i, offsets) for i, offsets in enumerate(kept)])
    targets = np.concatenate([row_addrs(part.fragment_id, np.arange(part.num_rows)) for part in new])
    order = rng.permutation(total)
    assert np.array_equal(moves.remap(survivors[order]), targets[order])
    gone = np.concatenate([row_addrs(9 - i, offsets) for i, offsets in enumerate(deleted)])
    assert (moves.remap(gone) == TOMBSTONE_ROW).all()
