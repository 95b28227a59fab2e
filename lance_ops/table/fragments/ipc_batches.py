"""Read the record batches of an Arrow IPC file; check the stated size of compressed buffers before decompressing.

    "ARROW1", zeros up to a multiple of 8 or 64 | messages as in an IPC stream, the schema's first
    footer, not needed to read the batches | i32 length of the footer | "ARROW1"

A message's metadata is a flatbuffer, `Message { version, header_type, header: RecordBatch, body_length }` with
`RecordBatch { length, nodes, buffers: [Buffer { offset: i64, length: i64 }], compression }`; a compressed buffer begins
with its raw size as i64, or -1 if the buffer is not compressed.
"""

from __future__ import annotations

import struct

import pyarrow as pa

from lance_ops import encodings

__all__ = ["ipc_footer_position", "read_batches"]

_MAGIC = b"ARROW1"
_END = struct.Struct("<i6s")
_MAX_ALIGNMENT = 64
_HEADER, _BUFFERS, _COMPRESSION = 2, 2, 3


def read_batches(data: pa.Buffer) -> pa.Table:
    """Return the rows of all record batches.

    Raises `ReadTooLarge` for buffers that state a far larger size than the file's. Arrow and `struct` raise their own
    errors for malformed bytes.
    """
    head = data.slice(0, _MAX_ALIGNMENT).to_pybytes()
    if not head.startswith(_MAGIC):
        raise ValueError("not an Arrow file")
    padding = len(head) - len(head[len(_MAGIC) :].lstrip(b"\0"))
    first, *others = pa.ipc.MessageReader.open_stream(data.slice(padding - padding % 8))
    if first.type != "schema":  # Arrow would read any message as a schema
        raise ValueError(f"a {first.type} message where the schema's should be")
    schema = pa.ipc.read_schema(first)
    batches = []
    for message in others:
        if message.type != "record batch":
            raise ValueError(f"a {message.type} message among record batches")
        encodings.check_expansion(_claimed_bytes(message), data.size, "buffers of a record batch")
        batches.append(pa.ipc.read_record_batch(message, schema))
    return pa.Table.from_batches(batches, schema)


def ipc_footer_position(data: memoryview) -> int:
    """Return where the footer of an IPC file begins, as its last bytes state it; negative for a malformed file."""
    if len(data) < _END.size:
        return -1
    length, _ = _END.unpack_from(data, len(data) - _END.size)
    return len(data) - _END.size - int(length) if length >= 0 else -1


def _claimed_bytes(message: pa.ipc.Message) -> int:
    """Return the size that a record batch's buffers state for their decompressed bytes."""
    metadata, body = message.metadata.to_pybytes(), message.body
    root = _indirect(metadata, 0)
    batch = _indirect(metadata, _field(metadata, root, _HEADER))
    if not _field(metadata, batch, _COMPRESSION):
        return int(body.size)
    vector = _indirect(metadata, _field(metadata, batch, _BUFFERS))
    (count,) = struct.unpack_from("<I", metadata, vector)
    claimed = 0
    for index in range(count):
        offset, length = struct.unpack_from("<qq", metadata, vector + 4 + 16 * index)
        if length:
            (size,) = struct.unpack("<q", body.slice(offset, 8).to_pybytes())
            claimed += length if size == -1 else size & (1 << 64) - 1
    return claimed


def _indirect(metadata: bytes, place: int) -> int:
    (offset,) = struct.unpack_from("<I", metadata, place)
    return place + int(offset)


def _field(metadata: bytes, table: int, number: int) -> int:
    """Return the position of a flatbuffer table's field, 0 if it is absent."""
    (back,) = struct.unpack_from("<i", metadata, table)
    vtable = table - back
    (size,) = struct.unpack_from("<H", metadata, vtable)
    if 4 + 2 * number >= size:
        return 0
    (offset,) = struct.unpack_from("<H", metadata, vtable + 4 + 2 * number)
    return table + int(offset) if offset else 0
