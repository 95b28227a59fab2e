"""Fixed-size lists of structs, which the reference writes but fails to read: we read its pages and write the same.

The reference panics because it counts rows wrongly; its files are complete. It refuses null and empty lists around such
lists; we write them in the form that its pages provide for them.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from lance_ops.core.errors import UnsupportedFeature
from lance_ops.file import FileReader
from lance_ops.store.memory import MemoryStore
from tests.fuzz.anatomy import Anatomy, dissect
from tests.fuzz.seeds import write_ours, write_theirs
from tests.interop.file_cases import UNREAD_CASES, Case
from tests.interop.test_file_read import check_rows, offsets_of

pytestmark = pytest.mark.interop

PAIR = pa.list_(pa.struct([("x", pa.int32())]), 2)


def reader_of(data: bytes) -> FileReader:
    store = MemoryStore()
    store.put("f", data)
    return FileReader(store, "f")


def pages_of(data: bytes) -> Anatomy:
    anatomy = dissect(data)
    assert isinstance(anatomy, Anatomy)
    return anatomy


@pytest.mark.parametrize("case", UNREAD_CASES, ids=lambda case: case.name)
def test_lists_that_the_reference_writes_and_cannot_read_are_read_here(case: Case) -> None:
    table = case.table()
    rows = table.to_pylist()
    check_rows(reader_of(write_theirs(table, "2.2")), rows, offsets_of(len(rows)))


@pytest.mark.parametrize("case", UNREAD_CASES[:-1], ids=lambda case: case.name)
def test_lists_written_here_are_read_back_whole_and_in_parts(case: Case) -> None:
    table = case.table()
    rows = table.to_pylist()
    check_rows(reader_of(write_ours(table, "2.2")), rows, offsets_of(len(rows)))


@pytest.mark.parametrize(
    "array",
    [
        pa.array([{"a": [{"x": 1}, {"x": 2}], "b": 5}] * 3, pa.struct([("a", PAIR), ("b", pa.int8())])),
        pa.array([[[{"x": 1}, {"x": 2}]], [[{"x": 3}, {"x": 4}], [{"x": 5}, {"x": 6}]]], pa.list_(PAIR)),
        pa.array([[[[{"x": 1}, {"x": 2}], [{"x": 3}, {"x": 4}]], [[{"x": 5}, {"x": 6}]]]], pa.list_(pa.list_(PAIR))),
        pa.array([[{"a": [{"x": 1}, {"x": 2}]}], [{"a": [{"x": 3}, {"x": 4}]}] * 2]),
        pa.array(
            [[{"l": [1, 2]}, {"l": [3]}], None, [{"l": []}, None]], pa.list_(pa.struct([("l", pa.list_(pa.int8()))]), 2)
        ),
        pa.array([[[{"l": [1, 2]}, {"l": [3]}]] * 2], pa.list_(pa.list_(pa.struct([("l", pa.list_(pa.int8()))]), 2))),
    ],
    ids=lambda array: str(array.type),
)
def test_our_pages_equal_the_reference_s_byte_for_byte(array: pa.Array) -> None:
    table = pa.table({"c": pa.concat_arrays([array] * 9)})
    ours, theirs = pages_of(write_ours(table, "2.2")), pages_of(write_theirs(table, "2.2"))
    for mine, other in zip(ours.columns, theirs.columns, strict=True):
        (made,), (wanted,) = mine.pages, other.pages
        assert made.message.length == wanted.message.length
        assert made.description == wanted.description
        assert [part.data for part in made.buffers] == [part.data for part in wanted.buffers]


def test_null_and_empty_outer_lists_are_read_back_row_by_row() -> None:
    pair = [{"x": 1}, None]
    rows = [[pair, None], None, [], [pair], [None], [[{"x": None}, {"x": 7}]] * 3] * 400
    reader = reader_of(write_ours(pa.table({"c": pa.array(rows, pa.list_(PAIR))}), "2.2"))
    check_rows(reader, [{"c": row} for row in rows], np.random.default_rng(5).integers(0, len(rows), 200).tolist())


def test_the_reference_still_cannot_read_its_own_lists(tmp_path: Path) -> None:
    from lance.file import LanceFileReader

    table = pa.table({"c": pa.array([[[{"x": 1}, {"x": 2}]]], pa.list_(PAIR))})
    path = tmp_path / "theirs.lance"
    path.write_bytes(write_theirs(table, "2.2"))
    with pytest.raises(pa.ArrowInvalid, match="Not yet supported FSL"):
        LanceFileReader(str(path)).read_all().to_table()


def test_columns_after_a_struct_without_fields_are_refused_where_the_reference_reads_nulls(
    tmp_path: Path,
) -> None:
    from lance.file import LanceFileReader

    table = pa.table({"c": pa.array([{"e": {}, "x": 1}, {"e": {}, "x": 2}])})
    path = tmp_path / "theirs.lance"
    path.write_bytes(write_theirs(table, "2.2"))
    assert LanceFileReader(str(path)).read_all().to_table().to_pylist() == [{"c": {"e": {}, "x": None}}] * 2
    with pytest.raises(UnsupportedFeature, match="column 'e': a struct without fields before 'x'"):
        write_ours(table, "2.2")


@pytest.mark.parametrize("version", ["2.1", "2.2"])
@pytest.mark.parametrize(
    "array",
    [
        pa.array([{}, None], pa.struct([])),
        pa.array([{"x": 1, "e": {}}, None], pa.struct([("x", pa.int8()), ("e", pa.struct([]))])),
        pa.array([{"x": 1, "e": None}, {"x": 2, "e": {}}], pa.struct([("x", pa.int8()), ("e", pa.struct([]))])),
        pa.array([[{}]], pa.list_(pa.struct([]))),
        pa.array([[{"x": 1, "e": {}}]], pa.list_(pa.struct([("x", pa.int8()), ("e", pa.struct([]))]))),
    ],
    ids=["null", "in a null struct", "null in a struct", "in a list", "in a struct in a list"],
)
def test_a_struct_without_fields_that_has_no_page_of_its_own_kind_is_refused(array: pa.Array, version: str) -> None:
    table = pa.table({"c": array})
    with pytest.raises(ValueError, match="Empty structs with rep/def information"):
        write_theirs(table, version)
    with pytest.raises(UnsupportedFeature, match="column '(c|e|item)': .*a struct.* without fields"):
        write_ours(table, version)
