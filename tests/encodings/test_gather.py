from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lance_ops.encodings.contract import ChunkBuffers, CorruptValues
from lance_ops.encodings.page_values import gather
from lance_ops.encodings.page_values.gather import gather_ranges, uniform_stride

DATA = np.random.default_rng(0).integers(0, 256, 2000, dtype=np.uint8)


@st.composite
def ranges(draw: st.DrawFn) -> list[tuple[int, int]]:
    if draw(st.booleans()):
        stride, size, count = draw(st.integers(0, 30)), draw(st.integers(0, 30)), draw(st.integers(0, 60))
        even = [(i * stride, size) for i in range(count)]
        return [*even, (draw(st.integers(0, 1900)), draw(st.integers(0, 100)))]
    return draw(st.lists(st.tuples(st.integers(0, 1900), st.integers(0, 100)), max_size=100))


@given(ranges())
def test_ranges_are_gathered_in_order(wanted: list[tuple[int, int]]) -> None:
    starts = np.array([start for start, _ in wanted], np.int64)
    sizes = np.array([size for _, size in wanted], np.int64)
    expected = b"".join(DATA[start : start + size].tobytes() for start, size in wanted)
    assert gather_ranges(DATA, starts, sizes).tobytes() == expected


@pytest.mark.parametrize("most", [1, 40])
def test_many_ascending_ranges_are_gathered_with_and_without_the_kernel(
    most: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(gather, "_MANY_RANGES", most * 10)
    generator = np.random.default_rng(most)
    starts = np.arange(0, 1900, 10)
    sizes = generator.integers(0, 11, len(starts))
    expected = b"".join(DATA[start : start + size].tobytes() for start, size in zip(starts, sizes, strict=True))
    assert gather_ranges(DATA, starts, sizes).tobytes() == expected


@pytest.mark.parametrize("size", [0, 1, 8, 100])
def test_ranges_of_one_size_are_gathered_in_any_order(size: int) -> None:
    starts = np.random.default_rng(size).integers(0, len(DATA) - size + 1, 100)
    expected = b"".join(DATA[start : start + size].tobytes() for start in starts)
    assert gather_ranges(DATA, starts, np.full(100, size)).tobytes() == expected


def test_adjacent_ranges_are_not_copied() -> None:
    starts, sizes = np.array([5, 10, 12, 12, 40]), np.array([5, 2, 0, 28, 9])
    assert np.shares_memory(gather_ranges(DATA, starts, sizes), DATA)


def test_a_stride_is_one_only_when_all_ranges_share_it() -> None:
    assert uniform_stride(np.array([0, 8, 16]), np.array([4, 4, 4])) == 8
    assert uniform_stride(np.array([0, 8, 17]), np.array([4, 4, 4])) is None
    assert uniform_stride(np.array([0, 9, 16]), np.array([4, 4, 4])) is None
    assert uniform_stride(np.array([0, 8, 16]), np.array([4, 5, 4])) is None
    assert uniform_stride(np.array([3]), np.array([4])) is None


@pytest.mark.parametrize(("start", "size"), [(-1, 4), (0, -1), (1999, 2), (2001, 0), ((1 << 63) - 1, 1), (0, 1 << 62)])
def test_chunks_outside_their_page_are_corrupt(start: int, size: int) -> None:
    with pytest.raises(CorruptValues, match="beyond"):
        ChunkBuffers(DATA, (np.array([0, start]),), (np.array([1, size]),), np.array([1, 1]))
