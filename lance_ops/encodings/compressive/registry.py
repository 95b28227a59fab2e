"""List all encodings, and find the one that a page's description names."""

from __future__ import annotations

from lance_ops.core.errors import UnsupportedFeature
from lance_ops.encodings.compressive.byte_stream_split import ByteStreamSplitEncoding
from lance_ops.encodings.compressive.constant import ConstantEncoding
from lance_ops.encodings.compressive.fixed_size_list import FixedSizeListEncoding
from lance_ops.encodings.compressive.flat import FlatEncoding
from lance_ops.encodings.compressive.fsst import FsstEncoding
from lance_ops.encodings.compressive.general import GeneralEncoding
from lance_ops.encodings.compressive.inline_bitpacking import InlineBitpackingEncoding
from lance_ops.encodings.compressive.out_of_line_bitpacking import OutOfLineBitpackingEncoding
from lance_ops.encodings.compressive.packed_struct import PackedStructEncoding
from lance_ops.encodings.compressive.rle import RleEncoding
from lance_ops.encodings.compressive.variable import VariableEncoding
from lance_ops.encodings.compressive.variable_packed_struct import VariablePackedStructEncoding
from lance_ops.encodings.contract import CorruptValues, Encoding
from lance_ops.pb import encodings_v2_1_pb2 as pb
from lance_ops.wire import unknown_numbers

__all__ = ["ALL_ENCODINGS", "encoding_from_pb"]

ALL_ENCODINGS: tuple[type[Encoding], ...] = (
    FlatEncoding,
    VariableEncoding,
    ConstantEncoding,
    OutOfLineBitpackingEncoding,
    InlineBitpackingEncoding,
    FsstEncoding,
    RleEncoding,
    ByteStreamSplitEncoding,
    GeneralEncoding,
    FixedSizeListEncoding,
    PackedStructEncoding,
    VariablePackedStructEncoding,
)

_BY_MESSAGE = {encoding.MESSAGE: encoding for encoding in ALL_ENCODINGS}


def encoding_from_pb(described: pb.CompressiveEncoding) -> Encoding:
    """Return the encoding that a description names, with the encodings nested in it.

    Raises `UnsupportedFeature` for an encoding that this library does not decode, and `CorruptValues` for a description
    that contradicts itself.
    """
    message = described.WhichOneof("compression")
    if message is None:
        numbers = unknown_numbers(described)
        if not numbers:
            raise CorruptValues("a page names no encoding")
        raise UnsupportedFeature(f"encoding {numbers[0]}, of a later format version,")
    encoding = _BY_MESSAGE.get(message)
    if encoding is None:
        raise UnsupportedFeature(f"the {message} encoding")
    return encoding.from_pb(getattr(described, message), encoding_from_pb)
