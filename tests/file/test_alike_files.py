"""Files of one schema are opened together with the checks of files that are opened one by one."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pyarrow as pa
import pytest

from lance_ops.core.schema import Schema
from lance_ops.core.versions import FileVersion
from lance_ops.errors import CorruptFile, LanceOpsError
from lance_ops.file import AlikeFiles, FileReader, FileWriter, RowSelection, RowSet, RowSlice
from lance_ops.file.alike_files import alike_files, page_checks
from lance_ops.file.checksums import BLOCK_BYTES, find_table
from lance_ops.file.page_reading import Steps
from lance_ops.file.v2_1.layouts import JoinedPages, LeafRows
from lance_ops.store import MemoryStore
from lance_ops.wire import digest_of_buffer

LENGTHS = (70, 1, 333, 20, 20)


def _rows(first: int, count: int) -> pa.Table:
    rng = np.random.default_rng(first)
    numbers = rng.integers(0, 1 << 40, count)
    return pa.table(
        {
            "number": pa.array(numbers, mask=rng.random(count) < 0.2),
            "id": np.arange(first, first + count),
            "text": [f"row {number}" for number in numbers.tolist()],
            "flag": rng.random(count) < 0.5,
            "few": [f"kind {at % 3}" for at in range(count)],
            "list": pa.array([None if at % 5 == 0 else [at] * (at % 4) for at in range(count)], pa.list_(pa.int16())),
            "parts": pa.array(
                [{"a": at, "b": None if at % 7 == 0 else str(at % 9)} for at in range(count)],
                pa.struct([("a", pa.int64()), ("b", pa.string())]),
            ),
            "vector": pa.FixedSizeListArray.from_arrays(pa.array(rng.normal(size=count * 3), pa.float32()), 3),
            "same": ["one"] * count,
            "none": pa.nulls(count, pa.int32()),
            "long": [bytes(rng.integers(0, 256, 300, dtype=np.uint8)) for _ in range(count)],
        }
    )


def _written(tables: Sequence[pa.Table], version: FileVersion = FileVersion.V2_2) -> tuple[MemoryStore, Schema]:
    store, schema = MemoryStore(), Schema.from_arrow(tables[0].schema)
    for number, table in enumerate(tables):
        with FileWriter(store, f"data/{number}.lance", schema, version) as writer:
            for batch in table.to_batches():
                writer.write_batch(batch)
    return store, schema


def _opened(store: MemoryStore, num_files: int, schema: Schema, *, verify_pages: bool = False) -> AlikeFiles | None:
    paths = [f"data/{number}.lance" for number in range(num_files)]
    return AlikeFiles.open(store, paths, [store.size(path) for path in paths], schema, verify_pages=verify_pages)


def _tables() -> list[pa.Table]:
    firsts = [0, *np.cumsum(LENGTHS).tolist()]
    return [_rows(first, count) for first, count in zip(firsts, LENGTHS, strict=False)]


@pytest.mark.parametrize("verify_pages", [False, True])
@pytest.mark.parametrize("are_large", [False, True])
@pytest.mark.parametrize("version", [FileVersion.V2_1, FileVersion.V2_2], ids=lambda version: version.value)
def test_any_rows_and_columns_are_read_as_those_of_single_files(
    version: FileVersion, are_large: bool, verify_pages: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    if are_large:
        monkeypatch.setattr(alike_files, "WHOLE_FILE_BYTES", 1000)
        monkeypatch.setattr(alike_files, "_TAIL_BYTES", 8000)
    tables = _tables()
    store, schema = _written(tables, version)
    expected = pa.concat_tables(tables).combine_chunks()
    files = _opened(store, len(tables), schema, verify_pages=verify_pages)
    assert files is not None and files.num_rows.tolist() == [*LENGTHS] and files.version is version
    assert files._is_whole is not are_large
    assert files.read(schema, RowSlice(0, len(expected))) == expected
    assert files.read(schema, RowSlice(60, 100)) == expected[60:100].combine_chunks()
    few = np.array([69, 100, 101, 425])  # of three files
    assert files.read(schema, RowSet(few)) == expected.take(few).combine_chunks()
    wanted = np.array([0, 3, 69, 70, 71, 403, 404, 443])
    assert files.read(schema, RowSet(wanted)) == expected.take(wanted).combine_chunks()
    for name in expected.column_names:
        part = schema.project([name])
        assert files.read(part, RowSlice(0, len(expected)))[name] == expected[name], name
        assert files.read(part, RowSet(wanted))[name] == expected[name].take(wanted), name


def test_plain_pages_of_all_files_are_read_by_one_call(monkeypatch: pytest.MonkeyPatch) -> None:
    tables = [_rows(100 * at, 100).select(["number", "id", "text", "vector"]) for at in range(5)]
    store, schema = _written(tables)
    files = _opened(store, len(tables), schema)
    assert files is not None
    pages: list[int] = []
    read = JoinedPages.read

    def counting(self: JoinedPages, rows: RowSelection) -> Steps[LeafRows]:
        pages.append(len(self.lengths))
        return read(self, rows)

    monkeypatch.setattr(JoinedPages, "read", counting)
    files.read(schema, RowSlice(0, 500))
    assert pages == [len(tables)] * 4


def test_of_large_files_the_ends_and_the_wanted_columns_are_read(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(alike_files, "WHOLE_FILE_BYTES", 1000)
    monkeypatch.setattr(alike_files, "_TAIL_BYTES", 4000)
    tables = [_rows(100 * at, 100).select(["number", "long"]) for at in range(5)]
    store, schema = _written(tables)
    files = _opened(store, len(tables), schema)
    assert files is not None
    store.counters.take()
    numbers = schema.project(["number"])
    assert files.read(numbers, RowSlice(0, 500))["number"] == pa.concat_tables(tables)["number"]
    read = store.counters.take()
    assert read.read_iops == 5 and read.read_bytes < 5 * 2000
    files.read(numbers, RowSet(np.array([7, 450])))
    assert store.counters.take().read_bytes < 2 * 2000


def test_metadata_before_the_last_bytes_that_are_read_is_left_to_the_other_way(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(alike_files, "WHOLE_FILE_BYTES", 1000)
    tables = [_rows(100 * at, 100) for at in range(2)]
    store, schema = _written(tables)
    opened = []
    for tail_bytes in range(40, 4000, 40):
        monkeypatch.setattr(alike_files, "_TAIL_BYTES", tail_bytes)
        files = _opened(store, len(tables), schema)
        opened.append(files is not None)
        if files is not None:
            assert files.read(schema, RowSlice(0, 200)) == pa.concat_tables(tables).combine_chunks()
    assert opened == sorted(opened) and opened[0] is False and opened[-1] is True


@pytest.mark.parametrize("other", ["another schema", "another version", "two pages", "no rows", "a missing column"])
def test_files_that_differ_are_not_opened_together(other: str) -> None:
    tables = [pa.table({"n": np.arange(10), "s": ["text"] * 10}) for _ in range(2)]
    store, schema = _written(tables)
    assert _opened(store, 2, schema) is not None
    table, written_schema, version, page_bytes = tables[0], schema, FileVersion.V2_2, None
    if other == "another schema":
        table = table.rename_columns(["n", "t"])
        written_schema = Schema.from_arrow(table.schema)
    elif other == "another version":
        version = FileVersion.V2_1
    elif other == "two pages":
        table, page_bytes = pa.table({"n": np.arange(3000), "s": ["text"] * 3000}), 2000
    elif other == "no rows":
        table = table[:0]
    else:
        schema = Schema.from_arrow(pa.schema([("n", pa.int64()), ("s", pa.string()), ("more", pa.int8())]))
    with FileWriter(store, "data/1.lance", written_schema, version, page_bytes=page_bytes) as writer:
        for batch in table.to_batches():
            writer.write_batch(batch)
    assert _opened(store, 2, schema) is None


def _read_one_by_one(store: MemoryStore, num_files: int, schema: Schema) -> pa.Table:
    readers = [FileReader(store, f"data/{number}.lance") for number in range(num_files)]
    return pa.concat_tables([reader.read(schema) for reader in readers])


@pytest.mark.parametrize("verified", [True, False])
def test_a_changed_byte_of_metadata_is_found_as_in_a_single_file(verified: bool) -> None:
    """Without checksums, the byte is what an attacker wrote; with them, it is damage."""
    columns = ["number", "text", "few"]
    tables = [table.select(columns) for table in _tables()[1:4:2]]
    store, schema = _written(tables)
    expected = pa.concat_tables(tables).combine_chunks()
    for number in range(2):
        intact = bytearray(memoryview(store.get(f"data/{number}.lance")).cast("B"))
        if not verified:
            intact[-41] ^= 0xFF  # the last byte of the checksums' magic
            store.put(f"data/{number}.lance", bytes(intact))
    sections = FileReader(store, "data/1.lance").sections()
    rng = np.random.default_rng(11)
    opened = refused = 0
    for at in range(len(intact) - sections.column_metadata_bytes - sections.global_buffer_bytes - 250, len(intact)):
        changed = bytearray(intact)
        changed[at] ^= 1 << int(rng.integers(8))
        store.put("data/1.lance", bytes(changed))
        try:
            alone = _read_one_by_one(store, 2, schema)
        except LanceOpsError:
            alone = None
        try:
            files = _opened(store, 2, schema)
            together = None if files is None else files.read(schema, RowSlice(0, len(expected)))
        except LanceOpsError:
            files = together = None
        opened += files is not None
        refused += alone is None
        if together is not None:
            assert alone is not None, f"byte {at}"
            assert together == alone.combine_chunks(), f"byte {at}"
    assert refused > 100
    assert opened > 0


def test_a_changed_byte_anywhere_keeps_files_from_being_opened_with_verified_pages() -> None:
    numbers = np.random.default_rng(1).integers(0, 1 << 60, 10_000)  # the pages of the second file take two blocks
    rows = pa.table({"number": numbers, "text": [f"row {at % 97}" for at in range(10_000)]})
    tables = [rows[:100], rows[100:]]
    store, schema = _written(tables)
    paths = [f"data/{number}.lance" for number in range(2)]

    def is_opened() -> bool:
        sizes = [store.size(path) for path in paths]
        return AlikeFiles.open(store, paths, sizes, schema, verify_pages=True) is not None

    assert is_opened() and store.size(paths[1]) > BLOCK_BYTES
    for number, path in enumerate(paths):
        reader = FileReader(store, path)
        covered = reader.size_bytes - 40  # the footer is compared with the other positions
        intact = bytearray(memoryview(store.get(path)).cast("B"))
        for at in {0, *range(number, covered, 997), covered - 49}:
            changed = bytearray(intact)
            changed[at] ^= 1 << at % 8
            store.put(path, bytes(changed))
            assert not is_opened(), f"byte {at} of {path}"
        store.put(path, bytes(intact))
    assert is_opened()


def _long_files(monkeypatch: pytest.MonkeyPatch) -> tuple[MemoryStore, Schema, pa.Table]:
    """Return three files whose pages take several blocks each, the last one short, and their rows."""
    monkeypatch.setattr(alike_files, "WHOLE_FILE_BYTES", 1000)
    monkeypatch.setattr(page_checks, "_BLOCKS_AT_ONCE", 3)
    rng = np.random.default_rng(1)
    rows = pa.table(
        {
            "number": rng.integers(0, 1 << 60, 50_000),
            "text": [f"row {at % 97} of {at}" for at in range(50_000)],
        }
    )
    store, schema = _written([rows[:20_000], rows[20_000:40_000], rows[40_000:]])
    return store, schema, rows


@pytest.fixture
def digests(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Record the size of each block that is compared with its checksum when pages are read."""
    sizes: list[int] = []

    def recording(data: memoryview) -> int:
        sizes.append(len(data))
        return digest_of_buffer(data)

    monkeypatch.setattr(page_checks, "digest_of_buffer", recording)
    return sizes


def test_a_changed_byte_in_a_page_of_long_files_is_found_when_it_is_read(monkeypatch: pytest.MonkeyPatch) -> None:
    store, schema, rows = _long_files(monkeypatch)
    found = 0
    for number in range(3):
        path = f"data/{number}.lance"
        sections = FileReader(store, path).sections()
        intact = bytearray(memoryview(store.get(path)).cast("B"))
        metadata_bytes = sections.column_metadata_bytes + sections.global_buffer_bytes + 250
        for at in {0, *range(number, len(intact) - metadata_bytes, 9973), len(intact) - metadata_bytes}:
            changed = bytearray(intact)
            changed[at] ^= 1 << at % 8
            store.put(path, bytes(changed))
            files = _opened(store, 3, schema, verify_pages=True)
            if files is not None:
                with pytest.raises(CorruptFile, match="a block of this or another file does not have its checksum"):
                    files.read(schema, RowSlice(0, len(rows)))
                found += 1
        store.put(path, bytes(intact))
    assert found > 20
    files = _opened(store, 3, schema, verify_pages=True)
    assert files is not None
    assert files.read(schema, RowSlice(0, len(rows))) == rows.combine_chunks()


def test_only_blocks_that_are_read_are_verified_and_each_of_them_once(
    monkeypatch: pytest.MonkeyPatch, digests: list[int]
) -> None:
    store, schema, rows = _long_files(monkeypatch)
    files = _opened(store, 3, schema, verify_pages=True)
    assert files is not None and not digests
    numbers = Schema((schema.field("number"),))
    few = files.read(numbers, RowSet(np.array([5, 20_005])))
    assert few["number"].to_pylist() == rows["number"].take([5, 20_005]).to_pylist()
    in_few = len(digests)
    assert 2 <= in_few <= 8  # the pages' chunk tables and one chunk of each of two files
    files.read(numbers, RowSet(np.array([5, 20_005])))
    assert len(digests) == in_few
    assert files.read(schema, RowSlice(0, len(rows))) == rows.combine_chunks()
    every_byte = sum(digests)
    assert all(size <= BLOCK_BYTES for size in digests)
    files.read(schema, RowSlice(0, len(rows)))
    assert sum(digests) == every_byte <= sum(store.size(f"data/{number}.lance") for number in range(3))


def test_pages_of_a_file_without_checksums_are_not_verified(
    monkeypatch: pytest.MonkeyPatch, digests: list[int]
) -> None:
    store, schema, rows = _long_files(monkeypatch)
    for number in range(3):
        path = f"data/{number}.lance"
        data = bytearray(memoryview(store.get(path)).cast("B"))
        data[data.rindex(b"LOblk")] ^= 1  # of the magic that names the checksums
        store.put(path, bytes(data))
    files = _opened(store, 3, schema, verify_pages=True)
    assert files is not None
    assert files.read(schema, RowSlice(0, len(rows))) == rows.combine_chunks()
    assert not digests


def test_files_whose_checksums_of_pages_were_not_read_are_opened_one_by_one(monkeypatch: pytest.MonkeyPatch) -> None:
    store, schema, _ = _long_files(monkeypatch)
    data = store.get("data/0.lance").to_pybytes()
    table = find_table(data, len(data), "data/0.lance", lambda start, stop: data[start:stop])
    assert table is not None
    monkeypatch.setattr(alike_files, "_TAIL_BYTES", len(data) - table.section_ends[1])
    assert _opened(store, 1, schema) is not None
    assert _opened(store, 1, schema, verify_pages=True) is None


def test_a_page_among_the_metadata_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    store, schema, rows = _long_files(monkeypatch)
    files = _opened(store, 3, schema, verify_pages=True)
    assert files is not None and files._checks is not None
    earlier = replace(files._checks, ends=[end - 1 for end in files._checks.ends])
    with pytest.raises(CorruptFile, match="lies behind the pages"):
        replace(files, _checks=earlier).read(schema, RowSlice(0, len(rows)))
