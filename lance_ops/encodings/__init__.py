"""Encode the values of a page into compressed buffers, and decode them.

`page_values` has the in-memory form, `contract` has the interface of an encoding, `compressive` has the encodings, and
`choosing` alone picks one for a page's values.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from lance_ops.core.lazy_import import import_on_first_use

if TYPE_CHECKING:
    from lance_ops.encodings.choosing import (
        NO_OPTIONS,
        EncodingOptions,
        EqualStatistics,
        FixedStatistics,
        Structure,
        choose_block,
        choose_dictionary,
        choose_equal_levels,
        choose_equal_pages,
        choose_levels,
        choose_limits,
        choose_mini_block,
        choose_structure,
        choose_zipped,
        is_stored_plain,
        plain_encoding,
    )
    from lance_ops.encodings.codecs import codec_of_scheme
    from lance_ops.encodings.compressive import FsstEncoding, VariableEncoding, encoding_from_pb
    from lance_ops.encodings.contract import ChunkBuffers, CorruptValues, EncodedChunks, Encoding, Picks, check
    from lance_ops.encodings.expansion import MAX_RATIO, check_expansion
    from lance_ops.encodings.page_values import (
        FixedSizeListValues,
        FixedWidth,
        PackedValues,
        Values,
        VariableWidth,
        bits_of,
        concat_values,
        gather_ranges,
        offsets_of_lengths,
        scatter_ranges,
        select,
        select_fixed,
    )

__all__ = [
    "MAX_RATIO",
    "NO_OPTIONS",
    "ChunkBuffers",
    "CorruptValues",
    "EncodedChunks",
    "Encoding",
    "EncodingOptions",
    "EqualStatistics",
    "FixedSizeListValues",
    "FixedStatistics",
    "FixedWidth",
    "FsstEncoding",
    "PackedValues",
    "Picks",
    "Structure",
    "Values",
    "VariableEncoding",
    "VariableWidth",
    "bits_of",
    "check",
    "check_expansion",
    "choose_block",
    "choose_dictionary",
    "choose_equal_levels",
    "choose_equal_pages",
    "choose_levels",
    "choose_limits",
    "choose_mini_block",
    "choose_structure",
    "choose_zipped",
    "codec_of_scheme",
    "concat_values",
    "encoding_from_pb",
    "gather_ranges",
    "is_stored_plain",
    "offsets_of_lengths",
    "plain_encoding",
    "scatter_ranges",
    "select",
    "select_fixed",
]

_MODULES = {
    "MAX_RATIO": "expansion",
    "NO_OPTIONS": "choosing",
    "ChunkBuffers": "contract",
    "CorruptValues": "contract",
    "EncodedChunks": "contract",
    "Encoding": "contract",
    "EncodingOptions": "choosing",
    "EqualStatistics": "choosing",
    "FixedSizeListValues": "page_values",
    "FixedStatistics": "choosing",
    "FixedWidth": "page_values",
    "FsstEncoding": "compressive",
    "PackedValues": "page_values",
    "Picks": "contract",
    "Structure": "choosing",
    "Values": "page_values",
    "VariableEncoding": "compressive",
    "VariableWidth": "page_values",
    "bits_of": "page_values",
    "check": "contract",
    "check_expansion": "expansion",
    "choose_block": "choosing",
    "choose_dictionary": "choosing",
    "choose_equal_levels": "choosing",
    "choose_equal_pages": "choosing",
    "choose_levels": "choosing",
    "choose_limits": "choosing",
    "choose_mini_block": "choosing",
    "choose_structure": "choosing",
    "choose_zipped": "choosing",
    "codec_of_scheme": "codecs",
    "concat_values": "page_values",
    "encoding_from_pb": "compressive",
    "gather_ranges": "page_values",
    "is_stored_plain": "choosing",
    "offsets_of_lengths": "page_values",
    "plain_encoding": "choosing",
    "scatter_ranges": "page_values",
    "select": "page_values",
    "select_fixed": "page_values",
}

if not TYPE_CHECKING:  # a type checker that sees it would accept any name
    __getattr__ = import_on_first_use(__name__, _MODULES)
