"""Compress the values of a page into buffers, and restore them: one file for each encoding, and the list of all."""

from __future__ import annotations

from typing import TYPE_CHECKING

from lance_ops.core.lazy_import import import_on_first_use

if TYPE_CHECKING:
    from lance_ops.encodings.compressive.byte_stream_split import ByteStreamSplitEncoding
    from lance_ops.encodings.compressive.constant import ConstantEncoding
    from lance_ops.encodings.compressive.fixed_size_list import FixedSizeListEncoding
    from lance_ops.encodings.compressive.flat import FlatEncoding
    from lance_ops.encodings.compressive.fsst import FsstEncoding
    from lance_ops.encodings.compressive.general import GeneralEncoding
    from lance_ops.encodings.compressive.inline_bitpacking import InlineBitpackingEncoding
    from lance_ops.encodings.compressive.out_of_line_bitpacking import OutOfLineBitpackingEncoding
    from lance_ops.encodings.compressive.packed_struct import PackedStructEncoding
    from lance_ops.encodings.compressive.registry import ALL_ENCODINGS, encoding_from_pb
    from lance_ops.encodings.compressive.rle import RleEncoding
    from lance_ops.encodings.compressive.variable import VariableEncoding
    from lance_ops.encodings.compressive.variable_packed_struct import PackedChild, VariablePackedStructEncoding

__all__ = [
    "ALL_ENCODINGS",
    "ByteStreamSplitEncoding",
    "ConstantEncoding",
    "FixedSizeListEncoding",
    "FlatEncoding",
    "FsstEncoding",
    "GeneralEncoding",
    "InlineBitpackingEncoding",
    "OutOfLineBitpackingEncoding",
    "PackedChild",
    "PackedStructEncoding",
    "RleEncoding",
    "VariableEncoding",
    "VariablePackedStructEncoding",
    "encoding_from_pb",
]

_MODULES = {
    "ALL_ENCODINGS": "registry",
    "ByteStreamSplitEncoding": "byte_stream_split",
    "ConstantEncoding": "constant",
    "FixedSizeListEncoding": "fixed_size_list",
    "FlatEncoding": "flat",
    "FsstEncoding": "fsst",
    "GeneralEncoding": "general",
    "InlineBitpackingEncoding": "inline_bitpacking",
    "OutOfLineBitpackingEncoding": "out_of_line_bitpacking",
    "PackedChild": "variable_packed_struct",
    "PackedStructEncoding": "packed_struct",
    "RleEncoding": "rle",
    "VariableEncoding": "variable",
    "VariablePackedStructEncoding": "variable_packed_struct",
    "encoding_from_pb": "registry",
}

if not TYPE_CHECKING:  # a type checker that sees it would accept any name
    __getattr__ = import_on_first_use(__name__, _MODULES)
