"""Variable packed struct: structs with variable-width children, row by row, each child encoded on its own.

zipped    per child, in order: the value when its encoding is of fixed width, else its length, u32 or u64, and its
bytes
"""

from __future__ import annotations

from typing import ClassVar, Self

import numpy as np

from lance_ops.core.errors import UnsupportedFeature
from lance_ops.core.ndarrays import Int64Array, Uint8Array
from lance_ops.core.records import dataclass
from lance_ops.encodings.contract import Encoding, ReadNested, check
from lance_ops.encodings.page_values import (
    PackedValues,
    Values,
    VariableWidth,
    gather_ranges,
    offsets_of_lengths,
)
from lance_ops.pb import encodings_v2_1_pb2 as pb

__all__ = ["PackedChild", "VariablePackedStructEncoding"]


@dataclass(frozen=True)
class PackedChild:
    """A child: its encoding, and the bits of a value, or of the length in front of a value of variable width."""

    values: Encoding
    bits: int
    is_variable: bool


@dataclass(frozen=True)
class VariablePackedStructEncoding(Encoding):
    """Structs of `children`, at least one."""

    MESSAGE: ClassVar[str] = "variable_packed_struct"

    children: tuple[PackedChild, ...]

    @classmethod
    def from_pb(cls, message: pb.VariablePackedStruct, nested: ReadNested) -> Self:
        children = []
        for field in message.fields:
            layout = field.WhichOneof("layout")
            check(layout is not None, "a packed struct's child without a width")
            is_variable = layout == "bits_per_length"
            bits = field.bits_per_length if is_variable else field.bits_per_value
            if bits % 8:
                raise UnsupportedFeature("a packed struct's child of other than whole bytes")
            check(bits in (32, 64) if is_variable else 0 < bits <= 1 << 32, f"a packed struct's child of {bits} bits")
            children.append(PackedChild(nested(field.value), bits, is_variable))
        check(len(children) > 0, "a packed struct without children")
        return cls(tuple(children))

    def to_pb(self) -> pb.CompressiveEncoding:
        fields = []
        for child in self.children:
            field = pb.VariablePackedStruct.FieldEncoding(value=child.values.to_pb())
            setattr(field, "bits_per_length" if child.is_variable else "bits_per_value", child.bits)
            fields.append(field)
        return pb.CompressiveEncoding(variable_packed_struct=pb.VariablePackedStruct(fields=fields))

    def decode_zipped(self, data: Uint8Array, starts: Int64Array, sizes: Int64Array) -> PackedValues:
        ends = starts + sizes
        cursor = starts
        decoded: list[Values] = []
        for child in self.children:
            width = child.bits // 8
            check((cursor + width <= ends).all(), "a packed struct's row is shorter than its children")
            heads = np.full(len(starts), width, np.int64)
            if child.is_variable:
                words = np.ascontiguousarray(gather_ranges(data, cursor, heads)).view(f"<i{width}").astype(np.int64)
                cursor = cursor + width
                lengths = words & 0xFFFFFFFF if width == 4 else words
                check(
                    (lengths >= 0).all() and (lengths <= ends - cursor).all(), "a packed struct's child ends beyond it"
                )
            else:
                lengths = heads
            decoded.append(child.values.decode_zipped(data, cursor, lengths))
            cursor = cursor + lengths
        check((cursor == ends).all(), "a packed struct's row is longer than its children")
        return PackedValues(tuple(decoded))

    def encode_zipped(self, values: Values) -> VariableWidth:
        if not isinstance(values, PackedValues) or len(values.children) != len(self.children):
            raise TypeError(f"encoding of structs of {len(self.children)} for {type(values).__name__}")
        # each row holds the length and the bytes of each child: ranges of one array, gathered row by row
        num_rows = values.num_values
        parts: list[Uint8Array] = []
        starts = np.empty((num_rows, 2 * len(self.children)), np.int64)
        sizes = np.zeros_like(starts)
        base = 0
        for i, child in enumerate(self.children):
            encoded = child.values.encode_zipped(values.children[i])
            if isinstance(encoded, VariableWidth):
                lengths = encoded.lengths().astype(np.int64)
                heads = lengths.astype(f"<u{child.bits // 8}").view(np.uint8)
                sizes[:, 2 * i], sizes[:, 2 * i + 1] = child.bits // 8, lengths
                starts[:, 2 * i] = base + np.arange(num_rows) * (child.bits // 8)
                starts[:, 2 * i + 1] = base + len(heads) + encoded.offsets[:-1]
                parts += [heads, encoded.data[: encoded.size_bytes]]
            else:
                sizes[:, 2 * i] = child.bits // 8
                starts[:, 2 * i] = base + np.arange(num_rows) * (child.bits // 8)
                starts[:, 2 * i + 1] = base
                parts.append(encoded.data[: encoded.size_bytes])
            base = sum(len(part) for part in parts)
        data = gather_ranges(np.concatenate(parts), starts.reshape(-1), sizes.reshape(-1))
        return VariableWidth(offsets_of_lengths(sizes.sum(axis=1), 32), data)
