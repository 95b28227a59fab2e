"""How much memory one read of a file may take, whatever the file says.

Rows need not be stored to be there: a page of a few bytes can stand for any number of nulls, and a string for any
number of its copies. A scan goes on in small parts, so what is in a file is read in the end; but nothing is made at
once that is far more than the file is long.
"""

from __future__ import annotations

import pyarrow as pa
import pyarrow.types as pt

from lance_ops.core.errors import ReadTooLarge
from lance_ops.encodings import MAX_RATIO

__all__ = ["READ_BYTES", "Budget", "row_bytes"]

READ_BYTES = 192 << 20
"""What one read may make of any file; more only of a file that is itself more than a `MAX_RATIO`th as long."""

_POSITION_BYTES = 32
"""What it takes to find an item by its position."""

_NUMBERS = (
    *(pa.int8(), pa.int16(), pa.int32(), pa.int64(), pa.uint8(), pa.uint16(), pa.uint32(), pa.uint64()),
    *(pa.bool_(), pa.float16(), pa.float32(), pa.float64(), pa.date32(), pa.date64(), pa.timestamp("us")),
)
_ROW_BYTES: dict[int, int] = {
    **{number.id: 1 + -(-number.bit_width // 8) for number in _NUMBERS},
    **dict.fromkeys((pa.string().id, pa.binary().id), 5),  # an offset
    **dict.fromkeys((pa.large_string().id, pa.large_binary().id), 9),
}
"""What `row_bytes` says of the most common types, by their ids."""


class Budget:
    """The bytes that one read of a file may still make. Threads may share it: a limit need not be met to the byte."""

    def __init__(self, size_bytes: int) -> None:
        self._total = self._left = max(READ_BYTES, MAX_RATIO * size_bytes)

    def expect(self, num_rows: int, num_bytes: int) -> None:
        """Raise `ReadTooLarge` if rows of that many bytes each cannot be made; nothing is spent yet."""
        self._check(num_rows * num_bytes, self._total)

    def expect_items(self, num_items: int, num_runs: int, arrow_type: pa.DataType) -> None:
        """Raise `ReadTooLarge` if so many items, in runs apart from each other, cannot be made."""
        self.expect(num_items, row_bytes(arrow_type) + (_POSITION_BYTES if num_runs > 1 else 0))

    def spend(self, num_bytes: int) -> None:
        """Count what was made; raise `ReadTooLarge` when it is too much."""
        self._check(num_bytes, self._left)
        self._left -= num_bytes

    def _check(self, num_bytes: int, most: int) -> None:
        if num_bytes > most:
            raise ReadTooLarge(f"more than {self._total} bytes in one read of this file (read fewer rows at a time)")


def row_bytes(arrow_type: pa.DataType) -> int:
    """Return the bytes that a value takes at least, and one more for whether it is there."""
    known = _ROW_BYTES.get(arrow_type.id)
    if known is not None:
        return known
    if pt.is_struct(arrow_type):
        return 1 + sum(row_bytes(arrow_type.field(i).type) for i in range(arrow_type.num_fields))
    if pt.is_fixed_size_list(arrow_type):
        return 1 + int(arrow_type.list_size) * row_bytes(arrow_type.value_type)
    if pt.is_fixed_size_binary(arrow_type):
        return 1 + int(arrow_type.byte_width)  # the bits of the widest do not fit their number
    if pt.is_dictionary(arrow_type):
        return row_bytes(arrow_type.index_type)
    if pt.is_large_list(arrow_type):
        return 9
    try:
        return 1 + -(-int(arrow_type.bit_width) // 8)
    except ValueError:
        # lists and maps have offsets of 32 bits; nulls have nothing, but positions when they are sorted
        return 9 if pt.is_null(arrow_type) else 5
