from __future__ import annotations

import numpy as np
from google.protobuf.message import DecodeError
from hypothesis import given
from hypothesis import strategies as st

from lance_ops import kernels
from lance_ops.core.ndarrays import Int64Array
from lance_ops.kernels import read_only
from lance_ops.pb import file2_pb2

ROOM, MAX_KINDS = 3, 4

buffers = st.lists(st.tuples(st.integers(0, 1 << 40), st.integers(0, 300)), max_size=ROOM)
encodings = st.sampled_from([b"", b"a", b"ab", b"other", bytes(200)])


def read(messages: list[bytes]) -> tuple[list[int], list[int], list[int], Int64Array, list[int]]:
    """Return kinds, lengths, numbers of buffers, buffers, and the first column of each kind."""
    data = np.frombuffer(b"".join(messages), np.uint8)
    ends = np.cumsum([len(message) for message in messages]).astype(np.int64)
    starts = ends - np.array([len(message) for message in messages], np.int64)
    num = len(messages)
    kinds, spans, found = np.full(MAX_KINDS, -1), np.zeros(10 * num, np.int64), np.zeros((num, ROOM, 2), np.int64)
    kind_of, lengths, num_buffers = np.zeros((3, num), np.int64)
    outputs = spans, kinds, kind_of, lengths, num_buffers, found.reshape(-1)
    num_kinds = kernels.read_columns(read_only(data), read_only(starts), read_only(ends), *outputs)
    return kind_of.tolist(), lengths.tolist(), num_buffers.tolist(), found, kinds[:num_kinds].tolist()


def message_of(
    extents: list[tuple[int, int]], length: int, page_encoding: bytes, column_encoding: bytes, num_pages: int = 1
) -> bytes:
    message = file2_pb2.ColumnMetadata()
    message.encoding.direct.encoding = column_encoding
    for _ in range(num_pages):
        page = message.pages.add(length=length, priority=length // 2)
        page.encoding.direct.encoding = page_encoding
        page.buffer_offsets.extend(position for position, _ in extents)
        page.buffer_sizes.extend(size for _, size in extents)
    return message.SerializeToString()


columns = st.tuples(buffers, st.integers(0, (1 << 62) - 1), encodings, st.sampled_from([b"", b"c"]))


@given(st.lists(columns, min_size=1, max_size=8))
def test_plain_columns_are_read_as_protobuf_reads_them(
    columns: list[tuple[list[tuple[int, int]], int, bytes, bytes]],
) -> None:
    kind_of, lengths, num_buffers, found, firsts = read([message_of(*column) for column in columns])
    kinds: dict[tuple[int, bytes, bytes], int] = {}
    for column, (extents, length, of_page, of_column) in enumerate(columns):
        kind = kinds.setdefault((len(extents), of_page, of_column), len(kinds))
        assert kind_of[column] == (kind if kind < MAX_KINDS else -1)
        assert lengths[column] == length
        assert found[column, : num_buffers[column]].tolist() == [list(extent) for extent in extents]
    assert len(firsts) == min(len(kinds), MAX_KINDS)
    assert [kind_of[first] for first in firsts] == list(range(len(firsts)))


@given(columns, st.sampled_from([0, 2]))
def test_columns_without_or_with_several_pages_are_not_plain(
    column: tuple[list[tuple[int, int]], int, bytes, bytes], num_pages: int
) -> None:
    assert read([message_of(*column, num_pages)])[0] == [-1]


def test_a_column_of_more_buffers_than_there_is_room_for_is_not_plain() -> None:
    assert read([message_of([(1, 1)] * (ROOM + 1), 1, b"", b"")])[0] == [-1]


def test_a_number_of_more_than_62_bits_is_not_plain() -> None:
    for position in (1 << 62, (1 << 63) - 1, 1 << 63, (1 << 64) - 1):
        assert read([message_of([(position, 1)], 1, b"", b"")])[0] == [-1]
    assert read([message_of([((1 << 62) - 1, 1)], 1, b"", b"")])[0] == [0]


@given(columns, st.integers(0, 400), st.integers(0, 255), st.integers(0, 400))
def test_what_is_plain_in_damaged_bytes_is_what_protobuf_reads(
    column: tuple[list[tuple[int, int]], int, bytes, bytes], place: int, byte: int, cut: int
) -> None:
    data = bytearray(message_of(*column))
    data[place % len(data)] = byte
    damaged = bytes(data)[: max(1, len(data) - (cut if cut < 40 else 0))]
    kind_of, lengths, num_buffers, found, _ = read([damaged])
    if kind_of == [0]:
        try:
            message = file2_pb2.ColumnMetadata.FromString(damaged)
        except DecodeError:
            return  # within an encoding, which the caller parses
        (page,) = message.pages
        assert page.length == lengths[0]
        extents = list(zip(page.buffer_offsets, page.buffer_sizes, strict=True))
        assert found[0, : num_buffers[0]].tolist() == [list(extent) for extent in extents]


@given(
    st.integers(1, ROOM).flatmap(
        lambda count: st.lists(
            st.lists(st.tuples(st.integers(0, 1 << 62), st.integers(0, 1 << 62)), min_size=count, max_size=count),
            min_size=1,
            max_size=5,
        )
    ),
    st.integers(1, 1 << 62),
    encodings,
)
def test_columns_are_written_as_protobuf_writes_them(
    columns: list[list[tuple[int, int]]], length: int, encoding: bytes
) -> None:
    page = file2_pb2.ColumnMetadata.Page(length=length, priority=length // 2)
    page.encoding.direct.encoding = encoding
    head = file2_pb2.ColumnMetadata()
    head.encoding.direct.encoding = b"column"
    before, within = head.SerializeToString(), page.SerializeToString()
    buffers = np.array(columns, np.int64)
    out = np.zeros(len(columns) * (len(before) + len(within) + 32) + 12 * buffers.size, np.uint8)
    ends = np.zeros(len(columns), np.int64)
    prefix, suffix = np.frombuffer(before, np.uint8), np.frombuffer(within, np.uint8)
    kernels.write_columns(read_only(buffers.reshape(-1)), buffers.shape[1], prefix, suffix, out, ends)
    expected = [message_of(extents, length, encoding, b"column") for extents in columns]
    assert out[: int(ends[-1])].tobytes() == b"".join(expected)
    assert ends.tolist() == np.cumsum([len(message) for message in expected]).tolist()
