"""What the format can hold, in one table: each row is met in files that the differential tests compare.

`file_cases` has the columns: `test_file_read` reads the reference's files of them, `test_file_write` lets it read ours.
A row that is met nowhere fails, and so does something met that is in no row.
"""

from __future__ import annotations

from contextlib import suppress
from datetime import UTC, date, datetime, time, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from lance_ops.core.errors import SchemaMismatch, UnsupportedFeature
from lance_ops.encodings.registry import ALL_ENCODINGS
from lance_ops.file import FileReader
from lance_ops.file.layouts.registry import ALL_LAYOUTS
from lance_ops.file.v2_0.registry import ALL_ARRAY_ENCODINGS
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
STRUCTURAL = LAYERS | {
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
        *("packed_struct", "binary", "dictionary", "fsst", "codec zstd", "codec lz4", "column blob"),
    },
    "2.1": STRUCTURAL | {"small chunks", "def inline_bitpacking"},
    "2.2": STRUCTURAL
    | {
        *("large chunks", "constant inline value", "constant value buffer", "rep rle", "def rle"),
        *("dictionary general", "dictionary out_of_line_bitpacking", "value variable_packed_struct"),
    },
}
MADE_BY_HAND = {"bitpacked", "bitpacked_for_non_neg", "constant", "fixed_size_binary"}
"""What today's writers do not make in 2.0 files; the reference reads most of those in `v2_0_pages`."""
NOT_WRITTEN = {
    # choices of the reference that ours make otherwise, and no larger
    "2.1": {"def inline_bitpacking", "value constant"},
    "2.2": {"dictionary out_of_line_bitpacking", "value constant"},
}


@pytest.mark.parametrize("version", FEATURES)
def test_every_row_of_the_table_is_met_in_files_of_both(version: str) -> None:
    theirs: set[str] = set()
    ours: set[str] = set()
    for case in (*CASES, *LEGACY_CASES):
        if version in case.encodings:
            theirs |= features_of(write_theirs(case.table(), version))
            with suppress(SchemaMismatch, UnsupportedFeature):  # nulls in a 0.1 file
                ours |= features_of(write_ours(case.table(), version))
    assert theirs == FEATURES[version]
    assert ours == FEATURES[version] - NOT_WRITTEN.get(version, set())


def test_pages_that_nobody_writes_any_more_are_made_by_hand() -> None:
    met = {name for made in HAND_MADE for name in features_of(made.data())}
    assert met >= MADE_BY_HAND


def test_the_table_has_every_encoding_and_layout_that_is_read() -> None:
    rows = FEATURES["2.1"] | FEATURES["2.2"]
    for encoding in ALL_ENCODINGS:
        assert any(row.endswith(f" {encoding.MESSAGE}") for row in rows), encoding.MESSAGE
    assert {layout.MESSAGE for layout in ALL_LAYOUTS} <= rows
    assert {encoding.MESSAGE for encoding in ALL_ARRAY_ENCODINGS} <= FEATURES["2.0"] | MADE_BY_HAND


def _typed(values: list[Any], *kinds: pa.DataType) -> dict[str, pa.Array]:
    return {str(kind): pa.array(values, kind) for kind in kinds}


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
    "extension": pa.ExtensionArray.from_storage(pa.uuid(), pa.array([bytes(16), b"u" * 16, b"v" * 16], pa.binary(16))),
    "intervals": pa.array([pa.MonthDayNano([1, 2, 3])] * 3),
}
REFUSED = {
    "2.0": {"map", "fixed_size_list of structs", "intervals"},
    "2.1": {"map", "fixed_size_list of structs", "intervals"},
    "2.2": {"intervals"},
}
ONLY_OURS = {"2.0": {"string_view", "binary_view"}, "2.1": set[str](), "2.2": set[str]()}
"""What the reference refuses to write; it reads ours."""


@pytest.mark.parametrize("version", REFUSED)
@pytest.mark.parametrize("name", TYPES)
def test_a_column_of_every_type_goes_both_ways_or_is_refused(name: str, version: str, tmp_path: Path) -> None:
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
