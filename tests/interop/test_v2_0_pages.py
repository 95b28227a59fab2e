"""2.0 pages that only one library writes or reads: that library's result is the expected one."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest

from lance_ops.file import FileReader
from lance_ops.store.local.local_store import LocalStore
from tests.file.v2_0_pages import HAND_MADE, HandMade
from tests.interop.test_file_read import check_rows, write_reference

pytestmark = pytest.mark.interop

PACKED = {"lance-encoding:packed": "true"}
POINT = pa.struct([("x", pa.int32()), ("y", pa.float64())])
POINTS = [[{"x": index, "y": index / 2}, {"x": -index, "y": 0.5}] for index in range(200)]


@pytest.mark.parametrize("made", [made for made in HAND_MADE if made.reference_reads], ids=lambda made: made.name)
def test_both_libraries_read_a_handmade_page_alike(made: HandMade, tmp_path: Path) -> None:
    from lance.file import LanceFileReader

    (tmp_path / "file.lance").write_bytes(made.data())
    reader = LanceFileReader(str(tmp_path / "file.lance"))
    rows = made.table.to_pylist()
    assert reader.read_all().to_table().to_pylist() == rows
    assert reader.take_rows([1, 17, 30]).to_table().to_pylist() == [rows[offset] for offset in (1, 17, 30)]


@pytest.mark.parametrize(
    ("column", "metadata"),
    [
        (pa.array(POINTS, pa.list_(POINT, 2)), {}),
        (pa.array(POINTS, pa.list_(pa.field("item", POINT, metadata=PACKED), 2)), {}),
        (pa.array([None if i % 3 else point for i, point in enumerate(POINTS)], pa.list_(POINT, 2)), {}),
        (
            pa.array([{"p": points[0], "z": 7} for points in POINTS], pa.struct([("p", POINT), ("z", pa.int8())])),
            PACKED,
        ),
    ],
    ids=["lists of structs", "lists of packed structs", "nullable lists of structs", "structs in packed structs"],
)
def test_structs_that_the_reference_packs_and_cannot_unpack_are_read(
    column: pa.Array, metadata: dict[str, str], tmp_path: Path
) -> None:
    table = pa.table([column], pa.schema([pa.field("c", column.type, metadata=metadata or None)]))
    write_reference(tmp_path / "file.lance", table, "2.0")
    reader = FileReader(LocalStore(str(tmp_path)), "file.lance")
    assert "packed_struct" in {name for names in reader.describe() for page in names for name in page}
    check_rows(reader, table.to_pylist(), [3, 150, 150, 0])


def test_one_child_of_a_packed_struct_is_read_from_a_table(tmp_path: Path) -> None:
    import lance

    import lance_ops

    table = pa.table(
        [pa.array([points[0] for points in POINTS], POINT)], pa.schema([pa.field("c", POINT, metadata=PACKED)])
    )
    lance.write_dataset(table, str(tmp_path / "d"), data_storage_version="2.0")
    # the reference returns the first children's bytes for any requested child
    found = lance_ops.dataset(str(tmp_path / "d")).to_table(columns=["c.y"])
    assert found.column("c.y").to_pylist() == [points[0]["y"] for points in POINTS]


@pytest.mark.parametrize("arrow_type", [pa.string(), pa.large_string(), pa.binary(), pa.large_binary()], ids=str)
def test_a_page_with_few_byte_strings_of_any_type_is_read_by_the_reference(
    arrow_type: pa.DataType, tmp_path: Path
) -> None:
    from lance.file import LanceFileReader

    from lance_ops.file import LanceFileWriter

    table = pa.table({"c": pa.array(["red", "green", None, ""] * 50).cast(arrow_type)})
    with LanceFileWriter(tmp_path / "file.lance", table.schema, version="2.0") as writer:
        writer.write_batch(table)
    assert LanceFileReader(str(tmp_path / "file.lance")).read_all().to_table().equals(table)
    met = FileReader(LocalStore(str(tmp_path)), "file.lance").describe()[0][0]
    assert ("dictionary" in met) == (arrow_type == pa.string())
