"""Pages with equal formats are decoded by one call, and a take reads and decodes no more than it must."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from lance_ops import kernels
from lance_ops.core.schema import Schema
from lance_ops.core.versions import FileVersion
from lance_ops.encodings.compressive.inline_bitpacking import InlineBitpackingEncoding
from lance_ops.encodings.contract import ChunkBuffers
from lance_ops.encodings.page_values.values import FixedWidth
from lance_ops.file.reader import FileReader
from lance_ops.store.contract import ByteRange
from tests.file.streaming import StreamedStore
from tests.file.test_round_trip import PATH, V2_1_AND_LATER, written

rng = np.random.default_rng(3)
NUM_ROWS = 20_000


def lists(num_rows: int) -> pa.Array:
    offsets = np.append(0, np.cumsum(rng.integers(0, 9, num_rows))).astype(np.int32)
    return pa.ListArray.from_arrays(pa.array(offsets), pa.array(rng.integers(0, 1000, offsets[-1])))


@pytest.mark.parametrize("version", V2_1_AND_LATER, ids=lambda version: version.value)
def test_pages_with_equal_formats_are_decoded_by_one_call(
    version: FileVersion, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = pa.table({"v": lists(NUM_ROWS), "n": rng.integers(0, 1000, NUM_ROWS)})
    reader = FileReader(written(table, version, page_bytes=20_000), PATH)
    assert [len(reader.column(i).pages) > 4 for i in range(2)] == [True, True]
    calls: list[int] = []
    decode = InlineBitpackingEncoding.decode_chunks

    def counting(self: InlineBitpackingEncoding, chunks: ChunkBuffers) -> FixedWidth:
        calls.append(chunks.num_chunks)
        return decode(self, chunks)

    monkeypatch.setattr(InlineBitpackingEncoding, "decode_chunks", counting)
    assert reader.read().combine_chunks().equals(table)
    assert len(calls) == 2
    rows = np.sort(rng.choice(NUM_ROWS, 300, replace=False))
    assert reader.take(None, rows).combine_chunks().equals(table.take(rows))
    assert reader.read(None, 777, 15_001).combine_chunks().equals(table.slice(777, 15_001 - 777))


def test_a_take_unpacks_only_the_wanted_values(monkeypatch: pytest.MonkeyPatch) -> None:
    table = pa.table({"n": rng.integers(0, 1000, 500_000)})
    reader = FileReader(written(table), PATH)
    picked: list[int] = []
    pick = kernels.pick_packed

    def counting(data: Any, starts: Any, *rest: Any) -> int:
        picked.append(len(starts))
        return pick(data, starts, *rest)

    monkeypatch.setattr(kernels, "pick_packed", counting)
    monkeypatch.setattr(kernels, "unpack_blocks", None)
    rows = np.arange(0, 500_000, 1000)
    assert reader.take(None, rows)["n"].to_pylist() == rows_of(table, rows)
    assert picked == [500]


def rows_of(table: pa.Table, rows: np.ndarray) -> list[int]:
    return [table["n"][row].as_py() for row in rows.tolist()]


class CountedStore(StreamedStore):
    """A store that counts the calls of `get_ranges`."""

    calls = 0

    def get_ranges(self, path: str, ranges: Sequence[ByteRange]) -> Any:
        self.calls += 1
        return super().get_ranges(path, ranges)


COLUMNS = {
    "mini_block": pa.array(rng.integers(0, 1000, NUM_ROWS)),
    "mini_block of lists": lists(NUM_ROWS),
    "mini_block with a dictionary": pa.array([f"word {i % 50}" for i in range(NUM_ROWS)]),
    "full_zip": pa.array([f"{i} " * 100 for i in range(2000)]),
    "full_zip of one width": pa.FixedSizeListArray.from_arrays(rng.random(128 * 500, np.float32), 128),
    "full_zip of lists": pa.array([[f"{i} " * 100] * (i % 3) for i in range(500)]),
    "constant": pa.nulls(NUM_ROWS, pa.int64()),
    "constant of lists": pa.array([[] if i % 3 else None for i in range(NUM_ROWS)], pa.list_(pa.int64())),
}


@pytest.mark.parametrize("version", V2_1_AND_LATER, ids=lambda version: version.value)
@pytest.mark.parametrize("name", COLUMNS)
def test_a_take_of_one_row_makes_at_most_two_requests_after_the_metadata(name: str, version: FileVersion) -> None:
    column = COLUMNS[name]
    store = CountedStore(written(pa.table({"x": column}), version))
    reader = FileReader(store, PATH)
    assert name.split(maxsplit=1)[0] in reader.describe()[0][0]
    store.calls = 0
    store.reads.clear()
    row = len(column) // 2
    assert reader.take(None, [row])["x"].to_pylist() == column[row : row + 1].to_pylist()
    assert store.calls <= 2


def test_the_metadata_of_all_columns_of_a_read_takes_one_request() -> None:
    table = pa.table({f"column {number:04}": [number, -number] for number in range(2000)})
    store = CountedStore(written(table))
    reader = FileReader(store, PATH)
    wanted = Schema(reader.schema.fields[:9])
    store.calls = 0
    assert reader.read(wanted).equals(table.select(wanted.names))
    assert store.calls == 2
    assert reader.take(wanted, [1]).equals(table.select(wanted.names).slice(1))
    assert store.calls == 3
