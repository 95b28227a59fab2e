from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from lance_ops import kernels
from lance_ops.kernels.read_only_arrays import read_only

Levels = np.ndarray[tuple[int], np.dtype[np.uint16]]


def laid_out(row_sizes: list[int], chunk_sizes: list[int], seed: int) -> tuple[Levels, Levels, list[int]]:
    """Return repetition and definition levels of rows of so many entries, and the entries of each chunk."""
    rng = np.random.default_rng(seed)
    rep = np.concatenate([[2, *rng.integers(0, 2, size - 1)] for size in row_sizes]).astype(np.uint16)
    definition = rng.integers(0, 4, len(rep)).astype(np.uint16)
    sizes, left = [], len(rep)
    for size in [*chunk_sizes, len(rep)]:
        sizes.append(min(size, left))
        left -= sizes[-1]
    return rep, definition, [size for size in sizes if size]


@given(
    st.lists(st.integers(1, 200), min_size=1, max_size=30),
    st.lists(st.integers(1, 400), max_size=8),
    st.integers(0, 1 << 32),
    st.booleans(),
    st.data(),
)
def test_find_rows_finds_rows_that_span_chunks(
    row_sizes: list[int], chunk_sizes: list[int], seed: int, has_definition: bool, data: st.DataObject
) -> None:
    rep, definition, num_levels = laid_out(row_sizes, chunk_sizes, seed)
    chunk_ends = np.cumsum(num_levels)
    chunk_of_entry = np.searchsorted(chunk_ends, np.arange(len(rep)), side="right")
    owns = definition <= 1 if has_definition else np.ones(len(rep), np.bool_)
    row_of_entry = np.cumsum(rep == 2) - 1
    wanted = sorted(data.draw(st.sets(st.integers(0, len(row_sizes) - 1), min_size=1)))
    # the twin: every entry of a wanted row, and the visible ones' numbers in their chunks
    entries = np.flatnonzero(np.isin(row_of_entry, wanted))
    before = [int(owns[: end - size].sum()) for end, size in zip(chunk_ends, num_levels, strict=True)]
    values = [(int(chunk_of_entry[i]), int(owns[:i].sum()) - before[chunk_of_entry[i]]) for i in entries if owns[i]]
    first_entry = np.flatnonzero(rep == 2)
    last_entry = np.append(first_entry[1:], len(rep)) - 1
    begins_in, ends_in = chunk_of_entry[first_entry[wanted]], chunk_of_entry[last_entry[wanted]]
    num_begun = np.bincount(chunk_of_entry[first_entry], minlength=len(num_levels))
    ordinals = np.array(wanted) - (np.cumsum(num_begun) - num_begun)[begins_in]
    found, chunk_of, within = (np.zeros(len(rep), np.int64) for _ in range(3))
    levels = definition if has_definition else np.empty(0, np.uint16)
    num_entries, num_values = kernels.find_rows(
        read_only(rep),
        read_only(levels),
        read_only(np.array(num_levels)),
        read_only(num_begun.astype(np.int64)),
        2,
        1,
        read_only(begins_in.astype(np.int64)),
        read_only(ends_in.astype(np.int64)),
        read_only(ordinals.astype(np.int64)),
        read_only(np.zeros(len(wanted), np.int64)),
        found,
        chunk_of,
        within,
    )
    assert found[:num_entries].tolist() == entries.tolist()
    assert list(zip(chunk_of[:num_values].tolist(), within[:num_values].tolist(), strict=True)) == values


def test_find_rows_reports_a_chunk_with_a_wrong_number_of_rows() -> None:
    rep = read_only(np.array([1, 0, 1, 0, 1] * 40, np.uint16))
    one, none = read_only(np.zeros(1, np.int64)), read_only(np.empty(0, np.uint16))
    for num_begun in (119, 121):
        out = tuple(np.zeros(200, np.int64) for _ in range(3))
        begun, levels = read_only(np.array([num_begun])), read_only(np.array([200]))
        assert kernels.find_rows(rep, none, levels, begun, 1, 0, one, one, one, one, *out)[0] == -1
