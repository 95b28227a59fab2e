"""JSON documents have the expected JSONB bytes, and invalid text and bytes are refused."""

import json
import math
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lance_ops.core.json.jsonb import MAX_DEPTH, CorruptJsonb, decode, encode
from lance_ops.errors import InvalidInput, UnsupportedFeature

SCALARS = st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text()
DOCUMENTS = st.recursive(SCALARS, lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner), max_leaves=12)


@pytest.mark.parametrize(
    ("text", "stored"),
    [
        ("null", "20000000 00000000"),
        ("true", "20000000 40000000"),
        ("false", "20000000 30000000"),
        ('"é"', "20000000 10000002 c3a9"),
        ("0", "20000000 20000001 00"),
        ("255", "20000000 20000002 50ff"),
        ("256", "20000000 20000003 500100"),
        ("-128", "20000000 20000002 4080"),
        ("-129", "20000000 20000003 40ff7f"),
        ("18446744073709551615", "20000000 20000009 50ffffffffffffffff"),
        ("18446744073709551616", "20000000 20000009 6043f0000000000000"),
        ("1.5", "20000000 20000009 603ff8000000000000"),
        ("[]", "80000000"),
        ("{}", "40000000"),
        ('{"b":1,"a":[true]}', "40000002 10000001 10000001 50000008 20000002 61 62 80000001 40000000 5001"),
    ],
)
def test_a_document_is_encoded_to_the_expected_bytes(text: str, stored: str) -> None:
    assert encode(text) == bytes.fromhex(stored)


@given(DOCUMENTS)
def test_a_document_survives_encoding_and_decoding(document: Any) -> None:
    text = decode(encode(json.dumps(document)))
    assert decode(encode(text)) == text
    assert json.loads(text) == _stored(document)


def _stored(value: Any) -> Any:
    if isinstance(value, int) and not isinstance(value, bool) and not -(1 << 63) <= value < 1 << 64:
        return float(value)
    if isinstance(value, list):
        return [_stored(item) for item in value]
    if isinstance(value, dict):
        return {key: _stored(item) for key, item in value.items()}
    return value


@pytest.mark.parametrize(
    ("number", "text"),
    [("1e15", "1000000000000000.0"), ("1e16", "1e+16"), ("1e-5", "0.00001"), ("1.5e-6", "1.5e-6"), ("-0.0", "-0.0")],
)
def test_decoded_numbers_are_spelled_as_in_the_reference(number: str, text: str) -> None:
    assert decode(encode(number)) == text


@pytest.mark.parametrize(
    "text",
    ["", "tru", "[1,", "{'a': 1}", "NaN", "Infinity", "1e400", '"\\ud800"', '{"a":1,"a":2}', "1 2", "9" * 5000],
)
def test_text_that_cannot_be_stored_is_refused(text: str) -> None:
    with pytest.raises(InvalidInput, match="not a JSON text"):
        encode(text)


def test_encoding_and_decoding_refuse_documents_that_are_too_deep() -> None:
    deepest = "[" * MAX_DEPTH + "]" * MAX_DEPTH
    assert decode(encode(deepest)) == deepest
    for depth in (MAX_DEPTH + 1, 100_000):
        with pytest.raises(InvalidInput):
            encode("[" * depth + "]" * depth)
    data = encode(deepest)
    data = bytes.fromhex("80000001") + (5 << 28 | len(data)).to_bytes(4, "big") + data
    data = bytes.fromhex("80000001") + (5 << 28 | len(data)).to_bytes(4, "big") + data
    with pytest.raises(UnsupportedFeature, match="nested objects and arrays"):
        decode(data)


@pytest.mark.parametrize(
    ("stored", "text"),
    [
        ("", "null"),
        ("20000000 2000000a 70 0000000000003039 02", "123.45"),
        ("20000000 20000012 70 ffffffffffffffffffffffffffffcfc7 01", "-1234.5"),
        ("20000000 20000002 4000", "0"),
        ("20000000 20000001 10", "null"),
        ("40000002 10000001 10000001 20000002 20000002 62 61 5002 5001", '{"b":2,"a":1}'),
    ],
)
def test_values_that_only_other_programs_write_are_decoded(stored: str, text: str) -> None:
    assert decode(bytes.fromhex(stored)) == text


@given(DOCUMENTS, st.data())
def test_damaged_bytes_decode_to_valid_json_or_raise(document: Any, data: st.DataObject) -> None:
    stored = bytearray(encode(json.dumps(document)))
    for _ in range(data.draw(st.integers(1, 3))):
        stored[data.draw(st.integers(0, len(stored) - 1))] = data.draw(st.integers(0, 255))
    cut = bytes(stored[: data.draw(st.integers(0, len(stored)))])
    try:
        text = decode(cut)
    except (CorruptJsonb, UnsupportedFeature):
        return
    value = json.loads(text)
    assert not (isinstance(value, float) and math.isnan(value))


@pytest.mark.parametrize(
    "stored",
    [
        "20",
        "ffffffffff",
        "20000000 60",
        "20000001 00000000",
        "20000000 70000000",
        "20000000 20000004 40000000",
        "20000000 10000002 fffe",
        "80000002 50000004 00000000",
        "40000001 00000000 00000000",
        "8fffffff",
        "20000000 40000001 00",
    ],
)
def test_bytes_that_contradict_the_layout_are_corrupt(stored: str) -> None:
    with pytest.raises(CorruptJsonb):
        decode(bytes.fromhex(stored))
