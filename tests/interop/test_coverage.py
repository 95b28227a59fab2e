"""All features of the format in one table: the files that the differential tests compare must show each row.

`file_cases` has the columns: `test_file_read` reads the reference's files of them, and in `test_file_write` the
reference reads ours. A row without a file fails, and so does a feature without a row.
"""

from __future__ import annotations

import warnings
from contextlib import suppress
from datetime import UTC, date, datetime, time, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import lance_ops
from lance_ops.core.errors import SchemaMismatch, UnsupportedFeature
from lance_ops.encodings.compressive.registry import ALL_ENCODINGS
from lance_ops.file import FileReader
from lance_ops.file.v2_0.registry import ALL_ARRAY_ENCODINGS
from lance_ops.file.v2_1.layouts.registry import ALL_LAYOUTS
from lance_ops.store.local.local_store import LocalStore
from lance_ops.store.memory import MemoryStore
from tests.file.v2_0_pages import HAND_MADE
from tests.fuzz.seeds import write_ours, write_theirs
from tests.interop.features import features_of
from tests.interop.file_cases import CASES, LEGACY_CASES

pytestmark = pytest.mark.interop

LAYERS = {
    "layer REPDEF_ALL_VALID_ITEM",
    "layer REPDEF_ALL_VALID_LIST",
    "layer REPDEF_NULLABLE_ITEM",
    "layer REPDEF_NULLABLE_LIST",
    "layer REPDEF_EMPTYABLE_LIST",
    "layer REPDEF_NULL_AND_EMPTY_LIST",
}
V2_1_AND_LATER = LAYERS | {
    *("mini_block_layout", "full_zip_layout", "constant_layout", "blob_layout"),
    *("full_zip bits_per_value", "full_zip bits_per_offset", "constant raw levels"),
    *("rep out_of_line_bitpacking", "def out_of_line_bitpacking"),
    *("dictionary variable", "dictionary flat"),
    *("value flat", "value variable", "value fsst", "value rle", "value inline_bitpacking", "value byte_stream_split"),
    *("value general", "codec lz4", "codec zstd", "value packed_struct", "value constant", "value fixed_size_list"),
    *("fixed_size_list with validity", "fixed_size_list without validity"),
}
FEATURES = {
    "0.1": {
        *("footer 0.2", "embedded manifest", "page statistics", "batches", "dictionary values"),
        *("field bool", "field int64", "field string", "field large_binary", "field fixed_size_binary", "field null"),
        *("field struct", "field list", "field large_list", "field fixed_size_list", "field dict"),
        *("dictionary of string", "dictionary of large_string", "dictionary of binary", "dictionary of int64"),
    },
    "2.0": {
        *("flat", "nullable", "no_nulls", "some_nulls", "all_nulls", "fixed_size_list", "list", "struct"),
        *("packed_struct", "binary", "dictionary", "fsst", "codec zstd", "codec lz4", "codec none", "column blob"),
    },
    "2.1": V2_1_AND_LATER | {"small chunks", "def inline_bitpacking"},
    "2.2": V2_1_AND_LATER
    | {
        *("large chunks", "constant inline value", "constant value buffer", "rep rle", "def rle"),
        *("dictionary general", "dictionary out_of_line_bitpacking", "value variable_packed_struct"),
    },
}
MADE_BY_HAND = {"bitpacked", "bitpacked_for_non_neg", "constant", "fixed_size_binary"}
"""Features that no current writer uses in 2.0 files; the reference reads most of the handmade pages in `v2_0_pages`."""
NOT_WRITTEN = {
    # encodings that only the reference chooses; ours are no larger
    "2.0": {"codec none"},
    "2.1": {"def inline_bitpacking", "value constant"},
    "2.2": {"dictionary out_of_line_bitpacking", "value constant"},
}


@pytest.mark.parametrize("version", FEATURES)
def test_both_libraries_files_cover_every_row_of_the_table(version: str) -> None:
    theirs: set[str] = set()
    ours: set[str] = set()
    for case in (*CASES, *LEGACY_CASES):
        if version in case.encodings:
            theirs |= features_of(write_theirs(case.table(), version))
            with suppress(SchemaMismatch, UnsupportedFeature):  # nulls in a 0.1 file
                ours |= features_of(write_ours(case.table(), version))
    assert theirs == FEATURES[version]
    assert ours == FEATURES[version] - NOT_WRITTEN.get(version, set())


def test_handmade_pages_cover_what_no_current_writer_makes() -> None:
    met = {name for made in HAND_MADE for name in features_of(made.data())}
    assert met >= MADE_BY_HAND


def test_the_table_lists_every_encoding_and_layout_that_we_read() -> None:
    rows = FEATURES["2.1"] | FEATURES["2.2"]
    for encoding in ALL_ENCODINGS:
        assert any(row.endswith(f" {encoding.MESSAGE}") for row in rows), encoding.MESSAGE
    assert {layout.MESSAGE for layout in ALL_LAYOUTS} <= rows
    assert {encoding.MESSAGE for encoding in ALL_ARRAY_ENCODINGS} <= FEATURES["2.0"] | MADE_BY_HAND


def _typed(values: list[Any], *kinds: pa.DataType) -> dict[str, pa.Array]:
    return {str(kind): pa.array(values, kind) for kind in kinds}


def _pairs(*items: pa.DataType) -> list[pa.DataType]:
    return [pa.list_(item, 2) for item in items]


FLAGS = pa.list_(pa.bool_(), 2)
UNITS = ("s", "ms", "us", "ns")
POINT = pa.struct([("x", pa.int32()), ("y", pa.float64())])
POINTS = [[{"x": 1, "y": 0.5}, {"x": 2, "y": 1.5}]] * 3
TYPES: dict[str, pa.Array] = {
    **_typed([None, None, None], pa.null()),
    **_typed([True, False, True], pa.bool_()),
    **_typed([1, 2, 100], pa.int8(), pa.int16(), pa.int32(), pa.int64()),
    **_typed([1, 2, 200], pa.uint8(), pa.uint16(), pa.uint32(), pa.uint64()),
    **_typed([0.5, -2.0, 8.25], pa.float16(), pa.float32(), pa.float64()),
    **_typed([Decimal("1.50"), Decimal("-2.25"), Decimal("3.00")], pa.decimal128(20, 2), pa.decimal256(60, 2)),
    **_typed([date(2020, 1, 2), date(1969, 1, 1), date(1970, 1, 1)], pa.date32(), pa.date64()),
    **_typed([time(1), time(2, 3), time(4)], pa.time32("s"), pa.time32("ms"), pa.time64("us"), pa.time64("ns")),
    **_typed([datetime(2020, 1, 2), datetime(1960, 1, 1), None], *(pa.timestamp(unit) for unit in UNITS)),
    **_typed([datetime(2020, 1, 2, tzinfo=UTC)] * 3, pa.timestamp("us", "Europe/Berlin")),
    **_typed([timedelta(days=3)] * 3, *(pa.duration(unit) for unit in UNITS)),
    **_typed(["a", "bcd", "é"], pa.string(), pa.large_string(), pa.string_view()),
    **_typed([b"a", b"\xff", b"bc"], pa.binary(), pa.large_binary(), pa.binary_view()),
    **_typed([b"abc", b"def", b"ghi"], pa.binary(3)),
    **_typed([[1, 2], [3], [4, 5]], pa.list_(pa.int16()), pa.large_list(pa.int8())),
    **_typed([[1.5, 2.5]] * 3, pa.list_(pa.float32(), 2)),
    **_typed([[[1, 2], [3, 4]]] * 3, pa.list_(pa.list_(pa.int8(), 2), 2)),
    "fixed_size_list of structs": pa.array(POINTS, pa.list_(POINT, 2)),
    "struct": pa.array([{"x": 1, "y": 0.5}] * 3, POINT),
    "map": pa.array([[("a", 1)], [("b", 2), ("c", 3)], [("d", 4)]], pa.map_(pa.string(), pa.int32())),
    "dictionary": pa.array(["a", "b", "a"]).dictionary_encode(),
    "dictionary of numbers": pa.array([10**12, 5, 5]).dictionary_encode().cast(pa.dictionary(pa.int16(), pa.int64())),
    **{
        f"dictionary with {keys} keys": pa.DictionaryArray.from_arrays(
            pa.array([0, None, 1], keys), pa.array(["a", "b"])
        )
        for keys in (pa.int8(), pa.int16(), pa.int64(), pa.uint8(), pa.uint16(), pa.uint32(), pa.uint64())
    },
    **{
        f"dictionary of {values.type}": pa.DictionaryArray.from_arrays(pa.array([0, None, 1], pa.int16()), values)
        for values in (
            *(pa.array([1, 2], kind) for kind in (pa.int8(), pa.uint16(), pa.uint32(), pa.uint64(), pa.float16())),
            *(pa.array([0.5, 2], kind) for kind in (pa.float32(), pa.float64())),
            *(pa.array([b"a", b"bc"], kind) for kind in (pa.binary(), pa.large_binary())),
            pa.array([True, False]),
            pa.array(["a", "bc"], pa.large_string()),
        )
    },
    **{
        f"timestamp in {zone}": pa.array([1, None, -5], pa.timestamp("ns", zone))
        for zone in ("UTC", "+01:00", "-07:30", "America/New_York")
    },
    **_typed([[None, None], None, [None, None]], pa.list_(pa.null()), pa.large_list(pa.null()), pa.list_(pa.null(), 2)),
    **_typed([{"x": None}, {"x": None}, {"x": None}], pa.struct([("x", pa.null())])),
    **_typed([[True, None], None, [False, True]], pa.list_(pa.bool_(), 2), pa.list_(pa.bool_())),
    **_typed(
        [[[True, None]], None, [[False, True]]], pa.list_(pa.list_(pa.bool_(), 2), 1), pa.list_(pa.list_(pa.bool_(), 2))
    ),
    **_typed([[[1], [2, None]], None, []], pa.large_list(pa.list_(pa.int8())), pa.list_(pa.large_list(pa.int64()))),
    **_typed([["a", None], None, ["b" * 20]], pa.list_(pa.string_view()), pa.list_(pa.large_string())),
    **_typed(
        [[Decimal("1.5"), None], None, [Decimal("2.5"), Decimal(3)]],
        pa.list_(pa.decimal128(9, 1), 2),
        pa.list_(pa.decimal256(50, 1), 2),
    ),
    **_typed(
        [[date(2020, 1, 2), None], None, [date(1960, 1, 2)] * 2], pa.list_(pa.date32(), 2), pa.list_(pa.date64(), 2)
    ),
    **_typed([[b"abc", None], None, [b"def", b"ghi"]], pa.list_(pa.binary(3), 2), pa.list_(pa.binary(3))),
    "map of maps": pa.array([[("a", [(1, 2.5)])], [], None], pa.map_(pa.string(), pa.map_(pa.int8(), pa.float64()))),
    "map with struct keys": pa.array(
        [[({"k": 1}, "a")], [], None], pa.map_(pa.struct([("k", pa.int8())]), pa.string())
    ),
    "map in a list": pa.array([[[("a", None)], []], None, []], pa.list_(pa.map_(pa.string(), pa.int8()))),
    "map of nulls": pa.array([[("a", None)], [], None], pa.map_(pa.string(), pa.null())),
    "extension in a list": pa.ListArray.from_arrays(
        [0, 1, 2, 2], pa.ExtensionArray.from_storage(pa.uuid(), pa.array([b"u" * 16, None], pa.binary(16)))
    ),
    "extension": pa.ExtensionArray.from_storage(pa.uuid(), pa.array([bytes(16), b"u" * 16, b"v" * 16], pa.binary(16))),
    "intervals": pa.array([pa.MonthDayNano([1, 2, 3])] * 3),
}
MAPS = {name for name in TYPES if name.startswith("map")}
REFUSED = {
    "2.0": {*MAPS, "fixed_size_list of structs", "intervals"},
    "2.1": {*MAPS, "fixed_size_list of structs", "intervals"},
    "2.2": {"intervals"},
}
ONLY_OURS = {
    "2.0": {"string_view", "binary_view", "list<item: string_view>"},
    "2.1": set[str](),
    "2.2": set[str](),
}
"""Features that the reference refuses to write; it reads our files."""


@pytest.mark.parametrize("version", REFUSED)
@pytest.mark.parametrize("name", TYPES)
def test_a_column_of_every_type_is_exchanged_or_refused(name: str, version: str, tmp_path: Path) -> None:
    table = pa.table({"c": TYPES[name]})
    if name in REFUSED[version]:
        with pytest.raises(UnsupportedFeature):
            write_ours(table, version)
        return
    rows = table.to_pylist()
    data = write_ours(table, version)
    assert _read_ours(data) == rows
    (tmp_path / "ours.lance").write_bytes(data)
    assert _read_theirs(tmp_path / "ours.lance") == rows
    if name not in ONLY_OURS[version]:
        assert _read_ours(write_theirs(table, version)) == rows


def _read_ours(data: bytes) -> list[dict[str, Any]]:
    store = MemoryStore()
    store.put("f", data)
    rows: list[dict[str, Any]] = FileReader(store, "f").read().to_pylist()
    return rows


def _read_theirs(path: Path) -> list[dict[str, Any]]:
    from lance.file import LanceFileReader

    rows: list[dict[str, Any]] = LanceFileReader(str(path)).read_all().to_table().to_pylist()
    return rows


def test_files_and_tables_of_an_unknown_version_are_refused_by_name(tmp_path: Path) -> None:
    import lance

    table = pa.table({"c": [1, 2, 3]})
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the reference calls the version unstable
        lance.write_dataset(table, str(tmp_path / "later"), data_storage_version="2.3")
    (file,) = (tmp_path / "later" / "data").glob("*.lance")
    with pytest.raises(UnsupportedFeature, match=rf"{file.name}: file version 2\.3"):
        FileReader(LocalStore(str(file.parent)), file.name)
    with pytest.raises(UnsupportedFeature, match=r"data storage version '2\.3'"):
        lance_ops.dataset(str(tmp_path / "later"))
    with pytest.raises(UnsupportedFeature, match=r"file version '2\.3'"):
        lance_ops.write_dataset(table, str(tmp_path / "ours"), data_storage_version="2.3")
