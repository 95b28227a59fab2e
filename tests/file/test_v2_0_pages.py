"""2.0 pages that only older releases may have written, damaged pages, and types that cannot be written."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
import pyarrow as pa
import pytest

from lance_ops.core.errors import CorruptFile, UnsupportedFeature
from lance_ops.core.versions import FileVersion
from lance_ops.file.reader import FileReader
from lance_ops.file.v2_0.registry import ALL_ARRAY_ENCODINGS
from lance_ops.pb import encodings_v2_0_pb2 as pb
from lance_ops.store.memory import MemoryStore
from tests.checksums import without_checksums
from tests.file.streaming import StreamedStore
from tests.file.test_round_trip import PATH, written
from tests.file.v2_0_pages import HAND_MADE, HandMade, file_of
from tests.interop.file_cases import CASES

PACKED = {"lance-encoding:packed": "true"}
POINT = pa.struct([("x", pa.int32()), ("y", pa.float64())])
OTHER_FORMS = {"no_nulls", "some_nulls", "all_nulls", "list", "struct", "blob", "zstd", "lz4"}

# Tests that damage every byte use one file for each set of encodings.
ONE_OF_EACH_ENCODING = [
    made
    for index, made in enumerate(HAND_MADE)
    if not any(made.encodings == before.encodings for before in HAND_MADE[:index])
]
MIXED = pa.table(
    {
        "x": pa.array([1, None, 3, 4]),
        "s": pa.array([["a", None], None, [], ["bc"]]),
        "v": pa.array([[1.0] * 3, None, [2.0] * 3, [3.0, None, 4.0]], pa.list_(pa.float32(), 3)),
        "p": pa.array([{"x": index, "y": 0.5} for index in range(4)], POINT),
        "d": pa.array(["a", "b", None, "a"]).dictionary_encode(),
        "b": pa.array([b"abc", b"", None, b"z" * 70], pa.large_binary()),
        "n": pa.nulls(4),
    },
    pa.schema(
        [
            ("x", pa.int64()),
            ("s", pa.list_(pa.string())),
            ("v", pa.list_(pa.float32(), 3)),
            pa.field("p", POINT, metadata=PACKED),
            ("d", pa.dictionary(pa.int32(), pa.string())),
            pa.field("b", pa.large_binary(), metadata={"lance-encoding:blob": "true"}),
            ("n", pa.null()),
        ]
    ),
)


def store_of(data: bytes) -> MemoryStore:
    store = MemoryStore()
    store.put(PATH, data)
    return store


def encodings_in(reader: FileReader) -> set[str]:
    return {name for column in reader.describe() for page in column for name in page}


@pytest.mark.parametrize("made", HAND_MADE, ids=lambda made: made.name)
def test_a_page_as_older_releases_wrote_it_is_read(made: HandMade) -> None:
    rows = made.table.to_pylist()
    offsets = np.random.default_rng(1).integers(0, len(rows), 30).tolist()
    for store in (store_of(made.data()), StreamedStore(store_of(made.data()))):
        reader = FileReader(store, PATH)
        assert made.encodings <= encodings_in(reader)
        found = reader.read()
        found.validate(full=True)
        assert found.to_pylist() == rows
        start, stop = len(rows) // 3 + 1, len(rows) // 2
        assert reader.read(None, start, stop).to_pylist() == rows[start:stop]
        assert reader.take(None, offsets).to_pylist() == [rows[offset] for offset in offsets]


def test_the_test_files_cover_every_encoding_of_the_version() -> None:
    by_the_reference = {name for case in CASES for name in case.encodings.get("2.0", ())}
    by_hand = {name for made in HAND_MADE for name in made.encodings}
    assert {encoding.MESSAGE for encoding in ALL_ARRAY_ENCODINGS} - {
        "nullable"
    } | OTHER_FORMS <= by_the_reference | by_hand


@pytest.mark.parametrize("made", ONE_OF_EACH_ENCODING, ids=lambda made: made.name)
def test_a_truncated_hand_made_file_is_corrupt(made: HandMade) -> None:
    check_cuts(made.data())


def test_a_truncated_file_of_mixed_columns_is_corrupt() -> None:
    data = written(MIXED, FileVersion.V2_0).get(PATH).to_pybytes()
    assert FileReader(store_of(data), PATH).read().to_pylist() == MIXED.to_pylist()
    check_cuts(data)


@pytest.mark.parametrize("made", ONE_OF_EACH_ENCODING, ids=lambda made: made.name)
def test_a_flipped_byte_of_a_hand_made_file_gives_rows_or_a_typed_error(made: HandMade) -> None:
    data = made.data()
    described = max(len(data) - 700, 0)  # the bytes before are values, which are all alike
    assert flips(data, [*range(0, described, 67), *range(described, len(data), 2)]) <= {"rows", *TYPED}


def test_a_flipped_byte_of_a_file_of_mixed_columns_gives_rows_or_a_typed_error() -> None:
    data = without_checksums(written(MIXED, FileVersion.V2_0).get(PATH).to_pybytes())
    assert flips(data, range(0, len(data), 2)) == {"rows", *TYPED}


TYPED = {"CorruptFile", "UnsupportedFeature"}


def check_cuts(data: bytes) -> None:
    for length in range(len(data)):
        with pytest.raises(CorruptFile, match=r"file\.lance"):
            FileReader(store_of(data[:length]), PATH).read()


def flips(data: bytes, positions: Iterable[int]) -> set[str]:
    """Damage one byte at a time and read; return the outcomes: "rows", or an error's type if it names the file."""
    damaged, outcomes = bytearray(data), set()
    for position in positions:
        flip = (0x01, 0x80, 0xFF)[position % 3]
        damaged[position] ^= flip
        try:
            reader = FileReader(store_of(bytes(damaged)), PATH)
            reader.read()
            reader.take(None, range(0, reader.num_rows, 2))
            outcomes.add("rows")
        except (CorruptFile, UnsupportedFeature) as error:
            outcomes.add(type(error).__name__ if "file.lance" in str(error) else str(error))
        damaged[position] ^= flip
    return outcomes


def test_a_child_of_a_packed_struct_is_read_alone() -> None:
    table = pa.table([pa.array([{"x": 1, "y": 0.5}] * 9, POINT)], pa.schema([pa.field("p", POINT, metadata=PACKED)]))
    reader = FileReader(written(table, FileVersion.V2_0), PATH)
    assert reader.read(reader.schema.project(["p.y"])).to_pylist() == [{"p": {"y": 0.5}}] * 9


@pytest.mark.parametrize(
    ("column", "metadata", "message"),
    [
        (pa.array([{"x": 1, "y": 0.5}, None], POINT), {}, r"'c': a null struct.*2\.1 or later"),
        (pa.array([{"x": 1, "y": 0.5}, None], POINT), PACKED, r"'c': a null struct.*2\.1 or later"),
        (pa.array([[{"x": 1, "y": 0.5}, None]], pa.list_(POINT)), {}, "'item': a null struct"),
        (pa.array([{"x": None, "y": 0.5}], POINT), PACKED, "'c': a null inside a packed struct"),
        (pa.array([{"x": True}]), PACKED, "'c': bool in a packed struct"),
        (pa.array([{"x": "a"}]), PACKED, "'c': string in a packed struct"),
        (pa.array([{"x": {"y": 1}}]), PACKED, "'c': struct<y: int64> in a packed struct"),
        (pa.array([{"x": "a"}], pa.struct([("x", pa.dictionary(pa.int8(), pa.string()))])), PACKED, "'c': dictionary"),
        (pa.array([[{"x": 1, "y": 0.5}]], pa.list_(POINT, 1)), {}, "'c': a fixed-size list of structs"),
    ],
)
def test_an_unsupported_type_is_refused_with_the_name_of_the_field(
    column: pa.Array, metadata: dict[str, str], message: str
) -> None:
    table = pa.table([column], pa.schema([pa.field("c", column.type, metadata=metadata or None)]))
    with pytest.raises(UnsupportedFeature, match=message):
        written(table, FileVersion.V2_0)


def test_a_page_that_uses_a_buffer_of_the_file_is_refused_with_its_column() -> None:
    (made,) = [made for made in HAND_MADE if made.column_buffers and "dictionary" in made.encodings]
    (page,) = made.pages
    items = page.described.dictionary.items.binary
    items.bytes.flat.buffer.buffer_type = pb.Buffer.file
    data = file_of(made.table.schema, [[page]], len(made.column), column_buffers=made.column_buffers)
    items.bytes.flat.buffer.buffer_type = pb.Buffer.column
    with pytest.raises(UnsupportedFeature, match=r"column 0 \(c\), page 0: a page that uses buffers of its file"):
        FileReader(store_of(data), PATH).read()
