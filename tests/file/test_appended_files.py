"""Files joined by their pages have the rows of all of them, in the same bytes."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from lance_ops.core.errors import InvalidInput
from lance_ops.core.schema import Schema
from lance_ops.core.versions import FileVersion
from lance_ops.file.reader import FileReader
from lance_ops.file.writer import FileWriter
from lance_ops.store.memory import MemoryStore
from tests.file.strategies import columns
from tests.file.streaming import StreamedStore
from tests.file.test_copied_columns import page_bytes_of
from tests.file.test_round_trip import PATH, V2_1_AND_LATER, same, written

JOINED = "joined.lance"


@pytest.mark.parametrize("version", V2_1_AND_LATER, ids=lambda version: version.value)
@given(data=st.data())
@settings(max_examples=60, suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large])
def test_pages_of_files_and_written_rows_make_one_file(version: FileVersion, data: st.DataObject) -> None:
    column = data.draw(columns(version.value))
    whole = pa.table({"c": column, "n": np.arange(len(column))})
    cuts = sorted(data.draw(st.lists(st.integers(0, len(column)), min_size=2, max_size=2)))
    parts = [whole.slice(0, cuts[0]), whole.slice(cuts[0], cuts[1] - cuts[0]), whole.slice(cuts[1])]
    store, readers = MemoryStore(), []
    with FileWriter(store, JOINED, Schema.from_arrow(whole.schema), version) as writer:
        for place, part in enumerate(parts):
            if place == 1:
                writer.write_batch(part)
            else:
                readers.append(FileReader(StreamedStore(written(part, version)), PATH))
                writer.append_file(readers[-1])
    found = FileReader(store, JOINED)
    assert found.num_rows == len(column)
    assert same(found.read(), whole)
    start = data.draw(st.integers(0, len(column)))
    assert same(found.read(None, start), whole.slice(start))
    for at in range(found.num_columns):
        first, last = (page_bytes_of(reader, at) for reader in readers)
        pages = page_bytes_of(found, at)
        assert pages[: len(first)] == first and pages[len(pages) - len(last) :] == last


def test_the_rows_of_an_appended_page_follow_those_before() -> None:
    table = pa.table({"c": np.arange(30_000)})
    store = MemoryStore()
    with FileWriter(store, JOINED, Schema.from_arrow(table.schema), page_bytes=100_000) as writer:
        for _ in range(2):
            writer.append_file(FileReader(written(table, page_bytes=100_000), PATH))
    found = FileReader(store, JOINED, verifies=True)
    assert [page.priority for page in found.column(0).pages] == [0, 15_000, 30_000, 45_000]
    assert found.read(None, 25_000, 35_000)["c"].to_pylist() == [*range(25_000, 30_000), *range(5_000)]


@pytest.mark.parametrize(
    ("table", "version"),
    [
        (pa.table({"c": [1]}), FileVersion.V2_1),
        (pa.table({"c": pa.array([1], pa.int32())}), FileVersion.V2_2),
        (pa.table({"c": pa.array([], pa.int64())}).select([]), FileVersion.V2_2),
    ],
    ids=["another version", "another type", "no column"],
)
def test_a_file_with_other_columns_is_refused_by_name(table: pa.Table, version: FileVersion) -> None:
    writer = FileWriter(MemoryStore(), JOINED, Schema.from_arrow(pa.schema({"c": pa.int64()})))
    with pytest.raises(InvalidInput, match=r"file\.lance cannot be appended to joined\.lance"):
        writer.append_file(FileReader(written(table, version), PATH))
    writer.abort()


def test_a_file_beside_copied_columns_is_refused() -> None:
    table = pa.table({"c": [1], "n": [1]})
    reader = FileReader(written(table), PATH)
    writer = FileWriter(MemoryStore(), JOINED, Schema.from_arrow(table.schema))
    assert writer.copy_column("c", reader)
    with pytest.raises(InvalidInput, match="cannot be appended"):
        writer.append_file(reader)
    writer.abort()
