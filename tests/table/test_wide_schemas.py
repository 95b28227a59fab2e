"""Schemas of many columns, whose fields are made when one is first asked for."""

from __future__ import annotations

import copy
import pickle
from pathlib import Path

import pyarrow as pa
import pytest

import lance_ops
from lance_ops.core.schema import Field, PlainColumns, Schema
from lance_ops.pb import file_pb2
from lance_ops.table import MANIFEST_CACHE
from lance_ops.wire import fields as wire_fields
from lance_ops.wire import metadata_to_pb, plain_fields, schema_from_pb, schema_to_pb, shared_schema, shared_schemas

WIDE = wire_fields.MOST_SHARED + 1
TYPES = (
    pa.int64(),
    pa.timestamp("us", "UTC"),
    pa.list_(pa.float32(), 3),
    pa.dictionary(pa.int8(), pa.string()),
    pa.null(),
)


def make_schema(num_columns: int = WIDE, *others: pa.Field, all_nullable: bool = False) -> Schema:
    columns = [
        pa.field(f"c{at}é", TYPES[at % 5], nullable=all_nullable or at % 5 == 4 or at % 7 > 0)
        for at in range(num_columns)
    ]
    return Schema.from_arrow(pa.schema([*columns, *others], {"a": "b"}))


def encoded(schema: Schema) -> bytes:
    message = file_pb2.Schema(fields=schema_to_pb(schema), metadata=metadata_to_pb(schema.metadata))
    return message.SerializeToString(deterministic=True)


def one_by_one(data: bytes) -> Schema:
    message = file_pb2.Schema.FromString(data)
    return schema_from_pb(message.fields, message.metadata, "m")


@pytest.fixture(autouse=True)
def forgotten() -> None:
    """Forget the schemas that the process has decoded."""
    shared_schemas._as_encoded.cache_clear()
    shared_schemas._in_order.cache_clear()


@pytest.mark.parametrize("all_nullable", [True, False])
def test_a_wide_schema_is_the_same_before_and_after_its_fields_are_made(all_nullable: bool) -> None:
    data = encoded(make_schema(all_nullable=all_nullable))
    expected = one_by_one(data)
    read = shared_schema(data, "m")
    assert read.to_arrow() == expected.to_arrow() and read.to_arrow().metadata == {b"a": b"b"}
    assert not read.names_extensions
    assert "fields" not in vars(read)
    for other in (copy.copy(read), pickle.loads(pickle.dumps(read)), read):
        assert other == expected and hash(other) == hash(expected)
        assert other.fields == expected.fields
        assert [each.storage_field for each in other.fields] == list(expected.to_arrow_storage())
    assert "fields" in vars(read)
    assert read.to_arrow_storage() == expected.to_arrow_storage()
    with pytest.raises(AttributeError, match="no attribute 'field_names'"):
        _ = read.field_names  # type: ignore[attr-defined]  # which is refused


@pytest.mark.parametrize("nullable", [True, False])
def test_a_wide_table_is_opened_without_its_fields(
    nullable: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    columns = [pa.field(f"c{at}", pa.int32(), nullable) for at in range(WIDE)]
    table = pa.table([pa.array([at], pa.int32()) for at in range(WIDE)], schema=pa.schema(columns))
    lance_ops.write_dataset(table, str(tmp_path))
    MANIFEST_CACHE.reset()
    shared_schemas._in_order.cache_clear()
    make_fields = PlainColumns.fields
    monkeypatch.setattr(PlainColumns, "fields", None)
    dataset = lance_ops.dataset(str(tmp_path))
    assert dataset.schema == table.schema
    monkeypatch.setattr(PlainColumns, "fields", make_fields)
    assert dataset.to_table(columns=["c7"])["c7"].to_pylist() == [7]


@pytest.mark.parametrize(
    "other",
    [
        pa.field("s", pa.struct([("x", pa.int8())])),
        pa.field("m", pa.int8(), metadata={"k": "v"}),
    ],
    ids=["struct", "metadata"],
)
def test_other_fields_are_read_one_by_one(other: pa.Field) -> None:
    data = encoded(make_schema(WIDE, other))
    read = shared_schema(data, "m")
    assert "fields" in vars(read)
    assert read == one_by_one(data) == make_schema(WIDE, other)


def test_few_fields_are_shared_with_other_schemas() -> None:
    one, other = (shared_schema(encoded(make_schema(num)), "m") for num in (20, 30))
    assert one.fields[7] is other.fields[7]


def test_a_schema_of_few_fields_is_not_taken_apart(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shared_schemas, "ManifestParts", None)
    assert shared_schema(encoded(make_schema(20)), "m") == make_schema(20)


PLAIN = file_pb2.Field(name="n", id=5, parent_id=-1, logical_type="int32", nullable=True).SerializeToString()


@pytest.mark.parametrize(
    "message",
    [
        PLAIN + b"\x18\x00",  # the id 0, which would count
        PLAIN + b"\x12\x01m",  # another name
        PLAIN[:5] + b"\x12\x01m" + PLAIN[5:],  # another name, where names stand
        PLAIN[:5] + b"\x18\x07" + PLAIN[5:],  # another id, where ids stand
        PLAIN + b"\x12\x09m",  # cut short
        PLAIN[3:],  # no name
        PLAIN[3:5] + PLAIN[:3] + PLAIN[5:],  # the id before the name
        PLAIN[:2] + b"\xff" + PLAIN[3:],  # a name that is not UTF-8
        file_pb2.Field(name="n", id=-1, parent_id=-1, logical_type="int32").SerializeToString(),
        file_pb2.Field(name="n", id=6, parent_id=5, logical_type="int32").SerializeToString(),
        PLAIN + b"\xfa\x7f\x01x",  # a field of a newer writer
    ],
)
def test_an_unusual_message_is_left_to_the_protobuf_library(message: bytes) -> None:
    def make_field(message: file_pb2.Field) -> Field:
        return wire_fields._checked(wire_fields._from_pb(message, ()), "m")

    assert plain_fields.read_plain_columns([PLAIN], make_field) is not None
    for messages in ([PLAIN, message], [message, PLAIN]):
        assert plain_fields.read_plain_columns(messages, make_field) is None
