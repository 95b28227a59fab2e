"""A small remote file is read whole once a large part of it is needed, and kept; its checks stay the same."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

from lance_ops.core.errors import CorruptFile
from lance_ops.core.schema import Schema
from lance_ops.file import FileReader, FileWriter
from lance_ops.store import MemoryStore
from tests.file.streaming import StreamedStore

PATH = "data/file.lance"
ROWS = 12_000


def written(rows: int, columns: int) -> tuple[MemoryStore, pa.Table]:
    rng = np.random.default_rng(1)
    table = pa.table({f"c{at}": rng.integers(0, 1 << 62, rows) for at in range(columns)})
    store = MemoryStore()
    with FileWriter(store, PATH, Schema.from_arrow(table.schema)) as writer:
        writer.write_batch(table)
    return store, table


def test_a_file_that_is_read_to_a_large_part_costs_two_requests_and_no_more() -> None:
    inner, table = written(ROWS, 4)
    store = StreamedStore(inner)
    reader = FileReader(store, PATH, store.size(PATH))
    assert reader.read().equals(table)
    assert reader.take(None, [3, 77, 11_000]).equals(table.take([3, 77, 11_000]))
    tail, *others = store.reads
    assert tail[1] - tail[0] == 64 << 10
    assert others[-1] == (0, store.size(PATH))
    assert others.count(others[-1]) == 1
    assert reader.memory_bytes >= store.size(PATH)


def test_of_a_file_with_many_columns_only_those_that_are_needed_are_read() -> None:
    inner, table = written(ROWS, 10)
    store = StreamedStore(inner)
    reader = FileReader(store, PATH, store.size(PATH))
    assert reader.read(Schema(reader.schema.fields[:1])).equals(table.select(["c0"]))
    assert sum(end - start for start, end in store.reads) < store.size(PATH) / 3


def test_a_large_file_is_not_kept() -> None:
    inner, table = written(10 * ROWS, 4)
    store = StreamedStore(inner)
    reader = FileReader(store, PATH, store.size(PATH))
    asked = []
    for _ in range(2):
        store.reads.clear()
        assert reader.read().equals(table)
        asked.append(sum(end - start for start, end in store.reads))
    assert min(asked) > 3 << 20
    assert reader.memory_bytes < 1 << 20


def test_a_wrong_byte_in_a_kept_file_is_found_each_time() -> None:
    inner, _ = written(ROWS, 4)
    data = bytearray(inner.get(PATH).to_pybytes())
    data[len(data) // 3] ^= 1
    inner.put(PATH, bytes(data))
    store = StreamedStore(inner)
    reader = FileReader(store, PATH, store.size(PATH), verifies=True)
    for _ in range(2):
        with pytest.raises(CorruptFile, match="checksum"):
            reader.read()


def test_what_lies_in_the_tail_or_in_blocks_just_verified_is_not_requested_again() -> None:
    inner, table = written(10 * ROWS, 4)
    store = StreamedStore(inner)
    reader = FileReader(store, PATH, store.size(PATH), verifies=True)
    (tail,) = store.reads
    assert tail == (store.size(PATH) - (64 << 10), store.size(PATH))
    store.reads.clear()
    picked = [5, 50_000]
    first = Schema(reader.schema.fields[:1])
    assert reader.take(first, picked).equals(table.select(["c0"]).take(picked))
    assert all(end <= tail[0] for _, end in store.reads)
    assert len(set(store.reads)) == len(store.reads)
    store.reads.clear()
    assert reader.take(first, [7]).equals(table.select(["c0"]).take([7]))
    assert len(store.reads) == 1


def test_a_wrong_byte_in_the_kept_tail_is_found_each_time() -> None:
    inner, _ = written(10 * ROWS, 4)
    store = StreamedStore(inner)
    pages_end = FileReader(store, PATH, store.size(PATH)).sections().data_bytes
    data = bytearray(inner.get(PATH).to_pybytes())
    assert pages_end > len(data) - (64 << 10)
    data[pages_end - 100] ^= 1
    inner.put(PATH, bytes(data))
    reader = FileReader(store, PATH, store.size(PATH), verifies=True)
    for _ in range(2):
        with pytest.raises(CorruptFile, match="checksum"):
            reader.take(None, [10 * ROWS - 1])


def test_a_file_that_will_be_read_whole_costs_one_request() -> None:
    inner, table = written(ROWS, 4)
    store = StreamedStore(inner)
    reader = FileReader(store, PATH, store.size(PATH), verifies=True, whole=True)
    assert reader.read().equals(table)
    assert store.reads == [(0, store.size(PATH))]


def test_of_a_large_file_that_will_be_read_whole_only_the_tail_is_read_at_once() -> None:
    inner, _ = written(10 * ROWS, 4)
    store = StreamedStore(inner)
    FileReader(store, PATH, store.size(PATH), whole=True)
    assert store.reads == [(store.size(PATH) - (64 << 10), store.size(PATH))]
