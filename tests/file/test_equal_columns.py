"""Short columns that are stored alike are parsed and decoded together, with the answer of reading them one by one."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import lance_ops
from lance_ops.core.errors import CorruptFile, UnsupportedFeature
from lance_ops.core.schema import Schema
from lance_ops.core.versions import FileVersion
from lance_ops.encodings.compressive.inline_bitpacking import InlineBitpackingEncoding
from lance_ops.encodings.contract import ChunkBuffers
from lance_ops.encodings.page_values.values import FixedWidth
from lance_ops.file import Budget
from lance_ops.file.reader import FileReader
from lance_ops.kernels import load_kernels
from lance_ops.snapshot.fragment_reader import FragmentReader
from lance_ops.store.memory import MemoryStore
from tests.checksums import without_checksums
from tests.file.streaming import StreamedStore
from tests.file.test_round_trip import PATH, V2_1_AND_LATER, written
from tests.growth.instructions import count_instructions

EACH = 20
"""Columns of each type: enough to be read together."""

MAKERS: dict[str, Callable[[np.random.Generator, int], pa.Array]] = {
    "int32": lambda rng, rows: pa.array(rng.integers(0, 1000, rows, dtype=np.int32)),
    "int64 with nulls": lambda rng, rows: pa.array(rng.integers(0, 9999, rows), mask=rng.random(rows) < 0.2),
    "double": lambda rng, rows: pa.array(rng.random(rows)),
    "bool with nulls": lambda rng, rows: pa.array(rng.random(rows) < 0.5, mask=rng.random(rows) < 0.5),
    "date": lambda rng, rows: pa.array(rng.integers(0, 20_000, rows, dtype=np.int32)).cast(pa.date32()),
    "string": lambda rng, rows: pa.array([f"{number:x}" for number in rng.integers(0, 1 << 30, rows)]),
    "words": lambda rng, rows: pa.array([f"word {number}" for number in rng.integers(0, 5, rows)]),
    "binary": lambda rng, rows: pa.array([bytes([number]) for number in rng.integers(0, 99, rows)]),
    "nulls": lambda rng, rows: pa.nulls(rows, pa.int32()),
    "list": lambda rng, rows: pa.array([[int(number)] for number in rng.integers(0, 9, rows)]),
}


def wide(num_rows: int) -> pa.Table:
    """Return columns of all types in turn, so that equal columns are not neighbours."""
    rng = np.random.default_rng(num_rows)
    return pa.table(
        {f"{name} {number}": make(rng, num_rows) for number in range(EACH) for name, make in MAKERS.items()}
    )


def one_by_one(reader: FileReader, rows: list[int]) -> pa.Table:
    """Read each column by a read of its own, which reads nothing together."""
    fields = reader.schema.fields
    parts = [reader.take(Schema((field,)), rows) for field in fields]
    return pa.table({field.name: part.column(0) for field, part in zip(fields, parts, strict=True)})


@pytest.mark.parametrize("num_rows", [1, 7, 1024, 3000])
@pytest.mark.parametrize("version", V2_1_AND_LATER, ids=lambda version: version.value)
@pytest.mark.parametrize("in_place", [True, False], ids=["in place", "remote"])
def test_equal_columns_are_read_as_one_by_one(num_rows: int, version: FileVersion, in_place: bool) -> None:
    table = wide(num_rows)
    store: MemoryStore = written(table, version)
    reader = FileReader(store if in_place else StreamedStore(store), PATH)
    assert reader.read().equals(table)
    for start, stop in [(0, num_rows), (num_rows // 3, num_rows // 2 + 1), (num_rows - 1, num_rows)]:
        assert reader.read(None, start, stop).equals(table.slice(start, stop - start))
    for rows in ([0], [num_rows - 1, 0], list(range(0, num_rows, 3)), list(range(0, num_rows, 700))):
        found = reader.take(None, rows)
        found.validate(full=True)
        assert found.equals(table.take(rows))
        assert found.equals(one_by_one(reader, rows))
    names = [name for name in table.column_names if name[-1] in "27"]
    fresh = FileReader(written(table, version), PATH)
    wanted = Schema(tuple(field for field in fresh.schema.fields if field.name in set(names)))
    assert fresh.take(wanted, [num_rows // 2]).equals(table.select(names).slice(num_rows // 2, 1))
    assert fresh.read(wanted).equals(table.select(names))


def test_equal_columns_are_decoded_by_one_call(monkeypatch: pytest.MonkeyPatch) -> None:
    table = pa.table({f"c{number}": np.arange(1000, dtype=np.int32) + number for number in range(100)})
    reader = FileReader(written(table), PATH)
    chunks_of_calls: list[int] = []
    decode = InlineBitpackingEncoding.decode_chunks

    def counting(self: InlineBitpackingEncoding, chunks: ChunkBuffers) -> FixedWidth:
        chunks_of_calls.append(chunks.num_chunks)
        return decode(self, chunks)

    monkeypatch.setattr(InlineBitpackingEncoding, "decode_chunks", counting)
    assert reader.read().equals(table)
    assert chunks_of_calls == [100]


def test_a_wide_read_holds_no_column_longer_than_its_group() -> None:
    table = pa.table({f"c{number}": np.arange(1000, dtype=np.int32) + number for number in range(512)})
    column = FileReader(written(table), PATH).read().column(0)
    assert column.get_total_buffer_size() <= 128 * 4096


@pytest.mark.parametrize("kind", [name for name in MAKERS if name != "list"])
def test_a_few_rows_of_equal_columns_hold_few_bytes(kind: str) -> None:
    """A chunk is decoded whole, and a part of it must not hold all: a wide table is read in parts."""
    table = pa.table({f"c{number}": MAKERS[kind](np.random.default_rng(number), 1000) for number in range(40)})
    reader, budget = FileReader(written(table), PATH), Budget(0, 40 * 10 * 24)
    part = reader.read(start=990, stop=1000, budget=budget)
    assert part.equals(table.slice(990, 10))
    assert part.get_total_buffer_size() <= 40 * 10 * 24


def test_a_wide_table_that_exceeds_a_read_is_read_in_a_few_parts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("lance_ops.reading.scan_execution.MAX_BLOCK_BYTES", 500_000)
    monkeypatch.setattr("lance_ops.reading.scan_block._MAX_PART_BYTES", 500_000)
    table = pa.table({f"c{number}": np.arange(1000) + number for number in range(100)})
    dataset = lance_ops.write_dataset(table, tmp_path / "table")
    lengths: list[int] = []
    read = FragmentReader.read

    def noted(self: FragmentReader, schema: Schema, start: int, stop: int, **options: Any) -> pa.Table:
        lengths.append(stop - start)
        return read(self, schema, start, stop, **options)

    monkeypatch.setattr(FragmentReader, "read", noted)
    assert dataset.to_table().equals(table)
    assert lengths == [1000, 500, 500]


def test_columns_of_nulls_share_one_array() -> None:
    table = pa.table({f"c{number}": pa.nulls(1000, pa.int32()) for number in range(50)})
    found = FileReader(written(table), PATH).read()
    assert found.equals(table)
    assert len({column.chunk(0).buffers()[0].address for column in found.columns}) == 1


def test_columns_of_many_rows_are_read_one_by_one(monkeypatch: pytest.MonkeyPatch) -> None:
    """A call for each column no longer matters, and threads decode them at once."""
    table = pa.table({f"c{number}": np.arange(9000, dtype=np.int32) + number for number in range(10)})
    calls: list[int] = []
    decode = InlineBitpackingEncoding.decode_chunks

    def counting(self: InlineBitpackingEncoding, chunks: ChunkBuffers) -> FixedWidth:
        calls.append(chunks.num_chunks)
        return decode(self, chunks)

    monkeypatch.setattr(InlineBitpackingEncoding, "decode_chunks", counting)
    assert FileReader(written(table), PATH).read().equals(table)
    assert len(calls) == 10


def test_the_error_names_the_one_damaged_column() -> None:
    table = pa.table({f"c{number}": np.arange(1000, dtype=np.int32) + number for number in range(50)})
    data = bytearray(without_checksums(written(table).get(PATH).to_pybytes()))
    store = MemoryStore()
    store.put(PATH, bytes(data))
    chunks = FileReader(store, PATH).column(7).pages[0].buffers[1]
    data[chunks.position + 8] = 200  # the width of the packed values
    store.put(PATH, bytes(data))
    with pytest.raises(CorruptFile, match=r"column 7 \(c7\), page 0"):
        FileReader(store, PATH).read()
    with pytest.raises(CorruptFile, match=r"column 7 \(c7\), page 0"):
        FileReader(store, PATH).take(None, [1, 500])
    reader = FileReader(store, PATH)
    others = Schema(tuple(field for field in reader.schema.fields if field.name != "c7"))
    assert reader.read(others).equals(table.drop_columns("c7"))


def test_a_flipped_byte_gives_rows_or_an_error_that_names_the_file() -> None:
    table = pa.table({f"c{number}": pa.array([number, None, number + 1], pa.int32()) for number in range(9)})
    data = bytearray(without_checksums(written(table).get(PATH).to_pybytes()))
    outcomes = set()
    for position in range(0, len(data), 3):
        data[position] ^= 0xFF
        store = MemoryStore()
        store.put(PATH, bytes(data))
        try:
            reader = FileReader(store, PATH)
            reader.read()
            reader.take(None, [0, 2])
            outcomes.add("rows")
        except (CorruptFile, UnsupportedFeature) as error:
            outcomes.add(type(error).__name__ if PATH in str(error) else str(error))
        data[position] ^= 0xFF
    assert outcomes <= {"rows", "CorruptFile", "UnsupportedFeature"}
    assert {"rows", "CorruptFile"} <= outcomes


@pytest.mark.parametrize("verb", ["read", "take"])
def test_a_column_among_many_takes_few_instructions(verb: str) -> None:
    def cost(columns: int) -> int:
        table = pa.table({f"c{number}": np.arange(100, dtype=np.int32) + number for number in range(columns)})
        reader = FileReader(written(table), PATH)
        return count_instructions(reader.read if verb == "read" else partial(reader.take, None, [3, 50]))

    load_kernels()  # until then, any call may be the one that loads them
    cost(100)  # compiles and fills caches
    assert cost(900) - cost(100) < 400 * 800
