"""Several files that are read together give the rows of each, in order."""

from __future__ import annotations

import tracemalloc
from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from lance_ops.core.errors import CorruptFile, ReadTooLarge
from lance_ops.core.schema import Schema
from lance_ops.core.versions import FileVersion
from lance_ops.encodings import CorruptValues, FixedWidth
from lance_ops.encodings.compressive.flat import FlatEncoding
from lance_ops.encodings.compressive.inline_bitpacking import InlineBitpackingEncoding
from lance_ops.encodings.contract import ChunkBuffers, Encoding
from lance_ops.encodings.page_values.values import Values
from lance_ops.file import LanceFileWriter
from lance_ops.file.arrow_values import take_items
from lance_ops.file.page_reading import budget
from lance_ops.file.page_reading.rows import RowSet, RowSlice
from lance_ops.file.reader import FileReader
from lance_ops.file.several_files import FileRows, can_read_together, read_files_together
from lance_ops.file.v2_1.layouts import page_dictionaries
from lance_ops.file.v2_1.layouts.chunk_format import ChunkFormat, ChunkParts
from lance_ops.file.v2_1.layouts.contract import LeafRows, PageContext, ToArray
from lance_ops.file.v2_1.layouts.page_dictionaries import replace_positions
from lance_ops.file.v2_1.levels import Entries, LevelScheme
from lance_ops.store import LocalStore
from tests.file.strategies import columns
from tests.file.streaming import StreamedStore
from tests.file.test_round_trip import PATH, V2_1_AND_LATER, same, written


def whole_file(reader: FileReader, schema: Schema) -> FileRows | None:
    return FileRows(reader, RowSlice(0, reader.num_rows)) if can_read_together([reader], schema) else None


def opened_files(tables: list[pa.Table], version: FileVersion, page_bytes: int | None = None) -> list[FileRows]:
    schema = Schema.from_arrow(tables[0].schema)
    found = [whole_file(FileReader(written(table, version, page_bytes), PATH), schema) for table in tables]
    assert None not in found
    return [file for file in found if file is not None]


@pytest.mark.parametrize("version", V2_1_AND_LATER, ids=lambda version: version.value)
@given(data=st.data(), page_bytes=st.sampled_from([None, 2000]))
@settings(max_examples=25, suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large])
def test_any_columns_of_several_files_are_read_in_order(
    version: FileVersion, data: st.DataObject, page_bytes: int | None
) -> None:
    column = data.draw(columns(version.value).filter(lambda column: len(column) > 0))
    cuts = data.draw(st.lists(st.integers(1, len(column)), max_size=3).map(sorted))
    bounds = [0, *dict.fromkeys(cuts), len(column)]
    parts = [column.slice(start, stop - start) for start, stop in pairwise(bounds) if stop > start]
    table = pa.table({"c": column, "n": np.arange(len(column))})
    at = 0
    tables = []
    for part in parts:
        tables.append(pa.table({"c": part, "n": np.arange(at, at + len(part))}))
        at += len(part)
    schema = Schema.from_arrow(table.schema)
    readers = [FileReader(written(part, version, page_bytes), PATH) for part in tables]
    files = [whole_file(reader, schema) for reader in readers]
    has_dictionary = any(pa.types.is_dictionary(field.arrow_type) for field in schema.walk())
    assert has_dictionary == (None in files)
    if not has_dictionary:
        found = read_files_together([file for file in files if file is not None], schema)
        found.validate(full=True)
        assert same(found, table)
        picks = [data.draw(st.sets(st.integers(0, len(part) - 1), min_size=1)) for part in parts]
        wanted = [np.array(sorted(pick), np.int64) for pick in picks]
        some = read_files_together([FileRows(*pair) for pair in zip(readers, map(RowSet, wanted), strict=True)], schema)
        some.validate(full=True)
        one_by_one = [part.slice(row, 1) for part, rows in zip(tables, wanted, strict=True) for row in rows.tolist()]
        assert same(some, pa.concat_tables(one_by_one))  # not `take`, which misreads some nested lists


def test_pages_with_equal_formats_in_several_files_are_decoded_by_one_call(monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(3)
    tables = [pa.table({"i": rng.integers(0, 1 << 20, 3000), "f": rng.normal(size=3000)}) for _ in range(7)]
    files = opened_files(tables, FileVersion.V2_2)
    calls: list[str] = []

    def counting(encoding: type[Encoding]) -> None:
        decode = encoding.decode_chunks

        def counted(self: Encoding, chunks: ChunkBuffers) -> Values:
            calls.append(encoding.__name__)
            return decode(self, chunks)

        monkeypatch.setattr(encoding, "decode_chunks", counted)

    counting(FlatEncoding)
    counting(InlineBitpackingEncoding)
    assert read_files_together(files, Schema.from_arrow(tables[0].schema)).equals(
        pa.concat_tables(tables).combine_chunks()
    )
    assert sorted(calls) == ["FlatEncoding", "InlineBitpackingEncoding"]


def test_constant_pages_of_several_files_make_one_array(monkeypatch: pytest.MonkeyPatch) -> None:
    values: list[list[object]] = [[7, -1, 9], ["one", "", "three"], [True, False, True], [b"x" * 40, b"y" * 40, b""]]
    types = [pa.int64(), pa.string(), pa.bool_(), pa.binary()]
    tables = [
        pa.table({str(at): pa.array([column[number]] * (number + 1), types[at]) for at, column in enumerate(values)})
        for number in range(3)
    ]
    nulls = [table.append_column("n", pa.nulls(len(table), pa.int32())) for table in tables]
    files = opened_files(nulls, FileVersion.V2_2)
    assert {file.reader.describe()[at][0][0] for file in files for at in range(5)} == {"constant"}
    made: list[int] = []
    finish = PageContext.finish

    def counted(self: PageContext, num_rows: int, scheme: LevelScheme, entries: Entries, to_array: ToArray) -> LeafRows:
        made.append(num_rows)
        return finish(self, num_rows, scheme, entries, to_array)

    monkeypatch.setattr(PageContext, "finish", counted)
    assert read_files_together(files, Schema.from_arrow(nulls[0].schema)).equals(
        pa.concat_tables(nulls).combine_chunks()
    )
    assert made == [6] * 5


def test_a_long_value_of_a_constant_page_is_not_kept_with_the_open_file() -> None:
    tables = [pa.table({"c": [letter * (1 << 20)] * 2}) for letter in "ab"]
    files = opened_files(tables, FileVersion.V2_2)
    assert {file.reader.describe()[0][0][0] for file in files} == {"constant"}
    tracemalloc.start()
    try:
        for _ in range(2):
            found = read_files_together(files, Schema.from_arrow(tables[0].schema))
            assert found.equals(pa.concat_tables(tables).combine_chunks())
        del found
        assert tracemalloc.get_traced_memory()[0] < 1 << 20
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize("with_nulls", [False, True])
@pytest.mark.parametrize("version", V2_1_AND_LATER, ids=lambda version: version.value)
def test_dictionaries_of_several_files_are_looked_up_by_one_call(
    version: FileVersion, with_nulls: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    rng = np.random.default_rng(8)
    tables = []
    for number, num_items in enumerate((3, 40, 7, 1)):
        chosen = rng.integers(0, num_items, 1500)
        nulls = rng.random(1500) < 0.2 if with_nulls else None
        texts = pa.array([f"the text of item {number}.{item}" for item in chosen.tolist()], mask=nulls)
        lists = pa.ListArray.from_arrays(pa.array(np.arange(0, 1501, 5), pa.int32()), texts)
        tables.append(pa.table({"text": texts[:300], "list": lists}))
    files = opened_files(tables, version)
    layouts = [[layout for page in file.reader.describe() for layout in page] for file in files]
    assert all("dictionary" in layout for file in layouts[:3] for layout in file)
    calls: list[int] = []

    def counted(items: pa.Array, positions: pa.Array, stored_bytes: int) -> pa.Array:
        calls.append(len(positions))
        return take_items(items, positions, stored_bytes)

    monkeypatch.setattr(page_dictionaries, "take_items", counted)
    schema = Schema.from_arrow(tables[0].schema)
    texts_only = Schema(schema.fields[:1])
    found = read_files_together(files[:3], texts_only)
    found.validate(full=True)
    assert found.equals(pa.concat_tables(tables[:3]).select(["text"]).combine_chunks())
    assert calls == [900]
    picks = [np.flatnonzero(rng.random(300) < 0.05) for _ in files]
    wanted = [FileRows(file.reader, RowSet(picked)) for file, picked in zip(files, picks, strict=True)]
    expected = pa.concat_tables([table.take(picked) for table, picked in zip(tables, picks, strict=True)])
    assert read_files_together(wanted, schema).equals(expected.combine_chunks())
    parts = [FileRows(files[0].reader, RowSlice(250, 300)), files[1], FileRows(files[2].reader, RowSlice(0, 9))]
    assert read_files_together(parts, schema).equals(
        pa.concat_tables([tables[0][250:], tables[1], tables[2][:9]]).combine_chunks()
    )


@pytest.mark.parametrize("bits", [8, 16, 32, 64])
def test_a_position_in_a_dictionary_of_another_page_is_refused(bits: int) -> None:
    dictionaries = [
        pa.array(["a", "b"]),
        pa.array([], pa.string()),
        pa.array(["c", "d", "e"]),
        pa.array([], pa.string()),
    ]

    def look_up(positions: list[int], valid: list[bool] | None = None) -> list[str | None]:
        data = np.array(positions, f"<u{bits // 8}").view(np.uint8)
        counts = [3, 1, 2, 1] if valid else [3, 0, 2, 0]
        to_array = replace_positions(FixedWidth(data, bits, len(positions)), dictionaries, counts, pa.string(), 1000)
        values: list[str | None] = to_array(None if valid is None else np.array(valid)).to_pylist()
        return values

    assert look_up([0, 1, 0, 2, 0]) == ["a", "b", "a", "e", "c"]
    present = [True, False, True, False, True, False, False]
    assert look_up([0, 99, 1, 7, 2, 3, 9], present) == ["a", None, "b", None, "e", None, None]
    for wrong in ([0, 2, 0, 2, 0], [0, 1, 0, 3, 0]):
        with pytest.raises(CorruptValues, match="beyond the dictionary"):
            look_up(wrong)
    with pytest.raises(CorruptValues, match="beyond the dictionary"):
        look_up([0, 99, 1, 7, 2, 3, 9], [True] * 7)


@pytest.mark.parametrize("version", V2_1_AND_LATER, ids=lambda version: version.value)
def test_pages_with_different_fsst_tables_are_located_by_one_call(
    version: FileVersion, monkeypatch: pytest.MonkeyPatch
) -> None:
    rng = np.random.default_rng(5)
    tables = []
    for number in range(4):
        texts = pa.array([f"{number} is the file of text {at}" for at in rng.integers(0, 1 << 40, 4000).tolist()])
        offsets = pa.array(np.arange(0, 4001, 2), pa.int32(), mask=np.arange(2001) % 7 == 1)
        nulls = pa.array(texts.to_pylist()[:2000], mask=rng.random(2000) < 0.2)
        tables.append(pa.table({"text": texts[:2000], "null": nulls, "list": pa.ListArray.from_arrays(offsets, texts)}))
    files = opened_files(tables, version)
    assert all("fsst" in file.reader.describe()[at][0] for file in files for at in range(3))
    calls: list[int] = []
    locate = ChunkFormat.locate

    def counted(self: ChunkFormat, data: Any, starts: Any, stops: Any, counts: Any) -> ChunkParts:
        calls.append(len(starts))
        return locate(self, data, starts, stops, counts)

    monkeypatch.setattr(ChunkFormat, "locate", counted)
    schema = Schema.from_arrow(tables[0].schema)
    assert read_files_together(files, schema).equals(pa.concat_tables(tables).combine_chunks())
    rows = [np.array([3, 4, 1999]), np.array([0]), np.arange(0, 2000, 2), np.array([700, 1500])]
    some = [table.take(wanted) for table, wanted in zip(tables, rows, strict=True)]
    wanted = [FileRows(file.reader, RowSet(picked)) for file, picked in zip(files, rows, strict=True)]
    assert read_files_together(wanted, schema).combine_chunks().equals(pa.concat_tables(some).combine_chunks())
    ranges = [
        FileRows(file.reader, RowSlice(*bound)) for file, bound in zip(files[1:3], [(900, 2000), (0, 9)], strict=True)
    ]
    some = [tables[1].slice(900), tables[2].slice(0, 9)]
    assert read_files_together(ranges, schema).combine_chunks().equals(pa.concat_tables(some).combine_chunks())
    assert len(calls) == 9


def test_a_projection_is_read_in_its_own_order() -> None:
    tables = [pa.table({"a": [number], "b": [str(number)], "c": [number / 2]}) for number in range(3)]
    schema = Schema.from_arrow(tables[0].schema)
    wanted = Schema((schema.fields[2], schema.fields[0]))
    files = [whole_file(FileReader(written(table), PATH), wanted) for table in tables]
    assert read_files_together([file for file in files if file], wanted).to_pydict() == {
        "c": [0, 0.5, 1],
        "a": [0, 1, 2],
    }


@pytest.mark.parametrize(
    ("table", "version"),
    [
        (pa.table({"c": [1]}), FileVersion.V2_0),
        (pa.table({"c": [1]}), FileVersion.V0_1),
        (pa.table({"c": pa.array([1], pa.int32())}), FileVersion.V2_2),
        (pa.table({"c": pa.array([], pa.int64())}), FileVersion.V2_2),
    ],
    ids=["2.0", "0.1", "another type", "no rows"],
)
def test_files_of_other_versions_types_or_no_rows_are_read_alone(table: pa.Table, version: FileVersion) -> None:
    schema = Schema.from_arrow(pa.schema({"c": pa.int64()}))
    assert whole_file(FileReader(written(table, version), PATH), schema) is None


def test_files_that_are_not_mapped_are_read_alone() -> None:
    table = pa.table({"c": np.random.default_rng(0).normal(size=20_000)})
    reader = FileReader(StreamedStore(written(table)), PATH)
    assert whole_file(reader, Schema.from_arrow(table.schema)) is None


def test_blobs_are_read_alone() -> None:
    field = pa.field("c", pa.large_binary(), metadata={"lance-encoding:blob": "true"})
    table = pa.table([pa.array([b"one"], pa.large_binary())], schema=pa.schema([field]))
    reader = FileReader(written(table, FileVersion.V2_1), PATH)
    assert whole_file(reader, Schema.from_arrow(table.schema)) is None


def test_a_corrupt_file_among_others_is_reported() -> None:
    tables = [pa.table({"c": [f"text {number}" * 5 for number in range(500)]}) for _ in range(3)]
    stores = [written(table) for table in tables]
    page = FileReader(stores[1], PATH).column(0).pages[0]
    data = bytearray(stores[1].get(PATH).to_pybytes())
    data[page.buffers[0].position : page.buffers[0].end] = bytes([0xFF]) * page.buffers[0].size
    stores[1].put(PATH, bytes(data))
    schema = Schema.from_arrow(tables[0].schema)
    files = [whole_file(FileReader(store, PATH), schema) for store in stores]
    with pytest.raises(CorruptFile, match="column 'c'"):
        read_files_together([file for file in files if file], schema)


def test_a_read_beyond_the_budget_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(budget, "READ_BYTES", 1000)
    monkeypatch.setattr(budget, "MAX_RATIO", 0)
    tables = [pa.table({"c": np.zeros(100, np.int64) + number}) for number in range(3)]
    files = opened_files(tables, FileVersion.V2_2)
    with pytest.raises(ReadTooLarge):
        read_files_together(files, Schema.from_arrow(tables[0].schema))


def test_ranges_of_long_files_are_copied_without_touching_a_map(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[int] = []
    read_parts = LocalStore.read_parts

    def noting(
        store: LocalStore, paths: Sequence[str], parts: Sequence[Sequence[tuple[int, int, int]]], out: memoryview
    ) -> list[int] | None:
        asked.append(sum(map(len, parts)))
        found = read_parts(store, paths, parts, out)
        assert found is not None
        return found

    table = pa.table({"n": np.random.default_rng(3).integers(0, 1 << 60, 40_000)})
    rows = np.array([5, 17_000, 39_999])
    store = LocalStore(str(tmp_path))
    (tmp_path / "data").mkdir()
    for name, part in (("data/a", table), ("data/b", table.slice(0, 100))):
        with LanceFileWriter(str(tmp_path / name)) as writer:
            writer.write_batch(part)
    long, short = FileReader(store, "data/a"), FileReader(store, "data/b")
    files = [FileRows(long, RowSet(rows)), FileRows(short, RowSlice(2, 9))]
    expected = pa.concat_tables([table.take(rows), table.slice(2, 7)])
    monkeypatch.setattr(LocalStore, "read_parts", noting)
    assert read_files_together(files, long.schema) == expected.combine_chunks()
    assert asked == [1, len(rows)]  # the chunks' places, then the chunks; nothing of the short file
    store.counters.take()
    assert read_files_together(files, long.schema) == expected.combine_chunks()
    counted = store.counters.take()
    monkeypatch.setattr(LocalStore, "read_parts", lambda *_: None)
    assert read_files_together(files, long.schema) == expected.combine_chunks()
    assert store.counters.take() == counted
    verifying = [replace(file, reader=file.reader.verifying()) for file in files]
    monkeypatch.setattr(LocalStore, "read_parts", None)
    assert read_files_together(verifying, long.schema) == expected.combine_chunks()


@pytest.fixture
def long_file(tmp_path: Path) -> tuple[FileReader, pa.Table]:
    """Return a file that is mapped, `data/a`, and its rows."""
    table = pa.table({"n": np.random.default_rng(3).integers(0, 1 << 60, 40_000)})
    (tmp_path / "data").mkdir()
    with LanceFileWriter(str(tmp_path / "data/a")) as writer:
        writer.write_batch(table)
    return FileReader(LocalStore(str(tmp_path)), "data/a"), table


def test_a_file_that_was_cut_short_since_it_was_viewed_is_corrupt(
    long_file: tuple[FileReader, pa.Table], monkeypatch: pytest.MonkeyPatch
) -> None:
    def cut(
        store: LocalStore, paths: Sequence[str], parts: Sequence[Sequence[tuple[int, int, int]]], out: memoryview
    ) -> list[int]:
        return [min(size, 5) for of_file in parts for _, size, _ in of_file]

    reader, _ = long_file
    monkeypatch.setattr(LocalStore, "read_parts", cut)
    with pytest.raises(CorruptFile, match="data/a: read.* 5 bytes of a range"):
        read_files_together([FileRows(reader, RowSet(np.array([5, 39_999])))] * 2, reader.schema)


@pytest.mark.parametrize("case", ["removed", "link", "root"])
def test_a_file_that_system_calls_cannot_find_is_copied_from_its_map(
    case: str, long_file: tuple[FileReader, pa.Table], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    found: list[list[int] | None] = []
    read_parts = LocalStore.read_parts

    def noting(
        store: LocalStore, paths: Sequence[str], parts: Sequence[Sequence[tuple[int, int, int]]], out: memoryview
    ) -> list[int] | None:
        if case == "removed":
            (tmp_path / "data/a").rename(tmp_path / "data/other")
        found.append(read_parts(store, paths, parts, out))
        if case == "removed":
            (tmp_path / "data/other").rename(tmp_path / "data/a")
        return found[-1]

    reader, table = long_file
    if case == "link":
        (tmp_path / "data/link").symlink_to("a")
        reader = FileReader(LocalStore(str(tmp_path)), "data/link")
    elif case == "root":
        reader = FileReader(LocalStore(str(tmp_path / "data")), "a")
    monkeypatch.setattr(LocalStore, "read_parts", noting)
    rows = np.array([5, 39_999])
    expected = pa.concat_tables([table.take(rows)] * 2).combine_chunks()
    assert read_files_together([FileRows(reader, RowSet(rows))] * 2, reader.schema) == expected
    assert found and not any(found)
