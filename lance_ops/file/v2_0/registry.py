"""The list of all array encodings of 2.0, and the look-up of the encoding that a description names."""

from __future__ import annotations

from lance_ops.core.errors import UnsupportedFeature
from lance_ops.encodings import check
from lance_ops.file.v2_0.binary import Binary, FixedSizeBinary, Fsst
from lance_ops.file.v2_0.contract import ArrayContext, ArrayEncoding
from lance_ops.file.v2_0.dictionary import Dictionary
from lance_ops.file.v2_0.fixed import Bitpacked, BitpackedForNonNeg, Constant, Flat
from lance_ops.file.v2_0.nested import FixedSizeList, PackedStruct
from lance_ops.file.v2_0.nullable import Nullable
from lance_ops.pb import encodings_v2_0_pb2 as pb
from lance_ops.wire import unknown_numbers

__all__ = ["ALL_ARRAY_ENCODINGS", "array_encoding_from_pb"]

ALL_ARRAY_ENCODINGS: tuple[type[ArrayEncoding], ...] = (
    Flat,
    Constant,
    Bitpacked,
    BitpackedForNonNeg,
    Nullable,
    Binary,
    Fsst,
    FixedSizeBinary,
    Dictionary,
    FixedSizeList,
    PackedStruct,
)

_BY_MESSAGE = {encoding.MESSAGE: encoding for encoding in ALL_ARRAY_ENCODINGS}


def array_encoding_from_pb(described: pb.ArrayEncoding, context: ArrayContext) -> ArrayEncoding:
    """Read a description and all descriptions nested in it.

    Raises `UnsupportedFeature` for an unknown encoding, and `CorruptValues` for a contradictory one.
    """
    message = described.WhichOneof("array_encoding")
    if message is None:
        numbers = unknown_numbers(described)
        check(bool(numbers), "a page names no encoding")
        raise UnsupportedFeature(f"encoding {numbers[0]} in 2.0 pages")
    encoding = _BY_MESSAGE.get(message)
    if encoding is None:
        raise UnsupportedFeature(f"the {message} encoding in 2.0 pages")
    return encoding.from_pb(getattr(described, message), context, array_encoding_from_pb)
