from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lance_ops.encodings.bitpacked import decode_bitpacked, decode_bitpacked_for_non_neg
from lance_ops.encodings.contract import CorruptValues
from lance_ops.encodings.out_of_line_bitpacking import OutOfLineBitpackingEncoding
from tests.encodings.samples import integers_of, plain

DATA = np.zeros(384, np.uint8)


def packed(numbers: list[int], width: int) -> np.ndarray[tuple[int], np.dtype[np.uint8]]:
    """Lay the low bits of numbers end to end."""
    stream = sum((number & ((1 << width) - 1)) << (i * width) for i, number in enumerate(numbers))
    return np.frombuffer(stream.to_bytes((len(numbers) * width + 7) // 8, "little"), np.uint8)


@given(st.sampled_from([8, 16, 32, 64]), st.booleans(), st.data())
def test_values_laid_end_to_end_are_widened_from_any_place(bits: int, signed: bool, data: st.DataObject) -> None:
    width = data.draw(st.integers(1, bits))
    low, high = (-(1 << (width - 1)), (1 << (width - 1)) - 1) if signed else (0, (1 << width) - 1)
    numbers = data.draw(st.lists(st.integers(low, high), max_size=40))
    first = data.draw(st.integers(0, len(numbers)))
    decoded = decode_bitpacked(packed(numbers, width), width, bits, first, len(numbers) - first, signed=signed)
    assert decoded.data.view(f"{'i' if signed else 'u'}{bits // 8}").tolist() == numbers[first:]


def test_a_long_page_is_unpacked_in_pieces() -> None:
    numbers = np.random.default_rng(0).integers(0, 1 << 11, 100_000).tolist()
    assert (
        decode_bitpacked(packed(numbers, 11), 11, 32, 0, len(numbers), signed=False).as_integers().tolist() == numbers
    )


@given(st.integers(1, 32), st.integers(0, 5000), st.data())
def test_blocks_are_unpacked_from_any_value(width: int, count: int, data: st.DataObject) -> None:
    numbers = np.random.default_rng(width).integers(0, 1 << width, count, np.uint64)
    filled_up = integers_of(np.append(numbers, np.zeros(-count % 1024, np.uint64)), 32)
    blocks = OutOfLineBitpackingEncoding(32, width).encode_block(filled_up)
    first = data.draw(st.integers(0, count))
    num_values = data.draw(st.integers(0, count - first))
    decoded = decode_bitpacked_for_non_neg(blocks, width, 32, first, num_values)
    assert plain(decoded) == plain(integers_of(numbers[first : first + num_values], 32))


@pytest.mark.parametrize(("width", "bits"), [(0, 8), (9, 8), (3, 24)])
def test_widths_that_cannot_be_are_corrupt(width: int, bits: int) -> None:
    with pytest.raises(CorruptValues):
        decode_bitpacked(DATA, width, bits, 0, 1, signed=False)
    with pytest.raises(CorruptValues):
        decode_bitpacked_for_non_neg(DATA, width, bits, 0, 1)


def test_data_that_ends_before_its_values_is_corrupt() -> None:
    with pytest.raises(CorruptValues):
        decode_bitpacked(DATA, 3, 8, 1000, 25, signed=False)
    with pytest.raises(CorruptValues):
        decode_bitpacked_for_non_neg(DATA, 3, 8, 1000, 25)
