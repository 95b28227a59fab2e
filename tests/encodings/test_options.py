from __future__ import annotations

import pytest

from lance_ops.core.errors import InvalidInput
from lance_ops.encodings.choosing.options import NO_OPTIONS, EncodingOptions


def test_a_field_without_metadata_leaves_every_choice_to_its_values() -> None:
    for key in ("comment", "lance-encoding:blob", "lance-encoding:note", "packed"):
        assert EncodingOptions.from_metadata({key: "mine"}) is NO_OPTIONS


def test_every_metadata_key_is_read() -> None:
    metadata = {
        "compression": "ZSTD",
        "compression-level": "6",
        "rle-threshold": "0.25",
        "dict-divisor": "10",
        "dict-size-ratio": "0.5",
        "dict-values-compression": "none",
        "dict-values-compression-level": "3",
        "bss": "on",
        "structural-encoding": "fullzip",
        "minichunk-size": "2048",
        "packed": "true",
    }
    assert EncodingOptions.from_metadata({f"lance-encoding:{key}": value for key, value in metadata.items()}) == (
        EncodingOptions("zstd", 6, 0.25, 10, 0.5, "none", 3, "on", "fullzip", 2048, packed=True)
    )


def test_the_old_spelling_of_packed_is_read() -> None:
    assert EncodingOptions.from_metadata({"packed": "true"}).packed


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("compression", "gzip"),
        ("compression-level", "high"),
        ("compression-level", "23"),
        ("dict-values-compression-level", "high"),
        ("minichunk-size", "small"),
        ("rle-threshold", "1.5"),
        ("rle-threshold", "nan"),
        ("dict-divisor", "0"),
        ("dict-size-ratio", "-1"),
        ("bss", "maybe"),
        ("structural-encoding", "columns"),
    ],
)
def test_an_invalid_option_value_is_refused_with_its_key(key: str, value: str) -> None:
    with pytest.raises(InvalidInput, match=f"lance-encoding:{key}"):
        EncodingOptions.from_metadata({f"lance-encoding:{key}": value})
