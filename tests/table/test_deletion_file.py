"""Deletion vectors: which file they go into, and what comes back out of a good or a hostile one."""

from __future__ import annotations

import json
from contextlib import suppress

import hypothesis.strategies as st
import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from pyroaring import BitMap

from lance_ops.core.errors import CorruptFile, InvalidInput, UnsupportedFeature
from lance_ops.pb import table_pb2
from lance_ops.table import DeletionFile, DeletionFileType, decode_deletion_vector, encode_deletion_vector
from lance_ops.table.fragments.deletion_file import MAX_ARROW_ROWS
from lance_ops.table.rows.roaring import decode_bitmap, encode_bitmap
from tests.checksums import without_checksums

VECTORS = st.one_of(
    st.frozensets(st.integers(0, 2**32 - 1), min_size=1, max_size=60).map(BitMap),
    st.tuples(st.integers(0, 2**31), st.integers(1, 20_000)).map(lambda run: BitMap(range(run[0], sum(run)))),
    st.integers(2, 7).map(lambda step: BitMap(range(0, 60_000, step))),
)


@given(VECTORS)
def test_what_is_encoded_is_decoded(vector: BitMap) -> None:
    deletion_file, data = encode_deletion_vector(vector, 3, 42)

    assert decode_deletion_vector(deletion_file, data, 0, "d") == vector
    assert deletion_file.num_deleted_rows == len(vector)


@pytest.mark.parametrize(
    ("rows", "kind", "name"),
    [
        (1, DeletionFileType.ARROW_ARRAY, "9-3-42.arrow"),
        (MAX_ARROW_ROWS, DeletionFileType.ARROW_ARRAY, "9-3-42.arrow"),
        (MAX_ARROW_ROWS + 1, DeletionFileType.BITMAP, "9-3-42.bin"),
    ],
)
def test_many_rows_go_into_a_bitmap(rows: int, kind: DeletionFileType, name: str) -> None:
    deletion_file, _ = encode_deletion_vector(BitMap(range(rows)), 3, 42)

    assert deletion_file.file_type is kind
    assert deletion_file.name(9) == name


@pytest.mark.parametrize(("rows", "is_compressed"), [(1, False), (899, False), (900, True), (2000, True)])
def test_the_arrow_file_has_one_column_of_offsets_compressed_if_it_is_long(rows: int, is_compressed: bool) -> None:
    _, data = encode_deletion_vector(BitMap(range(0, 2 * rows, 2)), 1, 1)

    with pa.ipc.open_file(pa.py_buffer(data)) as reader:
        assert reader.num_record_batches == 1
        assert reader.schema == pa.schema([pa.field("row_id", pa.uint32(), nullable=False)])
    assert (b"\x28\xb5\x2f\xfd" in data) == is_compressed  # the magic of a zstd frame
    assert is_compressed or len(data) <= 4096


@pytest.mark.parametrize("rows", [10, 6000])
def test_another_number_of_rows_than_the_manifest_says_is_corrupt(rows: int) -> None:
    deletion_file, _ = encode_deletion_vector(BitMap(range(rows)), 1, 1)
    _, other = encode_deletion_vector(BitMap(range(1, rows)), 1, 1)

    with pytest.raises(CorruptFile, match=f"d: deletion vector: {rows - 1} rows where the manifest says {rows}"):
        decode_deletion_vector(deletion_file, other, 0, "d")


def test_a_deletion_file_without_a_stated_count_is_read() -> None:
    _, data = encode_deletion_vector(BitMap([1, 5]), 1, 1)

    assert decode_deletion_vector(DeletionFile(1, 1, DeletionFileType.ARROW_ARRAY, 0), data, 0, "d") == BitMap([1, 5])


@pytest.mark.parametrize("rows", [20, 6000])
@given(
    flips=st.lists(st.tuples(st.integers(0, 10**6), st.integers(1, 255)), min_size=1, max_size=3), cut=st.integers(0, 9)
)
def test_flipped_and_cut_bytes_are_read_or_corrupt(rows: int, flips: list[tuple[int, int]], cut: int) -> None:
    deletion_file, encoded = encode_deletion_vector(BitMap(range(0, 3 * rows, 3)), 1, 1)
    data = bytearray(encoded)
    for at, mask in flips:
        data[at % len(data)] ^= mask

    for raw in (bytes(data), encoded[: len(encoded) * cut // 10]):
        with suppress(CorruptFile):
            assert len(decode_deletion_vector(deletion_file, raw, 0, "d")) == rows


@pytest.mark.parametrize(
    "column",
    [pa.array([1, None], pa.uint32()), pa.array([-1], pa.int64()), pa.array(["a"])],
    ids=["null", "negative", "text"],
)
def test_an_arrow_file_of_anything_but_offsets_is_corrupt(column: pa.Array) -> None:
    sink = pa.BufferOutputStream()
    batch = pa.record_batch([column], names=["row_id"])
    with pa.ipc.new_file(sink, batch.schema) as writer:
        writer.write_batch(batch)

    with pytest.raises(CorruptFile):
        decode_deletion_vector(DeletionFile(1, 1, DeletionFileType.ARROW_ARRAY, 0), sink.getvalue(), 0, "d")


def test_an_arrow_file_of_far_more_rows_than_bytes_is_not_decompressed() -> None:
    sink = pa.BufferOutputStream()
    batch = pa.record_batch([pa.array(np.zeros(17 << 20, np.uint32))], names=["row_id"])
    with pa.ipc.new_file(sink, batch.schema, options=pa.ipc.IpcWriteOptions(compression="zstd")) as writer:
        writer.write_batch(batch)

    with pytest.raises(CorruptFile, match="71303168 bytes at once"):
        decode_deletion_vector(DeletionFile(1, 1, DeletionFileType.ARROW_ARRAY, 0), sink.getvalue(), 0, "d")


def test_a_message_of_another_kind_is_not_taken_for_the_schema() -> None:
    metadata, data = encode_deletion_vector(BitMap([1, 2]), 1, 1)
    batch = data.index(b"\xff\xff\xff\xff", 9)
    with pytest.raises(CorruptFile, match="a record batch message where the schema's should be"):
        decode_deletion_vector(metadata, without_checksums(data[:8] + data[batch:]), 0, "x.arrow")


def test_an_unknown_deletion_file_type_is_refused_by_name() -> None:
    message = table_pb2.DeletionFile.FromString(b"\x08\x07")  # type 7

    with pytest.raises(UnsupportedFeature, match="deletion file type 7"):
        DeletionFile.from_pb(message, "m")


@given(VECTORS)
def test_a_bitmap_with_or_without_runs_is_decoded(vector: BitMap) -> None:
    assert decode_bitmap(encode_bitmap(vector), "b", "bits") == vector
    assert decode_bitmap(vector.serialize(), "b", "bits") == vector


@given(VECTORS, st.lists(st.tuples(st.integers(0, 10**6), st.integers(1, 255)), min_size=1, max_size=3))
def test_a_bitmap_is_never_read_out_of_order(vector: BitMap, flips: list[tuple[int, int]]) -> None:
    data = bytearray(encode_bitmap(vector))
    for at, mask in flips:
        data[at % len(data)] ^= mask
    try:
        found = list(decode_bitmap(bytes(data), "b", "bits"))
    except CorruptFile:
        return
    assert found == sorted(set(found))


@pytest.mark.parametrize(
    "data", [b"", b"\x3a\x30", b"\x3a\x30\0\0\xff\xff\xff\xff", encode_bitmap(BitMap([1])) + b"\0"]
)
def test_bytes_that_are_not_a_bitmap_are_corrupt(data: bytes) -> None:
    with pytest.raises(CorruptFile, match="b: bits: "):
        decode_bitmap(data, "b", "bits")


@pytest.mark.parametrize(
    "change",
    [{"read_version": "../x"}, {"id": None}, {"id": 1.5}, {"num_deleted_rows": []}, {"read_version": -1}, {"more": 1}],
    ids=str,
)
def test_json_with_values_of_other_types_is_refused(change: dict[str, object]) -> None:
    file = DeletionFile(3, 7, DeletionFileType.BITMAP, 4)
    assert DeletionFile.from_json(file.json()) == file
    with pytest.raises(InvalidInput, match="not a deletion file in JSON"):
        DeletionFile.from_json(json.dumps(file.asdict() | change))
