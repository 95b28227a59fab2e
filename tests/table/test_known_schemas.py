"""The schemas of manifests: decoded once for all versions that have the same, and refused by name."""

from __future__ import annotations

from dataclasses import replace

import pytest

from lance_ops.core.errors import CorruptFile
from lance_ops.pb import table_pb2
from lance_ops.table import decode_manifest, encode_manifest
from lance_ops.table.known_schemas import known_schema
from tests.table.samples import manifest


def test_versions_of_one_schema_share_it() -> None:
    first = manifest()
    one, other = (decode_manifest(encode_manifest(replace(first, version=version), b""), "m") for version in (1, 2))
    changed = replace(first, schema=replace(first.schema, metadata={"a": "b"}))

    assert one.schema == first.schema
    assert other.schema is one.schema
    assert decode_manifest(encode_manifest(changed, b""), "m").schema.metadata == {"a": "b"}


def test_an_unsound_schema_is_refused_in_the_name_of_each_manifest() -> None:
    message = table_pb2.Manifest()
    message.fields.add(name="child", id=1, parent_id=7, logical_type="int32")

    for path in ("one", "other"):
        with pytest.raises(CorruptFile, match=f"{path}: .*'child' comes before its parent 7"):
            known_schema(message, path)
