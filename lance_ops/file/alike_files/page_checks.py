"""Verify the blocks of pages that are about to be read from several files.

A block is read and compared with its checksum once. The bytes that the caller needs are read afterwards, so a block
that is needed in part is not held in memory.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import groupby

from lance_ops.core.arrow import new_bytes
from lance_ops.core.errors import CorruptFile
from lance_ops.core.records import dataclass
from lance_ops.file.checksums import BLOCK_BYTES
from lance_ops.wire import digest_of_buffer

__all__ = ["FileParts", "PageChecks"]

_BLOCKS_AT_ONCE = 32
"""Blocks that are in memory together: 2 MiB."""

FileParts = list[tuple[int, list[tuple[int, int, int]]]]
"""For each file, by number, the parts to read: position in the file, size, place in the buffer."""


@dataclass(frozen=True, eq=False)
class PageChecks:
    """For each file: where its pages end, the checksums of their blocks, and the blocks that were verified.

    Of a file without checksums, `stated` has None.
    """

    path: str
    ends: Sequence[int]
    stated: Sequence[tuple[int, ...] | None]
    verified: Sequence[set[int]]

    def only(self, numbers: Sequence[int]) -> PageChecks:
        """Return the checks of some of the files. A block that they verify is verified here too."""
        parts = ([values[number] for number in numbers] for values in (self.ends, self.stated, self.verified))
        return PageChecks(self.path, *parts)  # type: ignore[arg-type]  # each part has its field's type

    def verify(self, ranges: Sequence[tuple[int, int, int]], read: Callable[[FileParts, memoryview], bool]) -> None:
        """Raise `CorruptFile` unless each block that a range touches has its checksum.

        A range is a file's number, the position of the first byte, and that after the last; ranges ascend. `read` reads
        parts of files, and returns whether it got them whole.
        """
        wanted = list(dict.fromkeys(self._unverified(ranges)))
        if not wanted:
            return
        view = memoryview(new_bytes(min(len(wanted), _BLOCKS_AT_ONCE) * BLOCK_BYTES))  # type: ignore[arg-type]  # an array is a buffer
        for first in range(0, len(wanted), _BLOCKS_AT_ONCE):
            self._verify(wanted[first : first + _BLOCKS_AT_ONCE], view, read)

    def _unverified(self, ranges: Sequence[tuple[int, int, int]]) -> Iterator[tuple[int, int]]:
        """Yield the file and the number of each block to verify."""
        for file, start, stop in ranges:
            if self.stated[file] is None:
                continue
            if stop > self.ends[file]:
                raise CorruptFile(self.path, "pages", "a page of this or another file lies behind the pages")
            verified = self.verified[file]
            for block in range(start // BLOCK_BYTES, -(-stop // BLOCK_BYTES)):
                if block not in verified:
                    yield file, block

    def _verify(
        self, blocks: Sequence[tuple[int, int]], view: memoryview, read: Callable[[FileParts, memoryview], bool]
    ) -> None:
        positions = ((file, block * BLOCK_BYTES) for file, block in blocks)
        parts = [
            (position, min(BLOCK_BYTES, self.ends[file] - position), place * BLOCK_BYTES)
            for place, (file, position) in enumerate(positions)
        ]
        by_file = groupby(zip(blocks, parts, strict=True), key=lambda each: each[0][0])
        if not read([(file, [part for _, part in own]) for file, own in by_file], view):
            raise CorruptFile(self.path, "read", "this or another file ended before its pages, or could not be read")
        for (file, block), (_, size, place) in zip(blocks, parts, strict=True):
            stated = self.stated[file]
            if stated is None or stated[block] != digest_of_buffer(view[place : place + size]):
                raise CorruptFile(self.path, "pages", "a block of this or another file does not have its checksum")
        for file, block in blocks:
            self.verified[file].add(block)
