"""What every array encoding of a 2.0 page offers."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Self, TypeAlias

import pyarrow as pa
import pyarrow.types as pt

from lance_ops.core.errors import UnsupportedFeature
from lance_ops.core.ndarrays import Uint8Array
from lance_ops.encodings import check
from lance_ops.file.page_reading import Extent, RowSelection, Steps
from lance_ops.pb import encodings_v2_0_pb2 as pb

__all__ = ["ARRAY_ENCODING_URL", "ArrayContext", "ArrayEncoding", "PageBuffers", "ReadArray", "with_validity"]

ARRAY_ENCODING_URL = "/lance.encodings.ArrayEncoding"
"""The type of page descriptions."""


@dataclass(frozen=True)
class ArrayContext:
    """What a description does not say: the page's buffers, how many values it has, and of which storage type.

    A page may point at buffers of its column, which all the column's pages share.
    """

    buffers: tuple[Extent, ...]
    length: int
    arrow_type: pa.DataType
    column_buffers: tuple[Extent, ...] = ()

    def buffer(self, described: pb.Buffer) -> Extent:
        """Return the buffer that a description points at.

        Raises `UnsupportedFeature` for one of the file: nothing tells how those are counted, and no reader has any.
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
        """The bytes of all buffers that the page may point at."""
        return sum(extent.size for extent in (*self.buffers, *self.column_buffers))


class ArrayEncoding(ABC):
    """One node of a page's description, ready to be read."""

    MESSAGE: ClassVar[str]
    """The field of the description that holds it."""

    @classmethod
    @abstractmethod
    def from_pb(cls, message: Any, context: ArrayContext, nested: ReadArray) -> Self:
        """Read the description; `nested` reads those inside it. Raises as `array_encoding_from_pb` does."""

    @abstractmethod
    def read(self, rows: RowSelection) -> Steps[pa.Array]:
        """Read values: at least one. The array has no offset."""

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
        """Take the next buffer and return what points at it."""
        self.buffers.append(data)
        return pb.Buffer(buffer_index=len(self.buffers) - 1, buffer_type=pb.Buffer.page)


ReadArray: TypeAlias = Callable[[pb.ArrayEncoding, ArrayContext], ArrayEncoding]


def with_validity(array: pa.Array, validity: pa.BooleanArray) -> pa.Array:
    """Return the same values with nulls; neither array has nulls or an offset yet."""
    if pt.is_null(array.type) or validity.true_count == len(array):
        return array
    bitmap = validity.buffers()[1]
    if pt.is_fixed_size_list(array.type):
        return pa.Array.from_buffers(array.type, len(array), [bitmap], children=[array.values])
    if pt.is_struct(array.type):
        children = [array.field(i) for i in range(array.type.num_fields)]
        return pa.Array.from_buffers(array.type, len(array), [bitmap], children=children)
    return pa.Array.from_buffers(array.type, len(array), [bitmap, *array.buffers()[1:]])
