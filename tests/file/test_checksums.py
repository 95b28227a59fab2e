"""Checksums of data files: every block has one, a reader that verifies never returns changed bytes."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from functools import partial

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lance_ops.core.errors import ChecksumMismatch, CorruptFile, UnsupportedFeature
from lance_ops.core.schema import Schema
from lance_ops.core.versions import FileVersion
from lance_ops.file import FileRows, RowSlice, checksum_report, read_files_together
from lance_ops.file.checksums import BLOCK_BYTES, ChecksumWriter, block_checks, find_table
from lance_ops.file.reader import FileReader
from lance_ops.file.writer import FileWriter
from lance_ops.store import Store
from lance_ops.store.memory import MemoryStore
from lance_ops.wire import digest_of_buffer
from tests.checksums import flipped_bits, without_checksums
from tests.file.streaming import StreamedStore

PATH = "file.lance"
VERSIONS = list(FileVersion)
each_version = pytest.mark.parametrize("version", VERSIONS, ids=lambda version: version.value)


def table(num_rows: int = 12_000, version: FileVersion = FileVersion.V2_2) -> pa.Table:
    """Return rows whose file has pages of several layouts and several blocks; 0.1 files have no nulls."""
    missing: list[int] | None = [] if version is FileVersion.V0_1 else None
    rng = np.random.default_rng(7)
    return pa.table(
        {
            "id": pa.array(rng.permutation(num_rows)),
            "x": pa.array(rng.normal(size=num_rows)),
            "text": pa.array([f"row {i * 7919 % 10_007}" for i in range(num_rows)]),
            "list": pa.array([[i, i * i] if i % 5 else missing for i in range(num_rows)]),
            "vector": pa.array(rng.normal(size=(num_rows, 4)).astype(np.float32).tolist(), pa.list_(pa.float32(), 4)),
        }
    )


def file_of(rows: pa.Table, version: FileVersion, page_bytes: int | None = 60_000) -> bytes:
    store = MemoryStore()
    with FileWriter(store, PATH, Schema.from_arrow(rows.schema), version, page_bytes=page_bytes) as writer:
        writer.write_batch(rows)
    data: bytes = store.get(PATH).to_pybytes()
    return data


def store_of(data: bytes) -> MemoryStore:
    store = MemoryStore()
    store.put(PATH, data)
    return store


def scan(store: Store) -> pa.Table:
    return FileReader(store, PATH).verifying().read()


def scan_in_threads(store: Store) -> pa.Table:
    return FileReader(store, PATH).verifying().read(threads=4)


def scan_in_batches(store: Store) -> pa.Table:
    return pa.Table.from_batches(FileReader(store, PATH).verifying().iter_batches(batch_rows=5000))


def scan_by_takes(store: Store) -> pa.Table:
    reader = FileReader(store, PATH).verifying()
    step = max(1, reader.num_rows // 7)
    parts = [reader.take(None, range(start, min(start + step, reader.num_rows))) for start in range(0, 12_000, step)]
    return pa.concat_tables(parts)


def scan_with_others(store: Store) -> pa.Table:
    reader = FileReader(store, PATH).verifying()
    if reader.version < FileVersion.V2_1 or not reader.is_in_place:
        return reader.read()
    return read_files_together([FileRows(reader, RowSlice(0, reader.num_rows))], reader.schema)


def streamed(store: MemoryStore, read: Callable[[Store], pa.Table]) -> pa.Table:
    return read(StreamedStore(store))


WAYS: dict[str, Callable[[MemoryStore], pa.Table]] = {
    "mapped": scan,
    "in threads": scan_in_threads,
    "in batches": scan_in_batches,
    "by takes": scan_by_takes,
    "with others": scan_with_others,
    "fetched": partial(streamed, read=scan),
    "fetched by takes": partial(streamed, read=scan_by_takes),
}


def survey(version: FileVersion, ways: dict[str, Callable[[MemoryStore], pa.Table]], count: int) -> Counter[str]:
    """Return how often a file with a flipped bit gave the right rows, the wrong rows, or an error."""
    rows = table(version=version)
    data = file_of(rows, version)
    outcomes: Counter[str] = Counter()
    for name, read in ways.items():
        assert read(store_of(data)).equals(rows), name
        for at, changed in flipped_bits(data, count, seed=len(name)):
            try:
                outcome = "right" if read(store_of(changed)).equals(rows) else "silent"
            except (CorruptFile, UnsupportedFeature) as error:
                outcome = "error" if PATH in str(error) else "error without a name"
            outcomes[outcome] += 1
            report = checksum_report(store_of(changed), PATH)
            assert not report.has_checksums or any(start <= at < stop for start, stop in report.damaged), at
    return outcomes


@each_version
def test_a_flipped_bit_gives_the_right_rows_or_a_typed_error_however_the_file_is_read(version: FileVersion) -> None:
    outcomes = survey(version, WAYS, 6)
    assert set(outcomes) <= {"right", "error"}
    assert outcomes["error"] > 30


@pytest.mark.soak
@each_version
def test_many_flipped_bits_give_the_right_rows_or_a_typed_error(version: FileVersion) -> None:
    assert set(survey(version, WAYS, 60)) <= {"right", "error"}


@each_version
def test_the_survey_notices_wrong_rows_that_nothing_verifies(version: FileVersion) -> None:
    def unverified(store: MemoryStore) -> pa.Table:
        return FileReader(store, PATH).read()

    assert survey(version, {"unverified": unverified}, 40)["silent"] > 5


@each_version
def test_an_error_names_the_file_the_block_and_what_to_do(version: FileVersion) -> None:
    data = bytearray(file_of(table(version=version), version))
    data[BLOCK_BYTES + 5] ^= 1
    with pytest.raises(CorruptFile, match=r"file\.lance: bytes 65536 to 131072: .*lance-ops verify"):
        scan(store_of(bytes(data)))
    report = checksum_report(store_of(bytes(data)), PATH)
    assert report.damaged == ((BLOCK_BYTES, 2 * BLOCK_BYTES),)
    assert report.num_blocks > 4


@each_version
def test_rows_of_intact_blocks_are_read_from_a_damaged_file(version: FileVersion) -> None:
    rows = table(version=version)
    data = bytearray(file_of(rows, version))
    data[5] ^= 1
    reader = FileReader(store_of(bytes(data)), PATH).verifying()
    last = Schema((reader.schema.fields[-1],))
    assert reader.take(last, [11_999]).column(0).to_pylist() == rows.slice(11_999).column(4).to_pylist()
    with pytest.raises(CorruptFile, match="bytes 0 to 65536"):
        reader.read()


@each_version
def test_a_file_without_checksums_is_unverified_and_reads_as_before(version: FileVersion) -> None:
    rows = table(100, version)
    data = without_checksums(file_of(rows, version))
    reader = FileReader(store_of(data), PATH)
    assert not reader.has_checksums
    assert reader.verifying().read().equals(rows)
    assert checksum_report(store_of(data), PATH).has_checksums is False


@pytest.mark.parametrize("version", VERSIONS[1:], ids=lambda version: version.value)
def test_checksums_cost_no_read_when_a_file_is_opened(version: FileVersion) -> None:
    rows = table(60_000)
    data = file_of(rows, version, page_bytes=None)
    counts = []
    for content in (data, without_checksums(data)):
        store = StreamedStore(store_of(content))
        FileReader(store, PATH).load(Schema.from_arrow(rows.schema))
        counts.append(len(store.reads))
    assert len(data) > 2 * BLOCK_BYTES
    assert counts == [1, 1]


def test_a_read_that_does_not_verify_fetches_the_same_ranges_as_without_checksums() -> None:
    rows = table(60_000)
    data = file_of(rows, FileVersion.V2_2, page_bytes=None)
    reads = []
    for content in (data, without_checksums(data)):
        store = StreamedStore(store_of(content))
        FileReader(store, PATH).take(None, [5, 50_000])
        reads.append(store.reads)
    assert reads[0] == reads[1]


def test_a_verified_read_fetches_whole_blocks_and_the_checksums_once() -> None:
    data = file_of(table(60_000), FileVersion.V2_2, page_bytes=None)
    store = StreamedStore(store_of(data))
    reader = FileReader(store, PATH).verifying()
    wanted = Schema((reader.schema.fields[1],))
    reader.take(wanted, [5])
    opened = len(store.reads)
    store.reads.clear()
    reader.take(wanted, [9])
    assert 0 < len(store.reads) < opened
    assert all(start % BLOCK_BYTES == 0 and stop - start <= 2 * BLOCK_BYTES for start, stop in store.reads)


def test_a_block_in_place_is_digested_once_in_a_scan(monkeypatch: pytest.MonkeyPatch) -> None:
    data = file_of(table(60_000), FileVersion.V2_2)
    reader = FileReader(store_of(data), PATH).verifying()
    digested: list[int] = []

    def counted(view: memoryview) -> int:
        digested.append(len(view))
        return digest_of_buffer(view)

    monkeypatch.setattr(block_checks, "digest_of_buffer", counted)
    for _ in reader.iter_batches(batch_rows=1000):
        pass
    assert sum(digested) <= len(data)
    assert sum(digested) > len(data) - 2 * BLOCK_BYTES
    digested.clear()
    reader.verifying().read()
    assert sum(digested) > len(data) - 2 * BLOCK_BYTES, "a new reader verifies anew"


@given(st.lists(st.integers(0, 3 * BLOCK_BYTES), max_size=8), st.integers(0, 2 * BLOCK_BYTES))
@settings(max_examples=30, deadline=None)
def test_any_pieces_make_the_checksums_of_their_concatenation(sizes: list[int], metadata_bytes: int) -> None:
    rng = np.random.default_rng(sum(sizes))
    pieces = [rng.integers(0, 256, size, np.uint8).tobytes() for size in sizes]
    metadata, footer = rng.integers(0, 256, metadata_bytes, np.uint8).tobytes(), bytes(36) + b"LANC"
    files = []
    for parts in (pieces, [b"".join(pieces)]):
        store = MemoryStore()
        with store.open_writer(PATH) as sink:
            writer = ChecksumWriter(sink)
            for part in parts:
                writer.write(part)
            assert writer.end_pages() % 64 == 0
            writer.finish(metadata, footer)
        files.append(store.get(PATH).to_pybytes())
        report = checksum_report(store, PATH)
        assert report.has_checksums and not report.damaged
    assert files[0] == files[1]
    assert files[0].startswith(b"".join(pieces)) and files[0].endswith(footer)


def test_a_trailer_that_lies_about_sizes_is_corrupt() -> None:
    data = bytearray(file_of(table(100), FileVersion.V2_2))
    for at in range(len(data) - 72, len(data) - 48):  # the ends of the sections
        for bit in (0, 7):
            changed = bytearray(data)
            changed[at] ^= 1 << bit
            with pytest.raises(ChecksumMismatch):
                FileReader(store_of(bytes(changed)), PATH)


def test_a_report_does_not_blame_pages_whose_checksum_is_damaged() -> None:
    data = file_of(table(), FileVersion.V2_2)
    found = find_table(data, len(data), PATH, lambda start, stop: data[start:stop])
    assert found is not None
    start, _ = found.page_checksums_extent
    changed = bytearray(data)
    changed[start + 9] ^= 4
    report = checksum_report(store_of(bytes(changed)), PATH)
    assert report.damaged == (found.section_ends[:2],)
