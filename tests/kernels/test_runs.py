from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lance_ops import kernels
from lance_ops.kernels.read_only_arrays import read_only

chunks_of_runs = st.lists(
    st.lists(st.tuples(st.integers(0, 2**64 - 1), st.integers(0, 255)), min_size=1, max_size=9), max_size=6
)


def laid_out(chunks: list[list[tuple[int, int]]], width: int) -> tuple[Any, ...]:
    """Return the data, where values and lengths of each chunk are, its number of runs, and its values."""
    data, value_starts, length_starts = b"", [], []
    expected = []
    for runs in chunks:
        values = np.array([value for value, _ in runs], np.uint64).astype(f"<u{width}")
        value_starts.append(len(data))
        data += values.tobytes()
        length_starts.append(len(data))
        data += bytes(length for _, length in runs)
        expected.append(np.repeat(values, [length for _, length in runs]))
    integers = (np.array(each, np.int64) for each in (value_starts, length_starts, [len(runs) for runs in chunks]))
    return (read_only(np.frombuffer(data, np.uint8)), *map(read_only, integers), expected)


@pytest.mark.parametrize("width", [1, 2, 4, 8])
@given(chunks=chunks_of_runs, cut=st.integers(0, 20))
def test_expanding_runs_equals_numpy_repeat(width: int, chunks: list[list[tuple[int, int]]], cut: int) -> None:
    data, value_starts, length_starts, num_runs, expected = laid_out(chunks, width)
    wanted = [values[: max(len(values) - cut, 0)] for values in expected]
    counts = read_only(np.array([len(values) for values in wanted], np.int64))
    out = np.zeros(int(counts.sum()) * width + 16, np.uint8)
    assert kernels.expand_runs(data, value_starts, length_starts, num_runs, counts, width, out) == len(chunks)
    assert out[:-16].tobytes() == b"".join(values.tobytes() for values in wanted)


@pytest.mark.parametrize("width", [1, 2, 4, 8])
@given(chunks=chunks_of_runs, data=st.data())
def test_a_picked_value_equals_the_expanded_one(
    width: int, chunks: list[list[tuple[int, int]]], data: st.DataObject
) -> None:
    packed, value_starts, length_starts, num_runs, expected = laid_out(chunks, width)
    places = [(chunk, at) for chunk, values in enumerate(expected) for at in range(len(values))]
    drawn = sorted(data.draw(st.sets(st.sampled_from(places), max_size=20))) if places else []
    chunk_of, within = (read_only(np.array([place[i] for place in drawn], np.int64)) for i in range(2))
    out = np.zeros(len(drawn), np.uint64)
    assert kernels.pick_runs(packed, value_starts, length_starts, num_runs, chunk_of, within, width, out) == len(drawn)
    assert out.tolist() == [int(expected[chunk][at]) for chunk, at in drawn]


def test_runs_that_end_early_are_reported() -> None:
    data, value_starts, length_starts, num_runs, _ = laid_out([[(7, 3)], [(8, 2)]], 4)
    places = value_starts, length_starts, num_runs
    out = np.zeros(64, np.uint8)
    assert kernels.expand_runs(data, *places, read_only(np.array([3, 3])), 4, out) == 1
    beyond = read_only(np.array([1], np.int64)), read_only(np.array([2], np.int64))
    assert kernels.pick_runs(data, *places, *beyond, 4, np.zeros(1, np.uint64)) == 0
