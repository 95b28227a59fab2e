"""The contract of an array encoding: one node of the tree that describes a 2.0 page."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from typing import Any, ClassVar, Self, TypeAlias

import pyarrow as pa
import pyarrow.types as pt

from lance_ops.core.errors import UnsupportedFeature
from lance_ops.core.ndarrays import Uint8Array
from lance_ops.core.records import dataclass
from lance_ops.encodings import check
from lance_ops.file.page_reading import Extent, RowSelection, Steps
from lance_ops.pb import encodings_v2_0_pb2 as pb

__all__ = ["ARRAY_ENCODING_URL", "ArrayContext", "ArrayEncoding", "PageBuffers", "ReadArray", "with_validity"]

ARRAY_ENCODING_URL = "/lance.encodings.ArrayEncoding"
"""The type of page descriptions."""


@dataclass(frozen=True)
class ArrayContext:
    """What a description does not say: the buffers, the number of values, and their storage type.

    A page may also use buffers of its column, which all pages of the column share.
    """

    buffers: tuple[Extent, ...]
    length: int
    arrow_type: pa.DataType
    column_buffers: tuple[Extent, ...] = ()

    def buffer(self, described: pb.Buffer) -> Extent:
        """Return the buffer that a description points at.

        Raises `UnsupportedFeature` for a buffer of the file: the format does not say how those are numbered, and no
        reader supports them.
        """
        if described.buffer_type == pb.Buffer.file:
            raise UnsupportedFeature("a page that uses buffers of its file")
        owner, buffers = "page", self.buffers
        if described.buffer_type == pb.Buffer.column:
            owner, buffers = "column", self.column_buffers
        check(described.buffer_index < len(buffers), f"no buffer {described.buffer_index} in the {owner}")
        return buffers[described.buffer_index]

    @property
    def stored_bytes(self) -> int:
        """The size of all buffers that the page may use."""
        return sum(extent.size for extent in (*self.buffers, *self.column_buffers))


class ArrayEncoding(ABC):
    """One node of a page's description, ready to read values."""

    MESSAGE: ClassVar[str]
    """The field of `pb.ArrayEncoding` that describes it."""

    @classmethod
    @abstractmethod
    def from_pb(cls, message: Any, context: ArrayContext, nested: ReadArray) -> Self:
        """Read the description; `nested` reads descriptions inside it. Raises as `array_encoding_from_pb` does."""

    @abstractmethod
    def read(self, rows: RowSelection) -> Steps[pa.Array]:
        """Read the values of one row or more, as an array without an offset."""

    def inner(self) -> Sequence[ArrayEncoding]:
        """Return the encodings directly inside."""
        return ()

    def encodings(self) -> list[str]:
        """Name the encodings, outermost first."""
        return [self.MESSAGE, *(name for part in self.inner() for name in part.encodings())]


class PageBuffers:
    """The buffers of a page being written."""

    def __init__(self) -> None:
        self.buffers: list[Uint8Array] = []

    def add(self, data: Uint8Array) -> pb.Buffer:
        """Add the next buffer and return the message that points at it."""
        self.buffers.append(data)
        return pb.Buffer(buffer_index=len(self.buffers) - 1, buffer_type=pb.Buffer.page)


ReadArray: TypeAlias = Callable[[pb.ArrayEncoding, ArrayContext], ArrayEncoding]


def with_validity(array: pa.Array, validity: pa.BooleanArray) -> pa.Array:
    """Return the same values with nulls; both arrays must have neither nulls nor an offset."""
    if pt.is_null(array.type) or validity.true_count == len(array):
        return array
    bitmap = validity.buffers()[1]
    if pt.is_fixed_size_list(array.type):
        return pa.Array.from_buffers(array.type, len(array), [bitmap], children=[array.values])
    if pt.is_struct(array.type):
        children = [array.field(i) for i in range(array.type.num_fields)]
        return pa.Array.from_buffers(array.type, len(array), [bitmap], children=children)
    return pa.Array.from_buffers(array.type, len(array), [bitmap, *array.buffers()[1:]])
