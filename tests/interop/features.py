"""List the format features in a data file: layouts, encodings and their positions, codecs, layers and sections."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from google.protobuf.any_pb2 import Any as AnyMessage
from google.protobuf.message import Message

from lance_ops.pb import encodings_v2_0_pb2 as pb20
from lance_ops.pb import encodings_v2_1_pb2 as pb21
from tests.fuzz.anatomy import Column, LegacyAnatomy, dissect

__all__ = ["features_of"]

_ROLES = {"rep_compression": "rep", "def_compression": "def", "value_compression": "value", "dictionary": "dictionary"}


def features_of(data: bytes) -> set[str]:
    """Return the names of all features that a file uses."""
    anatomy = dissect(data)
    if isinstance(anatomy, LegacyAnatomy):
        return set(_of_legacy(anatomy))
    return {name for column in anatomy.columns for name in _of_column(column)}


def _of_column(column: Column) -> Iterator[str]:
    described = AnyMessage.FromString(column.message.encoding.direct.encoding)
    if pb20.ColumnEncoding.FromString(described.value).HasField("blob"):
        yield "column blob"
    for page in column.pages:
        if isinstance(page.description, pb21.PageLayout):
            yield from _of_layout(page.description, len(page.buffers))
        else:
            yield from _of_array(page.description)


def _of_layout(layout: pb21.PageLayout, num_buffers: int) -> Iterator[str]:
    kind = str(layout.WhichOneof("layout"))
    message: Any = getattr(layout, kind)
    yield kind
    for layer in message.layers:
        yield f"layer {pb21.RepDefLayer.Name(layer)}"
    if kind == "blob_layout":
        yield from _of_layout(message.inner_layout, num_buffers)
        return
    if kind == "constant_layout":
        if message.HasField("inline_value"):
            yield "constant inline value"
        elif num_buffers in (1, 3):
            yield "constant value buffer"
        if num_buffers >= 2 and not message.HasField("def_compression") and not message.HasField("rep_compression"):
            yield "constant raw levels"
    if kind == "mini_block_layout":
        yield "large chunks" if message.has_large_chunk else "small chunks"
    if kind == "full_zip_layout":
        yield f"full_zip {message.WhichOneof('details')}"
    for field, role in _ROLES.items():
        if field in message.DESCRIPTOR.fields_by_name and message.HasField(field):
            yield from _of_compression(getattr(message, field), role)


def _of_compression(encoding: pb21.CompressiveEncoding, role: str) -> Iterator[str]:
    kind = str(encoding.WhichOneof("compression"))
    message: Any = getattr(encoding, kind)
    yield f"{role} {kind}"
    if kind == "general":
        yield f"codec {pb21.CompressionScheme.Name(message.compression.scheme).rpartition('_')[2].lower()}"
    if kind == "fixed_size_list":
        yield "fixed_size_list with validity" if message.has_validity else "fixed_size_list without validity"
    for field, value in message.ListFields():
        for inner in value if field.name == "fields" else [value]:
            inner = inner.value if field.name == "fields" else inner
            if isinstance(inner, pb21.CompressiveEncoding) and kind not in (
                "rle",
                "out_of_line_bitpacking",
                "variable",
            ):
                yield from _of_compression(inner, role)


def _of_array(message: Message) -> Iterator[str]:
    if isinstance(message, pb20.ArrayEncoding):
        yield str(message.WhichOneof("array_encoding"))
    if isinstance(message, pb20.Nullable):
        yield str(message.WhichOneof("nullability"))
    if isinstance(message, pb20.Compression) and message.scheme:
        yield f"codec {message.scheme}"
    for _, value in message.ListFields():
        for inner in [value] if isinstance(value, Message) else value if hasattr(value, "add") else []:
            yield from _of_array(inner)


def _of_legacy(anatomy: LegacyAnatomy) -> Iterator[str]:
    yield f"footer 0.{anatomy.version[1]}"
    yield "embedded manifest"
    if anatomy.metadata.HasField("statistics"):
        yield "page statistics"
    if len(anatomy.metadata.batch_offsets) > 2:
        yield "batches"
    for field in anatomy.manifest.fields:
        kind = field.logical_type.partition(":")[0].partition(".")[0]
        yield f"field {kind}"
        if kind == "dict":
            yield f"dictionary of {field.logical_type.split(':')[1]}"
        if field.HasField("dictionary"):
            yield "dictionary values"
