"""The values of dictionary columns that the manifest of a 0.1 table begins with."""

from __future__ import annotations

import struct
from contextlib import suppress
from dataclasses import replace

import hypothesis.strategies as st
import pyarrow as pa
import pytest
from hypothesis import given

from lance_ops.core.errors import CorruptFile, LanceOpsError, UnsupportedFeature
from lance_ops.core.schema import Dictionary, Schema, with_dictionaries
from lance_ops.table import DataFormat, decode_manifest, encode_manifest, inline_transaction
from tests.checksums import without_checksums
from tests.table.samples import DICTIONARIES, DICTIONARY_SCHEMA, index, legacy_manifest, with_values

NAMES = pa.dictionary(pa.int8(), pa.string())
NUMBERS = pa.dictionary(pa.uint16(), pa.int64())


def moved(offset: int, length: int, arrow_type: pa.DataType = NAMES, *, data_format: str = "0.1") -> bytes:
    """Return a manifest whose one dictionary is said to be elsewhere than it is."""
    schema = Schema.from_arrow(pa.schema([("c", arrow_type)]))
    values = pa.array([1, 2, 3]).cast(arrow_type.value_type)
    data = without_checksums(encode_manifest(legacy_manifest(with_values(schema, {"c": values})), b""))
    (position,) = struct.unpack_from("<Q", data, len(data) - 16)
    prefix, true = data[:position], decode_manifest(data, "m")
    field = replace(true.schema.fields[0], dictionary=Dictionary(offset, length))
    message = replace(true, schema=Schema((field,)), data_format=DataFormat(data_format)).to_pb()
    framed = message.SerializeToString()
    return prefix + struct.pack("<I", len(framed)) + framed + struct.pack("<QHH4s", position, 0, 2, b"LANC")


def test_values_precede_the_sections() -> None:
    schema = with_values(
        Schema.from_arrow(pa.schema([("s", NAMES), ("n", NUMBERS)])),
        {"s": DICTIONARIES["name"], "n": DICTIONARIES["number"]},
    )
    data = encode_manifest(legacy_manifest(schema), b"made by this")

    text = "abéccc".encode()
    assert data.startswith(text + struct.pack("<4q2q", 0, 1, 4, 7, 10, -20))
    found = decode_manifest(data, "m")
    places = [(each.offset, each.length) for field in found.schema.fields if (each := field.dictionary) is not None]
    assert places == [(len(text), 3), (len(text) + 32, 2)]
    assert inline_transaction(data, "m") == b"made by this"
    assert found.indices == (index(1),)


def test_values_of_every_kind_and_depth_survive_a_rewrite() -> None:
    content = legacy_manifest(with_values(DICTIONARY_SCHEMA, DICTIONARIES))
    found = decode_manifest(encode_manifest(content, b"t"), "m")
    assert found == content
    loaded = {node.name: node.dictionary for node in found.schema.walk() if node.dictionary is not None}
    assert {name: dictionary.values for name, dictionary in loaded.items()} == DICTIONARIES
    again = encode_manifest(replace(found, version=found.version + 1), b"more")
    assert decode_manifest(again, "m").schema == found.schema


def test_an_empty_string_is_a_null_as_in_data_files() -> None:
    schema = Schema.from_arrow(pa.schema([("c", NAMES)]))
    found = decode_manifest(
        encode_manifest(legacy_manifest(with_values(schema, {"c": pa.array(["a", "", None])})), b""), "m"
    )
    assert found.schema.fields[0].dictionary == Dictionary(1, 3, pa.array(["a", None, None]))


@pytest.mark.parametrize("offset", [-1, 1, 1 << 20, (1 << 63) - 1, -(1 << 63)])
@pytest.mark.parametrize("length", [-1, 3, 1 << 20, (1 << 63) - 1])
@pytest.mark.parametrize("arrow_type", [NUMBERS, pa.dictionary(pa.int8(), pa.large_string())], ids=str)
def test_values_outside_the_file_are_corrupt_and_name_the_field(
    offset: int, length: int, arrow_type: pa.DataType
) -> None:
    if (offset, length, arrow_type) == (1, 3, NUMBERS):
        return  # three other numbers of the file
    with pytest.raises(CorruptFile, match="dictionary of field 'c'"):
        decode_manifest(moved(offset, length, arrow_type), "m")


def test_fields_that_share_bytes_beyond_the_file_size_are_corrupt() -> None:
    schema = Schema.from_arrow(pa.schema([(f"c{i}", NUMBERS) for i in range(100)]))
    values = pa.array(range(1000))
    only = {field.name: values if field.id == 0 else values[:0] for field in schema.fields}
    data = without_checksums(encode_manifest(legacy_manifest(with_values(schema, only)), b""))
    (position,) = struct.unpack_from("<Q", data, len(data) - 16)
    told = with_dictionaries(schema, lambda _: Dictionary(0, 1000))
    framed = legacy_manifest(told).to_pb().SerializeToString()
    footer = struct.pack("<QHH4s", position, 0, 2, b"LANC")
    with pytest.raises(CorruptFile, match="more bytes than the file"):
        decode_manifest(data[:position] + struct.pack("<I", len(framed)) + framed + footer, "m")


def test_dictionaries_of_later_versions_are_not_loaded() -> None:
    found = decode_manifest(moved(1 << 20, 1 << 20, data_format="2.2"), "m")
    rewritten = decode_manifest(encode_manifest(found, b""), "m")
    assert rewritten.schema.fields[0].dictionary == Dictionary(0, 0)


def test_encoding_without_loaded_values_is_refused() -> None:
    with pytest.raises(UnsupportedFeature, match="'name'"):
        encode_manifest(legacy_manifest(DICTIONARY_SCHEMA), b"")


@given(st.data())
def test_broken_bytes_are_refused_or_read(data: st.DataObject) -> None:
    whole = bytearray(
        without_checksums(encode_manifest(legacy_manifest(with_values(DICTIONARY_SCHEMA, DICTIONARIES)), b"t"))
    )
    for _ in range(data.draw(st.integers(1, 3))):
        whole[data.draw(st.integers(0, len(whole) - 1))] ^= 1 << data.draw(st.integers(0, 7))
    with suppress(LanceOpsError):
        for node in decode_manifest(bytes(whole), "m").schema.walk():
            if node.dictionary is not None and node.dictionary.values is not None:
                node.dictionary.values.validate(full=True)
