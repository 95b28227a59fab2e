r"""Watch CSV's bytes while Arrow reads them, for what its parser accepts and a user does not mean.

an odd number of quotes   one is not closed, and its cell takes all rows after it; or one is in a cell without quotes
a quote after \            other writers, such as Spark's, escape a quote in a cell this way
a number after 0x         Arrow reads 0xFF as -1 into int8
"""

from __future__ import annotations

from typing import Any

import numpy as np

from lance_ops.maintenance.ingest.decoding.requests import StreamOver

__all__ = ["WatchedCsv"]

_ZERO, _X, _LOWER_CASE = ord("0"), ord("x"), 0x20
_PART_BYTES = 64 * 1024
"""This many bytes, and what is computed of them, fit into a core's cache."""


class WatchedCsv(StreamOver):
    """A stream of CSV that looks at each block that is read of it. `quote` is the sign around cells, or empty."""

    def __init__(self, stream: Any, quote: str, *, seeks_hexadecimal: bool) -> None:
        super().__init__(stream)
        self._quote = quote.encode()
        self._seeks_hexadecimal = seeks_hexadecimal
        self._num_quotes = 0
        self.num_bytes = 0
        self._last = b""
        self._has_escaped_quote = False
        self.has_hexadecimal = False

    def read(self, size: int = -1) -> bytes:
        block: bytes = self._stream.read(None if size < 0 else size)
        self.num_bytes += len(block)
        if self._quote:
            self._look_at_quotes(block)
        if self._seeks_hexadecimal and not self.has_hexadecimal:
            self.has_hexadecimal = _has_hexadecimal(self._last + block[:1]) or _has_hexadecimal(block)
        self._last = block[-1:]
        return block

    @property
    def has_doubtful_quotes(self) -> bool:
        """Whether the quotes read so far may mean something else to whoever wrote them."""
        return self._has_escaped_quote or self._num_quotes % 2 == 1

    def _look_at_quotes(self, block: bytes) -> None:
        self._num_quotes += int(np.count_nonzero(np.frombuffer(block, np.uint8) == self._quote[0]))
        if not self._has_escaped_quote:
            escaped = b"\\" + self._quote
            # Most blocks have no backslash, and a search for one character is a hundred times as fast.
            is_within = b"\\" in block and escaped in block
            self._has_escaped_quote = is_within or self._last + block[:1] == escaped


def _has_hexadecimal(block: bytes) -> bool:
    codes = np.frombuffer(block, np.uint8)
    parts = (codes[start : start + _PART_BYTES + 1] for start in range(0, len(codes), _PART_BYTES))
    return any(bool(((part[:-1] == _ZERO) & ((part[1:] | _LOWER_CASE) == _X)).any()) for part in parts)
