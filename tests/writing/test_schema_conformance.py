from decimal import Decimal

import pyarrow as pa
import pytest

from lance_ops.errors import SchemaMismatch
from lance_ops.writing.schema_conformance import conform_to_schema

SCHEMA = pa.schema([pa.field("id", pa.int64(), nullable=False), pa.field("name", pa.string())])


def test_columns_are_matched_by_name_in_any_order() -> None:
    table = conform_to_schema(pa.table({"name": ["a"], "id": pa.array([1], pa.int64())}), SCHEMA)
    assert table.schema == SCHEMA
    assert table.to_pylist() == [{"id": 1, "name": "a"}]


def test_a_missing_nullable_column_becomes_null() -> None:
    assert conform_to_schema(pa.table({"id": [1, 2]}), SCHEMA).column("name").null_count == 2


def test_a_missing_non_nullable_column_raises() -> None:
    with pytest.raises(SchemaMismatch, match="'id' is missing"):
        conform_to_schema(pa.table({"name": ["a"]}), SCHEMA)


def test_an_unknown_column_raises_with_its_name() -> None:
    with pytest.raises(SchemaMismatch, match="'age' is not in the table"):
        conform_to_schema(pa.table({"id": [1], "age": [3]}), SCHEMA)


def test_nulls_in_a_non_nullable_column_raise() -> None:
    with pytest.raises(SchemaMismatch, match="'id' holds 1 nulls"):
        conform_to_schema(pa.table({"id": pa.array([1, None]), "name": ["a", "b"]}), SCHEMA)


@pytest.mark.parametrize(
    ("given", "wanted"),
    [
        (pa.array([1], pa.int32()), pa.int64()),
        (pa.array(["a"]), pa.large_string()),
        (pa.array(["a"]).dictionary_encode(), pa.string()),
        (pa.array([[1.0, 2.0], None], pa.list_(pa.float64())), pa.list_(pa.float32(), 2)),
        (pa.array([1], pa.timestamp("ms")), pa.timestamp("us")),
        (pa.nulls(2), pa.string()),
        (pa.array([1, None, 1]), pa.dictionary(pa.int8(), pa.int32())),
        (pa.array([0.5, None]), pa.dictionary(pa.int32(), pa.float64())),
        (pa.array([True, None]), pa.dictionary(pa.int8(), pa.bool_())),
        (pa.nulls(2), pa.dictionary(pa.int8(), pa.int64())),
        (pa.array([99_999_999, None], pa.int64()), pa.decimal128(10, 2)),
        (pa.array([[1], None], pa.list_(pa.int32())), pa.list_(pa.decimal128(5, 4))),
        (pa.array([2**64 - 1], pa.uint64()), pa.decimal256(76, 56)),
    ],
    ids=str,
)
def test_a_cast_without_a_changed_value_succeeds(given: pa.Array, wanted: pa.DataType) -> None:
    column = conform_to_schema(pa.table({"x": given}), pa.schema([("x", wanted)])).column("x")
    assert column.type == wanted
    assert len(column) == len(given)
    assert column.null_count == given.null_count


@pytest.mark.parametrize("wanted", [pa.float64(), pa.list_(pa.float64(), 1), pa.struct([("f", pa.float64())])], ids=str)
def test_decimals_become_the_nearest_floats(wanted: pa.DataType) -> None:
    written = [Decimal("-2.55"), Decimal("9999.90"), None]
    numbers = pa.array(written, pa.decimal128(10, 2))
    expected: list[object] = [-2.55, 9999.9, None]
    if pa.types.is_struct(wanted):
        numbers, expected = pa.StructArray.from_arrays([numbers], ["f"]), [{"f": each} for each in expected]
    elif pa.types.is_fixed_size_list(wanted):
        numbers, expected = pa.ListArray.from_arrays([0, 1, 2, 3], numbers), [[each] for each in expected]
    assert conform_to_schema(pa.table({"x": numbers}), pa.schema([("x", wanted)]))["x"].to_pylist() == expected


@pytest.mark.parametrize(
    ("given", "wanted"),
    [
        (pa.array([1 << 40]), pa.int32()),
        (pa.array([1.5]), pa.int64()),
        (pa.array([100_000_000]), pa.decimal128(10, 2)),
        (pa.array([1]), pa.decimal256(76, 76)),
        (pa.array(["1"]), pa.int64()),
        (pa.array([1]), pa.string()),
        (pa.array([True]), pa.int8()),
        (pa.array([[1.0]]), pa.list_(pa.float32(), 2)),
        (pa.array([1]), pa.timestamp("us")),
        (pa.array(range(129)), pa.dictionary(pa.int8(), pa.int64())),
        (pa.array(["1"]), pa.dictionary(pa.int8(), pa.int64())),
    ],
    ids=str,
)
def test_a_cast_that_would_change_a_value_raises_with_the_column(given: pa.Array, wanted: pa.DataType) -> None:
    with pytest.raises(SchemaMismatch, match="column 'x'"):
        conform_to_schema(pa.table({"x": given}), pa.schema([("x", wanted)]))


STRUCT = pa.struct({"a": pa.int64()})


@pytest.mark.parametrize(
    ("wanted", "value", "path"),
    [
        (STRUCT, {"a": 1, "b": 2}, "x.b"),
        (STRUCT, {"A": 1}, "x.A"),
        (pa.struct({"s": STRUCT}), {"s": {"b": 2}}, "x.s.b"),
        (pa.list_(STRUCT), [{"a": 1, "b": 2}], "x.b"),
        (pa.large_list(pa.list_(STRUCT, 1)), [[{"b": 2}]], "x.b"),
    ],
    ids=str,
)
def test_a_field_that_the_table_lacks_is_refused_and_not_dropped(wanted: pa.DataType, value: object, path: str) -> None:
    with pytest.raises(SchemaMismatch, match=rf"field '{path}' is not in the table \(which has \w there\)"):
        conform_to_schema(pa.table({"x": [value]}), pa.schema([("x", wanted)]))


def test_a_field_in_a_map_that_the_table_lacks_is_refused_and_one_that_the_data_lacks_is_null() -> None:
    given = pa.array([[("k", {"a": 1, "b": 2})]], pa.map_(pa.string(), pa.struct({"a": pa.int32(), "b": pa.int64()})))
    with pytest.raises(SchemaMismatch, match=r"field 'x.value.b' is not in the table"):
        conform_to_schema(pa.table({"x": given}), pa.schema([("x", pa.map_(pa.string(), STRUCT))]))
    both = pa.map_(pa.string(), pa.struct({"b": pa.int64(), "a": pa.int64(), "c": pa.int64()}))
    fitted = conform_to_schema(pa.table({"x": given}), pa.schema([("x", both)]))
    assert fitted["x"].to_pylist() == [[("k", {"a": 1, "b": 2, "c": None})]]
