"""Features of later format versions are refused by name, and not reported as corruption."""

from __future__ import annotations

import pyarrow as pa
import pytest

from lance_ops.core.errors import InvalidInput, UnsupportedFeature
from lance_ops.core.schema import Field
from lance_ops.core.versions import FileVersion
from lance_ops.encodings.compressive.registry import encoding_from_pb
from lance_ops.encodings.contract import CorruptValues
from lance_ops.file.leaves import Leaf, Step
from lance_ops.file.v2_0.contract import ArrayContext
from lance_ops.file.v2_0.registry import array_encoding_from_pb
from lance_ops.file.v2_1.layouts.contract import PageContext
from lance_ops.file.v2_1.layouts.registry import layout_from_pb
from lance_ops.pb import encodings_v2_0_pb2, encodings_v2_1_pb2

UNKNOWN = bytes([0x9A, 0x06, 0x00])
"""An empty message as field 99."""

PAGE = PageContext(Leaf(Field(0, -1, "c", "int32"), (Step(),)), 1, (), 100)
ARRAY = ArrayContext((), 1, pa.int32())


def test_an_unknown_layout_is_refused_with_its_number() -> None:
    with pytest.raises(UnsupportedFeature, match="page layout 99"):
        layout_from_pb(encodings_v2_1_pb2.PageLayout.FromString(UNKNOWN), PAGE)
    with pytest.raises(CorruptValues, match="names no layout"):
        layout_from_pb(encodings_v2_1_pb2.PageLayout(), PAGE)


def test_an_unknown_encoding_is_refused_with_its_number() -> None:
    with pytest.raises(UnsupportedFeature, match="encoding 99"):
        encoding_from_pb(encodings_v2_1_pb2.CompressiveEncoding.FromString(UNKNOWN))
    with pytest.raises(CorruptValues, match="names no encoding"):
        encoding_from_pb(encodings_v2_1_pb2.CompressiveEncoding())


def test_an_unknown_encoding_of_2_0_is_refused_with_its_number() -> None:
    with pytest.raises(UnsupportedFeature, match=r"encoding 99 in 2\.0 pages"):
        array_encoding_from_pb(encodings_v2_0_pb2.ArrayEncoding.FromString(UNKNOWN), ARRAY)
    with pytest.raises(CorruptValues, match="names no encoding"):
        array_encoding_from_pb(encodings_v2_0_pb2.ArrayEncoding(), ARRAY)


def test_an_unknown_compression_scheme_is_refused_with_its_number() -> None:
    described = encodings_v2_1_pb2.CompressiveEncoding()
    described.general.compression.scheme = 77  # type: ignore[assignment]  # the enum is open on the wire
    described.general.values.flat.bits_per_value = 32
    with pytest.raises(UnsupportedFeature, match="compression scheme 77"):
        encoding_from_pb(described)


def test_an_unknown_file_version_is_refused_with_the_name_of_the_file() -> None:
    for numbers in ((2, 3), (2, 9), (3, 0)):
        with pytest.raises(UnsupportedFeature, match=rf"f\.lance: file version {numbers[0]}\.{numbers[1]}"):
            FileVersion.from_numbers(*numbers, "f.lance")
    with pytest.raises(UnsupportedFeature, match="next"):
        FileVersion.parse("next")
    with pytest.raises(InvalidInput):
        FileVersion.parse("2.4")
