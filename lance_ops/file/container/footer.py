"""The footer and the offset tables of 2.x files, which say where columns and global buffers are.

    page buffers and global buffers, each 64-aligned     (the first one starts the file)
    checksums of pages, then global buffer 0             (files of this library; see `file.checksums.block_table`)
    column metadata messages
    column offset table          num_columns x (u64 position, u64 size)
    global buffer offset table   num_global_buffers x (u64 position, u64 size)
    checksums of metadata                                (files of this library)
    footer: u64 column metadata start | u64 column table | u64 global buffer table
            u32 num_global_buffers | u32 num_columns | u16 major | u16 minor | "LANC"

Global buffer 0 holds the file's schema and number of rows. This module converts between bytes and values; it does no
I/O.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable, Sequence

from lance_ops.core.errors import CorruptFile
from lance_ops.core.records import dataclass
from lance_ops.core.versions import FileVersion
from lance_ops.file.page_reading import Extent
from lance_ops.wire import MAGIC

__all__ = [
    "ALIGNMENT",
    "FOOTER_BYTES",
    "PADDING",
    "Footer",
    "check_inside",
    "check_no_overlap",
    "decode_extents",
    "encode_extents",
]

ALIGNMENT = 64
"""Every buffer starts at a multiple of this."""

PADDING = 0xFE
"""The bytes between buffers."""

_FOOTER = struct.Struct("<QQQIIHH4s")
_EXTENT = struct.Struct("<QQ")
FOOTER_BYTES = _FOOTER.size


@dataclass(frozen=True, slots=True)
class Footer:
    """The last bytes of a 2.x file."""

    column_metadata_start: int
    column_table: int
    global_buffer_table: int
    num_global_buffers: int
    num_columns: int
    version: FileVersion

    @classmethod
    def decode(cls, tail: bytes, size_bytes: int, path: str) -> Footer:
        """Parse the file's last bytes; raise `CorruptFile` if they point outside the file's `size_bytes`."""
        if len(tail) < FOOTER_BYTES:
            raise CorruptFile(path, "footer", f"the file has {size_bytes} bytes, the footer alone takes {FOOTER_BYTES}")
        start, columns, buffers, num_buffers, num_columns, major, minor, _ = _FOOTER.unpack(tail[-FOOTER_BYTES:])
        footer = cls(start, columns, buffers, num_buffers, num_columns, FileVersion.from_numbers(major, minor, path))
        end = size_bytes - FOOTER_BYTES
        for name, table in (("column table", footer.column_extent), ("global buffer table", footer.global_extent)):
            if table.end > end:
                raise CorruptFile(path, "footer", f"the {name} ends at byte {table.end}, the footer starts at {end}")
        if start > end:
            raise CorruptFile(path, "footer", f"column metadata starts at byte {start}, the footer at {end}")
        if num_buffers == 0:
            raise CorruptFile(path, "footer", "no global buffer, so no schema")
        return footer

    def encode(self) -> bytes:
        """Return the footer's bytes."""
        return _FOOTER.pack(
            self.column_metadata_start,
            self.column_table,
            self.global_buffer_table,
            self.num_global_buffers,
            self.num_columns,
            *self.version.footer,
            MAGIC,
        )

    @property
    def column_extent(self) -> Extent:
        """The column offset table."""
        return Extent(self.column_table, self.num_columns * _EXTENT.size)

    @property
    def global_extent(self) -> Extent:
        """The global buffer offset table."""
        return Extent(self.global_buffer_table, self.num_global_buffers * _EXTENT.size)


def encode_extents(extents: Iterable[Extent]) -> bytes:
    """Return an offset table's bytes."""
    return b"".join(_EXTENT.pack(extent.position, extent.size) for extent in extents)


def decode_extents(table: bytes, size_bytes: int, path: str, place: str) -> tuple[Extent, ...]:
    """Parse an offset table; raise `CorruptFile` for an entry that ends beyond the file."""
    extents = Extent.of_pairs(_EXTENT.iter_unpack(table))
    check_inside(extents, size_bytes, path, place)
    check_no_overlap([extent.size for extent in extents], size_bytes, path, f"{place} table")
    return extents


def check_no_overlap(sizes: Iterable[int], size_bytes: int, path: str, place: str) -> None:
    """Raise `CorruptFile` if parts of a file add up to more than the file: some of them overlap."""
    total = sum(sizes)
    if total > size_bytes:
        raise CorruptFile(path, place, f"parts of {total} bytes in a file of {size_bytes}: they overlap")


def check_inside(extents: Sequence[Extent], size_bytes: int, path: str, place: str) -> None:
    """Raise `CorruptFile` for an extent that ends beyond the file."""
    if max(map(sum, extents), default=0) <= size_bytes:
        return
    for index, (position, size) in enumerate(extents):
        if position + size > size_bytes:
            raise CorruptFile(path, f"{place} {index}", f"ends at byte {position + size} of a file of {size_bytes}")
