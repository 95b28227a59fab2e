"""Write blob sidecars with the checksums of their blocks, and read them as sources that verify.

The checksums stand after the blobs, where `file/checksums/block_table.py` says. A reader that does not verify makes no
request for them.
"""

from __future__ import annotations

from lance_ops.file.checksums import BlockChecks, ChecksumWriter, find_table
from lance_ops.file.page_reading import FileSource
from lance_ops.store import BytesLike, Store, StoreWriter

__all__ = ["SidecarWriter", "verified_sidecar"]

_TAIL_BYTES = 4 << 10
"""The last bytes of a sidecar. They hold its trailer, and the second section's checksums up to 253 GiB of blobs."""


class SidecarWriter(StoreWriter):
    """A sidecar being written; `close` ends it with its checksums."""

    def __init__(self, sink: StoreWriter) -> None:
        self._sink = sink
        self._checksums = ChecksumWriter(sink)
        self._is_open = True

    def write(self, data: BytesLike) -> None:
        self._checksums.write(data)

    def tell(self) -> int:
        return self._checksums.tell()

    def close(self) -> None:
        if self._is_open:
            self._is_open = False
            self._checksums.end_pages()
            self._checksums.finish(b"", b"")
        self._sink.close()

    def abort(self) -> None:
        self._is_open = False
        self._sink.abort()


def verified_sidecar(store: Store, path: str) -> FileSource:
    """Return a sidecar as a source that verifies what it reads; one without checksums is read as it is.

    Raises `ObjectNotFound`, and `ChecksumMismatch` if the checksums themselves have changed.
    """
    source, tail = FileSource.with_tail(store, path, None, _TAIL_BYTES)
    table = find_table(tail, source.size_bytes, source.name, source.read)
    return source if table is None else source.with_checks(BlockChecks(source.name, table))
