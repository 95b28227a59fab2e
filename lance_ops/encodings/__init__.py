"""Encode the values of a page into compressed buffers, and decode them: one file for each encoding.

`values` has the in-memory form, `contract` has the interface of an encoding, `registry` lists all encodings, and
`choose` alone picks one for a page's values, with `choose_plain` for short pages and `choose_equal` for many at once.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from lance_ops.core.lazy_import import import_on_first_use

if TYPE_CHECKING:
    from lance_ops.encodings.bits import bits_of
    from lance_ops.encodings.choose import (
        Structure,
        choose_block,
        choose_dictionary,
        choose_levels,
        choose_limits,
        choose_mini_block,
        choose_structure,
        choose_zipped,
    )
    from lance_ops.encodings.choose_equal import choose_equal_levels, choose_equal_pages
    from lance_ops.encodings.choose_plain import is_stored_plain, plain_encoding
    from lance_ops.encodings.codecs import codec_of_scheme
    from lance_ops.encodings.contract import ChunkBuffers, CorruptValues, EncodedChunks, Encoding, Picks, check
    from lance_ops.encodings.expansion import MAX_RATIO, check_expansion
    from lance_ops.encodings.fsst import FsstEncoding
    from lance_ops.encodings.gather import gather_ranges, scatter_ranges
    from lance_ops.encodings.options import NO_OPTIONS, EncodingOptions
    from lance_ops.encodings.registry import encoding_from_pb
    from lance_ops.encodings.selection import select, select_fixed
    from lance_ops.encodings.stats import EqualStatistics, FixedStatistics
    from lance_ops.encodings.values import (
        FixedSizeListValues,
        FixedWidth,
        PackedValues,
        Values,
        VariableWidth,
        concat_values,
        offsets_of_lengths,
    )
    from lance_ops.encodings.variable import VariableEncoding

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
    "NO_OPTIONS": "options",
    "ChunkBuffers": "contract",
    "CorruptValues": "contract",
    "EncodedChunks": "contract",
    "Encoding": "contract",
    "EncodingOptions": "options",
    "EqualStatistics": "stats",
    "FixedSizeListValues": "values",
    "FixedStatistics": "stats",
    "FixedWidth": "values",
    "FsstEncoding": "fsst",
    "PackedValues": "values",
    "Picks": "contract",
    "Structure": "choose",
    "Values": "values",
    "VariableEncoding": "variable",
    "VariableWidth": "values",
    "bits_of": "bits",
    "check": "contract",
    "check_expansion": "expansion",
    "choose_block": "choose",
    "choose_dictionary": "choose",
    "choose_equal_levels": "choose_equal",
    "choose_equal_pages": "choose_equal",
    "choose_levels": "choose",
    "choose_limits": "choose",
    "choose_mini_block": "choose",
    "choose_structure": "choose",
    "choose_zipped": "choose",
    "codec_of_scheme": "codecs",
    "concat_values": "values",
    "encoding_from_pb": "registry",
    "gather_ranges": "gather",
    "is_stored_plain": "choose_plain",
    "offsets_of_lengths": "values",
    "plain_encoding": "choose_plain",
    "scatter_ranges": "gather",
    "select": "selection",
    "select_fixed": "selection",
}

if not TYPE_CHECKING:  # a type checker that sees it would accept any name
    __getattr__ = import_on_first_use(__name__, _MODULES)
