from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lance_ops import kernels
from lance_ops.kernels.read_only_arrays import read_only
from tests.kernels import twins


@given(st.lists(st.tuples(st.integers(0, 200), st.integers(0, 100), st.integers(0, 9)), max_size=20))
def test_copying_ranges_writes_nothing_outside_their_places(ranges: list[tuple[int, int, int]]) -> None:
    data = np.random.default_rng(0).integers(0, 256, 300, dtype=np.uint8)
    starts = np.array([start for start, _, _ in ranges], np.int64)
    sizes = np.array([size for _, size, _ in ranges], np.int64)
    gaps = np.array([gap for _, _, gap in ranges], np.int64)
    places = np.cumsum(sizes + gaps) - sizes
    out, expected = np.full((2, int((sizes + gaps).sum())), 0xAB, np.uint8)
    kernels.copy_ranges(read_only(data), read_only(starts), read_only(sizes), out, read_only(places))
    twins.copy_ranges(data, starts, sizes, expected, places)
    assert out.tobytes() == expected.tobytes()


def chunk_of(strings: list[bytes], width: int) -> bytes:
    ends = np.cumsum([(len(strings) + 1) * width, *map(len, strings)]).astype(f"<u{width}")
    return ends.tobytes() + b"".join(strings)


def join(chunks: list[bytes], counts: list[int], width: int) -> tuple[int, bytes, list[int]]:
    sizes = np.array([len(chunk) for chunk in chunks], np.int64)
    data = np.frombuffer(b"".join(chunks), np.uint8)
    out, offsets = np.zeros(len(data), np.uint8), np.zeros(sum(counts) + 1, np.int64)
    starts = read_only(np.cumsum(sizes) - sizes)
    joined = kernels.join_strings(
        read_only(data), starts, read_only(sizes), read_only(np.array(counts, np.int64)), width, out, offsets
    )
    return joined, out.tobytes(), offsets.tolist()


@given(st.lists(st.lists(st.binary(max_size=80), max_size=6), max_size=5), st.sampled_from([4, 8]))
def test_joining_strings_equals_the_plain_twin(groups: list[list[bytes]], width: int) -> None:
    chunks, counts = [chunk_of(group, width) for group in groups], [len(group) for group in groups]
    joined, data, offsets = join(chunks, counts, width)
    strings, expected = twins.join_strings(chunks, counts, width)
    assert (joined, offsets) == (len(chunks), expected)
    assert data[: offsets[-1]] == b"".join(strings)


@pytest.mark.parametrize("width", [4, 8])
@pytest.mark.parametrize(
    "offsets",
    [[0, 12, 13], [24, 23, 26], [24, 26, 25], [24, 25, 1 << 30], [(1 << 31) - 1] * 3, [24, 25, 200]],
)
def test_joining_stops_at_a_chunk_with_wrong_offsets(width: int, offsets: list[int]) -> None:
    good = chunk_of([b"ab"], width)
    bad = np.array(offsets, f"<u{width}").tobytes() + b"abcdef"
    assert join([good, bad, good], [1, 2, 1], width)[0] == 1


def test_joining_refuses_an_offset_beyond_63_bits() -> None:
    bad = np.array([24, 1 << 63, 25], "<u8").tobytes() + b"a"
    assert join([bad], [2], 8)[0] == 0


@given(st.lists(st.lists(st.binary(max_size=12), max_size=6), max_size=5), st.sampled_from([4, 8]))
def test_split_strings_follow_their_offsets_and_are_padded_to_words(groups: list[list[bytes]], width: int) -> None:
    flat = [string for group in groups for string in group]
    offsets = np.cumsum([0, *map(len, flat)]).astype(np.int64)
    counts = np.array([len(group) for group in groups], np.int64)
    chunks = [chunk_of(group, width) for group in groups]
    padded = [chunk + bytes(-len(chunk) % width) for chunk in chunks]
    out, sizes = np.full(sum(map(len, padded)), 0xAA, np.uint8), np.empty(len(groups), np.int64)
    data = read_only(np.frombuffer(b"".join(flat), np.uint8))
    kernels.split_strings(data, read_only(offsets), read_only(counts), width, out, sizes)
    assert sizes.tolist() == [len(chunk) for chunk in padded]
    assert out.tobytes() == b"".join(padded)
