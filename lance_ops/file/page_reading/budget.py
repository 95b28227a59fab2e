"""Limit how much memory one read of a file may take, whatever the file says.

A page of a few bytes can stand for any number of nulls, or for any number of copies of a string. So one read must not
produce far more bytes than the file has. A scan reads in small parts, so it still reaches every row.
"""

from __future__ import annotations

from threading import Lock

import pyarrow as pa
import pyarrow.types as pt

from lance_ops.core.errors import ReadTooLarge
from lance_ops.encodings import MAX_RATIO

__all__ = ["READ_BYTES", "Budget", "SharedBytes", "row_bytes"]

READ_BYTES = 192 << 20
"""One read of any file may produce this many bytes, or `MAX_RATIO` times the size of the file if that is more."""

_POSITION_BYTES = 32
"""Memory that finding one item by its position takes."""

_NUMBERS = (
    *(pa.int8(), pa.int16(), pa.int32(), pa.int64(), pa.uint8(), pa.uint16(), pa.uint32(), pa.uint64()),
    *(pa.bool_(), pa.float16(), pa.float32(), pa.float64(), pa.date32(), pa.date64(), pa.timestamp("us")),
)
_ROW_BYTES: dict[int, int] = {
    **{number.id: 1 + -(-number.bit_width // 8) for number in _NUMBERS},
    **dict.fromkeys((pa.string().id, pa.binary().id), 5),  # an offset
    **dict.fromkeys((pa.large_string().id, pa.large_binary().id), 9),
}
"""The results of `row_bytes` for the most common types, by type id."""


class SharedBytes:
    """Bytes that the reads of several threads share; each `Budget` that draws on them gives them back."""

    def __init__(self, num_bytes: int) -> None:
        self._left = num_bytes
        self._lock = Lock()

    def take(self, num_bytes: int) -> bool:
        """Take bytes if this many are left."""
        with self._lock:
            if num_bytes > self._left:
                return False
            self._left -= num_bytes
            return True

    def give_back(self, num_bytes: int) -> None:
        """Give back bytes that were taken."""
        with self._lock:
            self._left += num_bytes


class Budget:
    """The bytes that one read may still produce; its threads share it."""

    def __init__(self, size_bytes: int, max_bytes: int | None = None, shared: SharedBytes | None = None) -> None:
        """Allow what a file of `size_bytes` may expand to, or exactly `max_bytes`; all of it comes out of `shared`."""
        self._total = self._left = max(READ_BYTES, MAX_RATIO * size_bytes) if max_bytes is None else max_bytes
        self._shared = shared
        self._lock = Lock()

    def expect(self, num_rows: int, num_bytes: int) -> None:
        """Raise `ReadTooLarge` if `num_rows` rows of `num_bytes` each exceed the whole budget; nothing is spent."""
        self._check(num_rows * num_bytes, self._total)

    def expect_items(self, num_items: int, num_runs: int, arrow_type: pa.DataType) -> None:
        """Raise `ReadTooLarge` if `num_items` items, in `num_runs` separate runs, exceed the whole budget."""
        self.expect(num_items, row_bytes(arrow_type) + (_POSITION_BYTES if num_runs > 1 else 0))

    def spend(self, num_bytes: int) -> None:
        """Count bytes that were produced; raise `ReadTooLarge` if they exceed what is left."""
        with self._lock:
            self._check(num_bytes, self._left)
            if self._shared is not None and not self._shared.take(num_bytes):
                raise ReadTooLarge(f"{num_bytes} bytes more beside other reads (read fewer rows at a time)")
            self._left -= num_bytes

    def release(self) -> None:
        """Give back what was spent, when its bytes are no longer held."""
        if self._shared is not None:
            self._shared.give_back(self._total - self._left)
        self._left = self._total

    def _check(self, num_bytes: int, limit: int) -> None:
        if num_bytes > limit:
            raise ReadTooLarge(f"more than {self._total} bytes in one read (read fewer rows at a time)")


def row_bytes(arrow_type: pa.DataType) -> int:
    """Return the bytes that a value takes at least, and one byte for its validity."""
    known = _ROW_BYTES.get(arrow_type.id)
    if known is not None:
        return known
    if pt.is_struct(arrow_type):
        return 1 + sum(row_bytes(arrow_type.field(i).type) for i in range(arrow_type.num_fields))
    if pt.is_fixed_size_list(arrow_type):
        return 1 + int(arrow_type.list_size) * row_bytes(arrow_type.value_type)
    if pt.is_fixed_size_binary(arrow_type):
        return 1 + int(arrow_type.byte_width)  # `bit_width` overflows for the widest
    if pt.is_dictionary(arrow_type):
        return row_bytes(arrow_type.index_type)
    if pt.is_large_list(arrow_type):
        return 9
    try:
        return 1 + -(-int(arrow_type.bit_width) // 8)
    except ValueError:
        # Lists and maps have 32-bit offsets. Nulls store nothing, but sorting them takes positions.
        return 9 if pt.is_null(arrow_type) else 5
