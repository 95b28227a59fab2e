"""Compare a whole file with its checksums, in bounded memory: to report damage, or while it is copied."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pyarrow as pa

from lance_ops.core.errors import ChecksumMismatch, CorruptFile
from lance_ops.core.ndarrays import BoolArray, Uint64Array
from lance_ops.file.checksums.block_checks import BlockChecks
from lance_ops.file.checksums.block_table import (
    BLOCK_BYTES,
    Blocks,
    BlockTable,
    decode_checksums,
    find_table,
)
from lance_ops.store import Store, merge_touching
from lance_ops.wire import MAGIC, ChecksumReport, digest_of_buffer

__all__ = ["checksum_report", "copy_verified", "read_verified"]

_TAIL_BYTES = 64 << 10
_BLOCKS_AT_ONCE = 128
_PART_BYTES = 1024 * BLOCK_BYTES


def checksum_report(store: Store, path: str, size_bytes: int | None = None) -> ChecksumReport:
    """Return which bytes of a data file, index file or sidecar do not have their checksum.

    `size_bytes` is the file's size if it is known. If the end of the file is damaged, nothing else can be compared, and
    the report names only the end. Raises `ObjectNotFound` and `StoreError` as the store does, and `CorruptFile` for a
    file that is shorter than `size_bytes`.
    """
    size = size_bytes or store.size(path)
    file = _File(store, path)
    tail = file.read(max(0, size - _TAIL_BYTES), size)
    try:
        table = find_table(tail, size, store.uri_of(path), file.read)
    except ChecksumMismatch as mismatch:
        return ChecksumReport(True, 1, ((mismatch.start, mismatch.stop),))
    if table is None:
        return ChecksumReport(False)
    return _compare(file, table)


def copy_verified(
    source: Store, path: str, target: Store, target_path: str, *, must_be_lance: bool = False, durable: bool = True
) -> int:
    """Copy a file, perhaps to another store, and return its size in bytes; `durable` is as for `Store.put`.

    Raises as `read_verified` does, and then writes nothing.
    """
    size = 0
    with target.open_writer(target_path, durable=durable) as writer:
        for part in read_verified(source, path, must_be_lance=must_be_lance):
            writer.write(part)
            size += len(part)
    return size


def read_verified(store: Store, path: str, *, must_be_lance: bool = False) -> Iterator[pa.Buffer]:
    """Yield all bytes of a file in parts, in order; a file without checksums is read as it is.

    Raises `ChecksumMismatch` before it yields a changed byte. With `must_be_lance` it raises `CorruptFile` before it
    yields a byte of a file that does not end like a Lance file. The end of the file, which is as large as the file's
    metadata, is in memory at once.
    """
    name, size, file = store.uri_of(path), store.size(path), _File(store, path)
    tail = file.read(max(0, size - _TAIL_BYTES), size)
    if must_be_lance and not tail.endswith(MAGIC):
        raise CorruptFile(name, "footer", f"ends with {tail[-len(MAGIC) :]!r}, not {MAGIC!r}: not a Lance file")
    table = find_table(tail, size, name, file.read)
    pages_end = 0 if table is None else table.section_ends[0]
    if table is None:
        for start in range(0, size, _PART_BYTES):
            yield store.get_range(path, start, min(start + _PART_BYTES, size))
        return
    end = file.read(pages_end, size)
    checks = BlockChecks(name, table)

    def from_end(start: int, stop: int) -> bytes:
        return end[start - pages_end : stop - pages_end]

    def check(data: pa.Buffer | bytes, start: int) -> None:
        blocks = checks.unverified(np.array([start]), np.array([start + len(data)]))
        checks.verify(blocks, np.frombuffer(data, np.uint8), blocks.starts - start, from_end)

    check(end, pages_end)
    for start in range(0, pages_end, _PART_BYTES):
        part = store.get_range(path, start, min(start + _PART_BYTES, pages_end))
        check(part, start)
        yield part
    yield pa.py_buffer(end)


class _File:
    """One file of a store."""

    def __init__(self, store: Store, path: str) -> None:
        self._store = store
        self._path = path

    def read(self, start: int, stop: int) -> bytes:
        """Return the bytes of a range."""
        data: bytes = self._store.get_range(self._path, start, stop).to_pybytes()
        return data

    def differs(self, blocks: Blocks, stated: Uint64Array) -> BoolArray:
        """Return for each block whether its bytes do not have the stated checksum."""
        found: list[int] = []
        for first in range(0, len(blocks), _BLOCKS_AT_ONCE):
            part = slice(first, first + _BLOCKS_AT_ONCE)
            ranges = list(zip(blocks.starts[part].tolist(), blocks.stops[part].tolist(), strict=True))
            found += map(digest_of_buffer, self._store.get_ranges(self._path, ranges))
        different: BoolArray = np.array(found, np.uint64) != stated
        return different


def _compare(file: _File, table: BlockTable) -> ChecksumReport:
    """Compare the blocks of all sections. Page blocks whose own checksum is in a damaged block are left out."""
    pages_end, _, metadata_end = table.section_ends
    others = table.blocks_of(np.array([pages_end]), np.array([metadata_end]))
    wrong = others.at(file.differs(others, table.checksums))
    pages = table.blocks_of(np.array([0]), np.array([pages_end]))
    stated = decode_checksums(file.read(*table.page_checksums_extent))
    tables = table.num_page_blocks + pages.numbers * stated.itemsize // BLOCK_BYTES
    is_known = ~np.isin(tables, wrong.numbers)
    pages, stated = pages.at(is_known), stated[is_known]
    wrong_pages = pages.at(file.differs(pages, stated))
    starts, stops = (
        np.concatenate(both) for both in ((wrong_pages.starts, wrong.starts), (wrong_pages.stops, wrong.stops))
    )
    starts, stops = merge_touching(starts, stops)
    damaged = tuple(zip(starts.tolist(), stops.tolist(), strict=True))
    return ChecksumReport(True, len(pages) + len(others) + 1, damaged)
