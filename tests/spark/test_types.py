"""The table's types and Spark's shapes of them: pure Arrow, no session."""

from __future__ import annotations

import json
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lance_ops.arrow import bfloat16_array
from lance_ops.core.errors import InvalidInput, UnsupportedFeature
from lance_ops.spark.translation import keep_types, schema_for_spark, schema_from_spark

BRAIN = pa.field("b", pa.binary(2), metadata={"ARROW:extension:name": "lance.bfloat16", "ARROW:extension:metadata": ""})
"""A column of bfloat16 as a table stores it."""

SAME = [
    pa.null(),
    pa.bool_(),
    pa.int8(),
    pa.int16(),
    pa.int32(),
    pa.int64(),
    pa.float32(),
    pa.float64(),
    pa.string(),
    pa.binary(),
    pa.date32(),
    pa.decimal128(10, 2),
    pa.timestamp("us"),
    pa.timestamp("us", "UTC"),
]
CHANGED = [
    (pa.uint8(), pa.int16()),
    (pa.uint16(), pa.int32()),
    (pa.uint32(), pa.int64()),
    (pa.uint64(), pa.decimal128(20, 0)),
    (pa.float16(), pa.float32()),
    (pa.large_string(), pa.string()),
    (pa.string_view(), pa.string()),
    (pa.large_binary(), pa.binary()),
    (pa.binary(16), pa.binary()),
    (pa.date64(), pa.date32()),
    (pa.time32("ms"), pa.time64("ns")),
    (pa.time64("us"), pa.time64("ns")),
    (pa.duration("ns"), pa.duration("us")),
    (pa.timestamp("ns", "Europe/Rome"), pa.timestamp("us", "UTC")),
    (pa.timestamp("s"), pa.timestamp("us")),
    (pa.decimal256(40, 3), pa.decimal128(38, 3)),
    (pa.dictionary(pa.int8(), pa.large_string()), pa.string()),
    (pa.list_(pa.int32()), pa.list_(pa.field("element", pa.int32()))),
    (bfloat16_array([]).type, pa.binary()),
    (pa.dictionary(pa.int8(), pa.int64()), pa.int64()),
    (pa.large_list(pa.uint8()), pa.list_(pa.field("element", pa.int16()))),
    (pa.list_(pa.float32(), 8), pa.list_(pa.field("element", pa.float32()))),
    (
        pa.list_(pa.list_(pa.float32(), 2), 3),
        pa.list_(pa.field("element", pa.list_(pa.field("element", pa.float32())))),
    ),
    (pa.struct([("a", pa.uint8())]), pa.struct([("a", pa.int16())])),
    (pa.map_(pa.large_string(), pa.uint8()), pa.map_(pa.string(), pa.int16())),
    (pa.fixed_shape_tensor(pa.float32(), [2, 2]), pa.list_(pa.field("element", pa.float32()))),
]


@pytest.mark.parametrize("arrow_type", SAME, ids=str)
def test_a_type_that_spark_supports_is_unchanged(arrow_type: pa.DataType) -> None:
    assert schema_for_spark(pa.schema([("x", arrow_type)])).field("x").type == arrow_type


@pytest.mark.parametrize(("arrow_type", "shape"), CHANGED, ids=str)
def test_a_type_that_spark_lacks_becomes_the_nearest_wider_type(arrow_type: pa.DataType, shape: pa.DataType) -> None:
    assert schema_for_spark(pa.schema([("x", arrow_type)])).field("x").type == shape


def test_a_type_without_a_shape_is_refused_by_the_name_of_its_column() -> None:
    schema = pa.schema([("a", pa.struct([("b", pa.month_day_nano_interval())]))])
    with pytest.raises(UnsupportedFeature, match=r"column 'a\.b'"):
        schema_for_spark(schema)
    with pytest.raises(UnsupportedFeature, match="column 'd'"):
        schema_for_spark(pa.schema([("d", pa.decimal128(5, -2))]))


def spark_metadata(field: pa.Field) -> Any:
    return json.loads(field.metadata[b"SPARK::metadata::json"])


def test_types_lost_in_spark_are_shown_as_hints() -> None:
    schema = pa.schema([("v", pa.list_(pa.float16(), 4)), ("h", pa.float16()), ("i", pa.int32())])
    shaped = schema_for_spark(schema)
    assert spark_metadata(shaped.field("v")) == {"arrow.fixed-size-list.size": 4, "arrow.float16": "true"}
    assert spark_metadata(shaped.field("h")) == {"arrow.float16": "true"}
    assert shaped.field("i").metadata is None


@pytest.mark.parametrize(
    "schema",
    [
        pa.schema([("v", pa.list_(pa.float32(), 4)), ("h", pa.float16()), ("w", pa.list_(pa.float16(), 2))]),
        pa.schema([("s", pa.struct([("v", pa.list_(pa.float32(), 4)), ("names", pa.list_(pa.string()))]))]),
        pa.schema([BRAIN, pa.field("v", pa.list_(BRAIN.with_name("item"), 2))]),
        pa.schema([("s", pa.struct([BRAIN, pa.field("l", pa.list_(BRAIN.with_name("item")))]))]),
        pa.schema([pa.field("b", pa.large_binary(), metadata={"lance-encoding:blob": "true"})]),
        pa.schema([pa.field("x", pa.int32(), metadata={"lance-encoding:compression": "zstd", "comment": "why"})]),
        pa.schema([("s", pa.struct([pa.field("x", pa.int32(), metadata={"comment": "deep"})]))]),
        pa.schema([("m", pa.map_(pa.string(), pa.list_(pa.int64())))]),
    ],
    ids=[
        "fixed-size lists and halves",
        "nested fixed-size list",
        "bfloat16",
        "nested bfloat16",
        "blobs",
        "metadata",
        "nested metadata",
        "map",
    ],
)
def test_a_table_rewritten_through_spark_keeps_types_and_metadata(schema: pa.Schema) -> None:
    assert schema_from_spark(schema_for_spark(schema)).equals(schema, check_metadata=True)


def test_a_new_table_names_its_list_children_as_other_writers_do() -> None:
    spark = pa.schema([("x", pa.list_(pa.field("element", pa.int32(), nullable=False)))])
    assert schema_from_spark(spark).field("x").type.value_field.name == "item"


def test_hints_may_come_as_properties_in_any_case_and_win_over_metadata() -> None:
    metadata = {"SPARK::metadata::json": json.dumps({"arrow.fixed-size-list.size": 2})}
    element = pa.list_(pa.field("element", pa.float32()))
    spark = pa.schema([pa.field("Vector", element, metadata=metadata), ("s", pa.struct([("w", element)]))])
    properties = {
        "vector.ARROW.fixed-size-list.SIZE": "8",
        "vector.arrow.float16": "true",
        "s.w.arrow.fixed-size-list.size": "3",
        "path": "not a hint",
    }
    table = schema_from_spark(spark, properties)
    assert table.field("Vector").type == pa.list_(pa.float16(), 8)
    assert table.field("s").type == pa.struct([("w", pa.list_(pa.float32(), 3))])


def test_a_hint_marks_bytes_as_blobs_also_within_structs() -> None:
    metadata = {"SPARK::metadata::json": json.dumps({"lance.encoding": "blob"})}
    within = pa.struct([("content", pa.binary())])
    spark = pa.schema([("Content", pa.binary()), ("s", within), pa.field("m", pa.binary(), metadata=metadata)])
    properties = {"content.Lance.Encoding": "BLOB", "s.content.lance.encoding": "blob"}
    table = schema_from_spark(spark, properties)
    for field in (table.field("Content"), table.field("s").type.field("content"), table.field("m")):
        assert (field.type, field.metadata) == (pa.large_binary(), {b"lance-encoding:blob": b"true"})


def test_a_column_that_looks_the_same_keeps_its_mark_and_only_a_hint_gives_it_one() -> None:
    spark = pa.schema([("b", pa.binary())])
    blobs = schema_from_spark(spark, {"b.lance.encoding": "blob"})
    plain = schema_from_spark(spark)
    assert keep_types(plain, blobs).equals(blobs, check_metadata=True)
    assert keep_types(blobs, plain).equals(blobs, check_metadata=True)
    assert keep_types(plain, plain).equals(plain, check_metadata=True)


@pytest.mark.parametrize(
    ("properties", "message"),
    [
        ({"other.arrow.float16": "true"}, "no column for other"),
        ({"i.arrow.fixed-size-list.size": "3"}, "column 'i': arrow.fixed-size-list.size is for arrays"),
        ({"v.arrow.fixed-size-list.size": "many"}, "column 'v': arrow.fixed-size-list.size must be a positive number"),
        ({"v.arrow.fixed-size-list.size": "\u0663"}, "arrow.fixed-size-list.size must be a positive number"),
        ({"i.arrow.float16": "true"}, "column 'i': arrow.float16 is for floats"),
        ({"i.arrow.bfloat16": "true"}, "column 'i': arrow.bfloat16 is for bytes"),
        ({"i.lance.encoding": "blob"}, "column 'i': lance.encoding 'blob' is for bytes, not int32"),
        ({"i.lance.encoding": "zstd"}, "column 'i': lance.encoding is 'blob', not 'zstd'"),
    ],
)
def test_a_hint_that_fits_nothing_is_refused(properties: dict[str, str], message: str) -> None:
    spark = pa.schema([("i", pa.int32()), ("v", pa.list_(pa.field("element", pa.float32())))])
    with pytest.raises(InvalidInput, match=message):
        schema_from_spark(spark, properties)


def test_notes_spark_makes_for_itself_do_not_reach_the_table() -> None:
    metadata = {"SPARK::metadata::json": json.dumps({"__autoGeneratedAlias": "true", "comment": "kept", "n": 3})}
    field = schema_from_spark(pa.schema([pa.field("x", pa.int32(), metadata=metadata)])).field("x")
    assert field.metadata == {b"comment": b"kept", b"n": b"3"}


def test_a_variant_stays_recognisable_as_the_struct_it_arrives_as() -> None:
    marked = pa.field("metadata", pa.binary(), nullable=False, metadata={b"variant": b"true"})
    spark = pa.schema([("v", pa.struct([pa.field("value", pa.binary(), nullable=False), marked]))])
    table = schema_from_spark(spark)
    assert schema_for_spark(table).field("v").type.field("metadata").metadata[b"variant"] == b"true"


@given(
    st.recursive(
        st.sampled_from(SAME + [given for given, _ in CHANGED[:16]]),
        lambda inner: st.one_of(
            st.builds(pa.list_, inner),
            st.builds(pa.list_, inner, st.integers(1, 4)),
            st.builds(lambda child: pa.struct([("c", child)]), inner),
            st.builds(lambda item: pa.map_(pa.string(), item), inner),
        ),
        max_leaves=4,
    )
)
def test_converting_a_spark_type_again_changes_nothing(arrow_type: pa.DataType) -> None:
    once = schema_for_spark(pa.schema([("x", arrow_type)]))
    assert schema_for_spark(once).equals(once)
