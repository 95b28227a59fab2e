"""Take files apart into messages and buffers, and rebuild them, so that readers reach what was changed."""

from __future__ import annotations

import struct
from dataclasses import dataclass

from google.protobuf.any_pb2 import Any as AnyMessage
from google.protobuf.message import DecodeError, Message

from lance_ops.pb import encodings_v2_0_pb2 as pb20
from lance_ops.pb import encodings_v2_1_pb2 as pb21
from lance_ops.pb import file2_pb2, file_pb2, table_pb2

__all__ = ["Anatomy", "Column", "LegacyAnatomy", "Malformed", "ManifestAnatomy", "Part", "dissect"]

_FOOTER = struct.Struct("<QQQIIHH4s")
_SHORT_FOOTER = struct.Struct("<QHH4s")
_EXTENT = struct.Struct("<QQ")
_LENGTH = struct.Struct("<I")
_ALIGNMENT = 64
_FAILURES = (struct.error, DecodeError, UnicodeDecodeError, KeyError, OverflowError)
_DESCRIPTIONS: dict[str, type[Message]] = {
    "/lance.encodings21.PageLayout": pb21.PageLayout,
    "/lance.encodings.ArrayEncoding": pb20.ArrayEncoding,
}


class Malformed(ValueError):
    """The bytes cannot be taken apart; they can only be mutated as bytes."""


@dataclass
class Part:
    """A buffer: its original position, and its current bytes."""

    position: int
    size: int
    data: bytes

    @classmethod
    def of(cls, file: bytes, position: int, size: int) -> Part:
        return cls(position, size, file[position : position + size])


@dataclass
class Page:
    """A page's metadata without buffers, its description, and its buffers."""

    message: file2_pb2.ColumnMetadata.Page
    type_url: str
    description: Message
    buffers: list[Part]


@dataclass
class Column:
    """A column's metadata without pages, and its pages."""

    message: file2_pb2.ColumnMetadata
    pages: list[Page]


@dataclass
class Anatomy:
    """A 2.x file. Buffers that keep their size keep their position, so that pages still find their blobs."""

    body: bytes
    descriptor: file_pb2.FileDescriptor
    columns: list[Column]
    version: tuple[int, int]

    @classmethod
    def of(cls, data: bytes) -> Anatomy:
        start, columns_at, globals_at, num_globals, num_columns, major, minor, _ = _FOOTER.unpack(data[-_FOOTER.size :])
        if not num_globals:
            raise Malformed
        descriptor = file_pb2.FileDescriptor.FromString(Part.of(data, *_EXTENT.unpack_from(data, globals_at)).data)
        columns = []
        for index in range(min(num_columns, 100)):
            extent = _EXTENT.unpack_from(data, columns_at + index * _EXTENT.size)
            columns.append(_column_of(data, file2_pb2.ColumnMetadata.FromString(Part.of(data, *extent).data)))
        return cls(data[:start], descriptor, columns, (major, minor))

    @property
    def messages(self) -> list[Message]:
        """Every message in the file."""
        pages = [page for column in self.columns for page in column.pages]
        return [self.descriptor, *(page.description for page in pages), *(page.message for page in pages)]

    @property
    def buffers(self) -> list[Part]:
        """Every buffer of every page."""
        return [buffer for column in self.columns for page in column.pages for buffer in page.buffers]

    def build(self) -> bytes:
        """Return the file."""
        out = bytearray(self.body)
        for buffer in self.buffers:
            if len(buffer.data) != buffer.size:
                out += bytes(-len(out) % _ALIGNMENT)
                buffer.position, buffer.size = len(out), len(buffer.data)
                out += buffer.data
            else:
                out[buffer.position : buffer.position + buffer.size] = buffer.data
        described = self.descriptor.SerializeToString()
        descriptor_at = len(out)
        out += described
        start = len(out)
        table = b""
        for column in self.columns:
            encoded = _encode_column(column)
            table += _EXTENT.pack(len(out), len(encoded))
            out += encoded
        columns_at = len(out)
        out += table
        globals_at = len(out)
        out += _EXTENT.pack(descriptor_at, len(described))
        out += _FOOTER.pack(start, columns_at, globals_at, 1, len(self.columns), *self.version, b"LANC")
        return bytes(out)


@dataclass
class LegacyAnatomy:
    """A 0.1 file that holds its schema."""

    body: bytearray
    manifest: table_pb2.Manifest
    metadata: file_pb2.Metadata
    version: tuple[int, int]

    @classmethod
    def of(cls, data: bytes) -> LegacyAnatomy:
        position, major, minor, _ = _SHORT_FOOTER.unpack(data[-_SHORT_FOOTER.size :])
        metadata = file_pb2.Metadata.FromString(_framed(data, position))
        manifest = table_pb2.Manifest.FromString(_framed(data, metadata.manifest_position))
        return cls(bytearray(data[: metadata.manifest_position]), manifest, metadata, (major, minor))

    @property
    def messages(self) -> list[Message]:
        """The messages of the file's schema and metadata."""
        return [self.manifest, self.metadata]

    @property
    def page_table(self) -> range:
        """The range of the page table's bytes: cells of two i64."""
        start = self.metadata.page_table_position
        return range(start, max(min(start + 16 * 64, len(self.body) - 8), start), 8)

    def build(self) -> bytes:
        """Return the file."""
        out = bytearray(self.body)
        self.metadata.manifest_position = len(out)
        out += _frame(self.manifest.SerializeToString())
        metadata_at = len(out)
        out += _frame(self.metadata.SerializeToString())
        return bytes(out + _SHORT_FOOTER.pack(metadata_at, *self.version, b"LANC"))


@dataclass
class ManifestAnatomy:
    """The sections of a manifest file."""

    manifest: table_pb2.Manifest
    indices: table_pb2.IndexSection | None

    @classmethod
    def of(cls, data: bytes) -> ManifestAnatomy:
        position, *_ = _SHORT_FOOTER.unpack(data[-_SHORT_FOOTER.size :])
        manifest = table_pb2.Manifest.FromString(_framed(data, position))
        indices = None
        if manifest.HasField("index_section"):
            indices = table_pb2.IndexSection.FromString(_framed(data, manifest.index_section))
        return cls(manifest, indices)

    @property
    def messages(self) -> list[Message]:
        """The messages of the manifest and its indices."""
        return [self.manifest] if self.indices is None else [self.manifest, self.indices]

    def build(self) -> bytes:
        """Return the file."""
        out = b""
        if self.indices is not None:
            self.manifest.index_section = 0
            out += _frame(self.indices.SerializeToString())
        position = len(out)
        return out + _frame(self.manifest.SerializeToString()) + _SHORT_FOOTER.pack(position, 0, 2, b"LANC")


def dissect(data: bytes) -> Anatomy | LegacyAnatomy:
    """Take a data file apart; raise `Malformed` if that is not possible."""
    if len(data) < _FOOTER.size:
        raise Malformed
    try:
        major, minor = struct.unpack_from("<HH", data, len(data) - 8)
        return LegacyAnatomy.of(data) if major == 0 and minor < 3 else Anatomy.of(data)
    except _FAILURES as error:
        raise Malformed from error


def dissect_manifest(data: bytes) -> ManifestAnatomy:
    """Take a manifest file apart; raise `Malformed` if that is not possible."""
    if len(data) < _SHORT_FOOTER.size:
        raise Malformed
    try:
        return ManifestAnatomy.of(data)
    except _FAILURES as error:
        raise Malformed from error


def _column_of(data: bytes, message: file2_pb2.ColumnMetadata) -> Column:
    pages = []
    for page in message.pages:
        described = AnyMessage.FromString(page.encoding.direct.encoding)
        description = _DESCRIPTIONS[described.type_url].FromString(described.value)
        buffers = [Part.of(data, *extent) for extent in zip(page.buffer_offsets, page.buffer_sizes, strict=False)]
        bare = file2_pb2.ColumnMetadata.Page(length=page.length, priority=page.priority)
        pages.append(Page(bare, described.type_url, description, buffers))
    return Column(file2_pb2.ColumnMetadata(encoding=message.encoding), pages)


def _encode_column(column: Column) -> bytes:
    message = file2_pb2.ColumnMetadata()
    message.CopyFrom(column.message)
    for page in column.pages:
        target = message.pages.add()
        target.CopyFrom(page.message)
        target.buffer_offsets.extend(buffer.position for buffer in page.buffers)
        target.buffer_sizes.extend(buffer.size for buffer in page.buffers)
        described = AnyMessage(type_url=page.type_url, value=page.description.SerializeToString())
        target.encoding.direct.encoding = described.SerializeToString()
    return message.SerializeToString()


def _framed(data: bytes, position: int) -> bytes:
    (length,) = _LENGTH.unpack_from(data, position)
    return data[position + 4 : position + 4 + length]


def _frame(message: bytes) -> bytes:
    return _LENGTH.pack(len(message)) + message
