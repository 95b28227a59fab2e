"""Conformance tests of every encoding in `ALL_ENCODINGS`."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from lance_ops.core.errors import UnsupportedFeature
from lance_ops.core.ndarrays import Int64Array
from lance_ops.encodings.compressive.registry import ALL_ENCODINGS, encoding_from_pb
from lance_ops.encodings.contract import ChunkBuffers, ChunkLimits, CorruptValues, EncodedChunks, Encoding, Picks
from lance_ops.encodings.page_values.selection import select
from lance_ops.encodings.page_values.values import (
    FixedWidth,
    Values,
    VariableWidth,
    concat_values,
)
from tests.encodings.samples import SAMPLES, SAMPLES_OF_BLOCKS, SAMPLES_OF_FULL_ZIP, Sample, pick, place, plain

CHUNKS, BLOCKS, ZIPPED = "chunks", "blocks", "zipped"
CONTEXTS = {
    "flat": {CHUNKS, BLOCKS, ZIPPED},
    "variable": {CHUNKS, BLOCKS, ZIPPED},
    "constant": {CHUNKS, BLOCKS, ZIPPED},
    "out_of_line_bitpacking": {BLOCKS},
    "inline_bitpacking": {CHUNKS, BLOCKS},
    "fsst": {CHUNKS, ZIPPED},
    "rle": {CHUNKS, BLOCKS},
    "byte_stream_split": {CHUNKS},
    "general": {CHUNKS, BLOCKS, ZIPPED},
    "fixed_size_list": {CHUNKS, BLOCKS, ZIPPED},
    "packed_struct": {CHUNKS, ZIPPED},
    "variable_packed_struct": {ZIPPED},
}
"""The contexts of each encoding; it refuses other contexts."""

few = settings(max_examples=40)  # in each of some hundred cases

every_encoding = pytest.mark.parametrize("encoding_type", ALL_ENCODINGS, ids=lambda encoding: encoding.MESSAGE)


def in_context(context: str) -> pytest.MarkDecorator:
    chosen = [encoding for encoding in ALL_ENCODINGS if context in CONTEXTS[encoding.MESSAGE]]
    return pytest.mark.parametrize("encoding_type", chosen, ids=lambda encoding: encoding.MESSAGE)


SAMPLES_IN = {CHUNKS: SAMPLES, BLOCKS: SAMPLES_OF_BLOCKS, ZIPPED: SAMPLES_OF_FULL_ZIP}


def sample_of(encoding_type: type[Encoding], data: st.DataObject, context: str = CHUNKS) -> Sample:
    """Draw values that the encoding holds in this context."""
    return data.draw(SAMPLES_IN[context][encoding_type])


def some_of(num_values: Int64Array, data: st.DataObject) -> tuple[Picks, Int64Array]:
    """Draw some values of chunks with the given counts; return them as picks and as positions among all values."""
    total = int(num_values.sum())
    drawn = data.draw(st.sets(st.integers(0, max(total - 1, 0)), max_size=30 if total else 0))
    positions = np.array(sorted(drawn), np.int64)
    ends = np.cumsum(num_values)
    chunk_of = np.searchsorted(ends, positions, side="right")
    picks = Picks(chunk_of, positions - (ends - num_values)[chunk_of])
    assert picks.positions(num_values).tolist() == positions.tolist()
    return picks, positions


def ranges_of(zipped: FixedWidth | VariableWidth) -> tuple[Int64Array, Int64Array]:
    if isinstance(zipped, VariableWidth):
        return zipped.offsets[:-1].astype(np.int64), zipped.lengths().astype(np.int64)
    width = zipped.bits_per_value // 8
    return np.arange(zipped.num_values) * width, np.full(zipped.num_values, width, np.int64)


def test_every_encoding_has_samples_and_declares_its_contexts() -> None:
    assert set(SAMPLES) == set(ALL_ENCODINGS)
    assert [encoding.MESSAGE for encoding in ALL_ENCODINGS if encoding.MESSAGE not in CONTEXTS] == []


@every_encoding
@given(data=st.data())
@few
def test_an_encoding_s_description_round_trips(encoding_type: type[Encoding], data: st.DataObject) -> None:
    encoding = sample_of(encoding_type, data).encoding
    described = encoding.to_pb()
    assert described.WhichOneof("compression") == encoding_type.MESSAGE
    assert encoding_from_pb(type(described).FromString(described.SerializeToString())) == encoding


@every_encoding
@given(data=st.data())
@few
def test_an_encoding_refuses_an_unsupported_context_by_name(encoding_type: type[Encoding], data: st.DataObject) -> None:
    sample = sample_of(encoding_type, data)
    encoding, values = sample.encoding, sample.values
    no_bytes, nowhere = np.empty(0, np.uint8), np.empty(0, np.int64)
    uses: dict[str, list[Callable[[], object]]] = {
        CHUNKS: [
            lambda: encoding.encode_chunks(values),
            lambda: encoding.decode_chunks(ChunkBuffers(no_bytes, (nowhere,), (nowhere,), nowhere)),
        ],
        BLOCKS: [lambda: encoding.encode_block(values), lambda: encoding.decode_block(no_bytes, 0)],
        ZIPPED: [lambda: encoding.encode_zipped(values), lambda: encoding.decode_zipped(no_bytes, nowhere, nowhere)],
    }
    for context in set(uses) - CONTEXTS[encoding_type.MESSAGE]:
        for use in uses[context]:
            with pytest.raises(UnsupportedFeature, match=encoding_type.MESSAGE):
                use()


@in_context(CHUNKS)
@given(data=st.data())
@few
def test_chunks_are_decoded_in_whole_and_in_part(encoding_type: type[Encoding], data: st.DataObject) -> None:
    sample = sample_of(encoding_type, data)
    limits = ChunkLimits(max_values=data.draw(st.sampled_from([64, 1024, 4096])), max_bytes=8192)
    encoded = sample.encoding.encode_chunks(sample.values, limits)
    chunks = place(encoded)
    assert plain(sample.encoding.decode_chunks(chunks)) == plain(sample.values)
    chosen = data.draw(st.lists(st.integers(0, encoded.num_chunks - 1))) if encoded.num_chunks else []
    ends = np.cumsum(encoded.num_values)
    parts = [sample.values.slice(int(ends[i] - encoded.num_values[i]), int(ends[i])) for i in chosen]
    expected = concat_values(parts) if parts else sample.values.slice(0, 0)
    assert plain(sample.encoding.decode_chunks(pick(chunks, chosen))) == plain(expected)


@in_context(CHUNKS)
@given(data=st.data())
@few
def test_values_picked_from_chunks_equal_the_decoded_values(encoding_type: type[Encoding], data: st.DataObject) -> None:
    sample = sample_of(encoding_type, data)
    encoded = sample.encoding.encode_chunks(sample.values)
    assume(encoded.num_chunks)
    picks, positions = some_of(encoded.num_values, data)
    found = sample.encoding.pick_chunks(place(encoded), picks)
    assert plain(found) == plain(select(sample.values, positions))


@in_context(BLOCKS)
@given(data=st.data())
@few
def test_values_picked_from_blocks_equal_the_decoded_values(encoding_type: type[Encoding], data: st.DataObject) -> None:
    sample = sample_of(encoding_type, data, BLOCKS)
    assume(sample.values.num_values)
    counts = np.diff([*range(0, sample.values.num_values, 1024), sample.values.num_values]).astype(np.int64)
    blocks = place(sample.encoding.encode_blocks(sample.values, counts))
    picks, positions = some_of(counts, data)
    assert plain(sample.encoding.pick_blocks(blocks, picks)) == plain(select(sample.values, positions))


@in_context(CHUNKS)
@given(data=st.data())
@few
def test_chunks_respect_the_format_and_the_limits(encoding_type: type[Encoding], data: st.DataObject) -> None:
    sample = sample_of(encoding_type, data)
    limits = ChunkLimits(data.draw(st.sampled_from([64, 1024, 4096])), data.draw(st.sampled_from([4096, 32768])))
    encoded = sample.encoding.encode_chunks(sample.values, limits)
    assert len(encoded.data) == len(encoded.sizes) == sample.encoding.num_buffers
    assert encoded.num_values.sum() == sample.values.num_values
    assert all(count > 0 and count & (count - 1) == 0 for count in encoded.num_values[:-1].tolist())
    assert (encoded.num_values > 0).all()
    assert encoded.num_values.max(initial=0) <= limits.max_values
    for data_of_buffer, sizes in zip(encoded.data, encoded.sizes, strict=True):
        assert len(data_of_buffer) == sizes.sum()
    totals = sum(encoded.sizes, np.zeros(encoded.num_chunks, np.int64))
    # the smallest units may be larger: 8 bits or 2 values, packed integers of 1024, a codec's header
    few = encoded.num_values <= 8
    slack = 1024 * 8 + 8 if encoding_type.MESSAGE in ("inline_bitpacking", "general") else 64
    assert (few | (totals <= limits.max_bytes + slack)).all()


@in_context(BLOCKS)
@given(data=st.data())
@few
def test_blocks_round_trip(encoding_type: type[Encoding], data: st.DataObject) -> None:
    sample = sample_of(encoding_type, data, BLOCKS)
    values = sample.values.slice(0, min(sample.values.num_values, 1024))
    block = sample.encoding.encode_block(values)
    assert plain(sample.encoding.decode_block(block, values.num_values)) == plain(values)


@in_context(BLOCKS)
@given(data=st.data())
@few
def test_blocks_decoded_together_equal_blocks_decoded_singly(
    encoding_type: type[Encoding], data: st.DataObject
) -> None:
    sample = sample_of(encoding_type, data, BLOCKS)
    num_values = sample.values.num_values
    cuts = sorted(data.draw(st.lists(st.integers(0, num_values), max_size=8)) + list(range(0, num_values, 1024)))
    counts = np.diff(np.unique([*cuts, num_values])).astype(np.int64)
    encoded: EncodedChunks = sample.encoding.encode_blocks(sample.values, counts)
    ends = np.cumsum(counts)
    for i, count in enumerate(counts.tolist()):
        one = sample.encoding.encode_block(sample.values.slice(int(ends[i]) - count, int(ends[i])))
        start = int(encoded.starts(0)[i])
        assert encoded.data[0][start : start + int(encoded.sizes[0][i])].tobytes() == one.tobytes()
    if len(counts):
        assert plain(sample.encoding.decode_blocks(place(encoded))) == plain(sample.values)


@in_context(ZIPPED)
@given(data=st.data())
@few
def test_zipped_values_are_decoded_in_whole_and_in_part(encoding_type: type[Encoding], data: st.DataObject) -> None:
    sample = sample_of(encoding_type, data, ZIPPED)
    zipped = sample.encoding.encode_zipped(sample.values)
    assert zipped.num_values == sample.values.num_values
    starts, sizes = ranges_of(zipped)
    assert plain(sample.encoding.decode_zipped(zipped.data, starts, sizes)) == plain(sample.values)
    if len(starts):
        chosen = data.draw(st.lists(st.integers(0, len(starts) - 1), min_size=1, max_size=5))
        expected = concat_values([sample.values.slice(i, i + 1) for i in chosen])
        found = sample.encoding.decode_zipped(zipped.data, starts[chosen], sizes[chosen])
        assert plain(found) == plain(expected)


@in_context(CHUNKS)
@given(data=st.data())
@few
def test_a_wrong_number_of_buffers_is_corrupt(encoding_type: type[Encoding], data: st.DataObject) -> None:
    sample = sample_of(encoding_type, data)
    nothing = tuple(np.empty(0, np.int64) for _ in range(sample.encoding.num_buffers + 1))
    chunks = ChunkBuffers(np.empty(0, np.uint8), nothing, nothing, np.empty(0, np.int64))
    with pytest.raises(CorruptValues):
        sample.encoding.decode_chunks(chunks)


@in_context(CHUNKS)
@given(data=st.data())
@few
def test_damaged_chunks_decode_or_raise_a_typed_error(encoding_type: type[Encoding], data: st.DataObject) -> None:
    encoding, values = damageable(encoding_type, data, CHUNKS)
    chunks = damage(place(encoding.encode_chunks(values)), data)
    if chunks is not None:
        decode_or_refuse(lambda: encoding.decode_chunks(chunks), chunks.total_values)


@in_context(BLOCKS)
@given(data=st.data())
@few
def test_damaged_blocks_decode_or_raise_a_typed_error(encoding_type: type[Encoding], data: st.DataObject) -> None:
    encoding, values = damageable(encoding_type, data, BLOCKS)
    block = damaged_bytes(encoding.encode_block(values), data)
    num_values = data.draw(st.sampled_from([0, 1, values.num_values, values.num_values + 1, 5000]))
    decode_or_refuse(lambda: encoding.decode_block(block, num_values), num_values)


@in_context(ZIPPED)
@given(data=st.data())
@few
def test_damaged_zipped_values_decode_or_raise_a_typed_error(
    encoding_type: type[Encoding], data: st.DataObject
) -> None:
    encoding, values = damageable(encoding_type, data, ZIPPED)
    zipped = encoding.encode_zipped(values)
    starts, sizes = ranges_of(zipped)
    bytes_of = damaged_bytes(zipped.data, data)
    fits = starts + sizes <= len(bytes_of)
    if fits.any():
        sizes = sizes - data.draw(st.integers(0, 2)) * (sizes > 2)
        decode_or_refuse(lambda: encoding.decode_zipped(bytes_of, starts[fits], sizes[fits]), int(fits.sum()))


def damageable(encoding_type: type[Encoding], data: st.DataObject, context: str) -> tuple[Encoding, Values]:
    """Draw an encoding and at most 300 values, so that a damaged byte often matters."""
    sample = sample_of(encoding_type, data, context)
    return sample.encoding, sample.values.slice(0, min(sample.values.num_values, 300))


def decode_or_refuse(decode: Callable[[], Values], num_values: int) -> None:
    """Assert that damaged bytes decode to the requested number of values, or raise a typed error."""
    try:
        decoded = decode()
    except (CorruptValues, UnsupportedFeature):
        return
    assert decoded.num_values == num_values
    plain(decoded)


def damage(chunks: ChunkBuffers, data: st.DataObject) -> ChunkBuffers | None:
    """Change bytes, sizes and counts; None if the ranges leave the page, which readers refuse before decoding."""
    sizes = tuple(np.maximum(size + data.draw(st.sampled_from([0, 0, -1, 1, -8, 8])), 0) for size in chunks.sizes)
    counts = np.maximum(chunks.num_values + data.draw(st.sampled_from([0, 0, -1, 1, 4096])), 0)
    try:
        return replace(chunks, data=damaged_bytes(chunks.data, data), sizes=sizes, num_values=counts)
    except CorruptValues:
        return None


def damaged_bytes(data: np.ndarray[Any, np.dtype[np.uint8]], draws: st.DataObject) -> Any:
    changed = data.copy()
    for _ in range(draws.draw(st.integers(0, 3)) if len(data) else 0):
        # the first bytes matter most
        at = draws.draw(st.one_of(st.integers(0, min(24, len(data) - 1)), st.integers(0, len(data) - 1)))
        changed[at] = draws.draw(st.integers(0, 255))
    return changed[: len(changed) - draws.draw(st.sampled_from([0, 0, 0, 1, 7, 100]))]
