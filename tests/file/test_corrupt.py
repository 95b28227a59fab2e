"""Bytes that contradict the format raise `CorruptFile` or `UnsupportedFeature`, which name the file."""

from __future__ import annotations

import pyarrow as pa
import pytest

from lance_ops.core.errors import CorruptFile, UnsupportedFeature
from lance_ops.core.versions import FileVersion
from lance_ops.file.reader import FileReader
from lance_ops.store.memory import MemoryStore
from tests.checksums import without_checksums
from tests.file.test_round_trip import PATH, V2_1_AND_LATER, written

TABLE = pa.table(
    {
        "x": pa.array([1, None, 3, 4]),
        "s": pa.array([["a", None], None, [], ["bc"]]),
        "v": pa.array([[1.0] * 64, None, [2.0] * 64, [3.0] * 64], pa.list_(pa.float32(), 64)),
    }
)


def reader_of(data: bytes) -> FileReader:
    store = MemoryStore()
    store.put(PATH, data)
    return FileReader(store, PATH)


@pytest.mark.parametrize("version", V2_1_AND_LATER, ids=lambda version: version.value)
def test_a_truncated_file_is_corrupt(version: FileVersion) -> None:
    data = written(TABLE, version).get(PATH).to_pybytes()
    assert reader_of(data).read().equals(TABLE)
    for length in range(len(data)):
        with pytest.raises(CorruptFile, match=r"file\.lance"):
            reader_of(data[:length])


@pytest.mark.parametrize("version", V2_1_AND_LATER, ids=lambda version: version.value)
def test_a_flipped_byte_gives_rows_or_a_typed_error(version: FileVersion) -> None:
    data = bytearray(without_checksums(written(TABLE, version).get(PATH).to_pybytes()))
    outcomes = set()
    for position in range(len(data)):
        flip = (0x01, 0x80, 0xFF)[position % 3]
        data[position] ^= flip
        try:
            reader = reader_of(bytes(data))
            reader.read()
            reader.take(None, range(0, reader.num_rows, 2))
            outcomes.add("rows")
        except (CorruptFile, UnsupportedFeature) as error:
            outcomes.add(type(error).__name__ if "file.lance" in str(error) else str(error))
        data[position] ^= flip
    assert outcomes == {"rows", "CorruptFile", "UnsupportedFeature"}


def test_version_2_3_is_refused_with_the_name_of_the_file() -> None:
    data = bytearray(without_checksums(written(TABLE).get(PATH).to_pybytes()))
    data[-6] = 3
    with pytest.raises(UnsupportedFeature, match=r"file\.lance: file version 2\.3"):
        reader_of(bytes(data))


def test_a_file_of_another_format_is_refused() -> None:
    with pytest.raises(CorruptFile, match="not a Lance file"):
        reader_of(b"PAR1" * 30)


def test_a_file_whose_size_is_not_the_recorded_one_is_corrupt() -> None:
    store = written(TABLE)
    with pytest.raises(CorruptFile, match="are recorded"):
        FileReader(store, PATH, size_bytes=17)
