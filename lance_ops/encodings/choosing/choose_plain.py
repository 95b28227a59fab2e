"""Decide which pages are stored plain, so that a short page loads and measures nothing else.

The files of small appends have more metadata than values. What another encoding saves in a page of 2 KiB is less than
that, and compaction chooses anew.
"""

from __future__ import annotations

from lance_ops.encodings.compressive import FlatEncoding, VariableEncoding
from lance_ops.encodings.contract import Encoding
from lance_ops.encodings.lanes import BLOCK

__all__ = ["is_stored_plain", "plain_encoding"]

_MAX_BYTES = 2048


def is_stored_plain(num_values: int, size_bytes: int) -> bool:
    """Return whether numbers, booleans or strings without options are stored plain, in one chunk.

    The size includes the offsets of strings. If a 2.2 page has one distinct value and no nulls, the caller stores a
    constant instead.
    """
    return num_values <= BLOCK and size_bytes <= _MAX_BYTES


def plain_encoding(bits: int, *, is_variable: bool = False) -> Encoding:
    """Return the encoding of numbers or booleans of this many bits, or of strings with offsets of this many bits."""
    return VariableEncoding(bits) if is_variable else FlatEncoding(bits)
