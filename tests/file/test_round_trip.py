"""A reader returns the rows that a writer wrote: all rows, slices, and rows at offsets."""

from __future__ import annotations

from typing import Any

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
from tests.file.exactness import exact
from tests.file.strategies import columns
from tests.file.streaming import StreamedStore

V2_1_AND_LATER = [FileVersion.V2_1, FileVersion.V2_2]
PATH = "data/file.lance"


def written(table: pa.Table, version: FileVersion = FileVersion.V2_2, page_bytes: int | None = None) -> MemoryStore:
    store = MemoryStore()
    with FileWriter(store, PATH, Schema.from_arrow(table.schema), version, page_bytes=page_bytes) as writer:
        writer.write_batch(table)
    return store


def same(found: pa.Table, wanted: pa.Table) -> bool:
    """Whether two tables have the same rows, to the bits of their floats; their dictionaries may have another order."""
    return bool(found.schema == wanted.schema) and exact(found.to_pylist()) == exact(wanted.to_pylist())


def rows_at(table: pa.Table, offsets: list[int]) -> list[dict[str, Any]]:
    """The rows at some offsets, without Arrow's `take`, which misreads sliced nested fixed-size lists (26.0)."""
    return [row for offset in offsets for row in table.slice(offset, 1).to_pylist()]


@pytest.mark.parametrize("version", list(FileVersion), ids=lambda version: version.value)
@given(page_bytes=st.sampled_from([None, 10_000]), data=st.data())
@settings(max_examples=150, suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large])
def test_any_column_is_read_back_whole_sliced_and_taken(
    version: FileVersion, page_bytes: int | None, data: st.DataObject
) -> None:
    column = data.draw(columns(version.value))
    table = pa.table({"c": column})
    reader = FileReader(written(table, version, page_bytes), PATH)
    found = reader.read()
    found.validate(full=True)
    assert found.schema.equals(table.schema)
    assert same(found, table)
    start = data.draw(st.integers(0, len(column)))
    stop = data.draw(st.integers(start, len(column)))
    assert same(reader.read(None, start, stop), table.slice(start, stop - start))
    if len(column):
        offsets = data.draw(st.lists(st.integers(0, len(column) - 1), max_size=20))
        assert exact(reader.take(None, offsets).to_pylist()) == exact(rows_at(table, offsets))


@given(column=columns("2.2"), batch_rows=st.integers(1, 40))
@settings(max_examples=40, suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large])
def test_batches_have_the_given_size_and_together_all_rows(column: pa.Array, batch_rows: int) -> None:
    table = pa.table({"c": column})
    batches = list(FileReader(written(table, page_bytes=3000), PATH).iter_batches(batch_rows=batch_rows))
    assert [batch.num_rows for batch in batches[:-1]] == [batch_rows] * (len(batches) - 1)
    assert same(pa.Table.from_batches(batches, table.schema), table)


@given(column=columns("2.2"), data=st.data())
@settings(max_examples=40, suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large])
def test_a_store_that_reads_ranges_gives_the_same_rows(column: pa.Array, data: st.DataObject) -> None:
    table = pa.table({"c": column, "other": pa.array(range(len(column)))})
    reader = FileReader(StreamedStore(written(table, page_bytes=3000)), PATH)
    assert same(reader.read(), table)
    if len(column):
        offsets = data.draw(st.lists(st.integers(0, len(column) - 1), max_size=10))
        assert exact(reader.take(None, offsets).to_pylist()) == exact(rows_at(table, offsets))


@pytest.mark.parametrize("version", [FileVersion.V2_1, FileVersion.V2_2])
def test_nested_fixed_size_lists_of_wide_items_with_nulls_are_read_back(version: FileVersion) -> None:
    item = pa.list_(pa.decimal256(50, 3), 8)
    column = pa.array([[[None] * 8, [1, *[None] * 7]], [[2] * 8]], pa.list_(item)).cast(pa.list_(item))
    table = pa.table({"c": column})
    reader = FileReader(written(table, version), PATH)
    assert reader.describe() == [[("full_zip", "fixed_size_list", "flat")]]
    assert same(reader.read(), table)


def test_many_small_batches_make_one_page_a_column() -> None:
    table = pa.table({"x": pa.array(range(10_000)), "s": pa.array([f"value {i}" for i in range(10_000)])})
    store = MemoryStore()
    with FileWriter(store, PATH, Schema.from_arrow(table.schema)) as writer:
        for batch in table.to_batches(max_chunksize=100):
            writer.write_batch(batch)
    reader = FileReader(store, PATH)
    assert reader.read().equals(table)
    assert [len(reader.column(index).pages) for index in range(2)] == [1, 1]


def test_a_projection_of_a_nested_field_reads_no_other_column() -> None:
    table = pa.table(
        {
            "a": pa.array(range(50)),
            "s": pa.array([{"x": i, "y": {"z": str(i), "w": [i]}} if i % 7 else None for i in range(50)]),
        }
    )
    store = StreamedStore(written(table))
    reader = FileReader(store, PATH)
    store.reads.clear()
    found = reader.read(reader.schema.project(["s.y.w"]))
    assert found.column("s").to_pylist() == [{"y": {"w": [i]}} if i % 7 else None for i in range(50)]
    column = reader.column(3)
    first, last = min(b.position for b in column.pages[0].buffers), max(b.end for b in column.pages[0].buffers)
    assert all(
        first <= start and end <= last
        for start, end in store.reads
        if start < reader.column(0).pages[0].buffers[0].end + 10_000 and end <= last
    )


def test_a_take_of_scattered_rows_reads_only_their_chunks() -> None:
    table = pa.table({"x": pa.array(np.random.default_rng(7).integers(-(2**62), 2**62, 500_000))})
    store = StreamedStore(written(table))
    reader = FileReader(store, PATH)
    reader.take(None, [0])
    store.reads.clear()
    assert reader.take(None, [17, 250_000, 499_999]).equals(table.take([17, 250_000, 499_999]))
    assert len(store.reads) == 2  # the last row is in the tail, which was read when the file was opened
    assert sum(end - start for start, end in store.reads) < 64 * 1024


def test_flat_pages_without_nulls_are_not_copied() -> None:
    vectors = pa.FixedSizeListArray.from_arrays(pa.array(np.arange(768 * 100, dtype=np.float32)), 768)
    store = written(pa.table({"v": vectors}))
    mapped = store.get(PATH)
    found = FileReader(store, PATH).read()["v"].chunk(0).values.buffers()[1]
    assert mapped.address <= found.address < mapped.address + mapped.size


def test_a_read_without_columns_keeps_the_number_of_rows() -> None:
    reader = FileReader(written(pa.table({"x": [1, 2, 3]})), PATH)
    assert reader.read(Schema(())).num_rows == 3
    assert sum(batch.num_rows for batch in reader.iter_batches(Schema(()), batch_rows=2)) == 3


def test_global_buffers_and_schema_metadata_are_read_back() -> None:
    store = MemoryStore()
    schema = Schema.from_arrow(pa.schema([("x", pa.int8())], metadata={"made": "here"}))
    with FileWriter(store, PATH, schema) as writer:
        writer.write_batch(pa.table({"x": pa.array([1], pa.int8())}))
        assert writer.add_global_buffer(b"first") == 1
        assert writer.add_global_buffer(b"") == 2
        writer.metadata["later"] = "too"
    reader = FileReader(store, PATH)
    assert [bytes(reader.global_buffer(index)) for index in (1, 2)] == [b"first", b""]
    assert reader.schema_metadata == {"made": "here", "later": "too"}
    with pytest.raises(InvalidInput, match="there is no 3"):
        reader.global_buffer(3)


def test_a_written_file_lists_leaf_fields_and_their_columns() -> None:
    schema = Schema.from_arrow(
        pa.schema([("a", pa.int8()), ("l", pa.list_(pa.int8())), ("s", pa.struct([("x", pa.int8())]))])
    )
    store = MemoryStore()
    writer = FileWriter(store, PATH, schema)
    done = writer.finish()
    assert (done.fields, done.column_indices, done.major, done.minor) == ((0, 2, 4), (0, 1, 2), 2, 2)
    assert done.size_bytes == store.size(PATH)
    assert writer.finish() is done


def test_an_aborted_file_does_not_exist() -> None:
    store = MemoryStore()
    with pytest.raises(ZeroDivisionError), FileWriter(store, PATH, Schema.from_arrow(pa.schema([("x", pa.int8())]))):
        raise ZeroDivisionError
    assert not store.exists(PATH)


@pytest.mark.parametrize(
    ("batch", "message"),
    [
        (pa.table({"y": pa.array([1], pa.int8())}), "columns y; the schema has x"),
        (pa.table({"x": pa.array([1], pa.int16())}), "'x' is int16 in the data, int8"),
        (pa.table({"x": pa.array([None], pa.int8())}), "'x' is not nullable"),
    ],
)
def test_a_batch_that_does_not_fit_the_schema_is_refused(batch: pa.Table, message: str) -> None:
    schema = Schema.from_arrow(pa.schema([pa.field("x", pa.int8(), nullable=False)]))
    writer = FileWriter(MemoryStore(), PATH, schema)
    with pytest.raises(SchemaMismatch, match=message):
        writer.write_batch(batch)


def test_take_refuses_rows_beyond_the_file_and_read_cuts_them() -> None:
    reader = FileReader(written(pa.table({"x": [1, 2, 3]})), PATH)
    assert reader.read(None, 1, 10).num_rows == 2
    for offsets in ([3], [-1], [0.5]):
        with pytest.raises(InvalidInput, match="offsets"):
            reader.take(None, offsets)
    with pytest.raises(InvalidInput, match="rows -1"):
        reader.read(None, -1)
    with pytest.raises(InvalidInput, match="no column for field 'z'"):
        reader.read(Schema.from_arrow(pa.schema([("z", pa.int8())]), first_id=9))


@pytest.mark.parametrize("version", list(FileVersion), ids=lambda version: version.value)
def test_an_ordered_dictionary_stays_ordered(version: FileVersion) -> None:
    kind = pa.dictionary(pa.int8(), pa.string(), ordered=True)
    table = pa.table({"c": pa.DictionaryArray.from_arrays(pa.array([1, 0, 1], pa.int8()), ["b", "a"], ordered=True)})
    assert table.schema.field("c").type == kind
    store = MemoryStore("ordered")
    with FileWriter(store, PATH, Schema.from_arrow(table.schema), version) as writer:
        writer.write_batch(table)
    found = FileReader(store, PATH).read()
    assert found.schema == table.schema
    assert found.to_pylist() == table.to_pylist()
