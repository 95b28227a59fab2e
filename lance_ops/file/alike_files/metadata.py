"""The metadata of small files that one kernel parses: a table of numbers for the files, and one for each column.

The kernel and this module make the checks of `ContainerFile`, `BlockChecks` and `decode_column`. Whatever does not pass
them is left to those, which name the file and the reason.
"""

from __future__ import annotations

import struct

import numpy as np

from lance_ops import kernels
from lance_ops.core.ndarrays import Int64Array, Uint8Array, Uint64Array
from lance_ops.core.records import dataclass
from lance_ops.file.alike_files.page_checks import PageChecks
from lance_ops.file.checksums import BLOCK_BYTES
from lance_ops.kernels import read_only
from lance_ops.wire import digest_of, digest_of_buffer

__all__ = ["FileTable", "PageTable"]

_DIGEST_BYTES = 8
_SECTION_ENDS = struct.Struct("<QQ")
"""What follows the digest in the trailer of checksums: the ends of the pages and of their checksums."""


@dataclass(frozen=True, eq=False)
class FileTable:
    """The ends of files in `data`: byte `p` of file `i` is at `starts[i] + p`, and the file has `sizes[i]` bytes.

    Row `i` of `facts` has what `kernels.read_file_ends` returns for it.
    """

    data: Uint8Array
    starts: Int64Array
    sizes: Int64Array
    facts: Int64Array

    @classmethod
    def parse(cls, data: Uint8Array, starts: Int64Array, sizes: Int64Array, skipped: Int64Array) -> FileTable | None:
        """Parse the ends of the files; None if a file is not as the first one, or fails a check.

        The first `skipped[i]` bytes of file `i` are not in `data`.
        """
        facts = np.zeros((len(starts), kernels.FILE_FACTS), np.int64)
        places = read_only(data), read_only(starts), read_only(sizes)
        if kernels.read_file_ends(*places, read_only(skipped), facts.reshape(-1)) < len(starts):
            return None
        table = cls(*places, facts)
        return table if table._has_its_checksums() else None

    @property
    def numbers(self) -> tuple[int, int]:
        """The version in the footers, as (major, minor)."""
        return int(self.facts[0, 0]), int(self.facts[0, 1])

    @property
    def num_columns(self) -> int:
        """The number of columns of each file."""
        return int(self.facts[0, 2])

    @property
    def description(self) -> bytes:
        """The encoded schema of the files."""
        start, size = self.facts[0, 4:6].tolist()
        return self.data[start : start + size].tobytes()

    @property
    def num_rows(self) -> Int64Array:
        """The number of rows of each file."""
        rows: Int64Array = self.facts[:, 6]
        return rows

    def parse_pages(self, columns: list[int]) -> list[PageTable] | None:
        """Parse the metadata of columns; None if one of them does not have one page in each file, or fails a check."""
        pages = np.zeros((len(columns), len(self.starts), kernels.PAGE_FACTS), np.int64)
        wanted = read_only(np.array(columns, np.int64))
        places = self.data, self.starts, self.sizes, read_only(self.facts.reshape(-1)), wanted
        if kernels.read_single_pages(*places, pages.reshape(-1)) < len(self.starts):
            return None
        return [PageTable(self, facts) for facts in pages]

    def has_verified_pages(self) -> bool:
        """Return whether each block before the metadata has its checksum, in files that have checksums.

        The files must be in `data` whole.
        """
        view = memoryview(self.data)  # type: ignore[arg-type]  # an array is a buffer
        for (has_checksums, sums, trailer), start in zip(
            self.facts[:, 8:11].tolist(), self.starts.tolist(), strict=True
        ):
            if has_checksums:
                pages, table = (start + end for end in _SECTION_ENDS.unpack_from(view, trailer + _DIGEST_BYTES))
                if not (_have_checksums(view, pages, table, sums) and _have_checksums(view, start, pages, pages)):
                    return False
        return True

    def page_checks(self, skipped: Int64Array, path: str) -> PageChecks | None:
        """Return what verifies the pages of files whose first `skipped[i]` bytes are not in `data`.

        Returns None if the checksums of pages are among these bytes, or do not have their own checksums.
        """
        view = memoryview(self.data)  # type: ignore[arg-type]  # an array is a buffer
        ends, stated = [], list[tuple[int, ...] | None]()
        for (has_checksums, sums, trailer), start, first in zip(
            self.facts[:, 8:11].tolist(), self.starts.tolist(), skipped.tolist(), strict=True
        ):
            pages, table = _SECTION_ENDS.unpack_from(view, trailer + _DIGEST_BYTES) if has_checksums else (0, 0)
            if has_checksums and (pages < first or not _have_checksums(view, start + pages, start + table, sums)):
                return None
            num_blocks = -(-pages // BLOCK_BYTES)
            ends.append(pages)
            stated.append(struct.unpack_from(f"<{num_blocks}Q", view, start + pages) if has_checksums else None)
        return PageChecks(path, ends, stated, [set() for _ in ends])

    def _has_its_checksums(self) -> bool:
        """Return whether the metadata of each file that has checksums has its own."""
        view = memoryview(self.data)  # type: ignore[arg-type]  # an array is a buffer
        ends, starts = self.starts + self.sizes, self.starts + self.facts[:, 7]
        stated: Uint64Array = self.facts[:, [11, 13]].view(np.uint64)
        rows = zip(
            self.facts[:, 8:11].tolist(),
            ends.tolist(),
            starts.tolist(),
            self.facts[:, 12].tolist(),
            stated.tolist(),
            strict=True,
        )
        for (has_checksums, sums, trailer), end, start, stop, (of_trailer, of_metadata) in rows:
            if has_checksums and (
                of_trailer != digest_of(view[sums:trailer], view[trailer + 8 : end])
                or of_metadata != digest_of_buffer(view[start:stop])
            ):
                return False
        return True


def _have_checksums(view: memoryview, start: int, stop: int, stated_at: int) -> bool:
    """Return whether each block from `start` to `stop` has the checksum that is stated from `stated_at` on."""
    starts = range(start, stop, BLOCK_BYTES)
    found = [digest_of_buffer(view[at : min(at + BLOCK_BYTES, stop)]) for at in starts]
    return struct.unpack_from(f"<{len(found)}Q", view, stated_at) == (*found,)


@dataclass(frozen=True, eq=False)
class PageTable:
    """The only page of one column in each file. Row `i` of `facts` has what `kernels.read_single_pages` returns."""

    files: FileTable
    facts: Int64Array

    @property
    def lengths(self) -> Int64Array:
        """The number of elements in each page."""
        lengths: Int64Array = self.facts[:, 0]
        return lengths

    @property
    def num_buffers(self) -> Int64Array:
        """The number of buffers of each page."""
        counts: Int64Array = self.facts[:, 3]
        return counts

    @property
    def column_encoding(self) -> bytes:
        """The encoded `Encoding` message of the column, the same in all files."""
        start, size = self.facts[0, 4:6].tolist()
        return self.files.data[start : start + size].tobytes()

    def encodings(self) -> list[bytes]:
        """Return the encoded `Any` message that describes each page."""
        view = memoryview(self.files.data)  # type: ignore[arg-type]  # an array is a buffer
        return [bytes(view[start : start + size]) for start, size in self.facts[:, 1:3].tolist()]

    def buffer(self, index: int) -> tuple[Int64Array, Int64Array]:
        """Return where in its file a buffer of each page begins, and its size."""
        return self.facts[:, 6 + 2 * index], self.facts[:, 7 + 2 * index]

    def extents(self, page: int) -> list[tuple[int, int]]:
        """Return the position in its file, and the size, of each buffer of one page."""
        buffers = self.facts[page, 6:].reshape(-1, 2)
        return [(position, size) for position, size in buffers[: self.facts[page, 3]].tolist()]
