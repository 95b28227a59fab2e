"""Decide how the values of a 2.1 or 2.2 page are laid out and encoded.

`choose_plain` decides before it which pages are too short to be measured; `choose_equal` decides the same of many
pages at once. No other module decides this.

The choice depends only on the values, the field's options and the file version, so the same values always make the
same page. Candidates are tried from the fastest to read to the slowest. A slower candidate is taken only if it is
smaller by at least 3%.
"""

from __future__ import annotations

from collections.abc import Iterable
from enum import Enum

import numpy as np

from lance_ops.core.errors import UnsupportedFeature
from lance_ops.core.ndarrays import Int64Array
from lance_ops.core.versions import FileVersion
from lance_ops.encodings.choosing.dictionary import DictionaryValues, encode_dictionary
from lance_ops.encodings.choosing.options import NO_OPTIONS, EncodingOptions
from lance_ops.encodings.choosing.stats import (
    FixedStatistics,
    estimate_distinct,
    estimate_index_bytes,
    sample_runs,
)
from lance_ops.encodings.codecs import Codec, Lz4, Zstd
from lance_ops.encodings.compressive import (
    ByteStreamSplitEncoding,
    ConstantEncoding,
    FixedSizeListEncoding,
    FlatEncoding,
    FsstEncoding,
    GeneralEncoding,
    InlineBitpackingEncoding,
    OutOfLineBitpackingEncoding,
    PackedChild,
    PackedStructEncoding,
    RleEncoding,
    VariableEncoding,
    VariablePackedStructEncoding,
)
from lance_ops.encodings.contract import DEFAULT_LIMITS, ChunkLimits, Encoding
from lance_ops.encodings.lanes import BLOCK, INTEGER_BITS
from lance_ops.encodings.page_values import (
    FixedSizeListValues,
    FixedWidth,
    PackedValues,
    Values,
    VariableWidth,
)

__all__ = [
    "MIN_DICTIONARY_VALUES",
    "MOST_OF_FASTER",
    "Structure",
    "choose_block",
    "choose_dictionary",
    "choose_levels",
    "choose_limits",
    "choose_mini_block",
    "choose_structure",
    "choose_zipped",
]

# A chunk would hold too few values of this size.
_LARGE_VALUE_BYTES = 256
# Larger values are compressed one by one with a general codec, not with a table of short symbols.
_HUGE_VALUE_BYTES = 32 * 1024
# A slower encoding is taken only if its size is below this share of the faster one's: it must save 3%.
MOST_OF_FASTER = 0.97
# The size of a small chunk fits the 16-bit words of 2.1; larger chunks need the 32-bit words of 2.2.
_MAX_SMALL_CHUNK = 32 * 1024
_LEAST_CHUNK_BYTES = 1024
"""Room for several of the values that mini-block pages hold. A reader takes a chunk of one value for the last chunk."""
# Below these sizes, a symbol table or the headers of a general codec cost more than they save.
_MIN_FSST_BYTES = 16 * 1024
_MIN_GENERAL_BYTES = 4 * 1024
MIN_DICTIONARY_VALUES = 100
# The most that a dictionary with its indices may take: this share of the raw values,
_DICTIONARY_SHARE = 0.8
# and this share of the best encoding without a dictionary.
_MOST_OF_UNINDEXED = 0.9
# A reader of one value reads the page's whole dictionary.
_MAX_DICTIONARY_BYTES = 32 * 1024 * 1024
# A dictionary below this share of the strings is taken without comparing it with a symbol table.
_CLEARLY_SMALLER = 0.4
_SAMPLE_RUNS = 8


class Structure(Enum):
    """The layout of a page's values."""

    MINI_BLOCK = "miniblock"
    FULL_ZIP = "fullzip"


def choose_structure(values: Values, options: EncodingOptions = NO_OPTIONS) -> Structure:
    """Choose the layout of a page: full-zip when a value can be large, mini-block otherwise."""
    if isinstance(values, PackedValues):
        return Structure.MINI_BLOCK if _is_plain_struct(values) else Structure.FULL_ZIP
    if isinstance(values, FixedSizeListValues) and _is_of_nulls(values):
        return Structure.FULL_ZIP
    if isinstance(values, FixedSizeListValues) and _bits_per_list(values) % 8:
        return Structure.MINI_BLOCK  # readers of full-zip pages expect whole bytes
    if options.structural_encoding is not None:
        return Structure(options.structural_encoding)
    return Structure.FULL_ZIP if _largest_value_bytes(values) >= _LARGE_VALUE_BYTES else Structure.MINI_BLOCK


def choose_dictionary(
    values: Values, options: EncodingOptions, version: FileVersion, statistics: FixedStatistics | None = None
) -> DictionaryValues | None:
    """Make a dictionary of a page's values if that makes the page smaller, else return None.

    `statistics` are those of integer values; they are measured if not given. A page with a dictionary is a mini-block
    page, however large its values are. Version 2.1 allows dictionaries of strings only; 2.2 also allows 64-bit and
    128-bit values.
    """
    unwanted = options.compression in ("none", "fsst") or options.structural_encoding == Structure.FULL_ZIP.value
    if unwanted or values.num_values < MIN_DICTIONARY_VALUES:
        return None
    if isinstance(values, VariableWidth):
        raw_bytes = _raw_bytes(values)
        plain_bytes: float = raw_bytes
    elif isinstance(values, FixedWidth) and values.bits_per_value in (64, 128) and version >= FileVersion.V2_2:
        raw_bytes = values.size_bytes
        statistics = _measured(values, statistics)
        plain_bytes = _plain_bytes(values, statistics)
    else:
        return None
    most_share = _DICTIONARY_SHARE if options.dict_size_ratio is None else options.dict_size_ratio
    most_bytes = min(raw_bytes * most_share, plain_bytes * _MOST_OF_UNINDEXED)
    most_entries = values.num_values / (options.dict_divisor or 2)
    num_entries = estimate_distinct(values)
    if num_entries > most_entries or _least_dictionary_bytes(values, num_entries, statistics) > most_bytes:
        return None
    made = encode_dictionary(values, int(most_entries))
    if made is None or made.entries.size_bytes > _MAX_DICTIONARY_BYTES:
        return None
    size = _raw_bytes(made.entries) + min(made.statistics.bitpacked_bytes, made.statistics.rle_bytes)
    if size > most_bytes:
        return None
    if isinstance(values, VariableWidth) and size > raw_bytes * _CLEARLY_SMALLER:
        return None if _coded_bytes(values, *FsstEncoding.train(values)) < size else made
    return made


def choose_mini_block(
    values: Values, options: EncodingOptions, version: FileVersion, statistics: FixedStatistics | None = None
) -> Encoding:
    """Choose the encoding of a mini-block page's values, or of its dictionary's indices.

    `statistics` are those of integer values; they are measured if not given.
    """
    if isinstance(values, FixedWidth):
        return _choose_fixed(values, options, statistics)
    if isinstance(values, VariableWidth):
        plain = VariableEncoding(values.bits_per_offset)
        codec = _codec_asked_for(options)
        if codec is not None:
            return _with_codec(codec, values, [plain])
        return _choose_strings(values, options)
    if isinstance(values, PackedValues):
        return _packed_struct(values)
    return _lists(values)


def choose_limits(values: Values, options: EncodingOptions, version: FileVersion) -> ChunkLimits:
    """Choose the largest size of a chunk. A field's metadata may ask for another size for byte strings."""
    asked = options.minichunk_size
    if asked is None or not isinstance(values, VariableWidth):
        return DEFAULT_LIMITS
    if asked >= _MAX_SMALL_CHUNK and version < FileVersion.V2_2:
        return DEFAULT_LIMITS  # a 16-bit chunk word cannot state more
    return ChunkLimits(max_bytes=max(asked, _LEAST_CHUNK_BYTES))


def choose_zipped(values: Values, options: EncodingOptions, version: FileVersion) -> Encoding:
    """Choose the encoding of a full-zip page's values."""
    if isinstance(values, FixedWidth):
        return FlatEncoding(values.bits_per_value)
    if isinstance(values, VariableWidth):
        plain = VariableEncoding(values.bits_per_offset)
        codec = _codec_asked_for(options)
        if codec is not None and values.size_bytes >= _MIN_GENERAL_BYTES:
            return GeneralEncoding(codec, plain)
        if options.compression is None and _largest_value_bytes(values) > _HUGE_VALUE_BYTES:
            return _general_if_smaller(Zstd(), values)
        return _choose_strings(values, options)
    if isinstance(values, PackedValues):
        return _choose_packed_rows(values, options, version)
    return _lists(values)


def choose_block(values: Values, options: EncodingOptions, version: FileVersion) -> Encoding:
    """Choose the encoding of a dictionary's entries: plain, or compressed where the file version allows it."""
    plain = _plain(values)
    asked = options.dict_values_compression
    if version < FileVersion.V2_2 or asked == "none":
        return plain
    codec = Zstd(options.dict_values_compression_level) if asked == "zstd" else Lz4()
    compressed = GeneralEncoding(codec, plain)
    size = len(plain.encode_block(values))
    return compressed if size and len(compressed.encode_block(values)) < size * MOST_OF_FASTER else plain


def choose_levels(levels: FixedWidth, num_levels: Int64Array, version: FileVersion) -> Encoding:
    """Choose the encoding of repetition or definition levels in blocks of `num_levels[i]`. Only 2.2 allows runs."""
    statistics = FixedStatistics(levels)
    packed = OutOfLineBitpackingEncoding(levels.bits_per_value, max(statistics.bit_width, 1))
    sizes: list[tuple[Encoding, float]] = [
        (FlatEncoding(levels.bits_per_value), levels.size_bytes),
        (packed, packed.size_of_blocks(num_levels)),
    ]
    if version >= FileVersion.V2_2:
        sizes.append((RleEncoding(levels.bits_per_value), statistics.rle_bytes + 8 * len(num_levels)))
    return _smallest(sizes)


def _choose_fixed(values: FixedWidth, options: EncodingOptions, statistics: FixedStatistics | None) -> Encoding:
    bits = values.bits_per_value
    flat = FlatEncoding(bits)
    codec = _codec_asked_for(options)
    if bits not in INTEGER_BITS or values.num_values == 0 or options.compression == "none":
        return flat if codec is None or bits % 8 else _with_codec(codec, values, [flat])
    statistics = _measured(values, statistics)
    runs = RleEncoding(bits)
    if options.rle_threshold is not None and statistics.num_runs < options.rle_threshold * values.num_values:
        return runs
    packed = InlineBitpackingEncoding(bits)
    if codec is not None:
        return _with_codec(codec, values, [flat, packed, *_byte_streams(bits, options)])
    sizes: list[tuple[Encoding, float]] = [(flat, statistics.flat_bytes), (packed, statistics.bitpacked_bytes)]
    if options.rle_threshold is None:
        sizes.append((runs, statistics.rle_bytes))
    return _smallest(sizes)


def _byte_streams(bits: int, options: EncodingOptions) -> list[Encoding]:
    return [ByteStreamSplitEncoding(bits)] if bits in (32, 64) and options.byte_stream_split != "off" else []


def _choose_strings(values: VariableWidth, options: EncodingOptions) -> Encoding:
    """Choose between plain strings and FSST codes."""
    plain = VariableEncoding(values.bits_per_offset)
    if options.compression == "none" or values.size_bytes == 0:
        return plain
    if options.compression != "fsst" and values.size_bytes < _MIN_FSST_BYTES:
        return plain
    coded, ratio = FsstEncoding.train(values)
    if options.compression == "fsst" or _coded_bytes(values, coded, ratio) < _raw_bytes(values) * MOST_OF_FASTER:
        return coded
    return plain


def _coded_bytes(values: VariableWidth, coded: FsstEncoding, ratio: float) -> float:
    """Estimate the bytes of strings as FSST codes, with their offsets."""
    return values.size_bytes * ratio + len(coded.symbol_table) + values.num_values * values.bits_per_offset // 8


def _choose_packed_rows(values: PackedValues, options: EncodingOptions, version: FileVersion) -> Encoding:
    if _is_plain_struct(values):
        return _packed_struct(values)
    if version < FileVersion.V2_2:
        raise UnsupportedFeature(
            f"a packed struct with variable-width children or lists in file version {version.value}"
        )
    return VariablePackedStructEncoding(tuple(_packed_child(child, options, version) for child in values.children))


def _packed_child(child: Values, options: EncodingOptions, version: FileVersion) -> PackedChild:
    encoding = choose_zipped(child, options, version)
    if isinstance(child, VariableWidth):
        return PackedChild(encoding, child.bits_per_offset, is_variable=True)
    if isinstance(encoding, FlatEncoding) and encoding.bits_per_value % 8 == 0:
        return PackedChild(encoding, encoding.bits_per_value, is_variable=False)
    if isinstance(encoding, FixedSizeListEncoding):
        return PackedChild(encoding, encoding.zipped_bytes * 8, is_variable=False)
    raise UnsupportedFeature("a packed struct with a struct or booleans inside")


def _packed_struct(values: PackedValues) -> Encoding:
    widths = [child.bits_per_value for child in values.children if isinstance(child, FixedWidth)]
    if len(widths) < len(values.children) or any(width % 8 for width in widths):
        raise UnsupportedFeature(
            "a packed struct of other than fixed-width children of whole bytes in mini-block pages"
        )
    return PackedStructEncoding(tuple(widths))


def _is_plain_struct(values: PackedValues) -> bool:
    return all(isinstance(child, FixedWidth) for child in values.children)


def _lists(values: FixedSizeListValues) -> FixedSizeListEncoding:
    if not isinstance(values.items, FixedWidth):
        items: FixedSizeListEncoding | ConstantEncoding | FlatEncoding = _lists(values.items)
    elif _is_of_nulls(values):
        items = ConstantEncoding(b"")
    else:
        items = FlatEncoding(values.items.bits_per_value)
    return FixedSizeListEncoding(values.dimension, values.validity is not None, items)


def _bits_per_list(values: FixedSizeListValues) -> int:
    items = values.items
    return values.dimension * (items.bits_per_value if isinstance(items, FixedWidth) else _bits_per_list(items))


def _is_of_nulls(values: FixedSizeListValues) -> bool:
    """Return whether the items take no bits, which is so for Arrow's null type."""
    while isinstance(values.items, FixedSizeListValues):
        values = values.items
    return not values.items.bits_per_value


def _plain(values: Values) -> Encoding:
    if isinstance(values, FixedWidth):
        return FlatEncoding(values.bits_per_value)
    if isinstance(values, VariableWidth):
        return VariableEncoding(values.bits_per_offset)
    raise UnsupportedFeature(f"a dictionary of {type(values).__name__}")


def _codec_asked_for(options: EncodingOptions) -> Codec | None:
    if options.compression == "lz4":
        return Lz4()
    if options.compression == "zstd":
        return Zstd(options.compression_level)
    return None


def _with_codec(codec: Codec, values: FixedWidth | VariableWidth, inner: Iterable[Encoding]) -> Encoding:
    """Choose the smallest of the inner encodings, with or without the codec, by a sample of the values."""
    inner = list(inner)
    if values.size_bytes < _MIN_GENERAL_BYTES:
        return inner[0]
    candidates = [*inner, *(GeneralEncoding(codec, encoding) for encoding in inner)]
    runs = sample_runs(values, BLOCK, _SAMPLE_RUNS)
    return _smallest([(candidate, _encoded_bytes(candidate, runs)) for candidate in candidates])


def _general_if_smaller(codec: Codec, values: VariableWidth) -> Encoding:
    plain = VariableEncoding(values.bits_per_offset)
    sample = values.data[: 2 * _HUGE_VALUE_BYTES]
    compressed, _ = codec.compress(sample, np.array([len(sample)], np.int64))
    return GeneralEncoding(codec, plain) if len(compressed) < len(sample) * MOST_OF_FASTER else plain


def _smallest(sizes: list[tuple[Encoding, float]]) -> Encoding:
    best, least = sizes[0]
    for encoding, size in sizes[1:]:
        if size < least * MOST_OF_FASTER:
            best, least = encoding, size
    return best


def _encoded_bytes(encoding: Encoding, runs: list[Values]) -> int:
    return sum(int(sizes.sum()) for run in runs for sizes in encoding.encode_chunks(run).sizes)


def _measured(values: FixedWidth, statistics: FixedStatistics | None) -> FixedStatistics:
    return statistics if statistics is not None and statistics.values is values else FixedStatistics(values)


def _plain_bytes(values: FixedWidth, statistics: FixedStatistics) -> float:
    """Return the bytes of fixed-width values in their smallest encoding without a dictionary."""
    if values.bits_per_value not in INTEGER_BITS:
        return values.size_bytes
    return min(statistics.flat_bytes, statistics.bitpacked_bytes, statistics.rle_bytes)


def _least_dictionary_bytes(
    values: FixedWidth | VariableWidth, num_entries: float, statistics: FixedStatistics | None
) -> float:
    """Estimate a lower bound for the bytes of a dictionary's entries and indices."""
    entry_bytes = num_entries / values.num_values * _raw_bytes(values) * 0.7
    if isinstance(values, FixedWidth) and values.bits_per_value in INTEGER_BITS and statistics is not None:
        return entry_bytes + min(estimate_index_bytes(values, num_entries), statistics.rle_bytes_of(32))
    return entry_bytes + values.num_values * int(num_entries).bit_length() / 16


def _raw_bytes(values: FixedWidth | VariableWidth) -> int:
    if isinstance(values, FixedWidth):
        return values.size_bytes
    return values.size_bytes + values.num_values * values.bits_per_offset // 8


def _largest_value_bytes(values: FixedWidth | VariableWidth | FixedSizeListValues) -> float:
    if isinstance(values, VariableWidth):
        return int(values.lengths().max()) if values.num_values else 0
    if isinstance(values, FixedSizeListValues):
        return values.dimension * _largest_value_bytes(values.items)
    return values.bits_per_value / 8
