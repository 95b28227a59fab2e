"""Digest the blocks of a file while it is written, and write their checksums into it."""

from __future__ import annotations

from lance_ops.file.checksums.block_table import BLOCK_BYTES, encode_checksums, encode_trailer
from lance_ops.store import BytesLike, StoreWriter
from lance_ops.wire import digests_of_parts, start_digest

__all__ = ["ChecksumWriter"]

_ALIGNMENT = 64


class ChecksumWriter:
    """The sink of a data file or blob sidecar: passes bytes on, and ends the file with its checksums and its footer.

    The caller writes the first section by `write`, then calls `end_pages`, then `finish`.
    """

    def __init__(self, sink: StoreWriter) -> None:
        self._sink = sink
        self._checksums: list[int] = []
        self._open_block = start_digest()
        self._open_bytes = 0
        self._page_table = b""
        self._pages_end = 0

    def tell(self) -> int:
        """Return the number of bytes written so far."""
        return self._sink.tell()

    def write(self, data: BytesLike) -> None:
        """Append bytes to the first section."""
        view = memoryview(data)
        if view.nbytes < BLOCK_BYTES - self._open_bytes:  # most writes of small files
            self._open_block.update(view)
            self._open_bytes += view.nbytes
            self._sink.write(view)
            return
        if view.ndim != 1 or view.format != "B":
            view = view.cast("B")
        self._digest(view)
        self._sink.write(view)

    def end_pages(self) -> int:
        """End the first section, and return where the metadata begins. It begins at a multiple of 64."""
        if self._open_bytes:
            self._close_block()
        self._pages_end = self.tell()
        table = encode_checksums(self._checksums)
        self._page_table = table + bytes(-(self._pages_end + len(table)) % _ALIGNMENT)
        return self._pages_end + len(self._page_table)

    def finish(self, metadata: bytes, footer: bytes) -> None:
        """Write the other sections and the end of the file in one call."""
        table_end = self._pages_end + len(self._page_table)
        parts = (memoryview(part) for part in (self._page_table, metadata))
        checksums = encode_checksums([digest for part in parts for digest in digests_of_parts(part, BLOCK_BYTES)])
        trailer = encode_trailer((self._pages_end, table_end, table_end + len(metadata)), checksums, footer)
        self._sink.write(b"".join((self._page_table, metadata, checksums, trailer, footer)))

    def _digest(self, part: memoryview) -> None:
        """Digest bytes of the first section: the rest of the open block, whole blocks, and the start of another."""
        at = min(-self._open_bytes % BLOCK_BYTES, len(part))
        if at:
            self._open_block.update(part[:at])
            self._open_bytes += at
        if self._open_bytes == BLOCK_BYTES:
            self._close_block()
        whole_end = len(part) - (len(part) - at) % BLOCK_BYTES
        self._checksums += digests_of_parts(part[at:whole_end], BLOCK_BYTES)
        if whole_end < len(part):
            self._open_block.update(part[whole_end:])
            self._open_bytes = len(part) - whole_end

    def _close_block(self) -> None:
        self._checksums.append(self._open_block.intdigest())
        self._open_block.reset()
        self._open_bytes = 0
