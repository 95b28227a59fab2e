"""The API of the reference implementation for single files."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from lance_ops.core.errors import InvalidInput, ObjectNotFound, SchemaMismatch, UnsupportedFeature
from lance_ops.file import LanceFileReader, LanceFileWriter, stable_version

TABLE = pa.table({"a": list(range(3000)), "s": [{"x": i, "y": [str(i)]} for i in range(3000)]})


@pytest.fixture
def path(tmp_path: Path) -> Path:
    path = tmp_path / "file.lance"
    with LanceFileWriter(path) as writer:
        writer.write_batch(TABLE)
        writer.add_schema_metadata("made", "here")
        assert writer.add_global_buffer(b"more") == 1
    assert writer.size_bytes == path.stat().st_size
    assert writer.close() is None
    return path


def test_a_file_is_read_whole_in_ranges_and_by_rows(path: Path) -> None:
    reader = LanceFileReader(str(path))
    assert reader.num_rows() == 3000
    whole = reader.read_all()
    assert [len(batch) for batch in whole.to_batches()] == [1024, 1024, 952]
    assert reader.read_all(batch_size=100).to_table().to_pylist() == TABLE.to_pylist()
    assert reader.read_range(10, 5).to_table().to_pylist() == TABLE.slice(10, 5).to_pylist()
    assert reader.take_rows([2999, 7, 7]).to_table().column("a").to_pylist() == [2999, 7, 7]
    assert reader.read_global_buffer(1) == b"more"


def test_columns_select_nested_fields(path: Path) -> None:
    reader = LanceFileReader(path, columns=["s.x"])
    assert reader.read_all().to_table().schema.names == ["s"]
    assert reader.take_rows([5]).to_table().to_pylist() == [{"s": {"x": 5}}]
    with pytest.raises(InvalidInput, match="not among a, s"):
        LanceFileReader(path, columns=["b"])


def test_metadata_has_rows_sections_pages_and_encodings(path: Path) -> None:
    reader = LanceFileReader(path)
    metadata = reader.metadata()
    assert (metadata.num_rows, metadata.major_version, metadata.minor_version) == (3000, 2, 2)
    assert metadata.schema.metadata == {b"made": b"here"}
    assert len(metadata.global_buffers) == 2
    assert [len(column.pages) for column in metadata.columns] == [1, 1, 1]
    assert metadata.columns[2].pages[0].encoding.startswith("mini_block")
    assert [column.num_pages for column in reader.file_statistics().columns] == [1, 1, 1]
    assert sum(column.size_bytes for column in reader.file_statistics().columns) <= metadata.num_data_bytes


def test_rows_outside_the_file_are_refused(path: Path) -> None:
    reader = LanceFileReader(path)
    for start, rows in ((2999, 2), (-1, 1), (0, -1)):
        with pytest.raises(InvalidInput, match="of a file of 3000 rows"):
            reader.read_range(start, rows)
    with pytest.raises(InvalidInput, match="row offsets"):
        reader.take_rows([3000])
    with pytest.raises(InvalidInput, match="there is no 2"):
        reader.read_global_buffer(2)


def test_an_exception_in_the_with_block_leaves_no_file(tmp_path: Path) -> None:
    path = tmp_path / "file.lance"
    with pytest.raises(SchemaMismatch), LanceFileWriter(path, TABLE.schema) as writer:
        writer.write_batch(TABLE.select(["a"]))
    assert list(tmp_path.iterdir()) == []
    with pytest.raises(ObjectNotFound):
        LanceFileReader(path)


def test_a_writer_without_schema_and_rows_is_refused(tmp_path: Path) -> None:
    writer = LanceFileWriter(tmp_path / "file.lance")
    with pytest.raises(InvalidInput, match="neither a schema nor a batch"):
        writer.close()
    with pytest.raises(InvalidInput, match="no schema yet"):
        writer.add_schema_metadata("key", "value")


def test_page_limits_give_more_pages(tmp_path: Path) -> None:
    table = pa.table({"x": pa.array(range(100_000))})
    for name in ("max_page_bytes", "data_cache_bytes"):
        path = tmp_path / name
        limits: dict[str, Any] = {name: 100_000}
        with LanceFileWriter(path, table.schema, **limits) as writer:
            writer.write_batch(table)
        reader = LanceFileReader(path)
        assert reader.file_statistics().columns[0].num_pages == 8
        assert reader.read_all().to_table().equals(table)


def test_the_default_version_and_unsupported_arguments_are_as_in_the_reference(tmp_path: Path) -> None:
    assert stable_version() == "2.2"
    with LanceFileWriter(tmp_path / "file.lance", TABLE.schema, version="2.1") as writer:
        writer.write_batch(TABLE)
    assert LanceFileReader(tmp_path / "file.lance").metadata().minor_version == 1
    with pytest.raises(UnsupportedFeature, match=r"2\.3"):
        LanceFileWriter(tmp_path / "other.lance", TABLE.schema, version="2.3")
    with pytest.raises(UnsupportedFeature, match="namespace"):
        LanceFileReader(tmp_path / "file.lance", namespace_client=object())
