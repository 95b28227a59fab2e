"""Change bytes of files that carry checksums."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from random import Random

from lance_ops.file.checksums import find_table

__all__ = ["blob_bytes", "flipped_bits", "without_checksums"]

_MAGICS = (b"\xf1LOblk3\x01", b"\xf1LOxxh3\x01")


def without_checksums(data: bytes) -> bytes:
    """Return the file with its checksums unrecognisable, as a hostile writer would leave them out."""
    for magic in _MAGICS:
        at = data.rfind(magic)
        if at >= 0:
            data = data[:at] + b"--------" + data[at + len(magic) :]
    return data


def blob_bytes(sidecar: Path) -> int:
    """Return how many bytes of a sidecar are blobs and not checksums."""
    data = sidecar.read_bytes()
    table = find_table(data, len(data), str(sidecar), lambda start, stop: data[start:stop])
    return len(data) if table is None else table.section_ends[0]


def flipped_bits(data: bytes, count: int, seed: int) -> Iterator[tuple[int, bytes]]:
    """Yield copies of a file, each with one random bit flipped, and the position of the changed byte.

    A quarter of the flips are among the last 200 bytes, where footers and trailers are.
    """
    random = Random(seed)
    for number in range(count):
        lowest = max(0, len(data) - 200) if number % 4 == 3 else 0
        at = random.randrange(lowest, len(data))
        changed = bytearray(data)
        changed[at] ^= 1 << random.randrange(8)
        yield at, bytes(changed)
