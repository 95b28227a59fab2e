"""This library and the reference write the same zone maps, and each searches and extends those of the other."""

from __future__ import annotations

import math
from datetime import date
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import lance_ops
from lance_ops.file import FileReader
from lance_ops.indices import IndexConfig, keys_of
from lance_ops.indices.zonemap.layout import ZONEMAP
from lance_ops.table.rows import decode_address_tree

pytestmark = pytest.mark.interop

NUM_ROWS, FILE_ROWS, ZONE_ROWS = 5000, 2000, 300
PARAMETERS = {"rows_per_zone": ZONE_ROWS}


def with_nulls(values: list[Any]) -> list[Any]:
    """Return the values with single nulls, and with 700 of them side by side, which are whole zones."""
    return [None if row % 11 == 0 or 2100 <= row < 2800 else value for row, value in enumerate(values)]


ROWS = range(NUM_ROWS)
COLUMNS: dict[str, pa.Array] = {
    "int": pa.array(with_nulls([row - 2500 for row in ROWS]), pa.int32()),
    "unsigned": pa.array([2**64 - 1 - row for row in ROWS], pa.uint64()),
    "float": pa.array(
        with_nulls([[row / 7, math.nan, math.inf, -math.inf][row % 4 if row > 3000 else 0] for row in ROWS])
    ),
    "nans": pa.array([math.nan if row < 2000 else float(row) for row in ROWS]),
    "half": pa.array([np.float16(row / 8 + 1) for row in ROWS]),
    "text": pa.array(with_nulls([f"k{row:05d}é" for row in ROWS])),
    "long text": pa.array([f"{row:05d}" * 200 for row in ROWS]),
    "bytes": pa.array([row.to_bytes(3, "big") for row in ROWS], pa.binary()),
    "flag": pa.array(with_nulls([row > 2500 for row in ROWS])),
    "day": pa.array(with_nulls([date.fromordinal(700_000 + row) for row in ROWS])),
    "instant": pa.array([row * 10**9 for row in ROWS], pa.timestamp("us", "UTC")),
    "duration": pa.array([row * 1000 for row in ROWS], pa.duration("ms")),
    "amount": pa.array([Decimal(row - 2500) / 4 for row in ROWS], pa.decimal128(20, 2)),
    "nothing": pa.nulls(NUM_ROWS, pa.int64()),
}
FILTERS = {
    "int": [
        "x = 5",
        "x > 2400",
        "x >= 10 AND x < 20",
        "x IS NULL",
        "x IN (1, 2, 99999)",
        "x < -3000",
        "x IS NOT NULL",
        "x != 7",
    ],
    "unsigned": ["x = 18446744073709551615", "x < 18446744073709546700"],
    "float": [
        "x > 700",
        "x < 0.0",
        "x >= 1.5 AND x < 3",
        "x = CAST('NaN' AS DOUBLE)",
        "x IS NULL",
        "x = CAST('inf' AS DOUBLE)",
    ],
    "nans": ["x > 4990", "x = CAST('NaN' AS DOUBLE)", "x < 2100", "NOT (x < 2100)"],
    "half": ["x < 2.5", "x IS NULL"],
    "text": [
        "x = 'k00010é'",
        "x LIKE 'k0001%'",
        "x > 'k04990'",
        "x IN ('k00001é', 'k00002')",
        "x IS NULL",
        "NOT (x > 'k001')",
    ],
    "long text": ["x < '00010'"],
    "bytes": ["x = X'000100'"],
    "flag": ["x", "NOT x", "x IS NULL", "x = true"],
    "day": ["x >= DATE '1930-01-01'", "x = DATE '1917-07-16'", "x IS NULL"],
    "instant": ["x < TIMESTAMP '1970-01-01 01:00:00'"],
    "duration": [],
    "amount": ["x = 3", "x BETWEEN -1 AND 1"],
    "nothing": ["x IS NULL", "x = 1", "x IS NOT NULL"],
}


@pytest.fixture
def lance() -> Any:
    return pytest.importorskip("lance", reason="pylance, the reference implementation, is not installed")


def config_of(library: Any) -> Any:
    """Return the configuration of a small zone map as a library takes it."""
    if library is lance_ops:
        return IndexConfig("zonemap", PARAMETERS)
    from lance.indices import IndexConfig as TheirConfig

    return TheirConfig("zonemap", PARAMETERS)


def build(library: Any, uri: str, column: pa.Array, *, stable: bool = False) -> None:
    """Write a table with deleted rows, and build its index."""
    rows = pa.table({"x": column, "n": pa.array(ROWS)})
    library.write_dataset(rows, uri, max_rows_per_file=FILE_ROWS, enable_stable_row_ids=stable, mode="overwrite")
    library.dataset(uri).delete("(n >= 100 AND n < 500) OR n % 13 = 5")
    library.dataset(uri).create_scalar_index("x", config_of(library))


def content(uri: str) -> tuple[dict[str, list[Any]], dict[str, str], Any]:
    """Return the zones of a table's only segment with their bounds as keys, the metadata, and the nulls."""
    snapshot = lance_ops.dataset(uri).snapshot
    [segment] = snapshot.manifest.indices
    assert segment.details is not None
    file = FileReader(snapshot.index_root(segment).child(segment.directory), ZONEMAP)
    table = file.read()
    columns = {name: table.column(name).combine_chunks() for name in table.column_names}
    for name in ("min", "max"):
        columns[name] = keys_of(columns[name])
    metadata = {
        **file.schema_metadata,
        "version": str(segment.index_version),
        "covered": str(sorted(segment.fragment_bitmap or ())),
        "schema": str(table.schema.remove_metadata()),
    }
    nulls = decode_address_tree(memoryview(file.global_buffer(1)), file.path, "nulls")
    return {name: column.to_pylist() for name, column in columns.items()}, metadata, nulls


def rows_of(library: Any, uri: str, text: str, *, indexed: bool) -> list[int]:
    scanner = library.dataset(uri).scanner(filter=text, columns=["n"], use_scalar_index=indexed)
    if indexed and (library is lance_ops or not ("!=" in text or "NOT" in text)):
        assert "ScalarIndexQuery" in scanner.explain_plan()
    return sorted(scanner.to_table().column("n").to_pylist())


@pytest.mark.parametrize("name", COLUMNS)
def test_both_write_the_same_zones_and_each_searches_the_other_s(lance: Any, tmp_path: Any, name: str) -> None:
    ours, theirs = str(tmp_path / "ours"), str(tmp_path / "theirs")
    build(lance_ops, ours, COLUMNS[name])
    build(lance, theirs, COLUMNS[name])
    (our_zones, our_metadata, our_nulls), (their_zones, their_metadata, their_nulls) = content(ours), content(theirs)
    assert our_zones == their_zones
    assert (our_metadata, our_nulls) == (their_metadata, their_nulls)
    for text in FILTERS[name]:
        expected = rows_of(lance, theirs, text, indexed=False)
        assert rows_of(lance, ours, text, indexed=True) == expected, text
        assert rows_of(lance_ops, theirs, text, indexed=True) == expected, text
        assert rows_of(lance_ops, ours, text, indexed=True) == expected, text
    assert lance_ops.dataset(theirs).verify().ok


def test_details_say_the_same_but_for_seeds(lance: Any, tmp_path: Any) -> None:
    from lance_ops.pb import index_details_pb2

    found = []
    for library in (lance_ops, lance):
        build(library, str(tmp_path / library.__name__), COLUMNS["int"])
        [segment] = lance_ops.dataset(str(tmp_path / library.__name__)).snapshot.manifest.indices
        assert segment.details is not None
        found.append(
            (segment.details.type_url, index_details_pb2.ZoneMapIndexDetails.FromString(segment.details.value))
        )
    assert found[0] == found[1]


@pytest.mark.parametrize("stable", [False, True])
@pytest.mark.parametrize("name", ["int", "float", "text"])
def test_each_extends_an_index_that_the_other_built(lance: Any, tmp_path: Any, name: str, stable: bool) -> None:
    more = pa.table({"x": COLUMNS[name].slice(1000, 700), "n": pa.array(range(NUM_ROWS, NUM_ROWS + 700))})
    contents = []
    for first, second in ((lance_ops, lance), (lance, lance_ops), (lance, lance)):
        uri = str(tmp_path / f"{first.__name__} {second.__name__}")
        build(first, uri, COLUMNS[name], stable=stable)
        lance.write_dataset(more, uri, mode="append")
        second.dataset(uri).optimize.optimize_indices()
        contents.append(content(uri))
        for text in FILTERS[name]:
            expected = rows_of(lance, uri, text, indexed=False)
            assert rows_of(lance, uri, text, indexed=True) == expected, text
            assert rows_of(lance_ops, uri, text, indexed=True) == expected, text
        assert lance_ops.dataset(uri).verify().ok
    assert contents[0] == contents[1] == contents[2]


@pytest.mark.parametrize("stable", [False, True])
@pytest.mark.parametrize("name", ["int", "float", "text"])
def test_each_finds_all_rows_after_a_compaction_by_either(lance: Any, tmp_path: Any, name: str, stable: bool) -> None:
    for builder, compactor in ((lance_ops, lance), (lance, lance_ops), (lance_ops, lance_ops)):
        uri = str(tmp_path / f"{builder.__name__} {compactor.__name__}")
        build(builder, uri, COLUMNS[name], stable=stable)
        before = {text: rows_of(lance, uri, text, indexed=False) for text in FILTERS[name]}
        compactor.dataset(uri).optimize.compact_files(target_rows_per_fragment=3000)
        for text, expected in before.items():
            assert sorted(lance.dataset(uri).to_table(filter=text).column("n").to_pylist()) == expected, text
            assert sorted(lance_ops.dataset(uri).to_table(filter=text).column("n").to_pylist()) == expected, text
        if compactor is lance_ops:
            rows_of(lance, uri, "x IS NULL", indexed=True)  # the index still covers the rows, and the reference uses it
            assert lance_ops.dataset(uri).scanner(filter="x IS NULL").explain_plan().endswith("scanned: 0")
        lance_ops.dataset(uri).optimize.optimize_indices()
        assert lance_ops.dataset(uri).scanner(filter="x IS NULL").explain_plan().endswith("scanned: 0")
        assert lance_ops.dataset(uri).verify().ok
        for text, expected in before.items():
            assert rows_of(lance, uri, text, indexed=True) == expected, text


def test_statistics_and_descriptions_are_the_reference_s(lance: Any, tmp_path: Any) -> None:
    uri = str(tmp_path / "table")
    build(lance_ops, uri, COLUMNS["int"])
    ours, theirs = (library.dataset(uri).stats.index_stats("x_idx") for library in (lance_ops, lance))
    assert ours["segments"] == theirs["segments"] == [{"num_zones": 16, "rows_per_zone": ZONE_ROWS}]
    assert ours["index_type"] == theirs["index_type"]


def test_zeros_of_both_signs_are_found_by_the_reference(lance: Any, tmp_path: Any) -> None:
    """Older releases of the reference order -0.0 before 0.0 in zones, so an index of ours has the wider bounds."""
    uri = str(tmp_path / "table")
    for zero in (0.0, -0.0):
        build(lance_ops, uri, pa.array([zero] * NUM_ROWS))
        for text in ("x = 0.0", "x = -0.0", "x <= -0.0", "x >= 0.0"):
            found = rows_of(lance_ops, uri, text, indexed=True)
            assert found == rows_of(lance_ops, uri, text, indexed=False) != []
            assert rows_of(lance, uri, text, indexed=True) == rows_of(lance, uri, text, indexed=False), text


def test_an_index_on_a_type_that_the_reference_does_not_bound_rules_out_nothing(lance: Any, tmp_path: Any) -> None:
    uri = str(tmp_path / "table")
    column = pa.array([row.to_bytes(2, "big") for row in ROWS], pa.binary(2))
    build(lance, uri, column)
    zones, _, _ = content(uri)
    assert set(zones["min"]) == {None}
    assert rows_of(lance_ops, uri, "x = X'0300'", indexed=True) == [0x300]
    lance_ops.dataset(uri).optimize.compact_files(target_rows_per_fragment=3000)
    for library in (lance_ops, lance):
        assert rows_of(library, uri, "x = X'0300'", indexed=True) == [0x300]
    build(lance_ops, uri, column)
    assert rows_of(lance_ops, uri, "x = X'0300'", indexed=True) == [0x300]
    assert "num_fragments=1," in lance_ops.dataset(uri).scanner(filter="x = X'0300'").explain_plan()
