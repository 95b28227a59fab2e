"""Both libraries read our blob values as blob columns, with the reference's type loaded in the process or not."""

from __future__ import annotations

import pickle
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import lance_ops
from lance_ops.blob import Blob, BlobType, blob_array, blob_field
from lance_ops.errors import InvalidInput

lance = pytest.importorskip("lance", reason="pylance, the reference implementation, is not installed")
pytestmark = pytest.mark.interop

VALUES = [b"abc", None, b"", bytearray(b"x" * 70_000), memoryview(b"view"), Blob.empty(), Blob.from_bytes(b"blob")]
WANTED = [b"abc", None, b"", b"x" * 70_000, b"view", b"", b"blob"]


@pytest.mark.parametrize("writer", [lance_ops, lance], ids=["written here", "written there"])
@pytest.mark.parametrize("with_schema", [True, False])
def test_a_blob_column_is_written_and_read_by_both(tmp_path: Path, writer: Any, with_schema: bool) -> None:
    schema = pa.schema([("i", pa.int64()), blob_field("b", pack_file_size_threshold=100_000)])
    table = (
        pa.table([range(len(VALUES)), blob_array(VALUES)], schema=schema)
        if with_schema
        else pa.table({"i": range(len(VALUES)), "b": blob_array(VALUES)})
    )
    uri = writer.write_dataset(table, str(tmp_path / "table"), data_storage_version="2.2").uri
    for library in (lance_ops, lance):
        dataset = library.dataset(uri)
        assert [data for _, data in dataset.read_blobs("b", indices=list(range(len(WANTED))))] == WANTED
    metadata = lance_ops.dataset(uri).lance_schema.field("b")
    assert metadata is not None
    assert metadata.metadata.get("lance-encoding:blob-pack-file-size-threshold") == ("100000" if with_schema else None)


def test_a_blob_may_be_a_range_of_another_object(tmp_path: Path) -> None:
    other = tmp_path / "other.bin"
    other.write_bytes(b"0123456789")
    values: list[str | Blob] = [str(other), Blob.from_uri(str(other), 2, 3)]
    ways: tuple[dict[str, Any], ...] = ({"external_blob_mode": "ingest"}, {"allow_external_blob_outside_bases": True})
    for options in ways:
        place = tmp_path / next(iter(options))
        table = pa.table({"b": blob_array(values)})
        dataset = lance_ops.write_dataset(table, place, **options)
        assert [data for _, data in dataset.read_blobs("b", indices=[0, 1])] == [b"0123456789", b"234"]


def test_blob_values_and_field_equal_the_reference_s() -> None:
    assert blob_array([b"a", None, "u"]).storage.equals(lance.blob_array([b"a", None, "u"]).storage)
    thresholds = {"inline_size_threshold": 0, "dedicated_size_threshold": 9, "pack_file_size_threshold": 7}
    for given in ({}, thresholds):
        ours, theirs = (library.blob_field("b", nullable=False, **given) for library in (lance_ops, lance))
        assert (ours.name, ours.nullable, ours.metadata) == (theirs.name, theirs.nullable, theirs.metadata)
        assert (ours.type.extension_name, ours.type.storage_type) == (
            theirs.type.extension_name,
            theirs.type.storage_type,
        )
    assert pickle.loads(pickle.dumps(BlobType())) == BlobType()


WRONG: list[dict[str, Any]] = [
    {},
    {"data": b"a", "uri": "u"},
    {"uri": ""},
    {"data": b"a", "position": 1, "size": 1},
    {"uri": "u", "position": 1},
    {"uri": "u", "position": 1, "size": 0},
]


@pytest.mark.parametrize("given", WRONG, ids=str)
def test_values_that_are_no_blobs_are_refused(given: dict[str, Any]) -> None:
    for library in (lance_ops, lance):
        with pytest.raises(ValueError, match=r".+"):
            library.Blob(**given)


def test_invalid_blob_values_and_thresholds_are_refused() -> None:
    for library in (lance_ops, lance):
        with pytest.raises((ValueError, TypeError)):
            library.blob_array([3])
        for wrong in (
            {"inline_size_threshold": -1},
            {"dedicated_size_threshold": 0},
            {"pack_file_size_threshold": True},
        ):
            with pytest.raises((ValueError, TypeError)):
                library.blob_field("b", **wrong)
    with pytest.raises(InvalidInput, match="bytes, a URI as text, a Blob or None, not a int"):
        blob_array([3])  # type: ignore[list-item]  # what is refused


@pytest.mark.parametrize("kind", [pa.binary(), pa.large_binary()])
def test_a_binary_column_is_read_as_file_objects(kind: pa.DataType) -> None:
    column = pa.chunked_array([pa.array([b"one", b""], kind), pa.array([b"three"], kind)])
    for library in (lance_ops, lance):
        for values in (column, column.chunk(0)):
            blobs = library.BlobColumn(values)
            for _ in range(2):  # each loop begins anew
                assert [blob.read() for blob in blobs] == values.to_pylist()
        for refused in ([b"one"], pa.array(["one"]), pa.array([1])):
            with pytest.raises(ValueError, match="[Aa]rray|binary"):
                library.BlobColumn(refused)
    opened = list(lance_ops.BlobColumn(pa.array([b"one", None], kind)))
    assert opened[1] is None
    assert opened[0] is not None
    assert opened[0].seek(1) == 1
    assert opened[0].read() == b"ne"
