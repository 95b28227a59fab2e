"""Pages of blobs: the bytes leave memory at once, and a page describes many blobs."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest

from lance_ops.core.schema import Schema
from lance_ops.core.versions import FileVersion
from lance_ops.file import FileWriter, LanceFileReader, LanceFileWriter
from lance_ops.store import LocalStore

BLOB = pa.field("b", pa.large_binary(), metadata={"lance-encoding:blob": "true"})
SCHEMA = pa.schema([("k", pa.int64()), BLOB])
VERSIONS = ["2.0", "2.1", "2.2"]


def rows(first: int, count: int, size: int) -> pa.Table:
    """Return blobs of which some are null and some empty."""
    values = [
        None if at % 7 == 3 else b"" if at % 7 == 5 else bytes([at % 251]) * size for at in range(first, first + count)
    ]
    return pa.table([range(first, first + count), pa.array(values, pa.large_binary())], schema=SCHEMA)


@pytest.mark.interop
@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("size", [1, 3000, 40_000])
def test_the_size_of_blobs_does_not_change_the_number_of_pages(tmp_path: Path, version: str, size: int) -> None:
    lance_file = pytest.importorskip("lance.file", reason="pylance, the reference implementation, is not installed")
    path = tmp_path / "file.lance"
    with LanceFileWriter(path, SCHEMA, version=version, max_page_bytes=6000) as writer:
        for first in range(0, 600, 4):
            writer.write_batch(rows(first, 4, size))
    given = rows(0, 600, size)
    for library_reader in (LanceFileReader(path), lance_file.LanceFileReader(str(path))):
        assert len(library_reader.metadata().columns[-1].pages) in (2, 3)  # 250 descriptors of 16 bytes fill a page
        assert library_reader.read_all().to_table().equals(given)
        assert library_reader.read_range(240, 20).to_table().equals(given.slice(240, 20))


@pytest.mark.parametrize("version", VERSIONS)
def test_blobs_are_written_before_their_page_is_full(tmp_path: Path, version: str) -> None:
    store = LocalStore(str(tmp_path))
    with FileWriter(store, "file.lance", Schema.from_arrow(SCHEMA), FileVersion.parse(version)) as writer:
        for at in range(3):
            writer.write_batch(rows(0, 1, 1000))
            assert 1000 * (at + 1) <= writer.bytes_written < 1200 * (at + 1)


def test_blobs_beneath_a_null_are_not_written(tmp_path: Path) -> None:
    hidden = pa.array([b"x" * 5000, b"y", None], pa.large_binary())
    structs = pa.StructArray.from_arrays([hidden], fields=[BLOB], mask=pa.array([True, False, False]))
    table = pa.table([structs], schema=pa.schema([pa.field("s", structs.type)]))
    with LanceFileWriter(tmp_path / "file.lance") as writer:
        writer.write_batch(table)
    assert LanceFileReader(tmp_path / "file.lance").read_all().to_table().to_pylist() == [
        {"s": None},
        {"s": {"b": b"y"}},
        {"s": {"b": None}},
    ]
    assert (tmp_path / "file.lance").stat().st_size < 5000
