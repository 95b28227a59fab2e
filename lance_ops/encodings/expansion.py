"""Limit how much memory the bytes of a file may expand to.

A few bytes can stand for very many: a compressed buffer, a string that every row of a page repeats, rows that are all
null. Writers make such pages for good reasons and attackers for bad ones, and a reader cannot tell them apart before
the memory is used. The limit is far above what pages of real writers need.
"""

from __future__ import annotations

from lance_ops.core.errors import ReadTooLarge

__all__ = ["FREE_BYTES", "MAX_RATIO", "check_expansion"]

FREE_BYTES = 64 << 20
"""One decoding step may always produce this many bytes, however few bytes are stored."""

MAX_RATIO = 256
"""Beyond `FREE_BYTES`, a step may produce this many bytes for each stored byte. Run-length encoding reaches 227."""


def check_expansion(num_bytes: int, stored_bytes: int, what: str, max_ratio: int = MAX_RATIO) -> None:
    """Raise `ReadTooLarge` if `stored_bytes` of a file would expand to too many bytes; `what` names them."""
    if num_bytes > max(FREE_BYTES, max_ratio * stored_bytes):
        raise ReadTooLarge(f"making {num_bytes} bytes at once of {what} of {stored_bytes} (read fewer rows at a time)")
