"""Columns copied from another file have the same rows, in the same bytes."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from lance_ops.core.errors import InvalidInput, SchemaMismatch
from lance_ops.core.schema import Schema
from lance_ops.core.versions import FileVersion
from lance_ops.file.reader import FileReader
from lance_ops.file.writer import FileWriter
from lance_ops.store.memory import MemoryStore
from tests.file.strategies import columns
from tests.file.streaming import StreamedStore
from tests.file.test_round_trip import PATH, V2_1_AND_LATER, same, written

COPY = "copy.lance"


def page_bytes_of(reader: FileReader, column: int) -> list[list[bytes]]:
    return [[reader.buffer(extent).to_pybytes() for extent in page.buffers] for page in reader.column(column).pages]


def copied(
    source: MemoryStore, rest: pa.Table, schema: pa.Schema, version: FileVersion, page_bytes: int | None = None
) -> FileReader:
    """Write a file with a copy of the source's column `c`, and other columns from `rest` in two batches."""
    store = MemoryStore()
    with FileWriter(store, COPY, Schema.from_arrow(schema), version, page_bytes=page_bytes) as writer:
        assert writer.copy_column("c", FileReader(source, PATH))
        writer.write_batch(rest.slice(0, 2))
        writer.write_batch(rest.slice(2))
    return FileReader(store, COPY)


@pytest.mark.parametrize("version", V2_1_AND_LATER, ids=lambda version: version.value)
@given(data=st.data())
@settings(max_examples=60, suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large])
def test_any_column_is_copied_while_others_are_written(version: FileVersion, data: st.DataObject) -> None:
    table = pa.table({"c": data.draw(columns(version.value))})
    other = pa.table({"n": np.arange(table.num_rows)[::-1]})
    whole = table.append_column("n", other["n"])
    source = StreamedStore(written(table, version))
    found = copied(source, other, whole.schema, version)
    if table.num_rows:
        assert same(found.read(), whole)
        assert same(found.take(None, [table.num_rows - 1]), whole.slice(table.num_rows - 1))
    for column in range(FileReader(source, PATH).num_columns):
        assert page_bytes_of(found, column) == page_bytes_of(FileReader(source, PATH), column)


def test_many_pages_are_copied_if_only_the_last_is_small() -> None:
    table = pa.table({"c": np.arange(50_000)})
    source = written(table, page_bytes=100_000)
    assert len(FileReader(source, PATH).column(0).pages) == 4
    whole = table.append_column("n", table["c"])
    found = copied(source, whole.select(["n"]), whole.schema, FileVersion.V2_2, 100_000)
    assert found.read().equals(whole)
    assert found.read(None, 20_000, 40_000).equals(whole.slice(20_000, 20_000))
    assert [page.priority for page in found.column(0).pages] == [0, 12_500, 25_000, 37_500]


@pytest.mark.parametrize(
    ("table", "version", "page_bytes"),
    [
        (pa.table({"c": np.arange(50_000)}), FileVersion.V2_2, 10_000),
        (pa.table({"c": np.arange(50)}), FileVersion.V2_1, None),
        (pa.table({"c": np.arange(50, dtype=np.int32)}), FileVersion.V2_2, None),
        (pa.table({"other": np.arange(50)}), FileVersion.V2_2, None),
    ],
    ids=["small pages", "another version", "another type", "another column"],
)
def test_a_column_that_would_be_written_differently_is_not_copied(
    table: pa.Table, version: FileVersion, page_bytes: int | None
) -> None:
    reader = FileReader(written(table, version, page_bytes), PATH)
    before = {"n": pa.int64()} if table.column_names == ["other"] else {}
    wanted = Schema.from_arrow(pa.schema({**before, "c": pa.int64()}))
    store = MemoryStore()
    with FileWriter(store, COPY, wanted) as writer:
        assert not writer.copy_column("c", reader)
        writer.write_batch(pa.table({name: np.arange(3) for name in wanted.names}))
    assert FileReader(store, COPY).read()["c"].to_pylist() == [0, 1, 2]


def test_blobs_are_not_copied_because_their_pages_hold_positions() -> None:
    field = pa.field("c", pa.large_binary(), metadata={"lance-encoding:blob": "true"})
    table = pa.table([pa.array([b"one", b"two"], pa.large_binary())], schema=pa.schema([field]))
    reader = FileReader(written(table, FileVersion.V2_1), PATH)
    writer = FileWriter(MemoryStore(), COPY, Schema.from_arrow(table.schema), FileVersion.V2_1)
    assert not writer.copy_column("c", reader)
    writer.abort()


@pytest.mark.parametrize("version", [FileVersion.V0_1, FileVersion.V2_0], ids=lambda version: version.value)
def test_columns_of_files_before_2_1_are_not_copied(version: FileVersion) -> None:
    table = pa.table({"c": [1, 2]})
    reader = FileReader(written(table, version), PATH)
    writer = FileWriter(MemoryStore(), COPY, Schema.from_arrow(table.schema), version)
    assert not writer.copy_column("c", reader)
    writer.abort()


def test_another_number_of_rows_than_copied_leaves_no_file() -> None:
    source, shorter = (FileReader(written(pa.table({"c": [0] * rows, "d": [0] * rows})), PATH) for rows in (3, 1))
    store = MemoryStore()
    schema = Schema.from_arrow(pa.schema({"c": pa.int64(), "d": pa.int64(), "n": pa.int64()}))
    writer = FileWriter(store, COPY, schema)
    assert writer.copy_column("c", source)
    with pytest.raises(InvalidInput, match="columns of 3 and of 1 rows"):
        writer.copy_column("d", shorter)
    with pytest.raises(SchemaMismatch, match="has d, n"):
        writer.write_batch(pa.table({"c": [1], "d": [1], "n": [1]}))
    writer.write_batch(pa.table({"d": [1, 2], "n": [1, 2]}))
    with pytest.raises(InvalidInput, match="2 rows beside a copied column of 3"):
        writer.finish()
    assert list(store.list()) == []
