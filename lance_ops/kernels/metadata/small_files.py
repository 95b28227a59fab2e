"""Parse the metadata of many small 2.x files by one call: their footers and tables, and the pages of some columns.

The files lie in one array. A file is parsed only if it has the form that this library and the reference usually write;
the caller reads any other file by itself, and finds out what is wrong with it. The first file is the pattern: the
others must have its schema. `file.container` describes the layout of the bytes, `file.checksums` that of the checksums.
"""

from __future__ import annotations

from lance_ops.core.ndarrays import Int64Array, Uint8Array
from lance_ops.kernels.compile import kernel, part
from lance_ops.kernels.metadata.protobuf import are_equal, read_packed, read_varint
from lance_ops.kernels.unaligned import read_number

__all__ = [
    "FILE_FACTS",
    "MAX_PAGE_BUFFERS",
    "PAGE_FACTS",
    "read_file_ends",
    "read_single_pages",
]

FILE_FACTS = 14
"""Numbers that `read_file_ends` returns for each file.

    0 major version   1 minor version   2 number of columns   3 start of the column table
    4 start and 5 size of the schema    6 number of rows      7 the first byte of the metadata
    8 whether the file has checksums; if so:
    9 start of the metadata's checksums    10 start of the trailer    11 the digest that the trailer states
    12 stop of the metadata                13 the checksum that is stated for the metadata
"""

MAX_PAGE_BUFFERS = 4
PAGE_FACTS = 6 + 2 * MAX_PAGE_BUFFERS
"""Numbers that `read_single_pages` returns for each column of each file.

    0 number of elements     1 start and 2 size of the page's encoding, an encoded `Any`
    3 number of buffers      4 start and 5 size of the column's encoding
    6, 8, … start and 7, 9, … size of each buffer
"""

_FOOTER_BYTES = 40
_FOOTER_MAGIC = 0x434E414C  # "LANC"
_TRAILER_BYTES = 40
_TRAILER_MAGIC = 0x01336B6C624F4CF1
_BLOCK_BYTES = 1 << 16
_VARINT, _BYTES = 0, 2  # wire types
_LAST_PAGE_TAG = 5 << 3 | _VARINT


@part
def _table_fits(data: Uint8Array, table: int, num_entries: int, size: int) -> bool:
    """Return whether the extents in an offset table lie in a file of this size and do not add up to more."""
    left = size
    for entry in range(num_entries):
        position, length = read_number(data, table + 16 * entry, 8), read_number(data, table + 16 * entry + 8, 8)
        if position < 0 or length < 0 or length > size or position > size - length or length > left:
            return False
        left -= length
    return True


@kernel
def read_file_ends(
    data: Uint8Array, starts: Int64Array, sizes: Int64Array, skipped: Int64Array, facts: Int64Array
) -> int:
    """Parse the footer, the tables and the description of each file; return how many files were parsed.

    File `i` has `sizes[i]` bytes, of which the first `skipped[i]` are not in `data`. Its byte `p` is `starts[i] + p` of
    `data`, so `starts[i]` may be negative. `facts` has `FILE_FACTS` numbers for each file. Places in it count from the
    start of `data`. The first file that has another form, or metadata among its skipped bytes, ends the loop. The
    caller compares the checksums.
    """
    for i in range(len(starts)):
        start, size, fact = starts[i], sizes[i], i * FILE_FACTS
        stop = start + size
        footer = stop - _FOOTER_BYTES
        if size - skipped[i] < _FOOTER_BYTES or read_number(data, stop - 4, 4) != _FOOTER_MAGIC:
            return i
        metadata = read_number(data, footer, 8)
        columns, buffers = read_number(data, footer + 8, 8), read_number(data, footer + 16, 8)
        num_buffers, num_columns = read_number(data, footer + 24, 4), read_number(data, footer + 28, 4)
        room = size - _FOOTER_BYTES
        if not 0 <= metadata <= room or not 0 <= columns <= room or not 0 <= buffers <= room:
            return i
        if num_buffers == 0 or num_buffers > (room - buffers) // 16 or num_columns > (room - columns) // 16:
            return i
        trusted, trailer = skipped[i], footer - _TRAILER_BYTES
        facts[fact + 8] = 0
        if trailer < start + trusted:
            if trusted > 0:
                return i
        elif read_number(data, trailer + 32, 8) == _TRAILER_MAGIC:
            pages, table = read_number(data, trailer + 8, 8), read_number(data, trailer + 16, 8)
            end = read_number(data, trailer + 24, 8)
            if not 0 <= pages <= table < end <= trailer - start or table < trusted or end - table > _BLOCK_BYTES:
                return i
            num_page_blocks = (pages + _BLOCK_BYTES - 1) // _BLOCK_BYTES
            num_table_blocks = (table - pages + _BLOCK_BYTES - 1) // _BLOCK_BYTES
            first = trailer - 8 * (num_table_blocks + 1)
            if first != start + end or table - pages < 8 * num_page_blocks:
                return i
            facts[fact + 8], facts[fact + 9], facts[fact + 10] = 1, first, trailer
            facts[fact + 11], facts[fact + 12] = read_number(data, trailer, 8), start + end
            facts[fact + 13] = read_number(data, trailer - 8, 8)
            trusted = table
            if columns + 16 * num_columns > end or buffers + 16 * num_buffers > end:
                return i
        if columns < trusted or buffers < trusted:
            return i
        if not _table_fits(data, start + columns, num_columns, size):
            return i
        if not _table_fits(data, start + buffers, num_buffers, size):
            return i
        at = read_number(data, start + buffers, 8)
        end = at + read_number(data, start + buffers + 8, 8)
        if at < trusted or (facts[fact + 8] and end > facts[fact + 12] - start):
            return i
        at += start
        end += start
        schema, schema_size, num_rows, num_fields = 0, -1, 0, 0
        while at < end:
            tag = read_number(data, at, 1)
            number, at = read_varint(data, at + 1, end)
            if at < 0:
                return i
            if tag == (1 << 3 | _BYTES) and schema_size < 0 and number <= end - at:
                schema, schema_size = at, number
                at += number
            elif tag == (2 << 3 | _VARINT) and num_fields == 0:
                num_rows = number
                num_fields = 1
            else:
                return i
        if schema_size < 0:
            return i
        facts[fact], facts[fact + 1] = read_number(data, stop - 8, 2), read_number(data, stop - 6, 2)
        facts[fact + 2], facts[fact + 3] = num_columns, start + columns
        facts[fact + 4], facts[fact + 5], facts[fact + 6], facts[fact + 7] = schema, schema_size, num_rows, trusted
        if i > 0:
            if facts[fact] != facts[0] or facts[fact + 1] != facts[1] or facts[fact + 2] != facts[2]:
                return i
            if schema_size != facts[5] or not are_equal(data, facts[4], schema, schema_size):
                return i
    return len(starts)


@part
def _read_encoding(data: Uint8Array, at: int, stop: int) -> tuple[int, int]:
    """Return the place and the size of the bytes in a direct `Encoding` message; the size is -1 for any other one."""
    for tag in (2 << 3 | _BYTES, 1 << 3 | _BYTES):
        if at >= stop or data[at] != tag:
            return at, -1
        size, at = read_varint(data, at + 1, stop)
        if at < 0 or size != stop - at:
            return at, -1
    return at, stop - at


@part
def _read_page(data: Uint8Array, at: int, stop: int, size: int, pages: Int64Array, fact: int) -> int:
    """Read a page's message into `pages[fact]` and on; return the bytes of its buffers, -1 for another form."""
    num_buffers, num_sizes, encoding_size, seen = 0, 0, -1, 0
    pages[fact] = 0
    while at < stop:
        tag = read_number(data, at, 1)
        number, at = read_varint(data, at + 1, stop)
        if at < 0 or tag > _LAST_PAGE_TAG or seen >> tag & 1:
            return -1
        seen |= 1 << tag
        if tag == (3 << 3 | _VARINT):
            pages[fact] = number
            continue
        if tag == (5 << 3 | _VARINT):
            continue
        if tag & 7 != _BYTES or number > stop - at:
            return -1
        if tag == (1 << 3 | _BYTES):
            num_buffers = read_packed(data, at, at + number, pages, fact + 6, MAX_PAGE_BUFFERS)
        elif tag == (2 << 3 | _BYTES):
            num_sizes = read_packed(data, at, at + number, pages, fact + 7, MAX_PAGE_BUFFERS)
        elif tag == (4 << 3 | _BYTES):
            pages[fact + 1], encoding_size = _read_encoding(data, at, at + number)
        else:
            return -1
        at += number
    if encoding_size < 0 or num_buffers < 0 or num_buffers != num_sizes:
        return -1
    pages[fact + 2], pages[fact + 3] = encoding_size, num_buffers
    total = 0
    for buffer in range(num_buffers):
        position, length = pages[fact + 6 + 2 * buffer], pages[fact + 7 + 2 * buffer]
        if length > size or position > size - length:
            return -1
        total += length
    return total


@kernel
def read_single_pages(
    data: Uint8Array,
    starts: Int64Array,
    sizes: Int64Array,
    facts: Int64Array,
    columns: Int64Array,
    pages: Int64Array,
) -> int:
    """Parse the metadata of columns that have one page; return how many files were parsed.

    `facts` are those of `read_file_ends`, and `columns` are below the number of columns. `pages` has `PAGE_FACTS`
    numbers for each file of the first column, then of the second, and so on. Places of encodings count from the start
    of `data`, those of buffers from the start of the file. A column's encoding must be the same in all files.
    """
    num_files = len(starts)
    for i in range(num_files):
        start, size = starts[i], sizes[i]
        left = size
        for column in range(len(columns)):
            entry = facts[i * FILE_FACTS + 3] + 16 * columns[column]
            at, length = read_number(data, entry, 8), read_number(data, entry + 8, 8)
            if at < facts[i * FILE_FACTS + 7]:
                return i
            if facts[i * FILE_FACTS + 8] and at + length > facts[i * FILE_FACTS + 12] - start:
                return i
            at += start
            stop = at + length
            fact = (column * num_files + i) * PAGE_FACTS
            pages[fact + 4], pages[fact + 5] = at, 0
            num_bytes = -1
            seen_encoding = False
            while at < stop:
                tag = read_number(data, at, 1)
                number, at = read_varint(data, at + 1, stop)
                if at < 0 or number > stop - at:
                    return i
                if tag == (1 << 3 | _BYTES) and not seen_encoding:
                    pages[fact + 4], pages[fact + 5] = at, number
                    seen_encoding = True
                elif tag == (2 << 3 | _BYTES) and num_bytes < 0:
                    num_bytes = _read_page(data, at, at + number, size, pages, fact)
                    if num_bytes < 0:
                        return i
                else:
                    return i
                at += number
            if num_bytes < 0 or num_bytes > left:
                return i
            left -= num_bytes
            if i > 0:
                head = column * num_files * PAGE_FACTS
                if pages[fact + 5] != pages[head + 5]:
                    return i
                if not are_equal(data, pages[head + 4], pages[fact + 4], pages[fact + 5]):
                    return i
    return num_files
