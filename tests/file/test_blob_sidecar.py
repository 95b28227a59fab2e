"""Blob sidecars carry checksums behind their blobs; a verified read never returns changed bytes."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest

from lance_ops.core.errors import ChecksumMismatch
from lance_ops.file import FileSource, SidecarWriter, checksum_report, read_verified, verified_sidecar
from lance_ops.file.checksums import BLOCK_BYTES
from lance_ops.store import Store
from lance_ops.store.memory import MemoryStore
from tests.checksums import flipped_bits
from tests.file.streaming import StreamedStore

PATH = "data/file/1.blob"
SIZES = (70_000, 1, 200_000, 65_536, 99_999)


def blobs() -> list[bytes]:
    rng = np.random.default_rng(3)
    return [rng.bytes(size) for size in SIZES]


def sidecar_of(parts: list[bytes]) -> bytes:
    store = MemoryStore()
    with SidecarWriter(store.open_writer(PATH)) as writer:
        for part in parts:
            writer.write(part)
        assert writer.tell() == sum(map(len, parts))
    data: bytes = store.get(PATH).to_pybytes()
    return data


def store_of(data: bytes) -> MemoryStore:
    store = MemoryStore()
    store.put(PATH, data)
    return store


def read_all(store: Store) -> list[bytes]:
    """Read each blob on its own, the last one first."""
    source = verified_sidecar(store, PATH)
    ends = np.cumsum(SIZES).tolist()
    read = [source.read(end - size, end) for size, end in zip(reversed(SIZES), reversed(ends), strict=True)]
    return read[::-1]


def survey(count: int) -> Counter[str]:
    """Return how often a sidecar with a flipped bit gave the right blobs, other blobs, or an error."""
    wanted = blobs()
    data = sidecar_of(wanted)
    outcomes: Counter[str] = Counter()
    for at, changed in flipped_bits(data, count, seed=5):
        for store in (store_of(changed), StreamedStore(store_of(changed))):
            try:
                outcome = "right" if read_all(store) == wanted else f"silent at {at}"
            except ChecksumMismatch as error:
                outcome = "error" if PATH in str(error) else f"unnamed: {error}"
            outcomes[outcome] += 1
        report = checksum_report(store_of(changed), PATH)
        assert not report.has_checksums or any(start <= at < stop for start, stop in report.damaged), at
    return outcomes


def test_blobs_come_first_and_checksums_after_them() -> None:
    wanted = blobs()
    data = sidecar_of(wanted)
    assert data.startswith(b"".join(wanted))
    assert len(data) - sum(SIZES) < 200
    assert read_all(store_of(data)) == wanted
    report = checksum_report(store_of(data), PATH)
    assert report.has_checksums and not report.damaged
    assert report.num_blocks == -(-sum(SIZES) // BLOCK_BYTES) + 2  # a block of checksums, and the trailer


def test_a_flipped_bit_gives_the_right_blobs_or_a_typed_error() -> None:
    outcomes = survey(20)
    assert set(outcomes) <= {"right", "error"}
    assert outcomes["error"] > 20


@pytest.mark.soak
def test_many_flipped_bits_give_the_right_blobs_or_a_typed_error() -> None:
    assert set(survey(400)) <= {"right", "error"}


def test_a_verified_read_digests_only_the_blocks_of_its_blob() -> None:
    data = bytearray(sidecar_of(blobs()))
    data[-300_000] ^= 1
    source = verified_sidecar(store_of(bytes(data)), PATH)
    assert source.read(0, SIZES[0]) == blobs()[0]
    with pytest.raises(ChecksumMismatch, match=r"1\.blob: bytes"):
        source.read(0, sum(SIZES))


def test_a_read_that_does_not_verify_asks_for_no_checksums() -> None:
    store = StreamedStore(store_of(sidecar_of(blobs())))
    assert FileSource(store, PATH).read(0, SIZES[0]) == blobs()[0]
    assert store.reads == [(0, SIZES[0])]


@pytest.mark.parametrize("before", [b"", b"another blob", bytes(BLOCK_BYTES)])
def test_a_sidecar_without_checksums_whose_last_blob_is_a_sidecar_with_them_is_intact(before: bytes) -> None:
    inner = sidecar_of(blobs())
    store = store_of(before + inner)
    report = checksum_report(store, PATH)
    assert (report.has_checksums, report.damaged) == (not before, ())
    source = verified_sidecar(store, PATH)
    assert source.read(0, len(before + inner)) == before + inner
    assert b"".join(part.to_pybytes() for part in read_verified(store, PATH)) == before + inner


def test_a_copy_of_a_damaged_sidecar_is_refused() -> None:
    data = bytearray(sidecar_of(blobs()))
    data[150_000] ^= 1
    with pytest.raises(ChecksumMismatch):
        list(read_verified(store_of(bytes(data)), PATH))


def test_an_aborted_sidecar_leaves_nothing() -> None:
    store = MemoryStore()
    writer = SidecarWriter(store.open_writer(PATH))
    writer.write(b"some")
    writer.abort()
    assert not store.exists(PATH)
