"""The schemas of manifests: decoded once for all versions that have the same, and refused by name."""

from __future__ import annotations

from dataclasses import replace

import pytest

from lance_ops.core.errors import CorruptFile
from lance_ops.core.schema import Dictionary, Schema, with_dictionaries
from lance_ops.pb import file_pb2, table_pb2
from lance_ops.table import decode_manifest, encode_manifest
from lance_ops.wire import encoded_schema, shared_schema
from tests.table.samples import DICTIONARIES, DICTIONARY_SCHEMA, SCHEMA, manifest


def test_versions_of_one_schema_share_it() -> None:
    first = manifest()
    one, other = (decode_manifest(encode_manifest(replace(first, version=version), b""), "m") for version in (1, 2))
    changed = replace(first, schema=replace(first.schema, metadata={"a": "b"}))

    assert one.schema == first.schema
    assert other.schema is one.schema
    assert decode_manifest(encode_manifest(changed, b""), "m").schema.metadata == {"a": "b"}


def test_a_corrupt_schema_is_refused_with_the_path_of_each_manifest() -> None:
    message = file_pb2.Schema()
    message.fields.add(name="child", id=1, parent_id=7, logical_type="int32")

    for path in ("one", "other"):
        with pytest.raises(CorruptFile, match=f"{path}: .*'child' comes before its parent 7"):
            shared_schema(message.SerializeToString(), path)
        with pytest.raises(CorruptFile, match=f"{path}: .*not a lance.file.Schema message"):
            shared_schema(b"\x0a\x05\x12\x03\xff\xfe\xfd", path)  # a name that is no text


def test_a_schema_whose_metadata_is_in_another_order_is_the_same_schema() -> None:
    message = file_pb2.Schema()
    message.fields.add(name="a", id=0, parent_id=-1, logical_type="int32")
    fields, one, other = message.SerializeToString(), b"\x2a\x04\x0a\x02k1", b"\x2a\x04\x0a\x02k2"

    assert shared_schema(fields + one + other, "m").metadata == {"k1": "", "k2": ""}
    assert shared_schema(fields + one + other, "m") is shared_schema(fields + other + one, "m")


def test_a_schema_is_encoded_once() -> None:
    schema = replace(SCHEMA, metadata={"a": "b"})

    assert encoded_schema(schema) is encoded_schema(schema)
    assert shared_schema(encoded_schema(schema), "m") == schema
    assert encoded_schema(replace(SCHEMA, metadata={"a": "c"})) != encoded_schema(schema)


def test_a_decoded_schema_is_written_as_the_bytes_that_it_was_read_from() -> None:
    message = file_pb2.Schema()
    message.fields.add(name="a", id=0, parent_id=-1, logical_type="int32", type=file_pb2.Field.LEAF)
    read = shared_schema(message.SerializeToString(), "m")
    changed = replace(read, fields=(replace(read.fields[0], name="b"),))

    assert encoded_schema(read) == message.SerializeToString()
    assert file_pb2.Schema.FromString(encoded_schema(changed)).fields[0].name == "b"
    assert shared_schema(encoded_schema(changed), "m") == changed


def test_what_a_file_states_beside_its_schema_never_reaches_a_manifest() -> None:
    fields = file_pb2.Schema(fields=[{"name": "a", "parent_id": -1, "logical_type": "int32"}]).SerializeToString()
    version = table_pb2.Manifest(version=99).SerializeToString()  # unknown fields of a schema, not of a manifest
    read = shared_schema(fields + version, "f")

    assert decode_manifest(encode_manifest(replace(manifest(), schema=read), b""), "m").version == manifest().version


def test_a_schema_with_dictionaries_is_encoded_with_its_own_positions() -> None:
    one, other = _placed(7), _placed(8)

    assert one == other
    assert _offsets(encoded_schema(one)) == {7}
    assert _offsets(encoded_schema(other)) == {8}


def _placed(offset: int) -> Schema:
    return with_dictionaries(DICTIONARY_SCHEMA, lambda field: Dictionary(offset, 3, DICTIONARIES.get(field.name)))


def _offsets(encoded: bytes) -> set[int]:
    fields = table_pb2.Manifest.FromString(encoded).fields
    return {field.dictionary.offset for field in fields if field.HasField("dictionary")}
