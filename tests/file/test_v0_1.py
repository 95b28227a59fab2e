"""0.1 files: batches, their statistics, dictionaries, and the refusal of nulls."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lance_ops.core.errors import InvalidInput, SchemaMismatch, UnsupportedFeature
from lance_ops.core.schema import Schema
from lance_ops.core.versions import FileVersion
from lance_ops.file import FileReader, FileWriter
from lance_ops.file.v0_1.page_statistics import BOUNDED_BYTES, bounds_of
from lance_ops.store.memory import MemoryStore

PATH = "file.lance"


def read_back(table: pa.Table, *, batches_of: int = 700) -> FileReader:
    store = MemoryStore()
    with FileWriter(store, PATH, Schema.from_arrow(table.schema), FileVersion.V0_1) as writer:
        for batch in table.to_batches(max_chunksize=batches_of):
            writer.write_batch(batch)
    return FileReader(store, PATH)


def test_batches_have_statistics_of_fields_outside_lists() -> None:
    reader = read_back(
        pa.table(
            {
                "x": pa.array(range(3000)),
                "s": pa.array([{"name": f"n{i:04}", "l": [i]} for i in range(3000)]),
                "v": pa.array([[1.0, 2.0]] * 3000, pa.list_(pa.float32(), 2)),
            }
        )
    )
    assert reader.batch_offsets() == (0, 1024, 2048, 3000)
    statistics = reader.batch_statistics(0)
    assert statistics is not None
    assert statistics.to_pylist()[1] == {"null_count": 0, "min_value": 1024, "max_value": 2047}
    names = reader.batch_statistics(reader.schema.field("s.name").id)
    assert names is not None
    assert names.to_pylist()[2] == {"null_count": 0, "min_value": "n2048", "max_value": "n2999"}
    for path in ("s.l.item", "v", "s"):
        assert reader.batch_statistics(reader.schema.field(path).id) is None


@pytest.mark.parametrize(
    ("values", "low", "high"),
    [
        ([1.5, math.nan, -2.0], -2.0, 1.5),
        ([0.0, 0.0], -0.0, 0.0),
        ([-0.0, 3.0], -0.0, 3.0),
        ([math.nan], -math.inf, math.inf),
    ],
)
def test_bounds_of_floats_follow_the_specification(values: list[float], low: float, high: float) -> None:
    found = bounds_of(pa.array(values))
    assert found == (low, high)
    assert [math.copysign(1, bound) for bound in found] == [math.copysign(1, bound) for bound in (low, high)]


@given(st.lists(st.text("aé\U0010ffff\ud7ff~", min_size=0, max_size=90), min_size=1, max_size=5))
def test_bounds_of_text_enclose_all_values_in_64_bytes(values: list[str]) -> None:
    low, high = bounds_of(pa.array(values))
    raw = [value.encode() for value in values]
    assert len(low.encode()) <= BOUNDED_BYTES and low.encode() <= min(raw)
    assert high is None or (len(high.encode()) <= BOUNDED_BYTES and high.encode() >= max(raw))


@given(st.lists(st.binary(max_size=90) | st.just(b"\xff" * 70), min_size=1, max_size=5))
def test_bounds_of_bytes_enclose_all_values_in_64_bytes(values: list[bytes]) -> None:
    low, high = bounds_of(pa.array(values))
    assert len(low) <= BOUNDED_BYTES and low <= min(values)
    assert high is None or (len(high) <= BOUNDED_BYTES and high >= max(values))


@pytest.mark.parametrize(
    ("column", "message"),
    [
        (pa.array([1, None]), "'c' has 1 nulls"),
        (pa.array([[1, None]]), "'item' has 1 nulls"),
        (pa.array([{"x": 1}, None]), "'c' has 1 nulls"),
        (pa.array(["a", None]).dictionary_encode(), "'c' has 1 nulls"),
        (pa.array([[1, None]], pa.list_(pa.int8(), 2)), "'c' have null items"),
        (pa.array([[[1, 2], [3, None]]], pa.list_(pa.list_(pa.int8(), 2), 2)), "'c' have null items"),
        (pa.array([[[1, None]]]), "'item' has 1 nulls"),
        (pa.array([[[1], None]]), "'item' has 1 nulls"),
        (pa.array([[{"x": 1}, {"x": None}]]), "'x' has 1 nulls"),
        (pa.array([[{"x": 1}, None]]), "'item' has 1 nulls"),
        (pa.array([{"s": {"x": 1}}, {"s": None}]), "'s' has 1 nulls"),
        (
            pa.array([{"s": {"x": [1, None]}}], pa.struct([("s", pa.struct([("x", pa.list_(pa.int8(), 2))]))])),
            "'x' have",
        ),
        (pa.array([[1], None], pa.large_list(pa.int8())), "'c' has 1 nulls"),
        (pa.DictionaryArray.from_arrays(pa.array([0, 1]), pa.array(["a", None])), "'c' has 1 nulls"),
        (pa.StructArray.from_arrays([pa.array(["a", None]).dictionary_encode()], ["d"]), "'d' has 1 nulls"),
        (pa.array(["a", ""]), "cannot tell them from nulls"),
    ],
)
def test_nulls_and_empty_strings_are_refused(column: pa.Array, message: str) -> None:
    with pytest.raises(SchemaMismatch, match=message):
        read_back(pa.table({"c": column}))


def test_empty_strings_of_a_field_that_is_not_nullable_are_kept() -> None:
    table = pa.table([pa.array(["", "a"])], schema=pa.schema([pa.field("c", pa.string(), nullable=False)]))
    assert read_back(table).read().to_pylist() == [{"c": ""}, {"c": "a"}]


@pytest.mark.parametrize("column", [pa.array([[("a", 1)]], pa.map_(pa.string(), pa.int8())), pa.array([{}])])
def test_unsupported_types_are_refused(column: pa.Array) -> None:
    with pytest.raises(UnsupportedFeature, match=r"file version 0\.1"):
        read_back(pa.table({"c": column}))


def test_dictionaries_of_several_batches_become_one() -> None:
    store = MemoryStore()
    parts = [pa.array(values).dictionary_encode() for values in (["a", "b"] * 600, ["c", "b"] * 600, ["d"] * 600)]
    schema = Schema.from_arrow(pa.schema([("c", parts[0].type)]))
    with FileWriter(store, PATH, schema, FileVersion.V0_1) as writer:
        for part in parts:
            writer.write_batch(pa.record_batch({"c": part}))
    found = FileReader(store, PATH).read().column("c")
    assert found.to_pylist() == [value for part in parts for value in part.to_pylist()]
    assert found.chunk(0).dictionary.to_pylist() == ["a", "b", "c", "d"]


def test_an_empty_file_keeps_its_schema() -> None:
    reader = read_back(pa.table({"c": pa.array([], pa.int8())}))
    assert reader.num_rows == 0 and reader.read().schema == pa.schema([("c", pa.int8())])
    assert reader.batch_statistics(0) is None


def test_questions_about_later_versions_are_refused_with_the_file() -> None:
    reader = read_back(pa.table({"c": np.arange(3)}))
    questions: list[Any] = [lambda: reader.column(0), reader.sections, lambda: reader.global_buffer(0)]
    for question in questions:
        with pytest.raises(InvalidInput, match=r"file\.lance"):
            question()


def test_a_file_without_schema_is_read_with_the_schema_of_the_dataset() -> None:
    store = MemoryStore()
    table = pa.table({"c": np.arange(3)})
    with FileWriter(store, PATH, Schema.from_arrow(table.schema), FileVersion.V0_1) as writer:
        writer.write_batch(table)
    data = bytearray(store.get(PATH).to_pybytes())
    position = int.from_bytes(data[-16:-8], "little")
    length = int.from_bytes(data[position : position + 4], "little")
    metadata_pb = bytes(data[position + 4 : position + 4 + length])
    assert metadata_pb[0] == 0x08  # the manifest's position comes first
    end = next(i for i in range(1, len(metadata_pb)) if metadata_pb[i] < 0x80) + 1
    stripped = metadata_pb[end:]
    data[position:-16] = len(stripped).to_bytes(4, "little") + stripped
    store.put(PATH, bytes(data))
    with pytest.raises(InvalidInput, match="does not hold its schema"):
        FileReader(store, PATH)
    assert FileReader(store, PATH, schema=Schema.from_arrow(table.schema)).read().equals(table)
