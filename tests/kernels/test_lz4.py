from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lance_ops import kernels
from lance_ops.kernels.read_only_arrays import read_only
from tests.kernels import twins

LZ4 = pa.Codec("lz4_raw")


def decode(blocks: list[bytes], raw_sizes: list[int]) -> tuple[int, bytes]:
    """Decode with a guard behind the output: nothing may be written there."""
    sizes = np.array([len(block) for block in blocks], np.int64)
    places = np.concatenate([np.zeros(1, np.int64), np.cumsum(raw_sizes)]).astype(np.int64)
    out = np.full(int(places[-1]) + 64, 0xAB, np.uint8)
    data, starts = read_only(np.frombuffer(b"".join(blocks), np.uint8)), read_only(np.cumsum(sizes) - sizes)
    decoded = kernels.lz4_decode(data, starts, read_only(sizes), out[: places[-1]], read_only(places))
    assert (out[places[-1] :] == 0xAB).all()
    return decoded, out[: places[-1]].tobytes()


texts = st.one_of(
    st.binary(max_size=300),
    st.lists(st.sampled_from([b"a", b"abc", b"lance", b"\0" * 40, b"0123456789" * 9]), max_size=40).map(b"".join),
    st.integers(0, 70000).map(lambda size: b"x" * size),
)


@given(st.lists(texts, max_size=5))
def test_compressed_blocks_decode_to_the_original(raws: list[bytes]) -> None:
    blocks = [LZ4.compress(raw, asbytes=True) for raw in raws]
    assert [twins.lz4_decode(block) for block in blocks if len(block) < 999] == [
        raw for raw, block in zip(raws, blocks, strict=True) if len(block) < 999
    ]
    assert decode(blocks, [len(raw) for raw in raws]) == (len(raws), b"".join(raws))


@given(st.integers(-20, 20))
def test_a_wrong_raw_size_is_refused(difference: int) -> None:
    raw = b"some words, and some words again" * 3
    decoded, _ = decode([LZ4.compress(raw, asbytes=True)], [len(raw) + difference])
    assert decoded == (difference == 0)


@given(st.data())
def test_damaged_blocks_are_refused_or_decode_like_the_lz4_library(data: st.DataObject) -> None:
    raw = b"a block of text, a block of text and a block of something else: 0123456789" * 4
    block = bytearray(LZ4.compress(raw, asbytes=True))
    for _ in range(data.draw(st.integers(1, 3))):
        block[data.draw(st.integers(0, len(block) - 1))] = data.draw(st.integers(0, 255))
    block = block[: data.draw(st.integers(1, len(block)))]
    decoded, out = decode([bytes(block)], [len(raw)])
    if decoded:
        assert out == LZ4.decompress(bytes(block), len(raw), asbytes=True)


@pytest.mark.parametrize(
    "block",
    [b"", b"\xf0", b"\xf0\xff\xff", b"\x10", b"\x14a\x00\x00", b"\x14a\x05\x00", b"\x1fa\x01\x00\xff", b"\x00\x01"],
)
def test_a_block_that_ends_early_or_points_before_its_start_is_refused(block: bytes) -> None:
    assert decode([block], [100])[0] == 0
