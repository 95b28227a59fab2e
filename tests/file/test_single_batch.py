"""A file whose rows come in one batch is written in one step, into the pages that other files have."""

from __future__ import annotations

from decimal import Decimal

import numpy as np
import pyarrow as pa
import pytest

from lance_ops.core.errors import SchemaMismatch
from lance_ops.core.schema import Schema
from lance_ops.core.versions import FileVersion
from lance_ops.encodings.stats import FixedStatistics
from lance_ops.file.reader import FileReader
from lance_ops.file.v2_1.writer import V21FieldWriter
from lance_ops.file.writer import FileWriter
from lance_ops.kernels import load_kernels
from lance_ops.store.memory import MemoryStore
from tests.file.test_round_trip import PATH, V2_1_AND_LATER, written
from tests.growth.instructions import count_instructions


def short_table(num_rows: int) -> pa.Table:
    """Return columns of every kind whose short pages are stored plain, as it is and with nulls."""
    numbers = np.arange(num_rows + 3)
    columns = {
        "int8": pa.array(numbers.astype(np.int8)),
        "int64": pa.array(numbers - 5),
        "double": pa.array(numbers / 3),
        "time": pa.array(numbers, pa.timestamp("ns")),
        "decimal": pa.array([Decimal(number) for number in numbers.tolist()], pa.decimal128(20, 0)),
        "text": pa.array(["ä" * (number % 5) for number in numbers.tolist()]),
        "bytes": pa.array([b"\0" * (number % 3) for number in numbers.tolist()], pa.large_binary()),
        "equal": pa.array([7] * len(numbers)),
        "equal text": pa.array(["same"] * len(numbers)),
        "equal length": pa.array([f"{number:03}" for number in numbers.tolist()]),
        "bools": pa.array((numbers % 3 == 0).astype(bool)),
        "empty": pa.array([""] * len(numbers)),
    }
    columns |= {
        f"{name} with nulls": pa.array([None, *column[1:].to_pylist()], column.type) for name, column in columns.items()
    }
    columns["structs"] = pa.StructArray.from_arrays([columns["int64"], columns["text"]], ["a", "b"])
    return pa.table(columns).slice(0, num_rows)


@pytest.mark.parametrize("num_rows", [1, 2, 100])
@pytest.mark.parametrize("version", V2_1_AND_LATER, ids=lambda version: version.value)
def test_pages_are_those_of_rows_that_come_in_several_batches(num_rows: int, version: FileVersion) -> None:
    table = short_table(num_rows)
    store = MemoryStore()
    with FileWriter(store, PATH, Schema.from_arrow(table.schema), version) as writer:
        for start in range(0, num_rows, 7):
            writer.write_batch(table.slice(start, 7))
    at_once, by_parts = FileReader(written(table, version), PATH), FileReader(store, PATH)
    assert at_once.read().equals(table)
    for number in range(at_once.num_columns):
        (found,), (expected,) = at_once.column(number).pages, by_parts.column(number).pages
        assert (found.length, found[2:]) == (expected.length, expected[2:])
        stored = [bytes(at_once.buffer(extent)) for extent in found.buffers]
        assert stored == [bytes(by_parts.buffer(extent)) for extent in expected.buffers]
        assert all(extent.position % 64 == 0 for extent in found.buffers)


@pytest.mark.parametrize("version", V2_1_AND_LATER, ids=lambda version: version.value)
def test_a_slice_of_a_long_batch_is_stored_alone(version: FileVersion) -> None:
    table = short_table(100).slice(17, 9)
    store = written(table, version)
    assert FileReader(store, PATH).read().equals(table)
    assert store.size(PATH) < 20_000


def test_short_pages_are_not_measured(monkeypatch: pytest.MonkeyPatch) -> None:
    table = short_table(100)
    monkeypatch.setattr(FixedStatistics, "__init__", None)
    monkeypatch.setattr(V21FieldWriter, "__init__", None)
    reader = FileReader(written(table), PATH)
    assert reader.read().equals(table)
    plain = {("mini_block", "flat"), ("mini_block", "variable")}
    assert {tuple(kinds[:2]) for kinds, *_ in reader.describe()} == plain | {
        ("constant", "inline"),
        ("constant", "value"),
    }


def test_a_null_is_refused_before_the_file_ends() -> None:
    item = pa.field("a", pa.int64(), nullable=False)
    schema = Schema.from_arrow(pa.schema([pa.field("c", pa.struct([item]))]))
    nulls = pa.StructArray.from_arrays([pa.array([None], pa.int64())], fields=[item])
    writer = FileWriter(MemoryStore(), PATH, schema)
    with pytest.raises(SchemaMismatch, match="'a' is not nullable"):
        writer.write_batch(pa.table({"c": nulls}, schema=schema.to_arrow()))
    writer.abort()


def test_a_short_file_takes_few_instructions() -> None:
    table = pa.table({"id": range(100), "value": np.arange(100) / 7, "name": [f"customer {n}" for n in range(100)]})
    schema = Schema.from_arrow(table.schema)

    def write() -> None:
        with FileWriter(MemoryStore(), PATH, schema) as file:
            file.write_batch(table)

    load_kernels()  # until then, any call may be the one that loads them
    write()  # what is kept for a schema does not count
    assert min(count_instructions(write) for _ in range(3)) < 7000
