"""A file whose rows come in one batch is written in one step, into the pages that other files have."""

from __future__ import annotations

from decimal import Decimal
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from lance_ops.core.errors import InvalidInput, SchemaMismatch
from lance_ops.core.schema import Schema
from lance_ops.core.versions import FileVersion
from lance_ops.encodings import NO_OPTIONS, Encoding, FixedWidth, Structure, Values, VariableWidth, plain_encoding
from lance_ops.encodings.choosing.stats import FixedStatistics
from lance_ops.file import writer as file_writer
from lance_ops.file.page_reading import Extent
from lance_ops.file.reader import FileReader
from lance_ops.file.v2_1 import SingleBatch, encode_equal_pages, page_encoder
from lance_ops.file.v2_1.layouts import PageChoice, mini_block
from lance_ops.file.v2_1.levels import EncodedLevels
from lance_ops.file.v2_1.writer import V21FieldWriter
from lance_ops.file.writer import FileWriter
from lance_ops.kernels import load_kernels
from lance_ops.pb import encodings_v2_1_pb2 as pb
from lance_ops.store import BytesLike, LocalStore
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
def test_pages_are_those_of_rows_that_come_in_several_batches(
    num_rows: int, version: FileVersion, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = short_table(num_rows)
    at_once = FileReader(written(table, version), PATH)
    assert at_once.read().equals(table)
    monkeypatch.setattr(file_writer, "_hold_of", lambda *_: None)
    monkeypatch.setattr(SingleBatch, "write_pages", None)
    store = MemoryStore()
    with FileWriter(store, PATH, Schema.from_arrow(table.schema), version) as writer:
        for start in range(0, num_rows, 7):
            writer.write_batch(table.slice(start, 7))
    check_same_pages(at_once, FileReader(store, PATH))


@pytest.mark.parametrize("num_rows", [1, 2, 100])
@pytest.mark.parametrize("version", V2_1_AND_LATER, ids=lambda version: version.value)
def test_pages_are_those_that_the_general_way_makes_of_plain_values(
    num_rows: int, version: FileVersion, monkeypatch: pytest.MonkeyPatch
) -> None:
    def only_value(values: Values, levels: EncodedLevels, choice: PageChoice) -> FixedWidth | VariableWidth | None:
        return None if levels.definition is not None else find_only_value(values, levels, choice)

    def plain(values: Values, *_: object) -> Encoding:
        if isinstance(values, FixedWidth):
            return plain_encoding(values.bits_per_value)
        assert isinstance(values, VariableWidth)
        return plain_encoding(8 * values.offsets.itemsize, is_variable=True)

    table = short_table(num_rows).take(np.arange(num_rows))  # the general way keeps the bits behind a slice of booleans
    at_once = FileReader(written(table, version), PATH)
    find_only_value = page_encoder._only_value
    monkeypatch.setattr(file_writer, "_hold_of", lambda *_: None)
    monkeypatch.setattr(page_encoder, "encode_short_page", lambda *_: None)
    monkeypatch.setattr(page_encoder, "_only_value", only_value)  # a short page with nulls is never a constant
    monkeypatch.setattr(page_encoder, "choose_dictionary", lambda *_: None)
    monkeypatch.setattr(page_encoder, "choose_structure", lambda *_: Structure.MINI_BLOCK)
    monkeypatch.setattr(mini_block, "choose_mini_block", plain)
    monkeypatch.setattr(mini_block, "choose_levels", plain)
    check_same_pages(at_once, FileReader(written(table, version), PATH))


def check_same_pages(at_once: FileReader, otherwise: FileReader) -> None:
    """Assert that each column's only page has the same bytes, at multiples of 64."""
    assert at_once.num_columns == otherwise.num_columns
    for number in range(at_once.num_columns):
        (found,), (expected,) = at_once.column(number).pages, otherwise.column(number).pages
        assert (found.length, found[2:]) == (expected.length, expected[2:])
        stored = [bytes(at_once.buffer(extent)) for extent in found.buffers]
        assert stored == [bytes(otherwise.buffer(extent)) for extent in expected.buffers]
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


def test_the_pages_of_long_columns_are_written_without_empty_writes() -> None:
    sizes: list[int] = []

    def write(data: BytesLike) -> Extent:
        sizes.append(memoryview(data).nbytes)
        return Extent(64 * len(sizes), sizes[-1])

    column = pa.array(np.random.default_rng(2).integers(0, 1 << 60, 1000))
    schema = Schema.from_arrow(pa.schema([("a", pa.int64()), ("b", pa.int64())]))
    assert len(SingleBatch(schema, FileVersion.V2_2, [column, column]).write_pages(write)) == 2
    assert len(sizes) == 4 and all(sizes)


def test_short_pages_that_are_encoded_together_keep_their_nulls() -> None:
    present = np.ones((2, 10), np.bool_)
    present[:, 3] = False
    values = np.arange(20, dtype=np.uint64).reshape(2, 10)
    (pages,) = encode_equal_pages(values, present, PageChoice(FileVersion.V2_2, NO_OPTIONS))
    assert pages.columns.tolist() == [0, 1]
    layout = pb.PageLayout.FromString(pages.description).mini_block_layout
    assert list(layout.layers) == [pb.REPDEF_NULLABLE_ITEM]


@pytest.mark.parametrize("version", [FileVersion.V2_0, *V2_1_AND_LATER], ids=lambda version: version.value)
def test_an_option_that_is_not_allowed_is_refused_before_the_first_batch(version: FileVersion, tmp_path: Path) -> None:
    field = pa.field("c", pa.int64(), metadata={"lance-encoding:compression": "gzip"})
    for others in ((), (pa.field("b", pa.large_binary(), metadata={"lance-encoding:blob": "true"}),)):
        with pytest.raises(InvalidInput, match="gzip"):
            FileWriter(LocalStore(str(tmp_path)), PATH, Schema.from_arrow(pa.schema([field, *others])), version)
    assert not [path for path in tmp_path.rglob("*") if path.is_file()]


def test_a_key_that_is_no_option_does_not_change_the_page() -> None:
    for column in (pa.array(range(200)), pa.array([None, *range(199)]), pa.array(["a", "b"] * 50)):
        plain = FileReader(written(pa.table({"c": column})), PATH)
        noted = pa.schema([pa.field("c", column.type, metadata={"lance-encoding:note": "x"})])
        check_same_pages(plain, FileReader(written(pa.table([column], schema=noted)), PATH))


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
