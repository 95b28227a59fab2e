"""Blob: very large values that lie outside the page, which stores where each one is.

The inner page has a packed (u64 position, u64 size) for every entry; the position is that in the file. If the size is
0, the position holds the entry's levels instead, as definition << 16 | repetition: (0, 0) is an empty value,
(1 << 16, 0) a null. An entry with bytes has no room for a repetition level, so lists of blobs are not supported.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import ClassVar, Self

import numpy as np
import pyarrow as pa

from lance_ops.core.arrow import is_text_or_bytes
from lance_ops.core.blob_types import POSITION_AND_SIZE
from lance_ops.core.errors import UnsupportedFeature
from lance_ops.core.ndarrays import Uint64Array
from lance_ops.core.schema import Field
from lance_ops.encodings import (
    NO_OPTIONS,
    FixedWidth,
    PackedValues,
    VariableWidth,
    check,
    check_expansion,
    gather_ranges,
)
from lance_ops.file.container import EncodedPage
from lance_ops.file.leaves import Leaf, Step
from lance_ops.file.page_reading import Ranges, RowSelection, Steps
from lance_ops.file.v2_1.layers import Items
from lance_ops.file.v2_1.layouts.contract import (
    LeafRows,
    PageChoice,
    PageContext,
    PageLayout,
    ReadLayout,
    check_entries,
    read_scheme,
)
from lance_ops.file.v2_1.layouts.mini_block import encode_mini_block
from lance_ops.file.v2_1.levels import EncodedLevels, Entries, encode_levels
from lance_ops.pb import encodings_v2_1_pb2 as pb

__all__ = ["DESCRIPTOR", "BlobPage", "encode_blob"]

DESCRIPTOR = Leaf(
    Field(
        -1,
        -1,
        "descriptor",
        "struct",
        metadata={"lance-encoding:packed": "true"},
        children=(Field(-1, -1, "position", "uint64"), Field(-1, -1, "size", "uint64")),
    ),
    (Step(),),
)
"""The only leaf of the inner page."""

_DEF_SHIFT = 16
_REP_MASK = (1 << _DEF_SHIFT) - 1


class BlobPage(PageLayout):
    """A page of blobs."""

    MESSAGE: ClassVar[str] = "blob_layout"

    def __init__(self, message: pb.BlobLayout, context: PageContext, nested: ReadLayout) -> None:
        self._context = context
        self._scheme = read_scheme(message.layers, context.leaf)
        if self._scheme.max_rep:
            raise UnsupportedFeature("blobs in lists")
        self._as_described = context.leaf.arrow_type == POSITION_AND_SIZE
        in_place = self._as_described or is_text_or_bytes(context.leaf.arrow_type)
        check(in_place, f"blobs in a column of {context.leaf.arrow_type}")
        inner = PageContext(DESCRIPTOR, context.length, context.buffers, context.size_bytes)
        check(not message.inner_layout.HasField("blob_layout"), "a blob page inside a blob page")
        self._inner = nested(message.inner_layout, inner)

    @classmethod
    def from_pb(cls, message: pb.BlobLayout, context: PageContext, nested: ReadLayout) -> Self:
        return cls(message, context, nested)

    def encodings(self) -> Sequence[str]:
        return ["blob", *self._inner.encodings()]

    def read(self, rows: RowSelection) -> Steps[LeafRows]:
        elements = rows.scaled(self._context.leaf.elements_per_row)
        described = yield from self._inner.read(elements)
        positions = _numbers(described.values, 0)
        sizes = _numbers(described.values, 1)
        absent = sizes == 0
        levels = np.where(absent, positions, 0)
        check(not (levels & np.uint64(_REP_MASK)).any(), "a blob with a repetition level")
        levels >>= np.uint64(_DEF_SHIFT)
        check(int(levels.max(initial=0)) <= self._scheme.max_def, "a null blob of an unknown level")
        size_bytes = self._context.size_bytes
        inside = int(sizes.max(initial=0)) <= size_bytes and (positions[~absent] <= size_bytes - sizes[~absent]).all()
        check(inside, "a blob that ends beyond the file")
        definition = levels.astype(np.uint16) if self._scheme.max_def else None
        entries = Entries(len(sizes), None, definition)
        check_entries(self._scheme, entries)
        starts, lengths = positions.astype(np.int64), sizes.astype(np.int64)
        check_expansion(sum(lengths.tolist()), size_bytes, "blobs that overlap in a file", max_ratio=1)
        starts[absent] = 0
        if self._as_described:
            columns = tuple(FixedWidth(numbers.view(np.uint8), 64, len(numbers)) for numbers in (starts, lengths))
            return self._context.finish(
                rows.count, self._scheme, entries, self._context.to_array(PackedValues(columns))
            )
        fetched = yield Ranges(starts, starts + lengths)
        present = ~absent
        data = gather_ranges(fetched.data, fetched.locate(starts[present]), lengths[present])
        offsets = np.append(0, np.cumsum(lengths))
        return self._context.finish(
            rows.count, self._scheme, entries, self._context.to_array(VariableWidth(offsets, data))
        )


def encode_blob(positions: Uint64Array, sizes: Uint64Array, levels: EncodedLevels, choice: PageChoice) -> EncodedPage:
    """Return a page of blobs whose bytes are in the file already: a position and a size for every entry."""
    if levels.rep is not None:
        raise UnsupportedFeature("blobs in lists")
    described = np.zeros((levels.num_entries, 2), np.dtype("<u8"))
    described[:, 0], described[:, 1] = positions, sizes
    described[described[:, 1] == 0] = 0
    if levels.definition is not None:
        described[levels.definition > 0, 1] = 0
        absent = described[:, 1] == 0
        described[absent, 0] = levels.definition[absent].astype(np.uint64) << np.uint64(_DEF_SHIFT)
    columns = [FixedWidth(np.ascontiguousarray(described[:, i]).view(np.uint8), 64, len(described)) for i in range(2)]
    plain = encode_levels([Items(levels.num_entries)])
    inner = encode_mini_block(PackedValues(tuple(columns)), plain, replace(choice, options=NO_OPTIONS))
    assert inner is not None and isinstance(inner.description, pb.PageLayout)
    layout = pb.BlobLayout(
        inner_layout=inner.description,
        layers=levels.scheme.kinds,  # type: ignore[arg-type]  # numbers of the enum
    )
    return EncodedPage(pb.PageLayout(blob_layout=layout), inner.buffers, inner.length)


def _numbers(structs: pa.Array, child: int) -> np.ndarray[tuple[int], np.dtype[np.uint64]]:
    numbers: np.ndarray[tuple[int], np.dtype[np.uint64]] = structs.field(child).to_numpy(zero_copy_only=False)
    return numbers
