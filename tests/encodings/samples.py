"""Hypothesis strategies for values of every shape, and for the values that each encoding can hold."""

from __future__ import annotations

import itertools
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np
from hypothesis import strategies as st

from lance_ops.encodings.codecs import Lz4, Zstd
from lance_ops.encodings.compressive.byte_stream_split import ByteStreamSplitEncoding
from lance_ops.encodings.compressive.constant import ConstantEncoding
from lance_ops.encodings.compressive.fixed_size_list import ALL_NULL, FixedSizeListEncoding
from lance_ops.encodings.compressive.flat import FlatEncoding
from lance_ops.encodings.compressive.fsst import FsstEncoding
from lance_ops.encodings.compressive.general import GeneralEncoding
from lance_ops.encodings.compressive.inline_bitpacking import InlineBitpackingEncoding
from lance_ops.encodings.compressive.out_of_line_bitpacking import OutOfLineBitpackingEncoding
from lance_ops.encodings.compressive.packed_struct import PackedStructEncoding
from lance_ops.encodings.compressive.rle import RleEncoding
from lance_ops.encodings.compressive.variable import VariableEncoding
from lance_ops.encodings.compressive.variable_packed_struct import PackedChild, VariablePackedStructEncoding
from lance_ops.encodings.contract import ChunkBuffers, EncodedChunks, Encoding
from lance_ops.encodings.page_values.bits import num_bytes_of_bits
from lance_ops.encodings.page_values.values import (
    FixedSizeListValues,
    FixedWidth,
    PackedValues,
    Values,
    VariableWidth,
)


@dataclass(frozen=True)
class Sample:
    """Values, and an encoding that holds them."""

    encoding: Encoding
    values: Values


def integers_of(numbers: Any, bits: int) -> FixedWidth:
    """Make values of a list of numbers or an array."""
    array = np.ascontiguousarray(np.asarray(numbers).astype(f"<u{bits // 8}"))
    return FixedWidth(array.view(np.uint8), bits, len(array))


def strings_of(strings: list[bytes], bits_per_offset: int = 32) -> VariableWidth:
    """Make values of byte strings."""
    offsets = np.cumsum([0, *map(len, strings)])
    data = np.frombuffer(b"".join(strings), np.uint8)
    return VariableWidth(offsets.astype(np.int32) if bits_per_offset == 32 else offsets, data)


def plain(values: Values) -> Any:
    """Return values as Python objects that compare; bytes for numbers, so that NaN is itself."""
    if isinstance(values, VariableWidth):
        bounds = values.offsets.tolist()
        return [values.data[a:b].tobytes() for a, b in itertools.pairwise(bounds)]
    if isinstance(values, PackedValues):
        return [plain(child) for child in values.children]
    if isinstance(values, FixedSizeListValues):
        validity = None if values.validity is None else _bits(values.validity, values.items.num_values)
        return values.dimension, validity, plain(values.items)
    if values.bits_per_value % 8:
        return values.bits_per_value, _bits(values.data, values.num_values * values.bits_per_value)
    return values.bits_per_value, values.num_values, values.data[: values.size_bytes].tobytes()


def _bits(data: Any, count: int) -> list[int]:
    bits: list[int] = np.unpackbits(data, count=count, bitorder="little").tolist()
    return bits


def place(encoded: EncodedChunks, gap: int = 8) -> ChunkBuffers:
    """Store chunks as in a page: buffer after buffer, with other bytes between them."""
    page, at = [], 0
    starts: list[list[int]] = [[] for _ in encoded.data]
    for chunk in range(encoded.num_chunks):
        for index, data in enumerate(encoded.data):
            start, size = int(encoded.starts(index)[chunk]), int(encoded.sizes[index][chunk])
            padding = b"\xfe" * (gap + -(at + gap) % 8)
            starts[index].append(at + len(padding))
            page += [padding, data[start : start + size].tobytes()]
            at += len(padding) + size
    located = tuple(np.array(starts[index], np.int64) for index in range(len(encoded.data)))
    return ChunkBuffers(np.frombuffer(b"".join(page), np.uint8), located, encoded.sizes, encoded.num_values)


def pick(chunks: ChunkBuffers, chosen: list[int]) -> ChunkBuffers:
    """Return only some of the chunks."""
    return ChunkBuffers(
        chunks.data,
        tuple(starts[chosen] for starts in chunks.starts),
        tuple(sizes[chosen] for sizes in chunks.sizes),
        chunks.num_values[chosen],
    )


# Hypothesis draws how values look, numpy makes them: pages have thousands.
seeds = st.integers(0, 1 << 32)
counts = st.one_of(st.integers(0, 40), st.sampled_from([255, 256, 1000, 1023, 1024, 1025, 2048, 5000]))
integer_bits = st.sampled_from([8, 16, 32, 64])
widths_of_children = st.lists(integer_bits, min_size=1, max_size=4)


@cache  # to make a strategy takes longer than to draw from it
def any_of(*values: Any) -> st.SearchStrategy[Any]:
    return st.sampled_from(values)


@cache
@st.composite
def integers(draw: st.DrawFn, bits: int, width: int | None = None) -> FixedWidth:
    random, count = np.random.default_rng(draw(seeds)), draw(counts)
    words = np.frombuffer(random.bytes(count * 8), np.uint64)
    words = words & np.uint64((1 << (draw(st.integers(0, bits)) if width is None else width)) - 1)
    run = draw(any_of(1, 1, 3, 300))
    return integers_of(np.repeat(words, run)[:count], bits)


@cache
@st.composite
def bits_(draw: st.DrawFn) -> FixedWidth:
    count = draw(counts)
    return FixedWidth(np.random.default_rng(draw(seeds)).integers(0, 256, num_bytes_of_bits(count), np.uint8), 1, count)


@cache
@st.composite
def strings(draw: st.DrawFn, bits_per_offset: int, longest: int = 40) -> VariableWidth:
    random, count = np.random.default_rng(draw(seeds)), draw(counts)
    words = [random.bytes(int(random.integers(0, draw(any_of(1, 4, longest))))) for _ in range(20)]
    return strings_of([words[i] for i in random.integers(0, len(words), count)], bits_per_offset)


@st.composite
def lists(
    draw: st.DrawFn, items: FixedWidth | FixedSizeListValues, dimension: int, nullable: bool = True
) -> FixedSizeListValues:
    whole = items.slice(0, items.num_values // dimension * dimension)
    if not (nullable and draw(st.booleans())):
        return FixedSizeListValues(whole, dimension)
    size = num_bytes_of_bits(whole.num_values)
    return FixedSizeListValues(whole, dimension, np.random.default_rng(draw(seeds)).integers(0, 256, size, np.uint8))


@cache
@st.composite
def flat(draw: st.DrawFn, whole_bytes: bool = False) -> Sample:
    if not whole_bytes and draw(st.booleans()):
        return Sample(FlatEncoding(1), draw(bits_()))
    if draw(st.booleans()):
        wide, count = draw(any_of(24, 128, 256, 3000 * 8)), draw(st.integers(0, 40))
        data = np.random.default_rng(draw(seeds)).integers(0, 256, count * wide // 8, np.uint8)
        return Sample(FlatEncoding(wide), FixedWidth(data, wide, count))
    bits = draw(integer_bits)
    return Sample(FlatEncoding(bits), draw(integers(bits)))


@cache
@st.composite
def variable(draw: st.DrawFn) -> Sample:
    bits = draw(any_of(32, 64))
    return Sample(VariableEncoding(bits), draw(strings(bits, draw(any_of(40, 3000)))))


@st.composite
def constant(draw: st.DrawFn) -> Sample:
    value, count = draw(st.binary(max_size=16)), draw(counts)
    return Sample(ConstantEncoding(value), FixedWidth(np.frombuffer(value * count, np.uint8), 8 * len(value), count))


@st.composite
def fixed_size_list(draw: st.DrawFn, nullable: bool = True) -> Sample:
    items: FixedWidth | FixedSizeListValues
    item_encoding: FlatEncoding | ConstantEncoding | FixedSizeListEncoding
    kind = draw(any_of("bits", "integers", "lists", *(["nulls"] if nullable else [])))
    if kind == "bits":
        items, item_encoding = draw(bits_()), FlatEncoding(1)
    elif kind == "integers":
        items, item_encoding = draw(integers(32)), FlatEncoding(32)
    elif kind == "nulls":
        items, item_encoding = FixedWidth(np.empty(0, np.uint8), 0, draw(counts)), ALL_NULL
    else:
        inner = draw(lists(draw(integers(16)), 3, nullable))
        items, item_encoding = inner, FixedSizeListEncoding(3, inner.validity is not None, FlatEncoding(16))
    dimension = draw(any_of(1, 2, 5, 8))
    values = draw(lists(items, dimension, nullable))
    has_validity = nullable and (values.validity is not None or item_encoding == ALL_NULL or draw(st.booleans()))
    if has_validity and values.validity is None:
        all_valid = np.full(num_bytes_of_bits(values.items.num_values), 0xFF, np.uint8)
        values = FixedSizeListValues(values.items, dimension, all_valid)
    return Sample(FixedSizeListEncoding(dimension, has_validity, item_encoding), values)


@cache
@st.composite
def out_of_line_bitpacking(draw: st.DrawFn) -> Sample:
    bits = draw(integer_bits)
    width = draw(st.integers(1, bits))
    return Sample(OutOfLineBitpackingEncoding(bits, width), draw(integers(bits, width)))


@cache
@st.composite
def inline_bitpacking(draw: st.DrawFn) -> Sample:
    bits = draw(integer_bits)
    return Sample(InlineBitpackingEncoding(bits), draw(integers(bits)))


@cache
@st.composite
def rle(draw: st.DrawFn) -> Sample:
    bits = draw(integer_bits)
    return Sample(RleEncoding(bits), draw(integers(bits)))


@cache
@st.composite
def byte_stream_split(draw: st.DrawFn) -> Sample:
    bits = draw(integer_bits)
    return Sample(ByteStreamSplitEncoding(bits), draw(integers(bits)))


@cache
@st.composite
def fsst(draw: st.DrawFn) -> Sample:
    bits = draw(any_of(32, 64))
    values, others = draw(strings(bits)), draw(strings(bits))
    return Sample(FsstEncoding.train(draw(st.sampled_from([values, others])))[0], values)


codecs = st.sampled_from([Lz4(), Zstd(), Zstd(1), Zstd(19)])


@cache
@st.composite
def general(draw: st.DrawFn, inner_samples: st.SearchStrategy[Sample]) -> Sample:
    inner = draw(inner_samples)
    return Sample(GeneralEncoding(draw(codecs), inner.encoding), inner.values)


@st.composite
def packed_struct(draw: st.DrawFn) -> Sample:
    widths = draw(widths_of_children)
    children = [draw(integers(bits)) for bits in widths]
    count = min(child.num_values for child in children)
    return Sample(PackedStructEncoding(tuple(widths)), PackedValues(tuple(child.slice(0, count) for child in children)))


@cache
def packed_samples() -> st.SearchStrategy[list[Sample]]:
    return st.lists(st.one_of(variable(), fsst(), general(variable()), flat_bytes()), min_size=1, max_size=4)


@st.composite
def variable_packed_struct(draw: st.DrawFn) -> Sample:
    children, encodings = [], []
    for inner in draw(packed_samples()):
        children.append(inner.values)
        is_variable = isinstance(inner.values, VariableWidth)
        bits = (
            inner.values.bits_per_offset if isinstance(inner.values, VariableWidth) else _bits_per_value(inner.values)
        )
        encodings.append(PackedChild(inner.encoding, bits, is_variable))
    count = min(child.num_values for child in children)
    values = PackedValues(tuple(child.slice(0, count) for child in children))
    return Sample(VariablePackedStructEncoding(tuple(encodings)), values)


@cache
@st.composite
def flat_bytes(draw: st.DrawFn) -> Sample:
    bits = draw(integer_bits)
    return Sample(FlatEncoding(bits), draw(integers(bits)))


def _bits_per_value(values: Values) -> int:
    assert isinstance(values, FixedWidth)
    return values.bits_per_value


SAMPLES: dict[type[Encoding], st.SearchStrategy[Sample]] = {
    FlatEncoding: flat(),
    VariableEncoding: variable(),
    ConstantEncoding: constant(),
    OutOfLineBitpackingEncoding: out_of_line_bitpacking(),
    InlineBitpackingEncoding: inline_bitpacking(),
    FsstEncoding: fsst(),
    RleEncoding: rle(),
    ByteStreamSplitEncoding: byte_stream_split(),
    GeneralEncoding: general(st.one_of(variable(), rle(), byte_stream_split(), flat(), inline_bitpacking())),
    FixedSizeListEncoding: fixed_size_list(),
    PackedStructEncoding: packed_struct(),
    VariablePackedStructEncoding: variable_packed_struct(),
}
"""For every encoding, a strategy of values that it can hold."""

SAMPLES_OF_BLOCKS = SAMPLES | {
    GeneralEncoding: general(st.one_of(variable(), rle(), flat(), inline_bitpacking())),
    FixedSizeListEncoding: fixed_size_list(nullable=False),
}
"""The same without values that no block holds: lists with item validity, and what only chunks hold."""

SAMPLES_OF_FULL_ZIP = SAMPLES | {
    FlatEncoding: flat(whole_bytes=True),
    GeneralEncoding: general(variable()),
}
"""The same without values that no full-zip page holds: bits, and compressed numbers."""
