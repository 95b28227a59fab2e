"""Bytes that pylance 14.0.2 wrote to one-column 2.1 and 2.2 files decode to the original values."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pytest

from lance_ops.encodings.compressive.registry import encoding_from_pb
from lance_ops.encodings.contract import ChunkBuffers
from lance_ops.encodings.page_values.values import FixedSizeListValues, FixedWidth, PackedValues, Values
from lance_ops.pb import encodings_v2_1_pb2 as pb
from tests.encodings.samples import integers_of, plain, strings_of


def bits(*values: int) -> FixedWidth:
    return FixedWidth(np.packbits(values, bitorder="little"), 1, len(values))


@dataclass(frozen=True)
class Golden:
    """One page's only chunk, or its dictionary."""

    description: str
    buffers: tuple[str, ...]
    values: Values
    exact: bool = True
    """Whether our bytes for the values are the same; padding and a codec's choices may differ."""


CHUNKS = {
    "booleans": Golden("0a020801", ("8d01",), bits(1, 0, 1, 1, 0, 0, 0, 1, 1)),
    "int16": Golden("0a020810", ("0100feff0300",), integers_of([1, 65534, 3], 16)),
    "strings": Golden(
        "12060a040a020820",
        ("100000001200000012000000150000006162636465484848",),
        strings_of([b"ab", b"", b"cde"]),
        exact=False,
    ),
    "large strings": Golden(
        "12060a040a020840",
        ("20000000000000002200000000000000220000000000000025000000000000006162636465484848",),
        strings_of([b"ab", b"", b"cde"], 64),
        exact=False,
    ),
    "runs": Golden(
        "420c0a040a02081012040a020808",
        ("0700070009000900", "ff2dff2d"),
        integers_of([7] * 300 + [9] * 300, 16),
    ),
    "lists with a null item": Golden(
        "5a0a080212040a0208081801",
        ("0d", "01000304"),
        FixedSizeListValues(integers_of([1, 0, 3, 4], 8), 2, np.array([0b1101], np.uint8)),
    ),
    "packed structs": Golden(
        "620a0a02081012040a020818",
        ("010200030400",),
        PackedValues((integers_of([1, 3], 8), integers_of([2, 4], 16))),
    ),
}

BLOCKS = {
    "levels in runs": Golden(
        "420c0a040a02081012040a020808",
        ("0a0000000000000001000100010000000000ffffbeff45",),
        integers_of([1] * 700 + [0] * 324, 16),
    ),
    "a dictionary": Golden(
        "12060a040a020820",
        ("2000000014000000000000000300000008000000726564677265656e",),
        strings_of([b"red", b"green"]),
    ),
    "a dictionary in lz4": Golden(
        "520e0a0208011a0812060a040a020820",
        ("1c000000622000000014000100f0010300000008000000726564677265656e",),
        strings_of([b"red", b"green"]),
        exact=False,
    ),
}

ZIPPED = {
    "packed structs with strings": Golden(
        "6a180a080a040a02080810080a0c0a0812060a040a0208201820",
        ("01020000007879", "03010000007a"),
        PackedValues((integers_of([1, 3], 8), strings_of([b"xy", b"z"]))),
    ),
}


def description_of(golden: Golden) -> pb.CompressiveEncoding:
    return pb.CompressiveEncoding.FromString(bytes.fromhex(golden.description))


@pytest.mark.parametrize("golden", CHUNKS.values(), ids=CHUNKS)
def test_a_chunk_of_the_reference_decodes_to_its_values(golden: Golden) -> None:
    encoding = encoding_from_pb(description_of(golden))
    raw = [bytes.fromhex(buffer) for buffer in golden.buffers]
    ends = np.cumsum([0, *map(len, raw)])
    starts, sizes = tuple(np.array([end]) for end in ends[:-1]), tuple(np.array([len(buffer)]) for buffer in raw)
    counts = np.array([golden.values.num_values])
    chunks = ChunkBuffers(np.frombuffer(b"".join(raw), np.uint8), starts, sizes, counts)
    assert plain(encoding.decode_chunks(chunks)) == plain(golden.values)
    assert encoding.to_pb() == description_of(golden)
    encoded = encoding.encode_chunks(golden.values)
    assert [len(data) for data in encoded.data] == [len(buffer) for buffer in raw]
    assert not golden.exact or [data.tobytes() for data in encoded.data] == raw


@pytest.mark.parametrize("golden", BLOCKS.values(), ids=BLOCKS)
def test_a_block_of_the_reference_decodes_to_its_values(golden: Golden) -> None:
    encoding = encoding_from_pb(description_of(golden))
    raw = bytes.fromhex(golden.buffers[0])
    assert plain(encoding.decode_block(np.frombuffer(raw, np.uint8), golden.values.num_values)) == plain(golden.values)
    assert encoding.to_pb() == description_of(golden)
    assert not golden.exact or encoding.encode_block(golden.values).tobytes() == raw


@pytest.mark.parametrize("golden", ZIPPED.values(), ids=ZIPPED)
def test_zipped_values_of_the_reference_decode_to_their_values(golden: Golden) -> None:
    encoding = encoding_from_pb(description_of(golden))
    raw = [bytes.fromhex(buffer) for buffer in golden.buffers]
    sizes = np.array([len(value) for value in raw])
    data = np.frombuffer(b"".join(raw), np.uint8)
    assert plain(encoding.decode_zipped(data, np.cumsum(sizes) - sizes, sizes)) == plain(golden.values)
    assert encoding.to_pb() == description_of(golden)
    assert encoding.encode_zipped(golden.values).data.tobytes() == data.tobytes()
