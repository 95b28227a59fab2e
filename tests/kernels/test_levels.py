from __future__ import annotations

import itertools
from typing import Any

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from lance_ops.core.ndarrays import Int64Array, Uint16Array
from lance_ops.kernels import levels as compiled
from lance_ops.kernels.read_only_arrays import read_only
from tests.kernels import twins
from tests.kernels.either import either


def levels(values: list[int]) -> Uint16Array:
    return read_only(np.array(values, np.uint16))


def integers(values: list[int]) -> Int64Array:
    return read_only(np.array(values, np.int64))


NO_LEVELS, NO_FLAGS = levels([]), read_only(np.zeros(0, np.uint8))
some_levels = st.lists(st.integers(0, 6), max_size=60)


@either(compiled)
@given(some_levels, st.integers(0, 6))
def test_keep_levels_equals_the_plain_twin(kernels: Any, values: list[int], most: int) -> None:
    out = np.zeros(len(values), np.uint16)
    kept = kernels.keep_levels(levels(values), most, out)
    assert out[:kept].tolist() == twins.keep_levels(levels(values), most).tolist()


@either(compiled)
@given(
    entries=st.lists(st.tuples(st.integers(0, 3), st.integers(0, 6)), max_size=60),
    with_outer=st.booleans(),
    list_level=st.integers(1, 3),
    bounds=st.tuples(st.integers(0, 6), st.integers(0, 6)).map(sorted),
    null=st.integers(0, 7),
    empty=st.integers(0, 7),
)
def test_collapsing_lists_equals_the_plain_twin(
    kernels: Any,
    entries: list[tuple[int, int]],
    with_outer: bool,
    list_level: int,
    bounds: list[int],
    null: int,
    empty: int,
) -> None:
    rep = levels([rep for rep, _ in entries])
    definition = levels([level for _, level in entries])
    item_end, list_end = bounds
    shape = list_level, item_end, list_end, null, empty
    out_rep, out_definition = np.zeros((2, with_outer * len(rep)), np.uint16)
    offsets, present = np.zeros(len(rep) + 1, np.int64), np.zeros(len(definition), np.uint8)
    left, num_lists = kernels.collapse_lists(rep, definition, *shape, out_rep, out_definition, offsets, present)
    found = (
        out_rep[:left].tolist(),
        out_definition[:left].tolist(),
        offsets[: num_lists + 1].tolist(),
        present[:num_lists].view(np.bool_).tolist(),
    )
    twin_rep, twin_definition, twin_offsets, twin_present = twins.collapse_lists(rep, definition, *shape)
    if not with_outer:
        assert left == num_lists
        twin_rep = twin_definition = NO_LEVELS
    assert found == (twin_rep.tolist(), twin_definition.tolist(), twin_offsets, twin_present)


@either(compiled)
@given(
    sizes=st.lists(st.integers(0, 4), min_size=1, max_size=20),
    present=st.lists(st.booleans(), min_size=20, max_size=20) | st.none(),
    entries=st.lists(st.tuples(st.integers(0, 3), st.integers(0, 4), st.integers(0, 19)), max_size=30),
)
def test_expanding_lists_equals_the_plain_twin(
    kernels: Any, sizes: list[int], present: list[bool] | None, entries: list[tuple[int, int, int]]
) -> None:
    offsets = integers([0, *itertools.accumulate(sizes)])
    validity = None if present is None else np.array(present)
    flags = NO_FLAGS if validity is None else read_only(validity.view(np.uint8))
    rep, codes = levels([rep for rep, _, _ in entries]), levels([code for _, code, _ in entries])
    slots = integers([slot % len(sizes) if code == 0 else -1 for _, code, slot in entries])
    expected = twins.expand_lists(offsets, validity, rep, codes, slots, 1, 8, 9)
    items = [slot for _, _, slot in expected if slot >= 0]
    count, num_items, first_item, is_run = kernels.count_children(offsets, flags, codes, slots, 0, 0)
    assert (count, num_items) == (len(expected), len(items))
    assert is_run == (items == [*range(first_item, first_item + num_items)])
    out_rep, out_codes, out_slots = np.zeros(count, np.uint16), np.zeros(count, np.uint16), np.zeros(count, np.int64)
    occurs = np.zeros(10, np.uint8)
    kernels.expand_lists(offsets, flags, rep, codes, slots, 0, 0, 1, 8, 9, out_rep, out_codes, out_slots, occurs)
    assert list(zip(out_rep.tolist(), out_codes.tolist(), out_slots.tolist(), strict=True)) == expected
    assert set(np.flatnonzero(occurs)) == {code for _, code, _ in expected if code > 7}


@either(compiled)
@given(
    first_slot=st.integers(0, 3),
    codes=st.lists(st.sampled_from([0, 0, 2, 3, 4]), max_size=30),
    sizes=st.lists(st.integers(0, 3), min_size=34, max_size=34),
    present=st.lists(st.booleans(), min_size=34, max_size=34),
)
def test_consecutive_slots_may_be_given_by_the_first_one(
    kernels: Any, first_slot: int, codes: list[int], sizes: list[int], present: list[bool]
) -> None:
    offsets, flags = integers([0, *itertools.accumulate(sizes)]), read_only(np.array(present).view(np.uint8))
    ended = 2  # codes above it own slots
    owned = itertools.count(first_slot)
    slots = integers([next(owned) if code == 0 or code > ended else -1 for code in codes])
    results = []
    for given_slots in (slots, slots[:0]):
        outer = levels(codes), given_slots, first_slot, ended
        made = kernels.count_children(offsets, flags, *outer)
        out = np.zeros(made[0], np.uint16), np.zeros(made[0], np.uint16), np.zeros(made[0], np.int64)
        occurs, marked = np.zeros(10, np.uint8), np.array(codes, np.uint16)
        kernels.expand_lists(offsets, flags, levels([7] * len(codes)), *outer, 1, 8, 9, *out, occurs)
        kernels.mark_nulls(flags, given_slots, first_slot, ended, 5, marked, occurs)
        results.append((made, *(part.tolist() for part in (*out, occurs, marked))))
    assert results[0] == results[1]


@either(compiled)
@given(some_levels)
def test_renumbering_replaces_codes_by_levels(kernels: Any, codes: list[int]) -> None:
    wanted = np.array([0, 3, 1, 0, 2, 5, 4], np.uint16)
    renumbered = np.array(codes, np.uint16)
    kernels.renumber_levels(renumbered, wanted)
    assert renumbered.tolist() == [wanted[code] for code in codes]


@either(compiled)
@given(
    present=st.lists(st.booleans(), min_size=1, max_size=20),
    entries=st.lists(st.tuples(st.integers(0, 2), st.integers(0, 19)), max_size=30),
)
def test_marking_nulls_equals_the_plain_twin(kernels: Any, present: list[bool], entries: list[tuple[int, int]]) -> None:
    validity = np.array(present)
    codes = np.array([code for code, _ in entries], np.uint16)
    slots = integers([slot % len(present) if code == 0 else -1 for code, slot in entries])
    expected = twins.mark_nulls(validity, slots, 7, codes).tolist()
    occurs = np.zeros(8, np.uint8)
    kernels.mark_nulls(read_only(validity.view(np.uint8)), slots, 0, 0, 7, codes, occurs)
    assert codes.tolist() == expected
    assert bool(occurs[7]) == (7 in expected)
