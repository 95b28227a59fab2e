"""Scans with a zone map read fewer bytes, and give the rows that a scan without it gives."""

from __future__ import annotations

import math
import random
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import lance_ops
from lance_ops.indices import IndexConfig
from lance_ops.reading import ScanRequest, bind_filter, plan_scan

NUM_ROWS, FILE_ROWS = 60_000, 20_000


def table(num_rows: int = NUM_ROWS) -> pa.Table:
    """Return ascending keys with nulls and NaNs, numbers in no order, and texts that take most of the bytes."""
    keys = [None if row % 1000 == 3 else math.nan if row == 25_000 else float(row) for row in range(num_rows)]
    shuffled = np.random.default_rng(5).permutation(num_rows)
    texts = [f"{row:07d}" * 20 for row in range(num_rows)]
    return pa.table({"key": keys, "number": pa.array(shuffled), "text": texts})


@pytest.fixture
def dataset(dataset_uri: str) -> lance_ops.LanceDataset:
    made = lance_ops.write_dataset(table(), dataset_uri, max_rows_per_file=FILE_ROWS)
    made.create_scalar_index("key", "ZONEMAP")
    return made


def rows(dataset: lance_ops.LanceDataset, condition: str, *, indexed: bool = True, **options: Any) -> list[str]:
    found = dataset.scanner(columns=["text"], filter=condition, use_scalar_index=indexed, **options).to_table()
    return sorted(found.column("text").to_pylist())


def bytes_read(dataset: lance_ops.LanceDataset, condition: str, *, indexed: bool) -> int:
    fresh = lance_ops.dataset(dataset.uri)
    fresh.io_stats_incremental()
    fresh.scanner(columns=["text"], filter=condition, use_scalar_index=indexed).to_table()
    return fresh.io_stats_incremental().read_bytes


def planned(dataset: lance_ops.LanceDataset, condition: str, **options: Any) -> list[tuple[int, int, int]]:
    """Return the fragment, the first row and the end of each range that a scan reads, without reading it."""
    snapshot = dataset.snapshot
    request = ScanRequest(
        snapshot.schema.project(["text"]), bind_filter(snapshot, condition), include_deleted_rows=False, **options
    )
    parts = [part for part, _ in plan_scan(snapshot, request).blocks.parts]
    assert all(part.offsets is None for part in parts)
    return [(part.fragment.id, part.start, part.stop) for part in parts]


@pytest.mark.parametrize(
    ("condition", "ranges"),
    [
        (
            "key = 30000",
            [(1, 0, 16_384)],
        ),  # the zone with the NaN, of which only the lower bound is known, and the next
        ("key < 5", [(0, 0, 8192)]),
        ("key >= 16384 AND key < 16390", [(0, 16_384, 20_000)]),
        ("key IN (1, 59999, -4)", [(0, 0, 8192), (1, 0, 8192), (2, 16_384, 20_000)]),
        ("key IN (1, 7, -4)", [(0, 0, 8192)]),
        ("key > 59000", [(1, 0, 8192), (2, 16_384, 20_000)]),
        ("key = CAST('NaN' AS DOUBLE)", [(1, 0, 8192)]),
        ("key < -1 OR key > 1000000", [(1, 0, 8192)]),
        ("NOT (key < 50000)", [(1, 0, 8192), (2, 8192, 20_000)]),
        ("key < 0", []),
        ("key > 9000 AND key < 8", []),
    ],
)
def test_only_zones_that_may_match_are_planned(
    dataset: lance_ops.LanceDataset, condition: str, ranges: list[tuple[int, int, int]]
) -> None:
    assert planned(dataset, condition) == ranges
    assert rows(dataset, condition) == rows(dataset, condition, indexed=False)
    assert "@key_idx(ZONEMAP)" in dataset.scanner(filter=condition).explain_plan()


def test_pages_outside_the_zones_are_not_read(dataset: lance_ops.LanceDataset) -> None:
    all_bytes = bytes_read(dataset, "key < 100", indexed=False)
    assert bytes_read(dataset, "key < 100", indexed=True) < all_bytes / 4
    assert bytes_read(dataset, "key < -5", indexed=True) < 20_000, "only the manifest and the index"


def test_a_search_for_nulls_is_exact_and_reads_no_value_of_the_column(dataset: lance_ops.LanceDataset) -> None:
    snapshot = dataset.snapshot
    request = ScanRequest(snapshot.schema.project(["text"]), bind_filter(snapshot, "key IS NULL"))
    plan = plan_scan(snapshot, request)
    assert plan.lookup is not None and plan.lookup.remainder is None
    assert plan.num_physical_rows == NUM_ROWS // 1000
    assert rows(dataset, "key IS NULL") == rows(dataset, "key IS NULL", indexed=False)
    assert len(rows(dataset, "key IS NOT NULL")) == NUM_ROWS - NUM_ROWS // 1000


def test_fragments_that_the_index_does_not_cover_are_scanned(dataset: lance_ops.LanceDataset) -> None:
    dataset.insert(table(500))
    assert planned(dataset, "key < 5") == [(0, 0, 8192), (3, 0, 500)]
    assert rows(dataset, "key < 5") == rows(dataset, "key < 5", indexed=False)
    assert len(rows(dataset, "key < 5")) == 2 * 4
    assert "unindexed fragments scanned: 1" in dataset.scanner(filter="key < 5").explain_plan()
    assert planned(dataset, "key < 5", indexed_only=True) == [(0, 0, 8192)]
    dataset.optimize.optimize_indices()
    assert planned(dataset, "key > 30000 AND key < 30010") == [(1, 0, 16_384)]
    assert dataset.stats.index_stats("key_idx")["indices"] == [{"num_zones": 10, "rows_per_zone": 8192}]


def test_deleted_and_updated_rows_are_found_as_without_the_index(dataset: lance_ops.LanceDataset) -> None:
    dataset.delete("key > 100 AND key < 9000")
    dataset.update({"key": "key + 100000"}, where="key >= 20000 AND key < 20010")
    for condition in ("key < 200", "key > 99000", "key >= 19990 AND key < 20020", "key IS NULL", "key != 5"):
        assert rows(dataset, condition) == rows(dataset, condition, indexed=False), condition
    assert len(rows(dataset, "key > 99000")) == 10  # nine rows and the NaN
    assert len(rows(dataset, "key > 99000 AND key < 200000")) == 9


def test_a_limit_and_an_offset_count_rows_of_the_answer(dataset: lance_ops.LanceDataset) -> None:
    condition = "key >= 19990 AND key < 20020"
    found = dataset.scanner(columns=["key"], filter=condition, limit=7, offset=8).to_table()
    whole = dataset.scanner(columns=["key"], filter=condition, use_scalar_index=False).to_table()
    assert found.equals(whole.slice(8, 7))
    assert dataset.count_rows(condition) == whole.num_rows


def test_a_btree_on_the_same_column_is_searched_first_and_the_zone_map_on_the_rest(
    dataset: lance_ops.LanceDataset,
) -> None:
    dataset.create_scalar_index("key", "BTREE", name="tree")
    explained = dataset.scanner(filter="key = 7").explain_plan()
    assert "[key = 7.0]@tree(BTREE)" in explained and "key_idx" not in explained
    dataset.insert(table(500))
    dataset.optimize.optimize_indices(index_names=["key_idx"])
    explained = dataset.scanner(filter="key = 7").explain_plan()
    assert "@tree(BTREE) AND [key = 7.0]@key_idx(ZONEMAP)" in explained
    assert "unindexed fragments scanned: 0" in explained
    assert rows(dataset, "key = 7") == rows(dataset, "key = 7", indexed=False)
    assert len(rows(dataset, "key = 7")) == 2
    assert "num_fragments=1," in dataset.scanner(filter="key = 700").explain_plan(), "the new zone ends at 499"


def test_a_btree_on_another_column_and_the_zone_map_answer_one_filter(dataset: lance_ops.LanceDataset) -> None:
    dataset.create_scalar_index("number", "BTREE")
    condition = "key >= 20000 AND number < 300"
    explained = dataset.scanner(filter=condition).explain_plan()
    assert "@key_idx(ZONEMAP)" in explained and "@number_idx(BTREE)" in explained
    assert rows(dataset, condition) == rows(dataset, condition, indexed=False) != []
    dataset.insert(table(500))
    dataset.optimize.optimize_indices(index_names=["number_idx"])
    condition = "key < 400 AND number < 300"
    assert "unindexed fragments scanned: 0" in dataset.scanner(filter=condition).explain_plan()
    assert rows(dataset, condition) == rows(dataset, condition, indexed=False) != []


def test_rows_per_zone_is_a_parameter_that_merges_and_rebuilds_keep(dataset_uri: str) -> None:
    dataset = lance_ops.write_dataset(pa.table({"x": range(100)}), dataset_uri)
    dataset.create_scalar_index("x", IndexConfig("zonemap", {"rows_per_zone": 10}))
    dataset.insert(pa.table({"x": range(100, 125)}))
    dataset.optimize.optimize_indices()
    assert dataset.stats.index_stats("x_idx")["indices"] == [{"num_zones": 13, "rows_per_zone": 10}]
    with pytest.raises(ValueError, match="no parameter 'zone'"):
        dataset.create_scalar_index("x", IndexConfig("zonemap", {"zone": 10}))
    with pytest.raises(ValueError, match="no parameter 'zone'"):
        dataset.create_scalar_index("x", IndexConfig("BTREE", {"zone": 10}))
    for wrong in (0, -1, 2**32, "10", True):
        with pytest.raises(ValueError, match="rows_per_zone is a whole number"):
            dataset.create_scalar_index("x", IndexConfig("zonemap", {"rows_per_zone": wrong}))


@pytest.mark.parametrize("stable", [False, True])
def test_a_compaction_moves_the_zones_without_reading_the_column(dataset_uri: str, stable: bool) -> None:
    data = pa.table({"x": [None if row % 50 == 0 else row for row in range(2000)], "y": range(2000)})
    dataset = lance_ops.write_dataset(data, dataset_uri, max_rows_per_file=100, enable_stable_row_ids=stable)
    dataset.create_scalar_index("x", IndexConfig("zonemap", {"rows_per_zone": 100}))
    dataset.delete("y % 10 = 7")
    dataset.optimize.compact_files(target_rows_per_fragment=700)
    assert len(dataset.get_fragments()) == 5
    [index] = dataset.snapshot.manifest.indices
    assert set(index.fragment_bitmap or ()) == {fragment.fragment_id for fragment in dataset.get_fragments()}
    assert "unindexed fragments scanned: 0" in dataset.scanner(filter="x = 5").explain_plan()
    plan = plan_scan(dataset.snapshot, ScanRequest(dataset.snapshot.schema, bind_filter(dataset.snapshot, "x = 505")))
    assert plan.num_physical_rows <= 200
    for condition in ("x = 505", "x IS NULL", "x > 1900", "x IS NOT NULL"):
        found, expected = (
            sorted(dataset.scanner(filter=condition, use_scalar_index=used).to_table().column("y").to_pylist())
            for used in (True, False)
        )
        assert found == expected
    assert dataset.verify().ok
    dataset.drop_index("x_idx")
    assert not dataset.has_index


def test_short_zones_are_joined_when_fragments_are(dataset_uri: str) -> None:
    dataset = lance_ops.write_dataset(pa.table({"x": range(1000)}), dataset_uri, max_rows_per_file=10)
    dataset.create_scalar_index("x", "ZONEMAP")
    assert dataset.stats.index_stats("x_idx")["indices"][0]["num_zones"] == 100
    dataset.optimize.compact_files()
    assert dataset.stats.index_stats("x_idx")["indices"][0]["num_zones"] == 1


WORDS = ["", "a", "ab", "abc", "b", "zz", "\U0010ffff", "é"]
FLOATS = [-math.inf, -1.5, -0.0, 0.0, 0.5, 7.0, math.inf, math.nan]
CONDITIONS = {
    "number": ["{} = {}", "{} != {}", "{} < {}", "{} <= {}", "{} > {}", "{} >= {}"],
    "any": [
        "{0} IS NULL",
        "{0} IS NOT NULL",
        "{0} IN ({1}, {2})",
        "NOT ({0} IN ({1}, {2}))",
        "{0} BETWEEN {1} AND {2}",
    ],
}


@st.composite
def conditions(draw: st.DrawFn) -> str:
    column = draw(st.sampled_from(["i", "f", "s"]))
    literals = {
        "i": [str(number) for number in range(-3, 12)],
        "f": [f"CAST('{value}' AS DOUBLE)" for value in ("-inf", "-1.5", "-0.0", "0.0", "0.5", "7", "inf", "nan")],
        "s": [f"'{word}'" for word in WORDS],
    }[column]
    first, second = draw(st.sampled_from(literals)), draw(st.sampled_from(literals))
    shapes = CONDITIONS["number"] + CONDITIONS["any"] + (["{0} LIKE 'a%'", "{0} LIKE '%b'"] if column == "s" else [])
    text = draw(st.sampled_from(shapes)).format(column, first, second)
    return f"NOT ({text})" if draw(st.booleans()) else text


@settings(max_examples=25)
@given(seed=st.integers(0, 2**16), texts=st.lists(conditions(), min_size=3, max_size=8), data=st.data())
def test_the_answer_with_zone_maps_is_the_answer_without(
    tmp_path_factory: pytest.TempPathFactory, seed: int, texts: list[str], data: st.DataObject
) -> None:
    chance = random.Random(seed)

    def some(num_rows: int) -> pa.Table:
        base = chance.randrange(8)
        numbers = [chance.choice([None, base, base + 1, base + 2]) for _ in range(num_rows)]
        floats = [chance.choice([None, *FLOATS]) for _ in range(num_rows)]
        words = [chance.choice([None, *WORDS[base % 4 :]]) for _ in range(num_rows)]
        return pa.table({"i": pa.array(numbers, pa.int64()), "f": pa.array(floats, pa.float64()), "s": words})

    uri = str(tmp_path_factory.mktemp("zones") / "table")
    dataset = lance_ops.write_dataset(pa.concat_tables([some(6) for _ in range(4)]), uri, max_rows_per_file=9)
    for column in ("i", "f", "s"):
        dataset.create_scalar_index(column, IndexConfig("ZONEMAP", {"rows_per_zone": 4}))
    for step in data.draw(st.lists(st.sampled_from(["delete", "append", "update", "compact", "optimize"]), max_size=4)):
        if step == "delete":
            dataset.delete(f"_rowaddr % 5 = {chance.randrange(5)}")
        elif step == "append":
            dataset.insert(some(5))
        elif step == "update":
            dataset.update({"i": "i + 3"}, where="i = 4")
        elif step == "compact":
            dataset.optimize.compact_files()
        else:
            dataset.optimize.optimize_indices()
    texts += [f"({texts[0]}) AND ({texts[1]})", f"({texts[0]}) OR ({texts[2]})"]
    for text in texts:
        answers = [
            dataset.scanner(filter=text, columns=[], with_row_address=True, use_scalar_index=used).to_table()
            for used in (True, False)
        ]
        with_index, without = (sorted(answer.column("_rowaddr").to_pylist()) for answer in answers)
        assert with_index == without, text
    assert dataset.verify().ok


@pytest.mark.parametrize("other", ["key % 2 = 1", "key != 7", "key + 1 > 3 AND key < 9"])
def test_a_btree_answers_what_it_can_beside_a_zone_map_that_answers_more(
    dataset: lance_ops.LanceDataset, other: str
) -> None:
    dataset.create_scalar_index("key", "BTREE", name="by_key")
    condition = f"key = 5 AND {other}"
    assert "@by_key(BTREE)" in dataset.scanner(filter=condition).explain_plan()
    request = ScanRequest(dataset.snapshot.schema, bind_filter(dataset.snapshot, condition))
    assert plan_scan(dataset.snapshot, request).num_physical_rows == 1
    assert rows(dataset, condition) == rows(dataset, condition, indexed=False) != []
