import os
import pickle
import subprocess
import sys
from typing import Self

import pyarrow as pa
import pytest

from lance_ops.core.schema import NO_PARENT, Schema, split_path
from lance_ops.errors import InvalidInput, SchemaMismatch, UnsupportedFeature

ARROW_TYPES = [
    pa.null(),
    pa.bool_(),
    pa.int8(),
    pa.uint64(),
    pa.float16(),
    pa.float64(),
    pa.string(),
    pa.large_binary(),
    pa.binary(16),
    pa.decimal128(12, 3),
    pa.decimal256(60, -2),
    pa.date32(),
    pa.date64(),
    pa.time32("ms"),
    pa.time64("ns"),
    pa.timestamp("us"),
    pa.timestamp("ns", "UTC"),
    pa.timestamp("s", "+05:30"),
    pa.duration("ms"),
    pa.dictionary(pa.int16(), pa.string(), ordered=True),
    pa.dictionary(pa.int8(), pa.timestamp("us", "+01:00")),
    pa.list_(pa.int32(), 4),
    pa.list_(pa.list_(pa.float32(), 2), 3),
    pa.list_(pa.struct([("x", pa.int8()), ("y", pa.list_(pa.string()))])),
    pa.large_list(pa.field("element", pa.int64(), nullable=False)),
    pa.list_(pa.struct([("x", pa.int8())]), 5),
    pa.map_(pa.string(), pa.list_(pa.int32())),
    pa.struct([("a", pa.int8()), ("b", pa.struct([("c", pa.string())]))]),
]


@pytest.mark.parametrize("arrow_type", ARROW_TYPES, ids=str)
def test_every_arrow_type_survives_the_round_trip_through_a_lance_schema(arrow_type: pa.DataType) -> None:
    schema = pa.schema([pa.field("column", arrow_type, nullable=True, metadata={"k": "v"})], {"table": "meta"})
    back = Schema.from_arrow(schema).to_arrow()
    assert back.equals(schema, check_metadata=True)


def test_field_ids_count_in_pre_order_and_fields_name_their_parents() -> None:
    schema = Schema.from_arrow(
        pa.schema(
            [("a", pa.int8()), ("s", pa.struct([("x", pa.int8()), ("l", pa.list_(pa.int8()))])), ("z", pa.int8())]
        )
    )
    assert [(node.name, node.id, node.parent_id) for node in schema.walk()] == [
        ("a", 0, NO_PARENT),
        ("s", 1, NO_PARENT),
        ("x", 2, 1),
        ("l", 3, 1),
        ("item", 4, 3),
        ("z", 5, NO_PARENT),
    ]


def test_projection_keeps_ids_and_merges_paths_into_one_struct() -> None:
    schema = Schema.from_arrow(pa.schema([("s", pa.struct([("x", pa.int8()), ("y", pa.int8())])), ("z", pa.int8())]))
    projected = schema.project(["z", "s.y", "s.x"])
    assert projected.names == ["z", "s"]
    assert [node.id for node in projected.walk()] == [3, 0, 1, 2]
    assert schema.project(["s.y"]).to_arrow() == pa.schema([("s", pa.struct([("y", pa.int8())]))])


def test_a_column_whose_name_holds_a_dot_is_found_exactly_or_back_quoted() -> None:
    schema = Schema.from_arrow(pa.schema([("a.b", pa.int8()), ("s", pa.struct([("x.y", pa.int8())]))]))
    assert schema.field("a.b").id == 0
    assert schema.field("s.`x.y`").id == 2
    assert schema.path_of(2) == "s.`x.y`"


def test_an_unknown_column_is_refused_with_the_existing_names() -> None:
    schema = Schema.from_arrow(pa.schema([("carrier", pa.string()), ("dest", pa.string())]))
    with pytest.raises(InvalidInput, match=r"no column 'dset'.*carrier, dest"):
        schema.field("dset")


@pytest.mark.parametrize("path", ["", "a.", ".a", "a..b", "`a"])
def test_a_malformed_path_is_refused(path: str) -> None:
    with pytest.raises(InvalidInput):
        split_path(path)


def test_two_columns_of_one_name_are_refused() -> None:
    with pytest.raises(SchemaMismatch, match="x"):
        Schema.from_arrow(pa.schema([("x", pa.int8()), ("x", pa.int8())]))


def test_an_arrow_type_without_a_logical_type_is_refused_with_the_column() -> None:
    with pytest.raises(UnsupportedFeature, match="column 'gap'"):
        Schema.from_arrow(pa.schema([("gap", pa.month_day_nano_interval())]))


def test_json_is_text_for_users_and_marked_bytes_in_files() -> None:
    schema = pa.schema([("doc", pa.json_()), ("s", pa.struct([("l", pa.list_(pa.json_()))])), ("x", pa.int8())])
    ours = Schema.from_arrow(schema)
    assert [node.logical_type for node in ours.walk()] == ["json", "struct", "list", "json", "int8"]
    assert ours.to_arrow() == schema
    stored = ours.to_arrow_storage().field("doc")
    assert stored.type == pa.large_binary()
    assert stored.metadata[b"ARROW:extension:name"] == b"lance.json"
    assert Schema.from_arrow(ours.to_arrow_storage()) == ours
    assert (
        Schema.from_arrow(pa.schema([("doc", pa.json_(pa.large_string()))])).to_arrow().field("doc").type == pa.json_()
    )


@pytest.mark.parametrize(
    "extension",
    [
        pa.uuid(),
        pa.bool8(),
        pa.fixed_shape_tensor(pa.float32(), [2, 3], dim_names=["a", "b"], permutation=[1, 0]),
        pa.opaque(pa.binary(), "kind", "vendor"),
    ],
    ids=str,
)
def test_extension_types_known_to_the_process_are_restored(extension: pa.DataType) -> None:
    schema = Schema.from_arrow(pa.schema([pa.field("x", extension)]))
    assert schema.to_arrow().field("x").type == extension
    assert schema.to_arrow_storage().field("x").type == extension.storage_type


class _Choosy(pa.ExtensionType):  # type: ignore[misc]  # pyarrow ships no types
    """An extension type that raises its own error for another storage type."""

    def __init__(self) -> None:
        super().__init__(pa.int32(), "lance_ops.tests.choosy")

    def __arrow_ext_serialize__(self) -> bytes:
        return b""

    @classmethod
    def __arrow_ext_deserialize__(cls, storage_type: pa.DataType, serialized: bytes) -> Self:
        if storage_type != pa.int32():
            raise TypeError("choosy is a number")
        return cls()


def test_an_extension_type_that_refuses_its_storage_raises_schema_mismatch() -> None:
    pa.register_extension_type(_Choosy())
    try:
        assert Schema.from_arrow(pa.schema([("x", _Choosy())])).to_arrow().field("x").type == _Choosy()
        marked = pa.field("x", pa.string(), metadata={"ARROW:extension:name": "lance_ops.tests.choosy"})
        schema = Schema.from_arrow(pa.schema([marked]))
        for restored in (schema.to_arrow, schema.to_arrow_restored):
            with pytest.raises(SchemaMismatch, match="choosy is a number"):
                restored()
    finally:
        pa.unregister_extension_type("lance_ops.tests.choosy")


def test_a_schema_unpickled_from_another_process_equals_and_hashes_like_ours() -> None:
    make = "Schema.from_arrow(pa.schema([('a', pa.struct([('b', pa.string())]))]))"
    send = f"""
import pickle, sys
import pyarrow as pa
from lance_ops.core.schema import Schema
schema = {make}
print(hash(schema), file=sys.stderr)
sys.stdout.buffer.write(pickle.dumps(schema))
"""
    seeds = {**os.environ, "PYTHONHASHSEED": "1"}, {**os.environ, "PYTHONHASHSEED": "2"}
    sent = [subprocess.run([sys.executable, "-c", send], env=env, capture_output=True, check=True) for env in seeds]
    assert sent[0].stderr != sent[1].stderr, "both processes hash alike"
    known = {eval(make): "ours"}
    for process in sent:
        assert known[pickle.loads(process.stdout)] == "ours"
