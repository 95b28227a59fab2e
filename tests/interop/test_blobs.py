"""Blob columns of both kinds: the reference's tables read here, and ours there."""

from __future__ import annotations

import io
from datetime import timedelta
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import lance_ops
from lance_ops.errors import CorruptFile, InvalidInput, ObjectNotFound, SchemaMismatch, UnsupportedFeature
from lance_ops.fragment import write_fragments
from tests.checksums import blob_bytes

lance = pytest.importorskip("lance", reason="pylance, the reference implementation, is not installed")
pytestmark = pytest.mark.interop

MARK = {"lance-encoding:blob": "true"}
KIB = 1024
VALUES = [b"abc", None, b"", b"x" * (64 * KIB + 1), b"y" * 100_000, b"z" * (4 * KIB * KIB + 1), b"w" * (64 * KIB), b"q"]


def marked(values: list[bytes | None]) -> pa.Table:
    """Return a binary column whose metadata marks it as blobs."""
    schema = pa.schema([("i", pa.int64()), pa.field("b", pa.large_binary(), metadata=MARK)])
    return pa.table([range(len(values)), pa.array(values, pa.large_binary())], schema=schema)


def typed(values: list[Any], **thresholds: int) -> pa.Table:
    """The reference's extension type for blobs."""
    schema = pa.schema([("i", pa.int64()), lance.blob_field("b", **thresholds)])
    return pa.table([range(len(values)), lance.blob_array(values)], schema=schema)


def nested(values: list[bytes | None]) -> pa.Table:
    blobs = lance.blob_array(values)
    fields = [lance.blob_field("b"), pa.field("x", pa.int64())]
    structs = pa.StructArray.from_arrays([blobs, pa.array(range(len(values)))], fields=fields)
    offsets = pa.array([0, 2, 2, 2, 3, 5, 7, 7, 8], pa.int32())
    return pa.table({"i": range(len(values)), "s": structs, "l": pa.ListArray.from_arrays(offsets, blobs)})


def contents(dataset: Any, column: str, num_rows: int) -> list[bytes | None]:
    blobs = dataset.take_blobs(column, indices=list(range(num_rows)))
    return [None if blob is None else blob.read() for blob in blobs]


def sidecars(uri: str) -> list[int]:
    """Return how many bytes of blobs each sidecar has."""
    return sorted(blob_bytes(path) for path in Path(uri, "data").glob("*/*.blob"))


def assert_same(uri: str, column: str, wanted: list[bytes | None]) -> None:
    ours, theirs = lance_ops.dataset(uri), lance.dataset(uri)
    assert ours.schema.equals(theirs.schema, check_metadata=True)
    described, other = ours.to_table(), theirs.to_table()
    assert described.schema.equals(other.schema, check_metadata=True)
    assert described.to_pylist() == other.to_pylist()
    for handling in ("all_binary", "blobs_descriptions"):
        mine, other = ours.to_table(blob_handling=handling), theirs.to_table(blob_handling=handling)
        assert mine.schema.equals(other.schema)
        assert mine.to_pylist() == other.to_pylist()
    assert contents(ours, column, len(wanted)) == contents(theirs, column, len(wanted)) == wanted
    assert [data for _, data in ours.read_blobs(column, indices=[2, 0, 2])] == [wanted[i] for i in (2, 0, 2)]
    assert ours.take([1, 0]).to_pylist() == theirs.take([1, 0]).to_pylist()
    ours.validate()
    theirs.validate()


@pytest.mark.parametrize("first", [lance, lance_ops], ids=["theirs", "ours"])
@pytest.mark.parametrize(
    ("make", "version", "column"),
    [(marked, "2.0", "b"), (marked, "2.1", "b"), (marked, "2.2", "b"), (typed, "2.2", "b"), (nested, "2.2", "s.b")],
    ids=["marked 2.0", "marked 2.1", "marked 2.2", "typed", "nested"],
)
def test_blobs_survive_append_delete_compaction_and_clean_up(
    first: Any, make: Any, version: str, column: str, dataset_uri: str
) -> None:
    second = lance_ops if first is lance else lance
    first.write_dataset(make(VALUES), dataset_uri, data_storage_version=version, max_rows_per_file=6)
    assert_same(dataset_uri, column, VALUES)
    second.write_dataset(make(VALUES), dataset_uri, mode="append")
    assert_same(dataset_uri, column, VALUES * 2)
    ours = lance_ops.dataset(dataset_uri)
    ours.delete("i = 4")
    ours.optimize.compact_files()
    left = [value for i, value in enumerate(VALUES) if i != 4] * 2
    assert len(ours.get_fragments()) == 1
    assert_same(dataset_uri, column, left)
    before = len(sidecars(dataset_uri))
    removed = ours.cleanup_old_versions(timedelta(0))
    assert_same(dataset_uri, column, left)
    if version == "2.2":
        kept = 3 if make is not nested else 5  # one pack, and large blobs each on its own
        assert len(sidecars(dataset_uri)) == kept < before
        assert removed.data_files_removed == 3 + before - kept
    assert len(list(Path(dataset_uri, "data").glob("*.lance"))) == 1


def test_size_and_thresholds_decide_where_a_blob_is_stored(dataset_uri: str, tmp_path: Path) -> None:
    sizes = [9, 10, 11, 50, 50, 50, 100, 101]
    thresholds = {"inline_size_threshold": 10, "dedicated_size_threshold": 100, "pack_file_size_threshold": 120}
    table = typed([b"x" * size for size in sizes], **thresholds)
    theirs = str(tmp_path / "theirs")
    lance_ops.write_dataset(table, dataset_uri)
    lance.write_dataset(table, theirs)
    ours, other = (lance.dataset(uri).to_table().column("b").to_pylist() for uri in (dataset_uri, theirs))
    keys = ("kind", "size", "blob_id")
    assert [[row[key] for key in keys] for row in ours] == [[row[key] for key in keys] for row in other]
    assert sidecars(dataset_uri) == sidecars(theirs)


def test_external_blobs_are_read_and_written_only_when_allowed(dataset_uri: str, tmp_path: Path) -> None:
    (tmp_path / "far.bin").write_bytes(b"0123456789")
    uri = (tmp_path / "far.bin").as_uri()
    table = typed([lance.Blob.from_uri(uri), lance.Blob.from_uri(uri, 2, 3), b"near"])
    with pytest.raises(InvalidInput, match="column 'b'.*outside of the dataset"):
        lance_ops.write_dataset(table, dataset_uri)
    lance.write_dataset(table, dataset_uri, allow_external_blob_outside_bases=True)
    lance_ops.write_dataset(table, dataset_uri, mode="append", allow_external_blob_outside_bases=True)
    lance_ops.dataset(dataset_uri).optimize.compact_files()
    wanted: list[bytes | None] = [b"0123456789", b"234", b"near"]
    assert_same(dataset_uri, "b", wanted * 2)
    kinds = [row["kind"] for row in lance_ops.dataset(dataset_uri).to_table().column("b").to_pylist()]
    assert kinds == [3, 3, 0, 3, 3, 0]


def test_ingested_blobs_are_copied_into_the_table(dataset_uri: str, tmp_path: Path) -> None:
    content = {"small.bin": b"0123456789", "large.bin": b"y" * 100_000, "none.bin": b""}
    for name, data in content.items():
        (tmp_path / name).write_bytes(data)
    small, large, none = ((tmp_path / name).as_uri() for name in content)
    path = str(tmp_path / "small.bin")
    table = typed([lance.Blob.from_uri(small, 2, 3), lance.Blob.from_uri(large), none, None, b"near", path])
    theirs = str(tmp_path / "theirs")
    lance_ops.write_dataset(table, dataset_uri, external_blob_mode="ingest")
    lance.write_dataset(table, theirs, external_blob_mode="ingest")
    parts = write_fragments(table, dataset_uri, external_blob_mode="ingest", return_transaction=True)
    assert isinstance(parts, lance_ops.Transaction)
    lance_ops.LanceDataset.commit(dataset_uri, parts)
    for name in content:
        (tmp_path / name).unlink()
    wanted: list[bytes | None] = [b"234", b"y" * 100_000, b"", None, b"near", b"0123456789"]
    assert_same(dataset_uri, "b", wanted * 2)
    ours, other = (lance_ops.dataset(uri).to_table(limit=6).column("b").to_pylist() for uri in (dataset_uri, theirs))
    assert [row and (row["kind"], row["size"]) for row in ours] == [row and (row["kind"], row["size"]) for row in other]


def test_a_blob_that_cannot_be_ingested_is_refused_and_leaves_no_file(dataset_uri: str, tmp_path: Path) -> None:
    (tmp_path / "far.bin").write_bytes(b"0123456789")
    uri, options = (tmp_path / "far.bin").as_uri(), {"external_blob_mode": "ingest"}
    for blob, error, message in (
        (lance.Blob.from_uri(uri, 8, 3), InvalidInput, "column 'b': a blob ends at byte 11 of .*far.bin, which has 10"),
        (lance.Blob.from_uri(uri + ".gone"), ObjectNotFound, "far.bin.gone"),
        (lance.Blob.from_uri("far.bin"), InvalidInput, "'far.bin' is not the URI"),
    ):
        with pytest.raises(OSError, match=r"buffer|Not found"):
            lance.write_dataset(typed([blob]), dataset_uri, **options)
        with pytest.raises(error, match=message):
            lance_ops.write_dataset(typed([b"x" * 100_000, blob]), dataset_uri, external_blob_mode="ingest")
        assert [path for path in Path(dataset_uri).rglob("*") if path.is_file()] == []
    for wrong in ({**options, "allow_external_blob_outside_bases": True}, {"external_blob_mode": "copy"}):
        with pytest.raises((OSError, ValueError), match="external"):
            lance.write_dataset(typed([b"x"]), dataset_uri, **wrong)
        with pytest.raises(InvalidInput, match="external"):
            lance_ops.write_dataset(typed([b"x"]), dataset_uri, **wrong)


def test_a_blob_file_reads_seeks_and_tells_as_the_references(dataset_uri: str) -> None:
    data = bytes(range(256)) * 400
    lance_ops.write_dataset(marked([data]), dataset_uri)
    (ours,) = lance_ops.dataset(dataset_uri).take_blobs("b", indices=[0], buffer_size=100)
    (theirs,) = lance.dataset(dataset_uri).take_blobs("b", indices=[0])
    assert ours is not None
    for blob in (ours, theirs):
        assert (blob.size(), blob.tell(), blob.readable(), blob.seekable()) == (len(data), 0, True, True)
        assert blob.read(3) == data[:3]
        assert blob.seek(-2, io.SEEK_END) == len(data) - 2
        assert (blob.read(), blob.read(5), blob.tell()) == (data[-2:], b"", len(data))
        assert blob.seek(1000) == 1000
        assert blob.read_range(5, 10) == data[5:15]
        assert blob.read_ranges([(0, 1), (7, 2)]) == [data[:1], data[7:9]]
        assert blob.tell() == 1000
        target = bytearray(10)
        assert (blob.readinto(target), bytes(target)) == (10, data[1000:1010])
        with pytest.raises(ValueError, match="negative seek"):
            blob.seek(-1)
        with pytest.raises(ValueError, match="blob"):
            blob.read_range(len(data), 1)
        blob.close()
        with pytest.raises(ValueError, match="closed file"):
            blob.read()


def test_updated_rows_keep_their_blobs(dataset_uri: str) -> None:
    lance_ops.write_dataset(typed(VALUES), dataset_uri)
    lance_ops.dataset(dataset_uri).update({"i": "i + 100"}, where="i >= 3")
    assert_same(dataset_uri, "b", VALUES)
    assert lance_ops.dataset(dataset_uri).to_table(columns=["i"]).column("i").to_pylist()[3:] == list(range(103, 108))


@pytest.mark.parametrize("stable", [False, True])
@pytest.mark.parametrize("mode", ["rewrite_rows", "rewrite_columns"])
def test_merged_rows_keep_the_blobs_that_the_source_lacks(dataset_uri: str, mode: str, stable: bool) -> None:
    table = typed(VALUES).append_column("v", pa.array(range(8)))
    dataset = lance_ops.write_dataset(table, dataset_uri, enable_stable_row_ids=stable, max_rows_per_file=5)
    source = pa.table({"i": [7, 2, 4], "v": [70, 20, 40]})
    dataset.merge_insert("i").when_matched_update_all().write_mode(mode).execute(source)
    after = lance_ops.dataset(dataset_uri).to_table(columns=["i", "v"]).to_pydict()
    assert dict(zip(*after.values(), strict=True)) == dict(enumerate(range(8))) | {7: 70, 2: 20, 4: 40}
    assert_same(dataset_uri, "b", [VALUES[i] for i in after["i"]])


def test_merged_rows_keep_blobs_in_structs_that_the_source_has_in_part(dataset_uri: str) -> None:
    dataset = lance_ops.write_dataset(nested(VALUES), dataset_uri)
    source = pa.table({"i": [6, 3, 99], "s": [{"x": 60}, {"x": 30}, {"x": 990}]})
    dataset.merge_insert("i").when_matched_update_all().when_not_matched_insert_all().execute(source)
    after = lance_ops.dataset(dataset_uri).to_table(columns=["i", "s.x"]).to_pydict()
    assert dict(zip(*after.values(), strict=True)) == dict(enumerate(range(8))) | {6: 60, 3: 30, 99: 990}
    assert_same(dataset_uri, "s.b", [VALUES[i] if i < 8 else None for i in after["i"]])


def test_scans_with_filters_limits_and_parts_of_descriptors_match_the_reference(dataset_uri: str) -> None:
    lance.write_dataset(typed(VALUES), dataset_uri)
    ours, theirs = lance_ops.dataset(dataset_uri), lance.dataset(dataset_uri)
    for options in ({"filter": "i > 4"}, {"limit": 2, "offset": 3}, {"columns": ["b"]}, {"columns": ["b.kind"]}):
        assert ours.to_table(**options).to_pylist() == theirs.to_table(**options).to_pylist()
    found = [batch.to_pylist() for batch in ours.to_batches(filter="i < 4", blob_handling="all_binary")]
    assert [row["b"] for rows in found for row in rows] == VALUES[:4]


@pytest.mark.parametrize(
    ("described", "error", "says"),
    [
        ({"kind": 0, "position": 1 << 40, "size": 5}, CorruptFile, None),
        ({"kind": 0, "position": (1 << 64) - 1, "size": (1 << 64) - 1}, CorruptFile, None),
        ({"kind": 4}, UnsupportedFeature, r"\.lance: managed blobs, of kind 4,"),
        ({"kind": 200}, UnsupportedFeature, "blobs of kind 200"),
    ],
)
def test_descriptors_that_point_outside_the_data_are_refused(
    described: dict[str, int],
    error: type[Exception],
    says: str | None,
    dataset_uri: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    row = (described["kind"], described.get("position", 0), described.get("size", 0), 0, "")
    monkeypatch.setattr("lance_ops.blobs.blob_writer.BlobWriter._put", lambda *_: row)
    made = lance_ops.write_dataset(typed([b"abc"]), dataset_uri)
    with pytest.raises(error, match=says):
        made.take_blobs("b", indices=[0])
    with pytest.raises(error, match=says):
        made.to_table(blob_handling="all_binary")
    if described["kind"] == 4:  # the reference cannot read this, nor does it write it
        with pytest.raises((OSError, ValueError, NotImplementedError)):
            lance.dataset(dataset_uri).take_blobs("b", indices=[0])[0].read()


def test_values_that_are_no_blobs_are_refused_and_leave_no_file(dataset_uri: str) -> None:
    made = lance_ops.write_dataset(marked([b"x" * 70_000]), dataset_uri)
    with pytest.raises(SchemaMismatch, match="column 'b' holds blobs"):
        lance_ops.write_dataset(pa.table({"i": [1], "b": [5]}), dataset_uri, mode="append")
    big = typed([b"x" * 70_000, b"y" * 5_000_000, lance.Blob.from_uri("file:///nowhere")])
    with pytest.raises(InvalidInput):
        lance_ops.write_dataset(big, dataset_uri, mode="append", max_rows_per_file=1)
    assert sidecars(dataset_uri) == [70_000]
    assert made.latest_version == 1
    with pytest.raises(InvalidInput, match="holds no blobs"):
        made.take_blobs("i", indices=[0])
    with pytest.raises(InvalidInput, match="exactly one"):
        made.take_blobs("b")
    with pytest.raises(InvalidInput, match="blob_handling"):
        made.to_table(blob_handling="some")
    with pytest.raises(UnsupportedFeature, match=r"lance\.blob\.v2 in file version 2\.1"):
        lance_ops.write_dataset(typed([b"x"]), dataset_uri, mode="overwrite", data_storage_version="2.1")
