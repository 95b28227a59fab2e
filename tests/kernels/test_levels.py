from __future__ import annotations

import itertools

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from lance_ops import kernels
from lance_ops.kernels.arrays import readable
from tests.kernels import twins
from tests.kernels.twins import Integers, Levels


def levels(values: list[int]) -> Levels:
    return readable(np.array(values, np.uint16))


def integers(values: list[int]) -> Integers:
    return readable(np.array(values, np.int64))


NO_LEVELS, NO_FLAGS = levels([]), readable(np.zeros(0, np.uint8))
some_levels = st.lists(st.integers(0, 6), max_size=60)


@given(some_levels, st.integers(0, 6))
def test_levels_are_kept_as_the_plain_twin_keeps_them(values: list[int], most: int) -> None:
    out = np.zeros(len(values), np.uint16)
    kept = kernels.keep_levels(levels(values), most, out)
    assert out[:kept].tolist() == twins.keep_levels(levels(values), most).tolist()


@given(some_levels, st.integers(0, 6), st.data())
def test_levels_are_counted_as_the_plain_twin_counts_them(values: list[int], most: int, data: st.DataObject) -> None:
    places = st.tuples(st.integers(0, len(values)), st.integers(0, len(values))).map(sorted)
    runs = data.draw(st.lists(places, max_size=9))
    starts, stops = integers([run[0] for run in runs]), integers([run[1] for run in runs])
    counts = np.zeros(len(runs), np.int64)
    kernels.count_levels(levels(values), most, starts, stops, counts)
    assert counts.tolist() == twins.count_levels(levels(values), most, starts, stops)


@given(
    entries=st.lists(st.tuples(st.integers(0, 3), st.integers(0, 6)), max_size=60),
    with_definition=st.booleans(),
    list_level=st.integers(1, 3),
    bounds=st.tuples(st.integers(0, 6), st.integers(0, 6)).map(sorted),
    null=st.integers(0, 7),
    empty=st.integers(0, 7),
)
def test_lists_are_folded_as_the_plain_twin_folds_them(
    entries: list[tuple[int, int]], with_definition: bool, list_level: int, bounds: list[int], null: int, empty: int
) -> None:
    rep = levels([rep for rep, _ in entries])
    definition = levels([level for _, level in entries]) if with_definition else NO_LEVELS
    item_end, list_end = bounds
    shape = list_level, item_end, list_end, null, empty
    out_rep, out_definition = np.zeros(len(rep), np.uint16), np.zeros(len(definition), np.uint16)
    offsets, present = np.zeros(len(rep) + 1, np.int64), np.zeros(len(definition), np.uint8)
    left, num_lists = kernels.collapse_lists(rep, definition, *shape, out_rep, out_definition, offsets, present)
    found = (
        out_rep[:left].tolist(),
        out_definition[: left if len(definition) else 0].tolist(),
        offsets[: num_lists + 1].tolist(),
        present[: num_lists if len(definition) else 0].view(np.bool_).tolist(),
    )
    twin_rep, twin_definition, twin_offsets, twin_present = twins.collapse_lists(rep, definition, *shape)
    assert found == (twin_rep.tolist(), twin_definition.tolist(), twin_offsets, twin_present)


@given(
    sizes=st.lists(st.integers(0, 4), min_size=1, max_size=20),
    present=st.lists(st.booleans(), min_size=20, max_size=20) | st.none(),
    entries=st.lists(st.tuples(st.integers(0, 3), st.integers(0, 4), st.integers(0, 19)), max_size=30),
)
def test_lists_are_unfolded_as_the_plain_twin_unfolds_them(
    sizes: list[int], present: list[bool] | None, entries: list[tuple[int, int, int]]
) -> None:
    offsets = integers([0, *itertools.accumulate(sizes)])
    validity = None if present is None else np.array(present)
    flags = NO_FLAGS if validity is None else readable(validity.view(np.uint8))
    rep, codes = levels([rep for rep, _, _ in entries]), levels([code for _, code, _ in entries])
    slots = integers([slot % len(sizes) if code == 0 else -1 for _, code, slot in entries])
    expected = twins.expand_lists(offsets, validity, rep, codes, slots, 1, 8, 9)
    count = kernels.count_children(offsets, flags, codes, slots)
    assert count == len(expected)
    out_rep, out_codes, out_slots = np.zeros(count, np.uint16), np.zeros(count, np.uint16), np.zeros(count, np.int64)
    kernels.expand_lists(offsets, flags, rep, codes, slots, 1, 8, 9, out_rep, out_codes, out_slots)
    assert list(zip(out_rep.tolist(), out_codes.tolist(), out_slots.tolist(), strict=True)) == expected


@given(
    present=st.lists(st.booleans(), min_size=1, max_size=20),
    entries=st.lists(st.tuples(st.integers(0, 2), st.integers(0, 19)), max_size=30),
)
def test_nulls_are_marked_as_the_plain_twin_marks_them(present: list[bool], entries: list[tuple[int, int]]) -> None:
    validity = np.array(present)
    codes = np.array([code for code, _ in entries], np.uint16)
    slots = integers([slot % len(present) if code == 0 else -1 for code, slot in entries])
    expected = twins.mark_nulls(validity, slots, 7, codes).tolist()
    kernels.mark_nulls(readable(validity.view(np.uint8)), slots, 7, codes)
    assert codes.tolist() == expected
