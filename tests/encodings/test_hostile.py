"""Descriptions and bytes that contradict themselves, one by one."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from lance_ops.core.errors import ReadTooLarge, UnsupportedFeature
from lance_ops.encodings.codecs import Lz4, Zstd
from lance_ops.encodings.compressive.constant import ConstantEncoding
from lance_ops.encodings.compressive.fixed_size_list import FixedSizeListEncoding
from lance_ops.encodings.compressive.flat import FlatEncoding
from lance_ops.encodings.compressive.fsst import FsstEncoding
from lance_ops.encodings.compressive.general import GeneralEncoding
from lance_ops.encodings.compressive.inline_bitpacking import InlineBitpackingEncoding
from lance_ops.encodings.compressive.out_of_line_bitpacking import OutOfLineBitpackingEncoding
from lance_ops.encodings.compressive.registry import encoding_from_pb
from lance_ops.encodings.compressive.rle import RleEncoding
from lance_ops.encodings.compressive.variable import VariableEncoding
from lance_ops.encodings.contract import ChunkBuffers, CorruptValues, Encoding
from lance_ops.encodings.expansion import FREE_BYTES
from lance_ops.encodings.page_values.values import FixedWidth
from lance_ops.pb import encodings_v2_1_pb2 as pb

FLAT = FlatEncoding(32).to_pb()
FLAT64 = FlatEncoding(64).to_pb()
COMPRESSED = pb.BufferCompression(scheme=pb.COMPRESSION_ALGORITHM_ZSTD)


def described(**message: Any) -> pb.CompressiveEncoding:
    return pb.CompressiveEncoding(**message)


@pytest.mark.parametrize(
    "description",
    [
        pb.CompressiveEncoding(),
        described(flat=pb.Flat(bits_per_value=0)),
        described(flat=pb.Flat(bits_per_value=1 << 40)),
        described(variable=pb.Variable(offsets=described(flat=pb.Flat(bits_per_value=16)))),
        described(inline_bitpacking=pb.InlineBitpacking(uncompressed_bits_per_value=24)),
        described(out_of_line_bitpacking=pb.OutOfLineBitpacking(uncompressed_bits_per_value=32, values=FLAT64)),
        described(out_of_line_bitpacking=pb.OutOfLineBitpacking(uncompressed_bits_per_value=12, values=FLAT)),
        described(fixed_size_list=pb.FixedSizeList(items_per_value=0, values=FLAT)),
        described(fixed_size_list=pb.FixedSizeList(items_per_value=1 << 40, values=FLAT)),
        described(fixed_size_list=pb.FixedSizeList(items_per_value=2, values=described(constant=pb.Constant()))),
        described(packed_struct=pb.PackedStruct(values=FLAT)),
        described(packed_struct=pb.PackedStruct(bits_per_value=[8, 8], values=FLAT)),
        described(packed_struct=pb.PackedStruct(bits_per_value=[32, 0], values=FLAT)),
        described(variable_packed_struct=pb.VariablePackedStruct()),
        described(variable_packed_struct=pb.VariablePackedStruct(fields=[{"value": FLAT}])),
        described(variable_packed_struct=pb.VariablePackedStruct(fields=[{"value": FLAT, "bits_per_length": 16}])),
        described(variable_packed_struct=pb.VariablePackedStruct(fields=[{"value": FLAT, "bits_per_value": 0}])),
    ],
    ids=str,
)
def test_a_contradictory_description_is_corrupt(description: pb.CompressiveEncoding) -> None:
    with pytest.raises(CorruptValues):
        encoding_from_pb(description)


@pytest.mark.parametrize(
    ("description", "named"),
    [
        (described(dictionary=pb.Dictionary()), "dictionary"),
        (described(flat=pb.Flat(bits_per_value=33)), "33 bits"),
        (described(flat=pb.Flat(bits_per_value=32, data=COMPRESSED)), "flat"),
        (described(variable=pb.Variable(offsets=FLAT, values=COMPRESSED)), "variable"),
        (described(inline_bitpacking=pb.InlineBitpacking(values=COMPRESSED)), "inline bitpacking"),
        (described(rle=pb.Rle(values=FLAT, run_lengths=FLAT)), "run lengths of 32 bits"),
        (described(general=pb.General(compression=pb.BufferCompression(), values=FLAT)), "compression scheme 0"),
        (described(fsst=pb.Fsst(values=FLAT)), "flat"),
        (
            described(byte_stream_split=pb.ByteStreamSplit(values=described(variable=pb.Variable(offsets=FLAT)))),
            "split",
        ),
        (described(fixed_size_list=pb.FixedSizeList(items_per_value=2, values=RleEncoding(8).to_pb())), "rle"),
        (described(packed_struct=pb.PackedStruct(bits_per_value=[1], values=FlatEncoding(1).to_pb())), "packed"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_an_undecodable_encoding_is_refused_by_name(description: pb.CompressiveEncoding, named: str) -> None:
    with pytest.raises(UnsupportedFeature, match=named):
        encoding_from_pb(description)


def chunk(*buffers: bytes, num_values: int) -> ChunkBuffers:
    sizes = [np.array([len(buffer)]) for buffer in buffers]
    ends = np.cumsum([0, *(len(buffer) for buffer in buffers)])
    starts = tuple(np.array([end]) for end in ends[:-1])
    return ChunkBuffers(np.frombuffer(b"".join(buffers), np.uint8), starts, tuple(sizes), np.array([num_values]))


def u64(value: int) -> bytes:
    return value.to_bytes(8, "little")


BOMB = pa.Codec("zstd").compress(bytes(64 << 20), asbytes=True)


@pytest.mark.parametrize(
    ("encoding", "chunks"),
    [
        (FlatEncoding(32), chunk(b"1234567", num_values=2)),
        (FlatEncoding(1), chunk(b"1", num_values=9)),
        (FlatEncoding(1 << 32), chunk(b"1", num_values=1 << 32)),
        (FixedSizeListEncoding(1 << 30, False, FlatEncoding(8)), chunk(b"1", num_values=1 << 34)),
        (VariableEncoding(32), chunk(b"", num_values=0)),
        (VariableEncoding(32), chunk(b"\x0c\0\0\0" * 2, num_values=2)),
        (InlineBitpackingEncoding(32), chunk(b"\x01\0\0", num_values=1)),
        (InlineBitpackingEncoding(32), chunk(b"\x21\0\0\0" + bytes(33 * 128), num_values=1)),
        (InlineBitpackingEncoding(32), chunk(b"\x01\0\x01\0" + bytes(128), num_values=1)),
        (InlineBitpackingEncoding(32), chunk(b"\x02\0\0\0" + bytes(128), num_values=1)),
        (InlineBitpackingEncoding(32), chunk(b"\x01\0\0\0" + bytes(128), num_values=1025)),
        (RleEncoding(16), chunk(b"\x01\x00", b"\x03\x03", num_values=6)),
        (RleEncoding(16), chunk(b"\x01\x00", b"\x03", num_values=4)),
        (GeneralEncoding(Lz4(), FlatEncoding(8)), chunk(b"\0\0", num_values=0)),
        (GeneralEncoding(Lz4(), FlatEncoding(8)), chunk(b"\xff\xff\xff\x7f\x10a", num_values=1)),
        (GeneralEncoding(Lz4(), FlatEncoding(8)), chunk(b"\x05\0\0\0\x10a", num_values=1)),
        (GeneralEncoding(Zstd(), FlatEncoding(8)), chunk(u64(3) + b"not a frame", num_values=1)),
        (GeneralEncoding(Zstd(), FlatEncoding(8)), chunk(u64(1 << 62) + BOMB, num_values=1)),
        (GeneralEncoding(Zstd(), FlatEncoding(8)), chunk(u64(10) + BOMB, num_values=1)),
        (GeneralEncoding(Zstd(), FlatEncoding(8)), chunk(b"\x28\xb5\x2f\xfd" + b"not a frame", num_values=1)),
        (FsstEncoding(b"", VariableEncoding(32)), chunk(b"\x08\0\0\0\x08\0\0\0", num_values=1)),
        (FsstEncoding(b"\x02\0\0\x01TSSF" + bytes(17), VariableEncoding(32)), chunk(b"\x08\0\0\0" * 2, num_values=1)),
        (FsstEncoding(b"\x01\0\0\x01TSSF" + bytes(9), VariableEncoding(32)), chunk(b"\x08\0\0\0" * 2, num_values=1)),
        (
            FsstEncoding(b"\x01\0\0\x01TSSF" + b"a" * 8 + b"\x09", VariableEncoding(32)),
            chunk(b"\x08\0\0\0" * 2, num_values=1),
        ),
    ],
)
def test_a_chunk_that_contradicts_its_description_is_corrupt(encoding: Encoding, chunks: ChunkBuffers) -> None:
    with pytest.raises(CorruptValues):
        encoding.decode_chunks(chunks)


@pytest.mark.parametrize(
    ("encoding", "block", "num_values"),
    [
        (OutOfLineBitpackingEncoding(16, 3), bytes(383), 1024),
        (OutOfLineBitpackingEncoding(16, 3), bytes(384), 1025),
        (OutOfLineBitpackingEncoding(16, 3), bytes(3), 2),
        (RleEncoding(16), b"\0" * 7, 1),
        (RleEncoding(16), u64(1 << 63) + b"\x01\0\x03", 3),
        (RleEncoding(16), u64(3) + b"\x01\0\x03", 3),
        (VariableEncoding(32), b"\x20\0\0\0", 0),
        (VariableEncoding(32), np.array([64, 12, 0], "<u4").tobytes(), 0),
        (VariableEncoding(32), np.array([32, 8, 0], "<u4").tobytes(), 0),
        (VariableEncoding(32), np.array([32, 99, 0], "<u4").tobytes(), 0),
        (VariableEncoding(32), np.array([32, 16, 0, 5], "<u4").tobytes() + b"ab", 1),
        (VariableEncoding(32), np.array([32, 16, 1, 2], "<u4").tobytes() + b"ab", 1),
        (VariableEncoding(32), np.array([32, 20, 0, 2, 1], "<u4").tobytes() + b"ab", 2),
    ],
)
def test_a_block_that_contradicts_its_description_is_corrupt(encoding: Encoding, block: bytes, num_values: int) -> None:
    with pytest.raises(CorruptValues):
        encoding.decode_block(np.frombuffer(block, np.uint8), num_values)


def test_a_frame_alone_is_read_and_a_bomb_in_it_is_refused() -> None:
    encoding = GeneralEncoding(Zstd(), FlatEncoding(8))
    frame = pa.Codec("zstd").compress(b"abc", asbytes=True)
    values = encoding.decode_chunks(chunk(frame, num_values=3))
    assert isinstance(values, FixedWidth) and values.data.tobytes() == b"abc"
    huge = pa.Codec("zstd").compress(bytes(FREE_BYTES + 1), asbytes=True)
    with pytest.raises(ReadTooLarge, match="zstd frame"):
        encoding.decode_chunks(chunk(huge, num_values=3))


def test_a_small_page_with_a_huge_decoded_size_is_not_allocated_at_once() -> None:
    rows = ChunkBuffers(np.empty(0, np.uint8), (), (), np.array([1 << 40]))
    with pytest.raises(ReadTooLarge, match="copies of a constant"):
        ConstantEncoding(b"12345678").decode_chunks(rows)
    zeros = pa.Codec("zstd").compress(bytes(16 << 20), asbytes=True)
    many = [u64(16 << 20) + zeros] * 5
    sizes = np.full(5, len(many[0]))
    chunks = ChunkBuffers(
        np.frombuffer(b"".join(many), np.uint8), (np.cumsum(sizes) - sizes,), (sizes,), np.full(5, 16 << 20)
    )
    with pytest.raises(ReadTooLarge, match="compressed buffers"):
        GeneralEncoding(Zstd(), FlatEncoding(8)).decode_chunks(chunks)


def test_a_runs_chunk_with_more_than_its_values_is_cut_like_the_reference_cuts_it() -> None:
    decoded = RleEncoding(8).decode_chunks(chunk(b"ab", b"\x03\x09", num_values=5))
    assert decoded.data.tobytes() == b"aaabb"
