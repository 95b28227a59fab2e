from __future__ import annotations

import itertools

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from lance_ops.encodings.page_values.bits import bits_of, concat_bits
from lance_ops.encodings.page_values.values import FixedWidth, concat_values, offsets_of_lengths
from tests.encodings.samples import SAMPLES, Sample, integers_of, plain, strings_of

every_sample = st.one_of(*SAMPLES.values())


@given(every_sample, st.data())
def test_slices_joined_are_the_values(sample: Sample, data: st.DataObject) -> None:
    values = sample.values
    cuts = sorted(data.draw(st.lists(st.integers(0, values.num_values), max_size=4)))
    bounds = [0, *cuts, values.num_values]
    parts = [values.slice(a, b) for a, b in itertools.pairwise(bounds)]
    assert sum(part.num_values for part in parts) == values.num_values
    assert plain(concat_values(parts)) == plain(values)


@given(st.binary(min_size=1, max_size=20), st.data())
def test_bits_are_sliced_and_joined_at_any_offset(raw: bytes, data: st.DataObject) -> None:
    source = np.frombuffer(raw, np.uint8)
    bits = np.unpackbits(source, bitorder="little").tolist()
    start = data.draw(st.integers(0, len(bits)))
    stop = data.draw(st.integers(start, len(bits)))
    cut = bits_of(source, start, stop)
    assert np.unpackbits(cut, bitorder="little", count=stop - start).tolist() == bits[start:stop]
    joined = concat_bits([(bits_of(source, 0, start), start), (cut, stop - start)])
    assert np.unpackbits(joined, bitorder="little", count=stop).tolist() == bits[:stop]


def test_a_slice_of_whole_bytes_is_a_view() -> None:
    values = integers_of(range(100), 32)
    assert np.shares_memory(values.slice(3, 50).data, values.data)
    assert np.shares_memory(strings_of([b"ab", b"c", b"def"]).slice(1, 3).data, strings_of([b"x"]).data) is False


def test_offsets_widen_when_31_bits_no_longer_count_the_bytes() -> None:
    assert offsets_of_lengths(np.array([5, 6]), 32).dtype == np.int32
    assert offsets_of_lengths(np.array([5, 6]), 64).dtype == np.int64
    assert offsets_of_lengths(np.array([1 << 30, 1 << 30]), 32).tolist() == [0, 1 << 30, 1 << 31]


def test_values_of_no_bits_take_no_bytes() -> None:
    assert FixedWidth(np.empty(0, np.uint8), 0, 12).size_bytes == 0
