"""Compare blocks of a file with their checksums before a reader uses them."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from lance_ops.core.errors import ChecksumMismatch
from lance_ops.core.ndarrays import Int64Array, Uint8Array, Uint64Array
from lance_ops.file.checksums.block_table import BLOCK_BYTES, Blocks, BlockTable, decode_checksums
from lance_ops.wire import digest_of_buffer

__all__ = ["BlockChecks"]


class BlockChecks:
    """Verifies blocks of one file, and remembers which blocks it has verified.

    Several threads may share it. Two of them may verify the same block, which does no harm.
    """

    def __init__(self, path: str, table: BlockTable) -> None:
        self._path = path
        self._table = table
        self._page_checksums: list[Uint64Array] = []
        """One item, the checksums of the first section, once they were needed. `anew` shares the list."""
        self._is_verified = np.zeros(table.num_blocks, np.bool_)

    def anew(self, path: str) -> BlockChecks:
        """Return checks of the same bytes, of a file named `path`, that have verified nothing yet."""
        checks = BlockChecks(path, self._table)
        checks._page_checksums = self._page_checksums
        return checks

    def blocks_of(self, starts: Int64Array, stops: Int64Array) -> Blocks:
        """Return the blocks that hold any byte of these ranges."""
        return self._table.blocks_of(starts, stops)

    def unverified(self, starts: Int64Array, stops: Int64Array) -> Blocks:
        """Return the blocks that hold any byte of these ranges and were not verified yet."""
        blocks = self._table.blocks_of(starts, stops)
        missing = ~self._is_verified[blocks.numbers]
        return blocks if missing.all() else blocks.at(missing)

    def verify(self, blocks: Blocks, data: Uint8Array, places: Int64Array, read: Callable[[int, int], bytes]) -> None:
        """Raise `ChecksumMismatch` unless each block has its checksum; block `i` begins at `data[places[i]]`.

        `read` reads the checksums of pages when they are first needed; what it returns is verified too.
        """
        if not len(blocks):
            return
        view = memoryview(data)  # type: ignore[arg-type]  # an array is a buffer
        stops = places + (blocks.stops - blocks.starts)
        found = [digest_of_buffer(view[at:stop]) for at, stop in zip(places.tolist(), stops.tolist(), strict=True)]
        wrong = np.flatnonzero(self._stated(blocks, read) != np.array(found, np.uint64))
        if len(wrong):
            raise ChecksumMismatch(self._path, int(blocks.starts[wrong[0]]), int(blocks.stops[wrong[0]]))
        self._is_verified[blocks.numbers] = True

    def trusted_part(self, tail: bytes, size_bytes: int) -> bytes:
        """Verify the metadata blocks that lie wholly in `tail`, and return the tail from the first of them on.

        `tail` is a file's last bytes. If no block lies wholly in it, only what stands after the metadata is returned.
        The bytes before the returned ones are unverified: the caller must read them again, with a check.
        """
        tail_start = size_bytes - len(tail)
        start, stop = self._table.section_ends[1:]
        first = start + max(0, -(-(tail_start - start) // BLOCK_BYTES)) * BLOCK_BYTES
        number, view = self._table.num_blocks - -(-(stop - first) // BLOCK_BYTES), memoryview(tail)
        for begin in range(first, stop, BLOCK_BYTES):  # numpy takes longer for the single block of most files
            end = min(begin + BLOCK_BYTES, stop)
            found = digest_of_buffer(view[begin - tail_start : end - tail_start])
            if found != self._table.checksums[number - self._table.num_page_blocks]:
                raise ChecksumMismatch(self._path, begin, end)
            self._is_verified[number] = True
            number += 1
        return tail[max(0, min(first, stop) - tail_start) :]

    def _stated(self, blocks: Blocks, read: Callable[[int, int], bytes]) -> Uint64Array:
        """Return the checksums that the file states for these blocks."""
        num_pages = self._table.num_page_blocks
        of_pages = blocks.numbers < num_pages
        if not of_pages.any():
            return self._table.checksums[blocks.numbers - num_pages]
        if not self._page_checksums:
            self._page_checksums.append(decode_checksums(read(*self._table.page_checksums_extent)))
        page_checksums = self._page_checksums[0]
        if of_pages.all():
            return page_checksums[blocks.numbers]
        return np.concatenate([page_checksums, self._table.checksums])[blocks.numbers]
