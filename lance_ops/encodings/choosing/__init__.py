"""Choose how a page is stored: from its measured values, or plain if it is short, or for many equal columns at once."""

from __future__ import annotations

from typing import TYPE_CHECKING

from lance_ops.core.lazy_import import import_on_first_use

if TYPE_CHECKING:
    from lance_ops.encodings.choosing.choose import (
        Structure,
        choose_block,
        choose_dictionary,
        choose_levels,
        choose_limits,
        choose_mini_block,
        choose_structure,
        choose_zipped,
    )
    from lance_ops.encodings.choosing.choose_equal import choose_equal_levels, choose_equal_pages
    from lance_ops.encodings.choosing.choose_plain import is_stored_plain, plain_encoding
    from lance_ops.encodings.choosing.options import NO_OPTIONS, EncodingOptions
    from lance_ops.encodings.choosing.stats import EqualStatistics, FixedStatistics

__all__ = [
    "NO_OPTIONS",
    "EncodingOptions",
    "EqualStatistics",
    "FixedStatistics",
    "Structure",
    "choose_block",
    "choose_dictionary",
    "choose_equal_levels",
    "choose_equal_pages",
    "choose_levels",
    "choose_limits",
    "choose_mini_block",
    "choose_structure",
    "choose_zipped",
    "is_stored_plain",
    "plain_encoding",
]

_MODULES = {
    "NO_OPTIONS": "options",
    "EncodingOptions": "options",
    "EqualStatistics": "stats",
    "FixedStatistics": "stats",
    "Structure": "choose",
    "choose_block": "choose",
    "choose_dictionary": "choose",
    "choose_equal_levels": "choose_equal",
    "choose_equal_pages": "choose_equal",
    "choose_levels": "choose",
    "choose_limits": "choose",
    "choose_mini_block": "choose",
    "choose_structure": "choose",
    "choose_zipped": "choose",
    "is_stored_plain": "choose_plain",
    "plain_encoding": "choose_plain",
}

if not TYPE_CHECKING:  # a type checker that sees it would accept any name
    __getattr__ = import_on_first_use(__name__, _MODULES)
