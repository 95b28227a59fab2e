from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lance_ops import kernels
from lance_ops.core.ndarrays import UnsignedArray
from lance_ops.kernels.read_only_arrays import read_only
from tests.kernels import twins

WIDTHS = [(bits, width) for bits in (8, 16, 32, 64) for width in sorted({0, 1, 3, bits // 2, bits - 1, bits})]


def values_of(width: int, bits: int, seed: int) -> UnsignedArray:
    words = np.frombuffer(np.random.default_rng(seed).bytes(128 * bits), f"u{bits // 8}")
    masked: UnsignedArray = words & np.array((1 << width) - 1, words.dtype)
    return masked


def packed(values: UnsignedArray, counts: list[int], width: int) -> tuple[bytes, list[int]]:
    bits = values.dtype.itemsize * 8
    # what an array held before must not show
    out, sizes = np.full(len(counts) * 1025 * bits // 8, 0xAA, np.uint8), np.empty(len(counts), np.int64)
    kernels.pack_runs(read_only(values.view(np.uint8)), read_only(np.array(counts, np.int64)), width, bits, out, sizes)
    return out[: sizes.sum()].tobytes(), sizes.tolist()


@pytest.mark.parametrize(("bits", "width"), WIDTHS)
def test_packing_equals_the_plain_twin(bits: int, width: int) -> None:
    values = values_of(width, bits, seed=bits + width)
    assert packed(values, [1024], width) == (twins.pack_block(values, width, bits).tobytes(), [128 * width])


@given(st.sampled_from([8, 16, 32, 64]), st.lists(st.tuples(st.integers(0, 64), st.integers(0, 1024)), max_size=4))
def test_inline_packed_runs_start_with_their_width(bits: int, runs: list[tuple[int, int]]) -> None:
    parts = [values_of(min(width, bits), bits, seed)[:count] for seed, (width, count) in enumerate(runs)]
    expected = b""
    for part in parts:
        width = int(part.max(initial=0)).bit_length()
        filled = np.append(part, np.zeros(1024 - len(part), part.dtype))
        expected += width.to_bytes(bits // 8, "little") + twins.pack_block(filled, width, bits).tobytes()
    values = np.concatenate([np.empty(0, f"u{bits // 8}"), *parts])
    assert packed(values, [len(part) for part in parts], -1)[0] == expected


@pytest.mark.parametrize(("bits", "width"), WIDTHS)
def test_unpacking_equals_the_plain_twin(bits: int, width: int) -> None:
    block = np.frombuffer(np.random.default_rng(width).bytes(128 * width), np.uint8)
    out = np.empty(128 * bits, np.uint8)
    zero = read_only(np.zeros(1, np.int64))
    kernels.unpack_blocks(read_only(block), zero, read_only(np.array([width])), zero, bits, out)
    assert out.view(f"u{bits // 8}").tolist() == twins.unpack_block(block, width, bits).tolist()


@pytest.mark.parametrize(("bits", "width"), WIDTHS)
def test_a_picked_value_equals_the_unpacked_one(bits: int, width: int) -> None:
    block = np.frombuffer(np.random.default_rng(width).bytes(128 * width), np.uint8)
    places = read_only(np.arange(1024))
    out = np.empty(1024, np.uint64)
    starts, widths = read_only(np.zeros(1024, np.int64)), read_only(np.full(1024, width))
    kernels.pick_packed(read_only(block), starts, widths, places, bits, out)
    assert out.tolist() == twins.unpack_block(block, width, bits).tolist()


@given(st.sampled_from([8, 16, 32, 64]), st.data())
def test_blocks_of_several_widths_unpack_from_any_byte(bits: int, data: st.DataObject) -> None:
    widths = np.array(data.draw(st.lists(st.integers(0, bits), max_size=4)), np.int64)
    gaps = np.array(data.draw(st.lists(st.integers(0, 9), min_size=len(widths), max_size=len(widths))), np.int64)
    blocks = [values_of(int(width), bits, seed) for seed, width in enumerate(widths)]
    ends = np.cumsum(gaps + 128 * widths)
    starts = ends - 128 * widths
    laid = np.zeros(int(ends[-1]) if len(ends) else 0, np.uint8)
    for start, width, block in zip(starts.tolist(), widths.tolist(), blocks, strict=True):
        laid[start : start + 128 * width] = np.frombuffer(packed(block, [1024], width)[0], np.uint8)
    raw = np.concatenate([np.empty(0, f"u{bits // 8}"), *blocks])
    out = np.empty(len(raw) * bits // 8, np.uint8)
    places = np.arange(len(widths)) * 128 * bits
    kernels.unpack_blocks(read_only(laid), read_only(starts), read_only(widths), read_only(places), bits, out)
    assert out.tobytes() == raw.tobytes()


def test_a_later_block_overwrites_the_excess_of_an_earlier_one() -> None:
    values = values_of(5, 32, seed=1)
    block = twins.pack_block(values, 5, 32)
    out = np.empty((3 + 1024) * 4, np.uint8)
    starts, widths = read_only(np.zeros(2, np.int64)), read_only(np.array([5, 5]))
    kernels.unpack_blocks(read_only(block), starts, widths, read_only(np.array([0, 12])), 32, out)
    assert out.view(np.uint32).tolist() == values[:3].tolist() + values.tolist()


@pytest.mark.parametrize(("start", "width"), [(0, 9), (0, -1), (-1, 3), (1, 8), (1 << 62, 8)])
def test_unpacking_and_picking_stop_at_a_malformed_block(start: int, width: int) -> None:
    block = read_only(np.zeros(128 * 8, np.uint8))
    starts, widths = read_only(np.array([0, start])), read_only(np.array([8, width]))
    places = read_only(np.zeros(2, np.int64))
    assert kernels.unpack_blocks(block, starts, widths, places, 8, np.empty(1024, np.uint8)) == 1
    assert kernels.pick_packed(block, starts, widths, places, 8, np.empty(2, np.uint64)) == 1


@pytest.mark.parametrize("place", [1024, -1])
def test_picking_stops_at_a_place_outside_the_block(place: int) -> None:
    block, zeros = read_only(np.zeros(128 * 8, np.uint8)), read_only(np.zeros(2, np.int64))
    places, widths = read_only(np.array([1023, place])), read_only(np.array([8, 8]))
    assert kernels.pick_packed(block, zeros, widths, places, 8, np.empty(2, np.uint64)) == 1


@pytest.mark.parametrize(("word", "size", "read"), [(3, 388, 2), (3, 387, 1), (0, 4, 2), (0, 3, 1), (259, 388, 1)])
def test_a_width_is_read_only_if_its_block_is_long_enough(word: int, size: int, read: int) -> None:
    data = np.zeros(800, np.uint8)
    data[4:8] = np.array([word], "<u4").view(np.uint8)
    widths = np.full(2, 77, np.int64)
    starts, sizes = read_only(np.array([0, 4])), read_only(np.array([4, size]))
    assert kernels.read_widths(read_only(data), starts, sizes, 4, widths) == read
    assert widths.tolist() == ([0, word] if read == 2 else [0, 77])
