"""What bytes may ask for beyond their own size.

A few bytes can stand for very many: a compressed buffer, a string that every row of a page repeats, rows that are all
null. Writers make such pages for good reasons and strangers for bad ones, and nothing tells one from the other before
the memory is gone. So there is a limit, far above what writers' pages need at the size they are read in.
"""

from __future__ import annotations

from lance_ops.core.errors import ReadTooLarge

__all__ = ["FREE_BYTES", "MAX_RATIO", "check_expansion"]

FREE_BYTES = 64 << 20
"""What any bytes may become in one step, however few they are."""

MAX_RATIO = 256
"""How many bytes each stored byte may become beyond that; run-length encoded numbers come to 227."""


def check_expansion(num_bytes: int, stored_bytes: int, what: str, max_ratio: int = MAX_RATIO) -> None:
    """Raise `ReadTooLarge` if `stored_bytes` of a file would become too many; `what` names them."""
    if num_bytes > max(FREE_BYTES, max_ratio * stored_bytes):
        raise ReadTooLarge(f"making {num_bytes} bytes at once of {what} of {stored_bytes} (read fewer rows at a time)")
