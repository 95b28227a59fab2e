"""Read and write the protobuf messages of many columns: where the buffers of a page are, and which columns are alike.

    ColumnMetadata   1: encoding of the column | 2: page (once in a plain column)
    Page             1: buffer positions (packed) | 2: buffer sizes (packed) | 3: length | 4: encoding | 5: priority

A column is plain if its message has each of these fields at most once, one page, and no other field. Every other
message, also a malformed one, is left to the protobuf library.
"""

from __future__ import annotations

from lance_ops.core.ndarrays import Int64Array, Uint8Array
from lance_ops.kernels.compile import kernel, part
from lance_ops.kernels.metadata.protobuf import are_equal, read_packed, read_varint, varint_size, write_varint

__all__ = ["read_columns", "write_columns"]

_COLUMN_ENCODING, _PAGE = 0x0A, 0x12
_POSITIONS, _SIZES, _LENGTH, _PAGE_ENCODING, _PRIORITY = 0x0A, 0x12, 0x18, 0x22, 0x28
_SPANS = 10
_COLUMN, _PAGE_AT, _POSITIONS_AT, _SIZES_AT, _ENCODING_AT = 0, 2, 4, 6, 8


@part
def _find_spans(data: Uint8Array, start: int, stop: int, is_page: bool, spans: Int64Array) -> int:
    """Find the fields of a column's message, or of a page's; return the page's length, 0 in a column, -1 if not plain.

    `spans` gets the start and the stop of each field with a length. It holds -1 where no field was found yet.
    """
    place, length, has_length, has_priority = start, 0, False, False
    while place < stop:
        tag = data[place]
        number, place = read_varint(data, place + 1, stop)
        if place < 0:
            return -1
        slot = -1
        if not is_page:
            if tag == _COLUMN_ENCODING:
                slot = _COLUMN
            elif tag == _PAGE:
                slot = _PAGE_AT
        elif tag == _POSITIONS:
            slot = _POSITIONS_AT
        elif tag == _SIZES:
            slot = _SIZES_AT
        elif tag == _PAGE_ENCODING:
            slot = _ENCODING_AT
        elif tag == _LENGTH and not has_length:
            length, has_length = number, True
            continue
        elif tag == _PRIORITY and not has_priority:
            has_priority = True
            continue
        if slot < 0 or spans[slot] >= 0 or number > stop - place:
            return -1
        spans[slot], spans[slot + 1] = place, place + number
        place += number
    return length


@part
def _have_equal_bytes(data: Uint8Array, spans: Int64Array, others: Int64Array, slot: int) -> bool:
    size = spans[slot + 1] - spans[slot]
    return size == others[slot + 1] - others[slot] and are_equal(data, spans[slot], others[slot], size)


@kernel
def read_columns(
    data: Uint8Array,
    starts: Int64Array,
    stops: Int64Array,
    spans: Int64Array,
    kinds: Int64Array,
    kind_of: Int64Array,
    lengths: Int64Array,
    num_buffers: Int64Array,
    buffers: Int64Array,
) -> int:
    """Read the message in each range, which the caller has checked to lie in `data`; return the number of kinds.

    `kind_of[i]` is the kind of column `i`, or -1 if it is not plain or of one kind more than `kinds` has room for.
    Columns of one kind have equal bytes for the encodings of column and page, and equally many buffers; `kinds` has the
    first column of each. `lengths` gets the rows of each page. `buffers` has room for the same number of buffers for
    each column: the position and size of each. `spans` has room for ten numbers for each column.
    """
    num_kinds = 0
    room = len(buffers) // (2 * max(len(starts), 1))
    for i in range(len(starts)):
        kind_of[i], lengths[i], num_buffers[i] = -1, 0, 0
        own = spans[_SPANS * i : _SPANS * (i + 1)]
        own[:] = -1
        if _find_spans(data, starts[i], stops[i], False, own) < 0 or own[_PAGE_AT] < 0 or own[_COLUMN] < 0:
            continue
        length = _find_spans(data, own[_PAGE_AT], own[_PAGE_AT + 1], True, own)
        if length < 0 or own[_ENCODING_AT] < 0:
            continue
        first = 2 * room * i
        count = read_packed(data, own[_POSITIONS_AT], own[_POSITIONS_AT + 1], buffers, first, room)
        sizes = read_packed(data, own[_SIZES_AT], own[_SIZES_AT + 1], buffers, first + 1, room)
        if count < 0 or count != sizes:
            continue
        lengths[i], num_buffers[i] = length, count
        for kind in range(num_kinds):
            other = spans[_SPANS * kinds[kind] : _SPANS * (kinds[kind] + 1)]
            if (
                num_buffers[kinds[kind]] == count
                and _have_equal_bytes(data, own, other, _COLUMN)
                and _have_equal_bytes(data, own, other, _ENCODING_AT)
            ):
                kind_of[i] = kind
                break
        if kind_of[i] < 0 and num_kinds < len(kinds):
            kind_of[i], kinds[num_kinds] = num_kinds, i
            num_kinds += 1
    return num_kinds


@kernel
def write_columns(
    buffers: Int64Array, num_buffers: int, before: Uint8Array, within: Uint8Array, out: Uint8Array, ends: Int64Array
) -> None:
    """Write messages of columns of one page, end to end, as protobuf writes them; `ends` gets the end of each.

    `buffers` has the position and size of each of a column's `num_buffers` buffers, column after column. `before` are
    the fields of the column that come before its page, `within` those of the page that come after its buffers. The
    caller has made `out` long enough: 12 bytes for each number of a column, 32 for each column, and the fields.
    """
    place = 0
    for column in range(len(ends)):
        first = 2 * num_buffers * column
        positions, sizes = 0, 0
        for buffer in range(num_buffers):
            positions += varint_size(buffers[first + 2 * buffer])
            sizes += varint_size(buffers[first + 2 * buffer + 1])
        for byte in range(len(before)):
            out[place + byte] = before[byte]
        place += len(before)
        out[place] = _PAGE
        page = 2 + varint_size(positions) + positions + varint_size(sizes) + sizes + len(within)
        place = write_varint(out, place + 1, page)
        out[place] = _POSITIONS
        place = write_varint(out, place + 1, positions)
        for buffer in range(num_buffers):
            place = write_varint(out, place, buffers[first + 2 * buffer])
        out[place] = _SIZES
        place = write_varint(out, place + 1, sizes)
        for buffer in range(num_buffers):
            place = write_varint(out, place, buffers[first + 2 * buffer + 1])
        for byte in range(len(within)):
            out[place + byte] = within[byte]
        place += len(within)
        ends[column] = place
