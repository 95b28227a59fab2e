"""Short columns of numbers are encoded together, into the pages that each of them would get on its own."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

from lance_ops.core.schema import Schema
from lance_ops.core.versions import FileVersion
from lance_ops.encodings.compressive.inline_bitpacking import InlineBitpackingEncoding
from lance_ops.encodings.contract import EncodedChunks
from lance_ops.encodings.page_values.values import FixedWidth
from lance_ops.file import v2_1
from lance_ops.file.reader import FileReader
from lance_ops.file.v2_1 import page_encoder
from lance_ops.file.writer import FileWriter
from lance_ops.kernels import load_kernels
from lance_ops.store.memory import MemoryStore
from tests.file.test_round_trip import PATH, V2_1_AND_LATER, written
from tests.growth.instructions import count_instructions

TYPES = ["i1", "i2", "i4", "i8", "u1", "u4", "u8", "f4", "f8"]


def columns_of(dtype: str, num_rows: int, rng: np.random.Generator) -> list[pa.Array]:
    """Return columns of one type for which the choice of a page differs."""
    largest = 100 if dtype.endswith("1") else 30_000
    numbers = [
        rng.integers(0, largest, num_rows),
        rng.integers(0, 3, num_rows),
        np.full(num_rows, 7),
        np.arange(num_rows) // 40,
        np.append(np.zeros(num_rows - 1), 1),
        np.arange(num_rows) % largest * (-1 if dtype[0] == "i" else 1),
        rng.permutation(num_rows) % largest,
    ]
    arrays = [pa.array(each.astype(dtype)) for each in numbers]
    wide = rng.integers(0, 256, (3, num_rows * np.dtype(dtype).itemsize), np.uint8).view(dtype)
    arrays += [pa.array(each) for each in wide]
    if dtype[0] == "f":
        arrays.append(pa.array(np.resize(np.array([0.0, -0.0, np.nan, -np.nan], dtype), num_rows)))
    masks = [rng.random(num_rows) < share for share in (0.01, 0.1, 0.5, 0.99)] + [np.arange(num_rows) == num_rows // 2]
    masks += [np.arange(num_rows) < num_rows // 2, np.ones(num_rows, np.bool_)]
    return arrays + [pa.array(each.astype(dtype), mask=mask) for mask in masks for each in (numbers[0], numbers[2])]


def bits_of(column: pa.ChunkedArray) -> pa.Array:
    """Return numbers as integers of the same bits, so that NaNs are compared, and zeros with their signs."""
    array = column.combine_chunks()
    return array.view(f"int{array.type.bit_width}") if pa.types.is_floating(array.type) else array


@pytest.mark.parametrize("num_rows", [1, 2, 99, 700, 1024, 1025])
@pytest.mark.parametrize("version", V2_1_AND_LATER, ids=lambda version: version.value)
def test_pages_that_are_encoded_together_are_those_of_single_columns(num_rows: int, version: FileVersion) -> None:
    rng = np.random.default_rng(num_rows)
    arrays = [array for dtype in TYPES for array in columns_of(dtype, num_rows, rng)]
    arrays += [pa.array([f"{row}" for row in range(num_rows)]), *(arrays[0].slice(0) for _ in range(3))]
    table = pa.table({f"{number}": array for number, array in enumerate(arrays)})
    plain = pa.field("plain", arrays[0].type, metadata={"lance-encoding:compression": "none"})
    table = table.append_column(plain, arrays[0])
    wide = FileReader(written(table, version), PATH)
    assert all(
        bits_of(found) == bits_of(given) for found, given in zip(wide.read().columns, table.columns, strict=True)
    )
    kinds = set()
    for number, name in enumerate(table.column_names):
        alone = FileReader(written(table.select([name]), version), PATH)
        (expected,), (found,) = alone.column(0).pages, wide.column(number).pages
        kinds.add(wide.describe()[number][0][:2])
        assert found[2:] == expected[2:]
        assert found.length == expected.length
        stored = [bytes(wide.buffer(extent)) for extent in found.buffers]
        assert stored == [bytes(alone.buffer(extent)) for extent in expected.buffers]
        assert all(extent.position % 64 == 0 for extent in found.buffers)
    if 700 <= num_rows <= 1024:
        assert {("mini_block", "flat"), ("mini_block", "inline_bitpacking"), ("mini_block", "rle")} <= kinds


def test_short_columns_are_encoded_by_one_call(monkeypatch: pytest.MonkeyPatch) -> None:
    table = pa.table({f"c{number}": np.arange(700, dtype=np.int32) + number for number in range(200)})
    blocks: list[int] = []
    encode = InlineBitpackingEncoding.encode_blocks

    def counting(self: InlineBitpackingEncoding, values: FixedWidth, num_values: np.ndarray) -> EncodedChunks:
        blocks.append(len(num_values))
        return encode(self, values, num_values)

    table = table.append_column("with nulls", pa.array([None, *range(699)], pa.int32()))
    for number in range(99):
        table = table.append_column(f"n{number}", pa.array([None, number, *range(698)], pa.int32()))
    monkeypatch.setattr(InlineBitpackingEncoding, "encode_blocks", counting)
    monkeypatch.setattr(page_encoder, "encode_mini_block", None)
    assert FileReader(written(table), PATH).read().equals(table)
    assert blocks == [200, 100]


def test_columns_that_arrive_in_several_batches_are_encoded_one_by_one(monkeypatch: pytest.MonkeyPatch) -> None:
    table = pa.table({f"c{number}": np.arange(700, dtype=np.int32) + number for number in range(9)})
    parts = pa.concat_tables([table, table])
    monkeypatch.setattr(v2_1, "encode_equal_pages", None)
    assert FileReader(written(parts), PATH).read().combine_chunks().equals(parts.combine_chunks())


def test_writing_a_column_among_many_takes_few_instructions() -> None:
    def cost(columns: int) -> int:
        table = pa.table({f"c{number}": np.arange(100, dtype=np.int32) + number for number in range(columns)})
        schema = Schema.from_arrow(table.schema)

        def write() -> None:
            with FileWriter(MemoryStore(), PATH, schema) as file:
                file.write_batch(table)

        write()  # what is kept for a schema does not count
        return count_instructions(write)

    load_kernels()  # until then, any call may be the one that loads them
    cost(100)  # compiles and fills caches
    assert cost(900) - cost(100) < 500 * 800
